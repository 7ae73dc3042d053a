// MLPs with one hidden layer of ReLU whose sums over inputs are looked up in tables, for large batches.
#pragma once

#include <algorithm>
#include <vector>

#include "heads.h"
#include "losses.h"
#include "table_layout.h"
#include "tables.h"
#include "weights.h"

namespace paritylab::PARITYLAB_ISA {

class TableNetwork : public Weights<UnitsByTable> {
    using L = UnitsByTable;

public:
    using Block = TableBlock;
    static constexpr bool FUSES = false;
    static constexpr bool SHALLOW = false;
    static constexpr bool DRAWS_AHEAD = false;

    explicit TableNetwork(const Config& config)
        : Weights(config, true),
          groups_(plan_groups(config)),
          table_(static_cast<size_t>(rows_of(groups_)) * L::MAX_UNITS),
          sums_(table_.size()),
          by_input_(static_cast<size_t>(config.inputs) * L::MAX_UNITS) {}

    void look(Block& block) { forward(block); }
    void forward(Block& block) {
        for (int j = 0; j < config_.outputs; ++j) {
            for (int r = 0; r * LANES < block.count; ++r) block.f_of(j)[r] = theta_.c[j];
        }
        // A row costs a few cycles, an input that is added by itself one or two for each sample.
        const bool worth_a_table = block.count * 8 >= rows_of(groups_);
        for (const Tile& tile : tiles_) {
            with_units(tile, [&](auto units) {
                vf base[units];
                start_of(tile, base);
                const Heads heads{&theta_.u[tile.first], theta_.b.size(), block.f.data(), Block::REGISTERS_OF_LABELS};
                const auto through = [&](const auto& add) {
                    const auto go = [&](auto outputs) {
                        forward_tables<units>(add, block.count, base, heads, outputs, active(block, tile));
                    };
                    config_.outputs == 1 ? go(std::integral_constant<int, 1>{}) : go(config_.outputs);
                };
                if (!worth_a_table) return through(AddUp<units, L::Inputs>{block.inputs, weights(tile), config_.bits});
                make_table<units>(groups_, config_.bits, weights(tile), table_.data());
                through(LookUp<units, L::Inputs>{block.inputs, table_.data()});
            });
        }
    }

    // Adds the block to the batch's gradient; the last block also moves the parameters.
    void backward(Block& block, BatchPart part, vf lr) {
        accumulate(block, part.first);
        if (!part.last) return;
        const Update update[2] = {make_update(config_, lr, config_.rates[0]), make_update(config_, lr, config_.rates[1])};
        for (size_t i = 0; i < theta_.W.size(); ++i) theta_.W[i] = update[0](theta_.W[i], gradient_.W[i]);
        move_all_but_weights(update);
    }

    void accumulate(Block& block, bool first) {
        if (first) {
            clear_gradient();
            std::fill(gradient_.W.begin(), gradient_.W.end(), vf{});
        }
        for (int j = 0; j < config_.outputs; ++j) accumulate_output(block, j);
    }

private:
    // What comes back from one output. Units are active for all of them alike.
    void accumulate_output(Block& block, int output) {
        head_backward(block, output);
        if (going_.empty()) return;
        const int going = static_cast<int>(going_.size());
        const bool most = 4 * going > 3 * block.count;  // then looking them up costs more than it saves
        for (const Tile& tile : tiles_) {
            with_units(tile, [&](auto units) {
                std::fill_n(sums_.begin(), rows_of(groups_) * units, vf{});
                const auto back = [&](int count, const auto& sample) {
                    backward_tables<units>(block.inputs, count, sample, reinterpret_cast<const float*>(block.slope_of(output)),
                                           active(block, tile), sums_.data());
                };
                most ? back(block.count, [](int i) { return i; }) : back(going, [&](int i) { return going_[i]; });
                add_gradient<units>(tile, output, share_of(block));
            });
        }
    }

    // The loss of an example is the mean over its outputs.
    vf share_of(const Block& block) const { return block.share / static_cast<float>(config_.outputs); }

    template <class Work>
    static void with_units(const Tile& tile, Work&& work) {
        if (tile.units == PARTS) return work(std::integral_constant<int, PARTS>{});
        work(std::integral_constant<int, 2 * PARTS>{});
    }

    uint32_t* active(Block& block, const Tile& tile) const { return &block.active[tile.first / PARTS * block.most]; }

    // z where all inputs are +1.
    template <int UNITS>
    void start_of(const Tile& tile, vf (&base)[UNITS]) {
        const vf* w = weights(tile);
        for (int u = 0; u < UNITS; ++u) base[u] = theta_.b[tile.first + u];
        for (int j = 0; !config_.bits && j < config_.inputs; ++j) {
            for (int u = 0; u < UNITS; ++u) base[u] += w[j * UNITS + u];
        }
    }

    // The slopes of the loss, and the samples in which it is not flat. They are divided by the size of the batch once they
    // are added up: where all are 1 or -1, sums that vanish are 0 then.
    void head_backward(Block& block, int output) {
        const Target* target = config_.problem ? &config_.problem->target : nullptr;
        const int counted = target && !target->counted.empty() ? target->counted[output] - block.first : block.count;
        const auto count = static_cast<uint32_t>(std::clamp(counted, 0, block.count));
        const vf *f = block.f_of(output), *y = block.y_of(output);
        vf* slope = block.slope_of(output);
        vf partial[L::PARTIAL_SUMS]{};
        going_.clear();
        with_loss(config_, [&](const auto& loss) {
            for (int r = 0; r * LANES < block.count; ++r) {
                const vi there = iota() + static_cast<uint32_t>(r * LANES) < count;
                slope[r] = select(there, loss.slope(f[r], y[r]), vf{});
                partial[r % L::PARTIAL_SUMS] += slope[r];
                for (uint32_t left = to_bits(slope[r] != 0.0f); left != 0; left &= left - 1) {
                    going_.push_back(static_cast<uint16_t>(r * LANES + std::countr_zero(left)));
                }
            }
        });
        gradient_.c[output] = fma(share_of(block), L::sum(partial), gradient_.c[output]);
    }

    template <int UNITS>
    void add_gradient(const Tile& tile, int output, vf share) {
        const size_t first = output * theta_.b.size() + tile.first;  // of the output's weights
        for (const InputGroup& group : groups_) add_up_rows<UNITS>(group, &sums_[group.row * UNITS], by_input_.data());
        vf head[UNITS], all[UNITS], of_head[UNITS];
        add_up_samples<UNITS>(groups_[0], sums_.data(), all);
        for (int u = 0; u < UNITS; ++u) {
            head[u] = share * theta_.u[first + u];
            gradient_.b[tile.first + u] = fma(head[u], all[u], gradient_.b[tile.first + u]);
            of_head[u] = theta_.b[tile.first + u] * all[u];
        }
        const vf* w = weights(tile);
        vf* to = weights(gradient_, tile);
        for (int j = 0; j < config_.inputs * UNITS; j += UNITS) {
#pragma GCC unroll 8
            for (int u = 0; u < UNITS; ++u) {
                const vf on = by_input_[j + u], sum = config_.bits ? on : fma(broadcast(-2.0f), on, all[u]);
                to[j + u] = fma(head[u], sum, to[j + u]);
                of_head[u] = fma(w[j + u], sum, of_head[u]);
            }
        }
        for (int u = 0; u < UNITS; ++u) {
            gradient_.u[first + u] = fma(share, of_head[u], gradient_.u[first + u]);
        }
    }

    std::vector<InputGroup> groups_;
    std::vector<vf> table_, sums_;  // of one tile, row by row
    std::vector<vf> by_input_;      // the latter's, of samples in which an input is on
    std::vector<uint16_t> going_;   // samples of the block
};

}  // namespace paritylab::PARITYLAB_ISA
