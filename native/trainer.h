// A group of runs: trains them in lock-step, judges or traces them, and refills the slots of those that are done.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batches.h"
#include "examiner.h"
#include "group.h"
#include "scores.h"

namespace paritylab::PARITYLAB_ISA {

template <class Net>
class Trainer final : public Group {
    using L = typename Net::Layout;
    using Block = typename Net::Block;
    using Score = typename Scores<L>::Score;

public:
    Trainer(const Config& config, Trace* trace)
        : config_(config),
          network_(config_),
          batches_(config_),
          blocks_{Block(config_), Block(config_)},
          allowed_(config.tasks() > 0 ? config.problem->target.task_allowed : std::vector{config.allowed_errors}),
          scores_(config_, allowed_.size(), trace != nullptr) {
        if constexpr (Net::SHALLOW) examiner_.emplace(config_, allowed_.size(), trace != nullptr);
#if !defined(__wasm__)
        trace_ = trace;
#endif
        const double step_work = double(config.weights()) * config.batch * L::SLOTS / LANES;
        steps_per_look_ = 1 + static_cast<int64_t>(1e5 / step_work);
    }

    void advance(Stock& stock, Clock::time_point deadline, int64_t most) override {
        for (;;) {
            refill(stock);
            if (active() == 0) return;
            const int64_t to_check = steps_to_check();
            int64_t left = std::min(to_check, most);
            const bool reached = left == to_check;
            most -= left;
            while (left > 0) {
                const int64_t steps = std::min(left, steps_per_look_);
                train(steps);
                left -= steps;
                if (left > 0 && late(steps, deadline)) return;
            }
            if (!reached) return;
            trace_ ? record() : check(stock);
            if (most == 0 || late(std::min(to_check, steps_per_look_), deadline)) return;
        }
    }

    void discard(const Tags& tags) override {
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (run_[slot] && tags.contains(run_[slot]->tag)) release(slot);
        }
    }

    std::optional<Snapshot> look(int64_t tag) override {
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (run_[slot] && run_[slot]->tag == tag) return Snapshot{step_[slot], network_.get(slot)};
        }
        return {};
    }

    std::vector<Record> survey(int64_t examples, bool of_sample) override {
        const int64_t size = std::min(examples, of_sample ? config_.sample : config_.eval_size);
        std::vector<Record> found;
        if (active_ == 0 || size < 1) return found;
        const Score total = scored(size, of_sample);
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!run_[slot]) continue;
            const double all = static_cast<double>(size);
            found.push_back({run_[slot]->tag, Status::training, -1, step_[slot], (all - total.errors[slot]) / all,
                             total.loss[slot] / all, {}});
        }
        return found;
    }

    std::optional<int64_t> give(Group& other) override {
        for (int slot = 0; slot < L::SLOTS && config_.plain(); ++slot) {
            if (!run_[slot]) continue;
            Run run = *run_[slot];
            run.start = network_.get(slot);
            run.step = step_[slot];
            run.streak = streak_[slot];
            if (!other.receive(std::move(run))) return {};
            const int64_t tag = run_[slot]->tag;
            release(slot);
            return tag;
        }
        return {};
    }

    bool receive(Run run) override {
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (run_[slot]) continue;
            if (active_ == 0) phase_ = run.step;
            put(slot, std::move(run));
            look_for_noise();
            return true;
        }
        return false;
    }

    int slots() const override { return L::SLOTS; }
    int active() const override { return active_; }
    int64_t steps() const override { return steps_; }

private:
    // Whether the deadline has passed: the clock is not looked at after every few steps.
    bool late(int64_t steps, Clock::time_point deadline) {
        since_look_ += steps;
        if (since_look_ < steps_per_look_) return false;
        since_look_ = 0;
        return Clock::now() >= deadline;
    }

    // Slots freed between two checks (a max_steps that eval_every does not divide, a discarded run), if refilled at
    // once, would let the checks of the slots drift apart until there is one at almost every step. So where checks are
    // at most this many steps apart, a free slot waits for the next.
    static constexpr int64_t PATIENCE = 32;

    bool patient() const {
        if (trace_) return active_ > 0;  // traced runs stay at one step: every point is a full evaluation
        return phase_ % config_.eval_every != 0 && config_.eval_every <= PATIENCE;
    }

    void refill(Stock& stock) {
        if (active_ == 0) phase_ = 0, point_ = 0;
        if (active_ == L::SLOTS || patient()) return;
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            Run run;
            if (!run_[slot] && stock.take(run)) put(slot, std::move(run));
        }
        look_for_noise();
    }

    void put(int slot, Run run) {
        network_.put(slot, run.start);
        batches_.put(slot, run);
        noise_keys_.set(slot, run.stream(Stream::gradient_noise));
        L::set(lr_, slot, run.lr);
        L::set(tau_, slot, run.tau);
        L::set(step_vector_, slot, static_cast<uint32_t>(run.step));
        step_[slot] = run.step;
        powers_[slot] = {1, 1};
        streak_[slot] = run.streak;
        failed_[slot] = {};
        run.start = {};  // the registers have it now
        run_[slot] = std::move(run);
        ++active_;
    }

    // An empty slot computes on zeros: it costs nothing extra and disturbs nothing.
    void release(int slot) {
        network_.clear(slot);
        batches_.remove(slot);
        L::set(lr_, slot, 0.0f);
        L::set(tau_, slot, 0.0f);
        factors_[slot].reset();
        run_[slot].reset();
        --active_;
        look_for_noise();
    }

    void look_for_noise() {
        noisy_ = false;
        for (int slot = 0; slot < L::SLOTS; ++slot) noisy_ |= tau_[slot] > 0;
    }

    bool due(int slot) const {
        return run_[slot] && (step_[slot] % config_.eval_every == 0 || step_[slot] == run_[slot]->max_steps);
    }

    int64_t steps_to_check() const {
        if (trace_) return trace_->steps[point_] - phase_;
        int64_t least = INT64_MAX;
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!run_[slot]) continue;
            const int64_t on_grid = config_.eval_every - step_[slot] % config_.eval_every;
            least = std::min({least, on_grid, run_[slot]->max_steps - step_[slot]});
        }
        return least;
    }

    void train(int64_t steps) {
        Block* block = &blocks_[0];
        Block* next = &blocks_[1];
        bool ahead = false;  // whether the block has been through the network already
        const bool plain = config_.plain();
        for (; steps > 0; --steps) {
            const vf lr = scheduled_lr();
            const vu step = step_vector_;
            const int examples = ahead ? block->count : batches_.start(step_vector_, step_);
            if (!plain) {
                remembering_step(*block, examples, lr, step);
            } else if (Net::FUSES && config_.batch == 1) {
                if (!ahead) forward(*block, 0, 1);
                count_step();
                ahead = steps > 1 && !noisy_;  // noise must come before the next step's way forward
                if (ahead) batches_.start(step_vector_, step_), batches_.train(*next, 0, 1);
                if constexpr (Net::FUSES) network_.backward_single(*block, ahead ? next : nullptr, lr);
                if (ahead) std::swap(block, next);
            } else if (Net::DRAWS_AHEAD && examples <= L::BLOCK) {
                if (!ahead) batches_.train(*block, 0, examples);
                network_.forward(*block);
                count_step();
                ahead = steps > 1 && config_.batch <= L::BLOCK;  // where a batch is longer, the next stage's may be
                if (ahead) batches_.train(*next, 0, batches_.start(step_vector_, step_));
                network_.backward(*block, {true, true}, lr);
                if (ahead) std::swap(block, next);
            } else {
                for (int first = 0; first < examples; first += L::BLOCK) {
                    const int count = std::min(L::BLOCK, examples - first);
                    forward(*block, first, count);
                    network_.backward(*block, {first == 0, first + count == examples}, lr);
                }
                count_step();
            }
            if (noisy_ && plain) network_.add_noise(fold_in(noise_keys_.now, step), lr, tau_);
        }
    }

    void remembering_step(Block& block, int examples, vf lr, vu step) {
        for (int first = 0; first < examples; first += L::BLOCK) {
            forward(block, first, std::min(L::BLOCK, examples - first));
            network_.accumulate(block, first == 0);
        }
        count_step();
        if (noisy_) network_.add_noise_to_gradient(fold_in(noise_keys_.now, step), tau_);
        network_.step(corrected(lr));
    }

    // Adam's means begin at 0; by 1 - b^t they are too small. The powers are products, the same on every machine.
    Step corrected(vf lr) {
        Step step{lr, {}, {}};
        if (config_.rule != Rule::adam) return step;
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            auto& [first, second] = powers_[slot];
            first *= config_.rule_params[0];
            second *= config_.rule_params[1];
            L::set(step.first, slot, static_cast<float>(1 / (1 - first)));
            L::set(step.second, slot, static_cast<float>(1 / (1 - second)));
        }
        return step;
    }

    void forward(Block& block, int first, int count) {
        batches_.train(block, first, count);
        network_.forward(block);
    }

    void count_step() {
        step_vector_ += 1u;
        for (int64_t& t : step_) ++t;
        ++phase_;
        steps_ += active_;
    }

    // Once for every step.
    vf scheduled_lr() {
        if (!config_.schedule) return lr_;
        vf factor{};
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!run_[slot]) continue;
            const int64_t place = step_[slot] % Schedule::SIZE;
            if (place == 0 || !factors_[slot]) factors_[slot] = config_.schedule->block(step_[slot] / Schedule::SIZE);
            L::set(factor, slot, (*factors_[slot])[place]);
        }
        return lr_ * factor;
    }

    void check(Stock& stock) {
        const vf finite = network_.nan_unless_finite();
        bool due[L::SLOTS], diverged[L::SLOTS], finished[L::SLOTS];
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            due[slot] = this->due(slot);
            diverged[slot] = due[slot] && !(finite[slot] == 0);
            finished[slot] = diverged[slot] || (due[slot] && step_[slot] == run_[slot]->max_steps);
        }
        evaluate(due, finished);
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!due[slot]) continue;
            const bool passed = !diverged[slot] && few_errors(slot);
            streak_[slot] = passed ? streak_[slot] + 1 : 0;
            const bool solved = passed && streak_[slot] == config_.consecutive;
            if (!solved && !finished[slot]) continue;
            const Status status = diverged[slot] ? Status::diverged : solved ? Status::solved : Status::censored;
            const double size = static_cast<double>(config_.eval_size);
            const Score total = scores_.over_tasks();
            stock.finish({run_[slot]->tag, status, solved ? step_[slot] : -1, step_[slot],
                          (size - total.errors[slot]) / size, total.loss[slot] / size,
                          config_.keep_params ? network_.get(slot) : Parameters{}});
            release(slot);
        }
    }

    // Writes down all runs, which are at the next chosen step; those that are not finite, have
    // learned their sample as well as asked, or are at the last, leave.
    void record() {
        const vf finite = network_.nan_unless_finite();
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (run_[slot] && !(finite[slot] == 0)) release(slot);
        }
        if (active_ == 0) return;
        put(trace_->evaluation, config_.eval_size, false);
        for (size_t part = 0; part < std::max(trace_->parts, size_t{1}); ++part) put_part(part);
        if (!trace_->train.loss.empty()) put(trace_->train, config_.sample, true);
        if (!trace_->train_by_output.loss.empty()) put_outputs(trace_->train_by_output, config_.sample);
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (run_[slot] && config_.keep_params) trace_->put_weights(place(slot), network_.get(slot));
        }
        const bool last = point_ + 1 == trace_->steps.size();
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (run_[slot] && (last || trace_->stops(place(slot)))) release(slot);
        }
        ++point_;
    }

    // What all runs make of examples that they are judged on, or of their samples.
    Score scored(int64_t size, bool of_sample) {
        scores_.clear();
        if constexpr (Net::SHALLOW) {
            for (int slot = 0; slot < L::SLOTS; ++slot) {
                if (!run_[slot]) continue;
                examiner_->look_at(network_, batches_, slot);
                for (int64_t first = 0; first < size;) {
                    const int count = block_from(first, size);
                    of_sample ? examiner_->sample(first, count) : examiner_->evaluation(step_[slot], first, count);
                    first += count;
                }
                scores_.take(slot, examiner_->scores());
            }
        } else {
            for (int64_t first = 0; first < size;) {
                const int count = block_from(first, size);
                of_sample ? batches_.sample(blocks_[0], first, count) : batches_.evaluation(blocks_[0], step_vector_, first, count);
                network_.look(blocks_[0]);
                scores_.add(blocks_[0], first, of_sample ? 1 : scores_.tasks());
                first += count;
            }
        }
        return scores_.over_tasks();
    }

    void put(Series& series, int64_t size, bool of_sample) {
        const Score total = scored(size, of_sample);
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (run_[slot]) series.put(place(slot), total.errors[slot], total.loss[slot], static_cast<double>(size));
        }
    }

    // A task, of which there is a share of the inputs, or an output, of which there are all.
    void put_part(size_t part) {
        const size_t parts = std::max(trace_->parts, size_t{1}), tasks = scores_.tasks();
        const double size = static_cast<double>(tasks > 1 ? (config_.eval_size - part + tasks - 1) / tasks : config_.eval_size);
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!run_[slot]) continue;
            const size_t at = place(slot) * parts + part;
            const Score& score = scores_.of_part(part);
            if (trace_->parts > 0) trace_->by_part.put(at, score.errors[slot], score.loss[slot], size);
            trace_->skill[at] = scores_.skill(part, slot, size);
        }
    }

    void put_outputs(Series& series, int64_t size) {
        for (int j = 0; j < config_.outputs; ++j) {
            const Score& score = scores_.of_part(j);
            for (int slot = 0; slot < L::SLOTS; ++slot) {
                if (!run_[slot]) continue;
                series.put(place(slot) * config_.outputs + j, score.errors[slot], score.loss[slot], static_cast<double>(size));
            }
        }
    }

    size_t place(int slot) const { return run_[slot]->tag * trace_->steps.size() + point_; }

    bool few_errors(int slot) const {
        for (size_t task = 0; task < allowed_.size(); ++task) {
            if (allowed_[task] >= 0 && scores_.of(task).errors[slot] > allowed_[task]) return false;
        }
        return true;
    }

    // Errors and losses on the evaluation sample. Most runs fail at once, and most others where they failed before. A run is looked
    // at no longer once it has more errors than allowed, unless it is finished whatever the outcome; so the score of a run that has
    // passed, or is finished, is complete, and does not depend on where it failed.
    void evaluate(const bool (&due)[L::SLOTS], const bool (&finished)[L::SLOTS]) {
        scores_.clear();
        const int64_t size = config_.eval_size;
        if constexpr (L::SLOTS == 1 && !Net::SHALLOW) {  // others are asked there by the examiner, whose blocks are longer
            if (due[0] && !finished[0] && fails_again(0)) return;
        }
        const auto undecided = [&](int slot) { return finished[slot] || (due[slot] && few_errors(slot)); };
        const auto any = [&] {
            for (int slot = 0; slot < L::SLOTS; ++slot) {
                if (undecided(slot)) return true;
            }
            return false;
        };
        const int64_t together = Net::SHALLOW ? std::min<int64_t>(16, size) : size;
        int64_t first = 0;
        while (first < together && any()) {
            const int count = Net::SHALLOW ? static_cast<int>(std::min<int64_t>(4, together - first)) : block_from(first, together);
            batches_.evaluation(blocks_[0], step_vector_, first, count);
            network_.look(blocks_[0]);
            scores_.add(blocks_[0], first, scores_.tasks());
            if constexpr (L::SLOTS == 1) remember(0, first, count);
            first += count;
        }
        if constexpr (Net::SHALLOW) {
            for (int slot = 0; slot < L::SLOTS; ++slot) {
                if (undecided(slot)) examine(slot, finished[slot]);
            }
        }
    }

    // One run alone, from the first example on.
    void examine(int slot, bool to_the_end) {
        examiner_->look_at(network_, batches_, slot);
        if (!to_the_end && failed_[slot].count > 0) {
            scores_.clear(slot);
            add_alone(slot, failed_[slot].first, failed_[slot].count);
            if (!few_errors(slot)) return;
        }
        scores_.clear(slot);
        for (int64_t first = 0; first < config_.eval_size && (to_the_end || few_errors(slot));) {
            const int count = block_from(first, config_.eval_size);
            add_alone(slot, first, count);
            remember(slot, first, count);
            first += count;
        }
    }

    void add_alone(int slot, int64_t first, int count) {
        examiner_->clear();
        examiner_->evaluation(step_[slot], first, count);
        scores_.take(slot, examiner_->scores());
    }

    // As many examples as there were before, at least 16 and at most 512.
    static int block_from(int64_t first, int64_t end) {
        return static_cast<int>(std::min(std::clamp<int64_t>(first, 16, std::min(512, Net::SHALLOW ? 512 : L::BLOCK)), end - first));
    }

    // The block in which a run had one error too many.
    struct Failed {
        int64_t first = 0;
        int count = 0;
    };
    void remember(int slot, int64_t first, int count) {
        if (!config_.eval_fresh && !few_errors(slot)) failed_[slot] = {first, count};
    }

    // Whether the only run has more errors than allowed where it had them last; nothing else is left of that look.
    bool fails_again(int slot) {
        if (failed_[slot].count == 0) return false;
        batches_.evaluation(blocks_[0], step_vector_, failed_[slot].first, failed_[slot].count);
        network_.look(blocks_[0]);
        scores_.add(blocks_[0], failed_[slot].first, scores_.tasks());
        if (!few_errors(slot)) return true;
        scores_.clear();
        return false;
    }

    const Config config_;
#if defined(__wasm__)  // no page records curves
    static constexpr Trace* trace_ = nullptr;
#else
    Trace* trace_ = nullptr;  // null: runs are judged
#endif
    Net network_;
    Batches<L> batches_;
    Block blocks_[2];
    const std::vector<int64_t> allowed_;  // errors, of each task that is judged; -1 of the others
    Scores<L> scores_;
    std::optional<Examiner> examiner_;  // of networks whose lanes are not samples, if there is one layer of units

    // Per slot
    std::optional<Run> run_[L::SLOTS];
    int64_t step_[L::SLOTS]{};
    int streak_[L::SLOTS]{};
    Failed failed_[L::SLOTS];
    vu step_vector_{};  // step_, as the streams count it
    vf lr_{}, tau_{};
    std::pair<double, double> powers_[L::SLOTS]{};  // of Adam's b1 and b2
    std::shared_ptr<const Schedule::Block> factors_[L::SLOTS];  // of the block of steps that it is in
    Keys<L> noise_keys_;

    int active_ = 0;
    bool noisy_ = false;  // whether any run has gradient noise
    int64_t phase_ = 0;  // steps since all slots were free
    size_t point_ = 0;   // the next of the trace's steps
    int64_t steps_ = 0;
    int64_t steps_per_look_;  // at the clock: about 0.1 ms of work
    int64_t since_look_ = 0;
};

}  // namespace paritylab::PARITYLAB_ISA
