// All supports of a size, counted with the last member in lanes. Included by supports.cpp.
#pragma once

#include "bits.h"
#include "supports.h"

namespace paritylab::PARITYLAB_ISA::supports {

class Enumeration final : public Search {
public:
    Enumeration(Evidence evidence, int size, size_t first)
        : Search(std::move(evidence)), size_(size), first_(std::min(first, evidence_.words)) {}

    // By the first member; one of which is the only member, all at once.
    size_t tasks() const override { return size_ == 1 ? 1 : evidence_.features - (size_ - 1); }

private:
    // prefix[d] is the sum of labels and d members, in the words that are tested first.
    struct State {
        std::vector<std::vector<uint64_t>> prefix;
        std::array<int32_t, MOST_MEMBERS> members{};
        Hits& hits;
        Moment end;
        int since = 0;
    };

    void run(size_t task, Hits& hits, Moment end) const override {
        State state{std::vector(size_, evidence_.labels), {}, hits, end};
        if (size_ == 1) return scan(state, 0);
        add(state, 0, task);
        choose(state, 1, task + 1);
    }

    void add(State& state, int depth, size_t member) const {
        state.members[depth] = static_cast<int32_t>(member);
        for (size_t w = 0; w < first_; ++w) {
            state.prefix[depth + 1][w] = state.prefix[depth][w] ^ evidence_.row(w)[member];
        }
    }

    void choose(State& state, int depth, size_t from) const {
        if (depth == size_ - 1) return scan(state, from);
        for (size_t member = from; member + (size_ - 1 - depth) < evidence_.features; ++member) {
            add(state, depth, member);
            choose(state, depth + 1, member + 1);
        }
    }

    void scan(State& state, size_t from) const {
        if (++state.since == 64) {
            state.since = 0;
            if (std::chrono::steady_clock::now() >= state.end) throw Cut{};
        }
        switch (first_) {
            case 1: return scan_from<1>(state, from);
            case 2: return scan_from<2>(state, from);
            case 3: return scan_from<3>(state, from);
            case 4: return scan_from<4>(state, from);
            default: return scan_from<0>(state, from);
        }
    }

    template <size_t FIRST>  // 0: not known when compiled
    void scan_from(State& state, size_t from) const {
        const size_t first = FIRST ? FIRST : first_;
        const uint64_t* prefix = state.prefix[size_ - 1].data();
        Range likely = range(first - 1, state.hits.errors);
        for (size_t j = from / LANES * LANES; j < evidence_.features; j += LANES) {
            vw errors{};
            for (size_t w = 0; w < first; ++w) errors += popcount(load(evidence_.row(w) + j) ^ prefix[w]);
            const uint32_t unlikely = between(errors, likely.low, likely.high);
            if (unlikely == ALL) [[likely]] continue;
            for (int lane = 0; lane < LANES; ++lane) {
                if (!(unlikely >> lane & 1) && j + lane >= from && j + lane < evidence_.features) {
                    finish(state, j + lane, first, errors[lane]);
                }
            }
            likely = range(first - 1, state.hits.errors);
        }
    }

    struct Range {
        int64_t low, high;  // errors up to low, or from high on, as the opposite
    };

    Range range(size_t word, uint32_t most) const {
        const int64_t low = std::min(evidence_.limits[word], most);
        return {low, int64_t{evidence_.rows[word]} - low};
    }

    void finish(State& state, size_t last, size_t word, int64_t errors) const {
        for (; word < evidence_.words; ++word) {
            uint64_t sum = evidence_.labels[word] ^ evidence_.row(word)[last];
            for (int depth = 0; depth < size_ - 1; ++depth) sum ^= evidence_.row(word)[state.members[depth]];
            errors += __builtin_popcountll(sum);
            const Range likely = range(word, state.hits.errors);
            if (errors > likely.low && errors < likely.high) return;
        }
        Hit hit{2 * errors > int64_t{evidence_.rows.back()}, state.members};
        hit.members[size_ - 1] = static_cast<int32_t>(last);
        state.hits.offer(static_cast<uint32_t>(hit.negated ? evidence_.rows.back() - errors : errors), hit);
    }

    const int size_;
    const size_t first_;
};

}  // namespace paritylab::PARITYLAB_ISA::supports
