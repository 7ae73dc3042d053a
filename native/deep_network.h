// A deep MLP, one run at a time: any number of hidden layers and a linear head.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "deep_backward.h"
#include "network.h"

namespace paritylab::PARITYLAB_ISA {

class DeepNetwork {
public:
    using Layout = DeepUnits;
    using Block = Samples<DeepUnits>;
    static constexpr bool FUSES = false;

    explicit DeepNetwork(const Config& config) : config_(config), inputs_(config.inputs), scratch_(widest(config)) {
        const std::vector<int> sizes = config.sizes();
        for (size_t l = 1; l < sizes.size(); ++l) layers_.emplace_back(sizes[l - 1], sizes[l], config.batch <= SAMPLES);
        u_.resize(layers_.back().vectors());
        u_sums_.resize(u_.size());
        for (int j = 0; j < config.inputs; ++j) {
            inputs_.by_unit[j] = ~uint64_t{0};
            for (int s = 0; s < SAMPLES; ++s) inputs_.by_sample[j / 64 * SAMPLES + s] |= uint64_t{1} << j % 64;
        }
    }

    void put(int /*slot*/, const Parameters& from) {
        clear(0);
        each_parameter([&](float& here, std::vector<float> Parameters::*member, size_t at) { here = (from.*member)[at]; });
        c_ = broadcast(from.c);
    }

    Parameters get(int /*slot*/) {
        Parameters to;
        to.W.resize(config_.weights());
        to.b.resize(config_.units());
        to.u.resize(config_.width);
        each_parameter([&](float& here, std::vector<float> Parameters::*member, size_t at) { (to.*member)[at] = here; });
        to.c = c_[0];
        return to;
    }

    void clear(int /*slot*/) {
        each_array([](std::vector<vf>& all) { std::fill(all.begin(), all.end(), vf{}); });
        c_ = vf{};
    }

    vf nan_unless_finite() {
        vf sums[8]{};  // independent, or each addition would wait for the one before
        each_array([&](std::vector<vf>& all) {
            for (size_t i = 0; i < all.size(); ++i) sums[i % 8] += all[i] * 0.0f;
        });
        vf partial[PARTS]{};
        partial[0] = c_ * 0.0f;
        for (const vf& sum : sums) partial[0] += sum;
        return DeepUnits::sum(partial);
    }

    void forward(Block& block) {
        for (int s = 0; s < block.count; ++s) {
            for (int word = 0; word < config_.words(); ++word) {
                const int bits = std::min(config_.inputs - word * 32, 32);
                float* to = reinterpret_cast<float*>(inputs_.row(s)) + word * 32;
                std::copy_n(block.inputs.row(word, s).x, bits, to);
            }
        }
        for (size_t l = 0; l < layers_.size(); ++l) {
            PARITYLAB_ISA::forward(layers_[l], signals(l), block.count);
            with_activation(config_, [&](const auto& act) { activate(act, layers_[l], block.count); });
        }
        const Signals& top = layers_.back().out;
        for (int s = 0; s < block.count; ++s) {
            vf sum[PARTS]{};
            for (size_t v = 0; v < u_.size(); ++v) sum[v % PARTS] = fma(u_[v], top.row(s)[v], sum[v % PARTS]);
            block.f[s] = c_ + DeepUnits::sum(sum);
        }
    }

    // Adds the block to the batch's gradient; the last block also moves the parameters.
    void backward(Block& block, BatchPart part, vf lr) {
        if (part.first) clear_gradient();
        const uint64_t going = head_backward(block);
        if (part.last) move_head(lr);
        for (size_t l = layers_.size(); l-- > 0;) {
            DeepLayer& layer = layers_[l];
            const Update update = make_update(config_, lr, config_.rates[l]);
            add_biases(layer, going);
            if (part.last && config_.bias) {
                for (size_t v = 0; v < layer.b.size(); ++v) layer.b[v] = update(layer.b[v], layer.b_sums[v]);
            }
            if (l > 0) {
                DeepBackward<true>(layer, signals(l), going, part, update, scratch_)(&layers_[l - 1]);
            } else {
                DeepBackward<false>(layer, signals(l), going, part, update, scratch_)(nullptr);
            }
        }
    }

    void add_noise(const Key<vu>& key, vf lr, vf tau) {
        uint32_t number = 0;  // the arrays are numbered b, W, b, W, ..., or W, W, ... where there are no biases
        const auto next = [&] { return fold_in(key, broadcast(number++)); };
        for (size_t l = 0; l < layers_.size(); ++l) {
            DeepLayer& layer = layers_[l];
            const vf size = -(lr * config_.rates[l]) * tau;
            if (config_.bias) kick_row(layer.b.data(), 0, layer.vectors(), layer.width, next(), 0, size);
            const Key<vu> leaf = next();
            for (const Tile& panel : layer.panels) {
                for (int i = 0; i < layer.inputs; ++i) {
                    vf* row = &layer.W[layer.weights_at(panel) + static_cast<size_t>(i) * panel.units];
                    kick_row(row, panel.first, panel.units, layer.width, leaf, uint32_t(i) * layer.width, size);
                }
            }
        }
        const vf size = -(lr * config_.rates.back()) * tau;
        if (config_.bias) kick(c_, next(), vu{}, size, vi{} == 0);
        kick_row(u_.data(), 0, static_cast<int>(u_.size()), config_.width, next(), 0, size);
    }

private:
    static int widest(const Config& config) {
        return config.below.empty() ? 0 : *std::max_element(config.below.begin(), config.below.end());
    }

    const Signals& signals(size_t l) const { return l == 0 ? inputs_ : layers_[l - 1].out; }

    static void kick_row(vf* row, int first, int vectors, int width, const Key<vu>& leaf, uint32_t element, vf size) {
        for (int v = 0; v < vectors; ++v) {
            const vu unit = DeepUnits::unit_index(first + v);
            kick(row[v], leaf, unit + element, size, DeepUnits::valid(first + v, width));
        }
    }

    template <class Work>
    void each_array(Work&& work) {
        for (DeepLayer& layer : layers_) work(layer.W), work(layer.b);
        work(u_);
    }

    // Calls work(place, member of Parameters, index there) for all but c.
    template <class Work>
    void each_parameter(Work&& work) {
        size_t weights = 0, units = 0;
        const auto unit_of = [](std::vector<vf>& all, int unit) -> float& {
            return reinterpret_cast<float*>(all.data())[unit];
        };
        for (DeepLayer& layer : layers_) {
            for (const Tile& panel : layer.panels) {
                float* w = reinterpret_cast<float*>(&layer.W[layer.weights_at(panel)]);
                const int first = panel.first * LANES, columns = panel.units * LANES;
                for (int i = 0; i < layer.inputs; ++i, w += columns) {
                    for (int u = 0; u < std::min(columns, layer.width - first); ++u) {
                        work(w[u], &Parameters::W, weights + static_cast<size_t>(i) * layer.width + first + u);
                    }
                }
            }
            for (int unit = 0; unit < layer.width; ++unit) work(unit_of(layer.b, unit), &Parameters::b, units + unit);
            weights += static_cast<size_t>(layer.inputs) * layer.width;
            units += layer.width;
        }
        for (int unit = 0; unit < config_.width; ++unit) work(unit_of(u_, unit), &Parameters::u, unit);
    }

    // From f to d loss / d z of the last layer. Samples whose loss is flat are left out from here on.
    uint64_t head_backward(Block& block) {
        const vf share = broadcast(1.0f / static_cast<float>(config_.batch));
        uint64_t going = 0;
        with_loss(config_, [&](const auto& loss) {
            for (int s = 0; s < block.count; ++s) {
                block.slope[s] = share * loss.slope(block.f[s], block.y[s]);
                going |= uint64_t{block.slope[s][0] != 0.0f} << s;
            }
        });
        DeepLayer& top = layers_.back();
        for (uint64_t left = going; left != 0; left &= left - 1) {
            const int s = std::countr_zero(left);
            const vf slope = block.slope[s];
            c_sum_ += slope;
            for (const Tile& panel : top.panels) {
                vf* z = &top.z[top.block_at(panel) + s * panel.units];
                for (int u = 0; u < panel.units; ++u) {
                    const int v = panel.first + u;
                    u_sums_[v] = fma(slope, top.out.row(s)[v], u_sums_[v]);
                    z[u] *= slope * u_[v];
                }
            }
        }
        return going;
    }

    void move_head(vf lr) {
        const Update update = make_update(config_, lr, config_.rates.back());
        for (size_t v = 0; v < u_.size(); ++v) u_[v] = update(u_[v], u_sums_[v]);
        if (config_.bias) c_ = update(c_, c_sum_);
    }

    static void add_biases(DeepLayer& layer, uint64_t going) {
        for (const Tile& panel : layer.panels) {
            for (uint64_t left = going; left != 0; left &= left - 1) {
                const vf* z = &layer.z[layer.block_at(panel) + std::countr_zero(left) * panel.units];
                for (int u = 0; u < panel.units; ++u) layer.b_sums[panel.first + u] += z[u];
            }
        }
    }

    void clear_gradient() {
        for (DeepLayer& layer : layers_) std::fill(layer.b_sums.begin(), layer.b_sums.end(), vf{});
        std::fill(u_sums_.begin(), u_sums_.end(), vf{});
        c_sum_ = vf{};
    }

    const Config& config_;
    Signals inputs_;
    std::vector<DeepLayer> layers_;
    std::vector<vf> u_, u_sums_;
    vf c_{}, c_sum_{};
    DeepScratch scratch_;
};

}  // namespace paritylab::PARITYLAB_ISA
