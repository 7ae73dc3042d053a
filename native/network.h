// The networks of one group: the way forward, the way back, and the step.
#pragma once

#include <vector>

#include "heads.h"
#include "losses.h"
#include "weights.h"

namespace paritylab::PARITYLAB_ISA {

template <class L>
class Network : public Weights<L> {
    using Base = Weights<L>;
    using Base::clear_gradient, Base::config_, Base::gradient_, Base::move_all_but_weights, Base::offset, Base::theta_;
    using Base::tiles_, Base::weights;

public:
    using Block = PARITYLAB_ISA::Block<L>;
    static constexpr bool FUSES = true;  // has backward_single
    static constexpr bool SHALLOW = true;
    static constexpr bool DRAWS_AHEAD = false;

    // Of plain SGD the sums over one block never leave the registers.
    explicit Network(const Config& config)
        : Base(config, config.batch > L::BLOCK || !config.plain()),
          after_(config.family == Family::polynet ? L::vectors(config.width) : 0) {}

    void look(Block& block) { forward(block); }
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

    // Adds the block to the batch's gradient, for a rule that is not plain SGD.
    void accumulate(Block& block, bool first) {
        if (first) clear_gradient();
        head_backward(block);
        for (const Tile& tile : tiles_) {
            PARITYLAB_ISA::backward<L>(tile, block.inputs, block.count, block.tile(tile), weights(theta_, tile),
                                       weights(gradient_, tile), {first, false}, Update{});
        }
    }

private:
    void head_forward(Block& block) {
        if (config_.family == Family::polynet) return polynet_forward(tiles_, block);
        with_activation(config_, [&](const auto& act) {
            if (config_.family == Family::mlp) return mlp_forward(act, tiles_, theta_, block);
            neuron_forward(act, block);
        });
    }

    // From f to g = d loss / d z, in place of z; the gradients of all but W are added up on the way.
    void head_backward(Block& block) {
        with_loss(config_, [&](const auto& loss) {
            for (int s = 0; s < block.count; ++s) block.slope[s] = block.share * loss.slope(block.f[s], block.y[s]);
        });
        for (int s = 0; !block.even && s < block.count; ++s) {
            block.slope[s] = select(broadcast(static_cast<uint32_t>(s)) < block.counted, block.slope[s], vf{});
        }
        if (config_.family == Family::polynet) return polynet_backward(tiles_, block, after_, gradient_);
        with_activation(config_, [&](const auto& act) {
            if (config_.family == Family::mlp) return mlp_backward(act, tiles_, theta_, block, gradient_);
            neuron_backward(act, block, gradient_);
        });
    }

    std::vector<vf> after_;  // polynet's scratch
};

}  // namespace paritylab::PARITYLAB_ISA
