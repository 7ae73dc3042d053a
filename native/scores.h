// How all runs of a group do on a sample, task by task.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "heads.h"
#include "losses.h"

namespace paritylab::PARITYLAB_ISA {

template <class L>
class Scores {
public:
    struct Score {
        vi errors{};
        vd loss{};  // summed

        void clear(int slot) { errors[slot] = 0, loss[slot] = 0; }
    };

    // Of so many tasks, and apart of each output where there are several. With skills, also what outputs have in common with
    // the signs of labels.
    Scores(const Config& config, size_t tasks, bool skills)
        : config_(config),
          scores_(tasks),
          outputs_(config.outputs > 1 ? config.outputs : 0),
          skills_(skills ? std::max(tasks, outputs_.size()) : 0) {}

    size_t tasks() const { return scores_.size(); }
    const Score& of(size_t task) const { return scores_[task]; }
    const Score& of_part(size_t part) const { return outputs_.empty() ? scores_[part] : outputs_[part]; }

    void clear() {
        std::fill(scores_.begin(), scores_.end(), Score{});
        std::fill(outputs_.begin(), outputs_.end(), Score{});
        std::fill(skills_.begin(), skills_.end(), Skill{});
    }

    void clear(int slot) {
        const auto forget = [&](auto& all) {
            for (auto& one : all) one.clear(slot);
        };
        forget(scores_), forget(outputs_), forget(skills_);
    }

    // Adds outputs for samples from `first` on, which are of so many tasks, in turn.
    void add(const Samples<L>& block, int64_t first, size_t tasks) {
        if constexpr (L::PACKED > 1) {
            if (config_.outputs > 1) return add_outputs(block);
            if (tasks == 1 && skills_.empty()) return add_together(block);
        }
        with_loss(config_, [&](const auto& loss) {
            size_t task = first % tasks;
            for (int r = 0; r * L::PACKED < block.count; ++r) {
                const vf f = block.f[r], y = block.y[r], value = loss.value(f, y);
                const vi right = is_right(f, y);
                const int samples = std::min(L::PACKED, block.count - r * L::PACKED);
                for (int i = 0; i < samples; ++i) {
                    Score& score = scores_[task];
                    if constexpr (L::PACKED == 1) {
                        score.errors += 1 + right;
                        score.loss += __builtin_convertvector(value, vd);
                        if (!skills_.empty()) skills_[task].add(f, y);
                    } else {
                        score.errors[0] += 1 + right[i];
                        score.loss[0] += static_cast<double>(value[i]);
                        if (!skills_.empty()) skills_[task].add(f[i], y[i]);
                    }
                    task = task + 1 == tasks ? 0 : task + 1;
                }
            }
        });
    }

    // What another found of the run in this slot.
    template <class M>
    void take(int slot, const Scores<M>& from) {
        const auto add = [&](auto& here, const auto& there) {
            for (size_t i = 0; i < here.size(); ++i) {
                here[i].errors[slot] += there[i].errors[0];
                here[i].loss[slot] += there[i].loss[0];
            }
        };
        add(scores_, from.scores_);
        for (size_t i = 0; i < skills_.size(); ++i) skills_[i].take(slot, from.skills_[i]);
    }

    Score over_tasks() const {
        Score total;
        for (const Score& score : scores_) total.errors += score.errors, total.loss += score.loss;
        return total;
    }

    // The covariance of a run's output with the label's sign, over the size of labels.
    double skill(size_t part, int slot, double size) const {
        const Skill& sums = skills_[part];
        const double scale = config_.problem ? std::abs(config_.problem->target.scale) : 1;
        return (sums.products[slot] / size - sums.f[slot] / size * (sums.signs[slot] / size)) / scale;
    }

private:
    vi is_right(vf f, vf y) const { return config_.within < 0 ? y * f > 0.0f : absolute(f - y) <= config_.within; }

    // Of one task. Sixteen sums, on every instruction set.
    void add_together(const Samples<L>& block) {
        vd losses[16 / LANES]{};
        int64_t right = 0;
        with_loss(config_, [&](const auto& loss) {
            for (int r = 0; r * LANES < block.count; ++r) {
                const vf f = block.f[r], y = block.y[r];
                const int left = block.count - r * LANES;
                const uint32_t there = left < LANES ? (1u << left) - 1 : ~0u;
                right += __builtin_popcount(to_bits(is_right(f, y)) & there);
                losses[r % (16 / LANES)] += __builtin_convertvector(only(there, loss.value(f, y)), vd);
            }
        });
        double sum = 0;
        for (int i = 0; i < 16; ++i) sum += losses[i / LANES][i % LANES];
        scores_[0].errors[0] += static_cast<int32_t>(block.count - right);
        scores_[0].loss[0] += sum;
    }

    // An example is right where all its outputs are; its loss is their mean.
    void add_outputs(const Samples<L>& block) {
        const int outputs = config_.outputs;
        with_loss(config_, [&](const auto& loss) {
            for (int r = 0; r * L::PACKED < block.count; ++r) {
                vi all_right = vi{} == 0;
                vf losses{};
                const int samples = std::min(L::PACKED, block.count - r * L::PACKED);
                for (int j = 0; j < outputs; ++j) {
                    const vf f = block.f_of(j)[r], y = block.y_of(j)[r], value = loss.value(f, y);
                    const vi right = is_right(f, y);
                    all_right &= right;
                    losses += value;
                    for (int i = 0; i < samples; ++i) {
                        outputs_[j].errors[0] += 1 + right[i];
                        outputs_[j].loss[0] += static_cast<double>(value[i]);
                        if (!skills_.empty()) skills_[j].add(f[i], y[i]);
                    }
                }
                for (int i = 0; i < samples; ++i) {
                    scores_[0].errors[0] += 1 + all_right[i];
                    scores_[0].loss[0] += static_cast<double>(losses[i]) / outputs;
                }
            }
        });
    }

    template <class M>
    friend class Scores;

    struct Skill {
        vd f{}, signs{}, products{};

        void clear(int slot) { f[slot] = signs[slot] = products[slot] = 0; }
        template <class Other>
        void take(int slot, const Other& from) {
            f[slot] += from.f[0], signs[slot] += from.signs[0], products[slot] += from.products[0];
        }

        void add(vf output, vf y) {
            const vd value = __builtin_convertvector(output, vd);
            const vd sign = __builtin_convertvector((y < 0.0f) - (y > 0.0f), vd);
            f += value;
            signs += sign;
            products += value * sign;
        }
        void add(float output, float y) {
            const double value = output, sign = (y > 0) - (y < 0);
            f[0] += value;
            signs[0] += sign;
            products[0] += value * sign;
        }
    };

    const Config& config_;
    std::vector<Score> scores_;
    std::vector<Score> outputs_;
    std::vector<Skill> skills_;
};

}  // namespace paritylab::PARITYLAB_ISA
