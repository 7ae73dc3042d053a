// The parameters of one run in pairs of units, their gradient, what an optimiser remembers of them, and how they move.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "counts.h"
#include "optimisers.h"
#include "stock.h"
#include "weights.h"

namespace paritylab::PARITYLAB_ISA {

// How the weights of a layer of n inputs lie: [pair of units][input][unit]. Behind the last five inputs there is one more, which is
// always +1: the biases. Whole octets of inputs are kept.
struct PairShape {
    static constexpr int STRIDE = 2 * WORD;
    int inputs, width, pairs, fives, bias, octets;

    explicit PairShape(const Config& config)
        : inputs(config.inputs),
          width(config.width),
          pairs((width + 1) / 2),
          fives((inputs + FIVE - 1) / FIVE),
          bias(FIVE * fives),
          octets((bias + OCTET) / OCTET) {}

    int registers() const { return octets * SETS; }  // of a pair, that are used
    size_t first(int pair) const { return static_cast<size_t>(pair) * stride() / LANES; }
    // Numbers of a pair: whole words of inputs, so that it is a constant where one is enough.
    int stride() const { return (octets + 3) / 4 * STRIDE; }
};

// All numbers of one kind: parameters, a gradient, what is remembered.
struct PairNumbers {
    std::vector<vf> W;
    std::vector<vf> u;  // of units, in order
    vf c{};

    PairNumbers(const PairShape& shape, bool there = true)
        : W(there ? shape.first(shape.pairs) : 0), u(there ? (shape.width + 15) / 16 * (16 / LANES) : 0) {}

    float* weights() { return reinterpret_cast<float*>(W.data()); }
    const float* weights() const { return reinterpret_cast<const float*>(W.data()); }
    float* outputs() { return reinterpret_cast<float*>(u.data()); }
    const float* outputs() const { return reinterpret_cast<const float*>(u.data()); }
    void clear() {
        std::fill(W.begin(), W.end(), vf{});
        std::fill(u.begin(), u.end(), vf{});
        c = vf{};
    }
};

class PairWeights {
public:
    explicit PairWeights(const Config& config, bool moves = true)
        : config_(config),
          shape_(config),
          theta_(shape_),
          gradient_(shape_, moves && !config.plain()),
          first_(shape_, moves && !config.plain()),
          second_(shape_, moves && !config.plain()),
          there_(shape_.stride() / LANES) {
        for (int row = 0; row < shape_.octets * OCTET; ++row) {
            const bool there = row < shape_.inputs || (row == shape_.bias && config.bias);
            for (int unit = 0; unit < 2; ++unit) there_[(2 * row + unit) / LANES][(2 * row + unit) % LANES] = there ? ~0u : 0;
        }
    }

    void put(int /*slot*/, const Parameters& from) {
        clear(0);
        load(from);
    }
    void load(const Parameters& from) {
        each_weight([&](float& here, int row, int unit) {
            here = row == shape_.bias ? from.b[unit] : from.W[static_cast<size_t>(row) * shape_.width + unit];
        });
        for (int unit = 0; unit < shape_.width && config_.family == Family::mlp; ++unit) theta_.outputs()[unit] = from.u[unit];
        theta_.c = broadcast(config_.family == Family::mlp ? from.c[0] : 0.0f);
    }
    void clear(int /*slot*/) {
        for (PairNumbers* all : {&theta_, &first_, &second_}) all->clear();
    }
    Parameters get(int /*slot*/) {
        Parameters to;
        to.W.resize(static_cast<size_t>(shape_.inputs) * shape_.width);
        to.b.resize(shape_.width);
        each_weight([&](float& here, int row, int unit) {
            (row == shape_.bias ? to.b[unit] : to.W[static_cast<size_t>(row) * shape_.width + unit]) = here;
        });
        to.u.assign(theta_.outputs(), theta_.outputs() + shape_.width);
        to.c = {theta_.c[0]};
        return to;
    }

    vf nan_unless_finite() const {
        vf sums[4]{};  // independent, or each addition would wait for the one before
        for (size_t i = 0; i < theta_.W.size(); ++i) sums[i % 4] += theta_.W[i] * 0.0f;
        vf total = theta_.c * 0.0f;
        for (const vf& u : theta_.u) total += u * 0.0f;
        for (const vf& sum : sums) total += sum;
        float all = 0;
        for (int lane = 0; lane < LANES; ++lane) all += total[lane];
        return broadcast(all);
    }

    // Moves the parameters by the rule, once the batch's gradient is complete.
    void step(const Step& step) {
        const vf scale = config_.clip > 0 ? clipping(config_, squared_norm()) : broadcast(1.0f);
        const vi moves = config_.skips_satisfied ? moving() : vi{} == 0;
        with_rule(config_, step, [&](const auto& rule) {
            const Move hidden(config_, rule, scale, step.lr, config_.rates[0], moves);
            const Move head(config_, rule, scale, step.lr, config_.rates[1], moves);
            for (size_t i = 0; i < theta_.W.size();) {
                for (const vu& there : there_) {  // a rule that divides 0 by 0 must not make a number of what is not there
                    hidden(theta_.W[i], gradient_.W[i], first_.W[i], second_.W[i]);
                    theta_.W[i] = (vf)((vu)theta_.W[i] & there);
                    ++i;
                }
            }
            for (size_t v = 0; v < theta_.u.size(); ++v) head(theta_.u[v], gradient_.u[v], first_.u[v], second_.u[v]);
            if (config_.head_bias) head(theta_.c, gradient_.c, first_.c, second_.c);
        });
        keep_padding_at_zero();
    }

    // Adds tau times a standard normal to every number of the gradient.
    void add_noise_to_gradient(const Key<vu>& key, vf tau) { add_noise(gradient_, key, {tau, tau}); }

    // Moves every parameter by lr tau, times the rate of its layer, times a standard normal.
    void add_noise(const Key<vu>& key, vf lr, vf tau) {
        add_noise(theta_, key, {-(lr * config_.rates[0]) * tau, -(lr * config_.rates[1]) * tau});
    }

protected:
    // Calls work(number, row, unit) for all weights and biases that there are.
    template <class Work>
    void each_weight(Work&& work) {
        for (int unit = 0; unit < shape_.width; ++unit) {
            float* w = theta_.weights() + static_cast<size_t>(unit / 2) * shape_.stride() + unit % 2;
            for (int row = 0; row < shape_.inputs; ++row) work(w[2 * row], row, unit);
            work(w[2 * shape_.bias], shape_.bias, unit);
        }
    }

    // Of a width that is odd, the second unit of the last pair; and the lanes of u behind the last unit.
    void keep_padding_at_zero() {
        if (shape_.width % 2 == 1) {
            float* w = theta_.weights() + static_cast<size_t>(shape_.pairs - 1) * shape_.stride();
            for (int row = 0; row < shape_.octets * OCTET; ++row) w[2 * row + 1] = 0;
        }
        for (int unit = shape_.width; unit < static_cast<int>(theta_.u.size()) * LANES; ++unit) theta_.outputs()[unit] = 0;
    }

    void add_noise(PairNumbers& to, const Key<vu>& key, std::array<vf, 2> size) {
        const auto leaf = [&](uint32_t number) { return fold_in(key, broadcast(number)); };
        const uint32_t b = config_.bias, c = config_.head_bias;  // the arrays are numbered b, W, c, u, those there are
        const Key<vu> leaves[] = {leaf(0), leaf(b), leaf(b + 1), leaf(b + 1 + c)};
        const vu width = broadcast(static_cast<uint32_t>(shape_.width)), inputs = broadcast(static_cast<uint32_t>(shape_.inputs));
        for (int p = 0; p < shape_.pairs; ++p) {
            const vu unit = (iota() & 1u) + static_cast<uint32_t>(2 * p);
            for (int i = 0; i < shape_.registers(); ++i) {
                const vu row = (iota() >> 1) + static_cast<uint32_t>(i * LANES / 2);
                vf& w = to.W[shape_.first(p) + i];
                kick(w, leaves[1], row * width + unit, size[0], (row < inputs) & (unit < width));
                if (config_.bias && i == shape_.bias * 2 / LANES) {
                    kick(w, leaves[0], unit, size[0], (row == static_cast<uint32_t>(shape_.bias)) & (unit < width));
                }
            }
        }
        for (size_t v = 0; v < to.u.size(); ++v) {
            const vu unit = iota() + static_cast<uint32_t>(v * LANES);
            kick(to.u[v], leaves[3], unit, size[1], unit < width);
        }
        if (config_.head_bias) kick(to.c, leaves[2], vu{}, size[1], vi{} == 0);
    }

    // All lanes, if any number of the gradient is not 0.
    vi moving() const {
        const vf any = not_zero(gradient_.W) + not_zero(gradient_.u) + select(gradient_.c != 0.0f, broadcast(1.0f), vf{});
        return broadcast(to_bits(any != 0.0f)) != 0u;
    }

    // Pair by pair, each over its inputs: an order that is the same on all instruction sets.
    vf squared_norm() const {
        float total = 0;
        const auto add = [&](vf sums) { total += sums[0] + sums[1]; };
        for (int p = 0; config_.rates[0] != 0 && p < shape_.pairs; ++p) {
            PairSum sum;
            for (int i = 0; i < shape_.registers(); ++i) {
                const vf g = gradient_.W[shape_.first(p) + i];
                sum.add(i, g, g);
            }
            add(sum.total());
        }
        if (config_.rates[1] == 0) return broadcast(total);
        for (int unit = 0; unit < shape_.width; ++unit) total += gradient_.outputs()[unit] * gradient_.outputs()[unit];
        if (config_.head_bias) total += gradient_.c[0] * gradient_.c[0];
        return broadcast(total);
    }

    const Config& config_;
    PairShape shape_;
    PairNumbers theta_, gradient_;
    PairNumbers first_, second_;  // what the optimiser remembers
    std::vector<vu> there_;       // of a pair's registers: which of their numbers there are
};

}  // namespace paritylab::PARITYLAB_ISA
