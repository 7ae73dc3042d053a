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
    static constexpr bool SHALLOW = false;
    static constexpr bool DRAWS_AHEAD = false;

    explicit DeepNetwork(const Config& config) : config_(config), inputs_(config.inputs), scratch_(widest(config)) {
        const std::vector<int> sizes = config.sizes();
        for (size_t l = 1; l < sizes.size(); ++l) layers_.emplace_back(sizes[l - 1], sizes[l], config.plain() && config.batch <= SAMPLES);
        u_.resize(layers_.back().vectors());
        u_sums_.resize(u_.size());
        if (!config.plain()) each_array([&](std::vector<vf>& all) { memory_.emplace_back(all.size()); });
        for (int j = 0; j < config.inputs; ++j) {
            inputs_.by_unit[j] = ~uint64_t{0};
            for (int s = 0; s < SAMPLES; ++s) inputs_.by_sample[j / 64 * SAMPLES + s] |= uint64_t{1} << j % 64;
        }
    }

    void put(int /*slot*/, const Parameters& from) {
        clear(0);
        each_parameter([&](float& here, std::vector<float> Parameters::*member, size_t at) { here = (from.*member)[at]; });
        c_ = broadcast(from.c[0]);
    }

    Parameters get(int /*slot*/) {
        Parameters to;
        to.W.resize(config_.weights());
        to.b.resize(config_.units());
        to.u.resize(config_.width);
        each_parameter([&](float& here, std::vector<float> Parameters::*member, size_t at) { (to.*member)[at] = here; });
        to.c = {c_[0]};
        return to;
    }

    void clear(int /*slot*/) {
        each_array([](std::vector<vf>& all) { std::fill(all.begin(), all.end(), vf{}); });
        c_ = vf{};
        for (Memory& memory : memory_) memory.clear();
        c_memory_.clear();
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

    void look(Block& block) { forward(block); }
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

    // Adds the block to the batch's gradient, for a rule that is not plain SGD.
    void accumulate(Block& block, bool first) {
        if (first) clear_gradient();
        const uint64_t going = head_backward(block);
        for (size_t l = layers_.size(); l-- > 0;) {
            DeepLayer& layer = layers_[l];
            add_biases(layer, going);
            const BatchPart part{first, false};
            if (l > 0) {
                DeepBackward<true>(layer, signals(l), going, part, Update{}, scratch_)(&layers_[l - 1]);
            } else {
                DeepBackward<false>(layer, signals(l), going, part, Update{}, scratch_)(nullptr);
            }
        }
    }

    // Moves the parameters by the rule, once the batch's gradient is complete.
    void step(const Step& step) {
        const vf scale = config_.clip > 0 ? clipping(config_, squared_norm()) : broadcast(1.0f);
        const vi moves = config_.skips_satisfied ? moving() : vi{} == 0;
        with_rule(config_, step, [&](const auto& rule) {
            size_t number = 0;
            const auto move = [&](const auto& by, std::vector<vf>& theta, const std::vector<vf>& gradient, int width) {
                Memory& memory = memory_[number++];
                for (size_t i = 0; i < theta.size(); ++i) by(theta[i], gradient[i], memory.first[i], memory.second[i]);
                keep_padding_at_zero(theta, width), keep_padding_at_zero(memory.first, width);
                keep_padding_at_zero(memory.second, width);
            };
            for (size_t l = 0; l < layers_.size(); ++l) {
                DeepLayer& layer = layers_[l];
                const Move by(config_, rule, scale, step.lr, config_.rates[l], moves);
                Memory& memory = memory_[number];
                move(by, layer.W, layer.W_sums, 0);
                for (std::vector<vf>* all : {&layer.W, &memory.first, &memory.second}) keep_padding_at_zero(layer, *all);
                config_.bias ? move(by, layer.b, layer.b_sums, layer.width) : void(++number);
            }
            const Move by(config_, rule, scale, step.lr, config_.rates.back(), moves);
            move(by, u_, u_sums_, config_.width);
            if (config_.head_bias) by(c_, c_sum_, c_memory_.first[0], c_memory_.second[0]);
        });
    }

    void add_noise_to_gradient(const Key<vu>& key, vf tau) {
        add_noise_to(key, [&](size_t) { return tau; }, &DeepLayer::W_sums, &DeepLayer::b_sums, u_sums_, c_sum_);
    }

    void add_noise(const Key<vu>& key, vf lr, vf tau) {
        const auto size = [&](size_t l) { return -(lr * config_.rates[l]) * tau; };
        add_noise_to(key, size, &DeepLayer::W, &DeepLayer::b, u_, c_);
    }

private:
    // What the optimiser remembers of one array.
    struct Memory {
        std::vector<vf> first, second;
        explicit Memory(size_t size) : first(size), second(size) {}
        void clear() {
            std::fill(first.begin(), first.end(), vf{});
            std::fill(second.begin(), second.end(), vf{});
        }
    };

    // Units that pad the last registers; a rule that divides 0 by 0 must not make a number of them. Of the biases:
    static void keep_padding_at_zero(std::vector<vf>& all, int width) {
        for (size_t v = width / LANES; width > 0 && v < all.size(); ++v) {
            all[v] = select(DeepUnits::valid(static_cast<int>(v), width), all[v], vf{});
        }
    }

    // And of the weights:
    static void keep_padding_at_zero(const DeepLayer& layer, std::vector<vf>& all) {
        const Tile& panel = layer.panels.back();
        for (int v = std::max(panel.first, layer.width / LANES); v < panel.first + panel.units; ++v) {
            const vi valid = DeepUnits::valid(v, layer.width);
            vf* w = &all[layer.weights_at(panel) + (v - panel.first)];
            for (int i = 0; i < layer.inputs; ++i) w[i * panel.units] = select(valid, w[i * panel.units], vf{});
        }
    }

    vi moving() const {
        vf partial[PARTS]{not_zero(u_sums_)};
        for (const DeepLayer& layer : layers_) partial[0] += not_zero(layer.W_sums) + not_zero(layer.b_sums);
        return (DeepUnits::sum(partial) != 0.0f) | (config_.head_bias ? c_sum_ != 0.0f : vi{});
    }

    // Unit by unit, each over its inputs: an order that instruction sets do not change.
    vf squared_norm() {
        vf total{};
        for (size_t l = 0; l < layers_.size(); ++l) {
            const DeepLayer& layer = layers_[l];
            if (config_.rates[l] == 0) continue;
            vf partial[PARTS]{};
            for (const Tile& panel : layer.panels) {
                for (int u = 0; u < panel.units; ++u) {
                    const int v = panel.first + u;
                    vf sum = config_.bias ? layer.b_sums[v] * layer.b_sums[v] : vf{};
                    for (int i = 0; i < layer.inputs; ++i) {
                        const vf g = layer.W_sums[layer.weights_at(panel) + static_cast<size_t>(i) * panel.units + u];
                        sum += g * g;
                    }
                    partial[v % PARTS] += select(DeepUnits::valid(v, layer.width), sum, vf{});
                }
            }
            total += DeepUnits::sum(partial);
        }
        if (config_.rates.back() == 0) return total;
        vf partial[PARTS]{};
        for (size_t v = 0; v < u_.size(); ++v) {
            const vf square = u_sums_[v] * u_sums_[v];
            partial[v % PARTS] += select(DeepUnits::valid(static_cast<int>(v), config_.width), square, vf{});
        }
        total += DeepUnits::sum(partial);
        return config_.head_bias ? total + c_sum_ * c_sum_ : total;
    }

    template <class Size>
    void add_noise_to(const Key<vu>& key, Size&& size_of, std::vector<vf> DeepLayer::*W, std::vector<vf> DeepLayer::*b,
                      std::vector<vf>& u, vf& c) {
        uint32_t number = 0;  // the arrays are numbered b, W, b, W, ..., or W, W, ... where there are no biases
        const auto next = [&] { return fold_in(key, broadcast(number++)); };
        for (size_t l = 0; l < layers_.size(); ++l) {
            DeepLayer& layer = layers_[l];
            const vf size = size_of(l);
            if (config_.bias) kick_row((layer.*b).data(), 0, layer.vectors(), layer.width, next(), 0, size);
            const Key<vu> leaf = next();
            for (const Tile& panel : layer.panels) {
                for (int i = 0; i < layer.inputs; ++i) {
                    vf* row = &(layer.*W)[layer.weights_at(panel) + static_cast<size_t>(i) * panel.units];
                    kick_row(row, panel.first, panel.units, layer.width, leaf, uint32_t(i) * layer.width, size);
                }
            }
        }
        const vf size = size_of(layers_.size());
        if (config_.head_bias) kick(c, next(), vu{}, size, vi{} == 0);
        kick_row(u.data(), 0, static_cast<int>(u.size()), config_.width, next(), 0, size);
    }

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
        uint64_t going = 0;
        with_loss(config_, [&](const auto& loss) {
            for (int s = 0; s < block.count; ++s) {
                block.slope[s] = block.share * loss.slope(block.f[s], block.y[s]);
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
        if (config_.head_bias) c_ = update(c_, c_sum_);
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
    std::vector<Memory> memory_;  // of each array, in the order of each_array; empty for plain SGD
    Memory c_memory_{1};
    DeepScratch scratch_;
};

}  // namespace paritylab::PARITYLAB_ISA
