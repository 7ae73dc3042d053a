// The networks of one group: the way forward, the way back, and the step.
#pragma once

#include <vector>

#include "heads.h"
#include "losses.h"

namespace paritylab::PARITYLAB_ISA {

// Moves a parameter by `amount` times a standard normal, in the lanes where that is not 0.
inline void kick(vf& theta, const Key<vu>& leaf, vu element, vf amount, vi where) {
    const vf moved = fma(amount, standard_normal(random_bits(leaf, element)), theta);
    theta = select(where & (amount != 0.0f), moved, theta);
}

template <class L>
class Network {
public:
    using Layout = L;
    using Block = PARITYLAB_ISA::Block<L>;
    static constexpr bool FUSES = true;  // has backward_single

    explicit Network(const Config& config)
        : config_(config),
          tiles_(plan_tiles<L>(config)),
          theta_(config),
          gradient_(config, config.batch > L::BLOCK),  // the sums over one block never leave the registers
          after_(config.family == Family::polynet ? L::vectors(config.width) : 0) {}

    void put(int slot, const Parameters& parameters) { load<L>(config_, tiles_, parameters, slot, theta_); }
    void clear(int slot) { theta_.clear(slot); }
    Parameters get(int slot) { return save<L>(config_, tiles_, theta_, slot); }
    vf nan_unless_finite() const { return PARITYLAB_ISA::nan_unless_finite(theta_); }

    void forward(Block& block) {
        for (const Tile& tile : tiles_) {
            PARITYLAB_ISA::forward<L>(tile, block.inputs, block.count, weights(tile), &theta_.b[tile.first],
                                      block.tile(tile));
        }
        head_forward(block);
    }

    // Adds the block to the batch's gradient; the last block also moves the parameters.
    void backward(Block& block, BatchPart part, vf lr) {
        const Update update[2] = {make_update(config_, lr, config_.rates[0]), make_update(config_, lr, config_.rates[1])};
        if (part.first) clear_gradient();
        head_backward(block);
        if (part.last) move_all_but_weights(update);
        for (const Tile& tile : tiles_) {
            // With one block per batch the sums have no use for memory; any address will do.
            vf* sums = gradient_.W.empty() ? weights(tile) : &gradient_.W[offset(tile)];
            PARITYLAB_ISA::backward<L>(tile, block.inputs, block.count, block.tile(tile), weights(tile), sums, part,
                                       update[0]);
        }
    }

    // A batch of one; with `next`, also the way forward of the next step.
    void backward_single(Block& block, Block* next, vf lr) {
        const Update update[2] = {make_update(config_, lr, config_.rates[0]), make_update(config_, lr, config_.rates[1])};
        clear_gradient();
        head_backward(block);
        move_all_but_weights(update);
        Block& to = next ? *next : block;
        for (const Tile& tile : tiles_) {
            const auto tile_step =
                next ? PARITYLAB_ISA::backward_single<L, true> : PARITYLAB_ISA::backward_single<L, false>;
            tile_step(tile, block.inputs, to.inputs, block.tile(tile), weights(tile), update[0], &theta_.b[tile.first],
                      to.tile(tile));
        }
        if (next) head_forward(*next);
    }

    // Moves every parameter by lr tau, times the rate of its layer, times a standard normal.
    void add_noise(const Key<vu>& key, vf lr, vf tau) {
        const vf size[2] = {-(lr * config_.rates[0]) * tau, -(lr * config_.rates[1]) * tau};
        const auto leaf = [&](uint32_t number) { return fold_in(key, broadcast(number)); };
        const uint32_t biases = config_.bias;  // the arrays are numbered b, W, c, u, or W, u where there are no biases
        const Key<vu> leaves[] = {leaf(0), leaf(biases), leaf(2), leaf(1 + 2 * biases)};
        for (const Tile& tile : tiles_) {
            for (int i = 0; i < tile.units; ++i) {
                const vu unit = L::unit_index(tile.first + i);
                const vi valid = L::valid(tile.first + i, config_.width);
                if (config_.bias) kick(theta_.b[tile.first + i], leaves[0], unit, size[0], valid);
                for (int j = 0; j < config_.inputs; ++j) {
                    const vu element = unit + static_cast<uint32_t>(j) * static_cast<uint32_t>(config_.width);
                    kick(weights(tile)[j * tile.units + i], leaves[1], element, size[0], valid);
                }
                if (config_.family == Family::mlp) kick(theta_.u[tile.first + i], leaves[3], unit, size[1], valid);
            }
        }
        if (config_.family == Family::mlp && config_.bias) kick(theta_.c, leaves[2], vu{}, size[1], vi{} == 0);
    }

private:
    size_t offset(const Tile& tile) const { return static_cast<size_t>(tile.first) * config_.inputs; }
    vf* weights(const Tile& tile) { return &theta_.W[offset(tile)]; }

    void head_forward(Block& block) {
        if (config_.family == Family::polynet) return polynet_forward(tiles_, block);
        with_activation(config_, [&](const auto& act) {
            if (config_.family == Family::mlp) return mlp_forward(act, tiles_, theta_, block);
            neuron_forward(act, block);
        });
    }

    // From f to g = d loss / d z, in place of z; the gradients of all but W are added up on the way.
    void head_backward(Block& block) {
        const vf share = broadcast(1.0f / static_cast<float>(config_.batch));
        with_loss(config_, [&](const auto& loss) {
            for (int s = 0; s < block.count; ++s) block.slope[s] = share * loss.slope(block.f[s], block.y[s]);
        });
        if (config_.family == Family::polynet) return polynet_backward(tiles_, block, after_, gradient_);
        with_activation(config_, [&](const auto& act) {
            if (config_.family == Family::mlp) return mlp_backward(act, tiles_, theta_, block, gradient_);
            neuron_backward(act, block, gradient_);
        });
    }

    // W is the tiles' business. Nothing needs the old values any more: g is made.
    void move_all_but_weights(const Update (&update)[2]) {
        const int vectors = L::vectors(config_.width);
        for (int v = 0; config_.bias && v < vectors; ++v) theta_.b[v] = update[0](theta_.b[v], gradient_.b[v]);
        if (config_.family != Family::mlp) return;
        for (int v = 0; v < vectors; ++v) theta_.u[v] = update[1](theta_.u[v], gradient_.u[v]);
        const int last = vectors - 1;
        theta_.u[last] = select(L::valid(last, config_.width), theta_.u[last], vf{});
        if (config_.bias) theta_.c = update[1](theta_.c, gradient_.c);
    }

    void clear_gradient() {
        for (vf& g : gradient_.b) g = vf{};
        for (vf& g : gradient_.u) g = vf{};
        gradient_.c = vf{};
    }

    const Config& config_;
    std::vector<Tile> tiles_;
    Registers<L> theta_;
    Registers<L> gradient_;
    std::vector<vf> after_;  // polynet's scratch
};

}  // namespace paritylab::PARITYLAB_ISA
