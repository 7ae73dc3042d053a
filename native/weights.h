// The parameters of a group's runs, their gradient, what an optimiser remembers of them, and how they move.
#pragma once

#include <array>
#include <vector>

#include "optimisers.h"
#include "parameters.h"

namespace paritylab::PARITYLAB_ISA {

// Moves a parameter by `amount` times a standard normal, in the lanes where that is not 0.
PARITYLAB_ONCE void kick(vf& theta, const Key<vu>& leaf, vu element, vf amount, vi where) {
    const vf moved = fma(amount, standard_normal(random_bits(leaf, element)), theta);
    theta = select(where & (amount != 0.0f), moved, theta);
}

template <class L>
class Weights {
public:
    using Layout = L;

    Weights(const Config& config, bool keeps_gradient)
        : config_(config),
          tiles_(plan_tiles<L>(config)),
          theta_(config),
          gradient_(config, keeps_gradient),
          first_(config, !config.plain()),
          second_(config, !config.plain()) {}

    void put(int slot, const Parameters& parameters) {
        clear(slot);
        load<L>(config_, tiles_, parameters, slot, theta_);
    }
    void clear(int slot) {
        for (Registers<L>* all : {&theta_, &first_, &second_}) all->clear(slot);
    }
    Parameters get(int slot) { return save<L>(config_, tiles_, theta_, slot); }
    vf nan_unless_finite() const { return PARITYLAB_ISA::nan_unless_finite(theta_); }

    // Moves the parameters by the rule, once the batch's gradient is complete.
    void step(const Step& step) {
        const vf scale = config_.clip > 0 ? clipping(config_, squared_norm()) : broadcast(1.0f);
        const vi moves = config_.skips_satisfied ? moving() : vi{} == 0;
        with_rule(config_, step, [&](const auto& rule) {
            const Move hidden(config_, rule, scale, step.lr, config_.rates[0], moves);
            const Move head(config_, rule, scale, step.lr, config_.rates[1], moves);
            move(hidden, theta_.W, gradient_.W, first_.W, second_.W);
            if (config_.bias) move(hidden, theta_.b, gradient_.b, first_.b, second_.b);
            if (config_.family != Family::mlp) return;
            move(head, theta_.u, gradient_.u, first_.u, second_.u);
            if (config_.head_bias) move(head, theta_.c, gradient_.c, first_.c, second_.c);
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
    size_t offset(const Tile& tile) const { return static_cast<size_t>(tile.first) * config_.inputs; }
    vf* weights(Registers<L>& of, const Tile& tile) { return &of.W[offset(tile)]; }
    vf* weights(const Tile& tile) { return weights(theta_, tile); }

    // W is the tiles' business. Nothing needs the old values any more: g is made.
    void move_all_but_weights(const Update (&update)[2]) {
        const int vectors = L::vectors(config_.width);
        for (int v = 0; config_.bias && v < vectors; ++v) theta_.b[v] = update[0](theta_.b[v], gradient_.b[v]);
        if (config_.family != Family::mlp) return;
        for (size_t v = 0; v < theta_.u.size(); ++v) theta_.u[v] = update[1](theta_.u[v], gradient_.u[v]);
        const vi valid = L::valid(vectors - 1, config_.width);
        for (size_t last = vectors - 1; last < theta_.u.size(); last += vectors) {
            theta_.u[last] = select(valid, theta_.u[last], vf{});
        }
        for (int j = 0; config_.head_bias && j < config_.outputs; ++j) theta_.c[j] = update[1](theta_.c[j], gradient_.c[j]);
    }

    void clear_gradient() {
        for (std::vector<vf>* all : {&gradient_.b, &gradient_.u, &gradient_.c}) {
            for (vf& g : *all) g = vf{};
        }
    }

private:
    void add_noise(Registers<L>& to, const Key<vu>& key, std::array<vf, 2> size) {
        const auto leaf = [&](uint32_t number) { return fold_in(key, broadcast(number)); };
        const auto outputs = static_cast<uint32_t>(config_.outputs);
        const uint32_t b = config_.bias, c = config_.head_bias;  // the arrays are numbered b, W, c, u, those there are
        const Key<vu> leaves[] = {leaf(0), leaf(b), leaf(b + 1), leaf(b + 1 + c)};
        for (const Tile& tile : tiles_) {
            for (int i = 0; i < tile.units; ++i) {
                const vu unit = L::unit_index(tile.first + i);
                const vi valid = L::valid(tile.first + i, config_.width);
                if (config_.bias) kick(to.b[tile.first + i], leaves[0], unit, size[0], valid);
                for (int j = 0; j < config_.inputs; ++j) {
                    const vu element = unit + static_cast<uint32_t>(j) * static_cast<uint32_t>(config_.width);
                    kick(weights(to, tile)[j * tile.units + i], leaves[1], element, size[0], valid);
                }
                for (uint32_t j = 0; config_.family == Family::mlp && j < outputs; ++j) {
                    kick(to.u[j * to.b.size() + tile.first + i], leaves[3], unit * outputs + j, size[1], valid);
                }
            }
        }
        for (uint32_t j = 0; config_.family == Family::mlp && config_.head_bias && j < outputs; ++j) {
            kick(to.c[j], leaves[2], broadcast(j), size[1], vi{} == 0);
        }
    }

    template <class M>
    static void move(const M& by, std::vector<vf>& theta, const std::vector<vf>& gradient, std::vector<vf>& first,
                     std::vector<vf>& second) {
        for (size_t i = 0; i < theta.size(); ++i) by(theta[i], gradient[i], first[i], second[i]);
    }

    // The slots whose gradient is not all 0.
    vi moving() const {
        vf partial[L::PARTIAL_SUMS]{};
        for (const std::vector<vf>* all : {&gradient_.W, &gradient_.b, &gradient_.u}) partial[0] += not_zero(*all);
        vi moving = L::sum(partial) != 0.0f;
        for (int j = 0; config_.head_bias && j < config_.outputs; ++j) moving |= gradient_.c[j] != 0.0f;
        return moving;
    }

    // Unit by unit, each over its inputs: an order that tiles and instruction sets do not change.
    vf squared_norm() {
        const bool hidden = config_.rates[0] != 0, head = config_.rates[1] != 0 && config_.family == Family::mlp;
        vf partial[L::PARTIAL_SUMS]{};
        for (const Tile& tile : tiles_) {
            for (int i = 0; i < tile.units; ++i) {
                const int v = tile.first + i;
                vf sum{};
                if (hidden && config_.bias) sum += gradient_.b[v] * gradient_.b[v];
                for (int j = 0; hidden && j < config_.inputs; ++j) {
                    const vf g = weights(gradient_, tile)[j * tile.units + i];
                    sum += g * g;
                }
                for (size_t at = v; head && at < gradient_.u.size(); at += gradient_.b.size()) {
                    sum += gradient_.u[at] * gradient_.u[at];
                }
                partial[v % L::PARTIAL_SUMS] += select(L::valid(v, config_.width), sum, vf{});
            }
        }
        vf total = L::sum(partial);
        for (int j = 0; head && config_.head_bias && j < config_.outputs; ++j) total += gradient_.c[j] * gradient_.c[j];
        return total;
    }

    // Of the units that pad the last registers; a rule that divides 0 by 0 must not make a number of them.
    void keep_padding_at_zero() {
        if (L::SLOTS > 1) return;
        const Tile& tile = tiles_.back();
        for (int v = config_.width / LANES; v < L::vectors(config_.width); ++v) {
            const vi valid = L::valid(v, config_.width);
            for (Registers<L>* all : {&theta_, &first_, &second_}) {
                all->b[v] = select(valid, all->b[v], vf{});
                for (size_t at = v; at < all->u.size(); at += all->b.size()) all->u[at] = select(valid, all->u[at], vf{});
                for (int j = 0; j < config_.inputs; ++j) {
                    vf& w = weights(*all, tile)[j * tile.units + (v - tile.first)];
                    w = select(valid, w, vf{});
                }
            }
        }
    }

protected:
    const Config& config_;
    std::vector<Tile> tiles_;
    Registers<L> theta_;
    Registers<L> gradient_;
    Registers<L> first_, second_;  // what the optimiser remembers
};

}  // namespace paritylab::PARITYLAB_ISA
