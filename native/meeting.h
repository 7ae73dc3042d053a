// Meet in the middle: pairs of features looked up among single ones, or among pairs, by keys. Included by supports.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <numeric>

#include "bits.h"
#include "supports.h"

namespace paritylab::PARITYLAB_ISA::supports {

class Meeting : public Search {
protected:
    Meeting(Evidence evidence, Keys keys) : Search(std::move(evidence)), keys_(std::move(keys)) {}

    // Counts errors of a support, and offers it where they are few.
    template <size_t SIZE>
    void verify(Hits& hits, std::array<int32_t, SIZE> members) const {
        int64_t errors = 0;
        for (size_t w = 0; w < evidence_.words; ++w) {
            uint64_t sum = evidence_.labels[w];
            for (int32_t member : members) sum ^= evidence_.row(w)[member];
            errors += __builtin_popcountll(sum);
            const int64_t most = std::min(evidence_.limits[w], hits.errors);
            if (errors > most && errors < int64_t{evidence_.rows[w]} - most) return;
        }
        Hit hit{2 * errors > int64_t{evidence_.rows.back()}, {}};
        std::ranges::copy(members, hit.members.begin());
        hits.offer(static_cast<uint32_t>(hit.negated ? evidence_.rows.back() - errors : errors), hit);
    }

    static void expect_time(Moment end) {
        if (std::chrono::steady_clock::now() >= end) throw Cut{};
    }

    const Keys keys_;
};

// A set of keys by their lowest bits: says of most others at once that they are not in it.
class Filter {
public:
    explicit Filter(int bits) : mask_((uint64_t{1} << bits) - 1), words_((mask_ + 64) / 64) {}
    void add(uint64_t key) { words_[(key & mask_) >> 6] |= uint64_t{1} << (key & 63); }
    bool has(uint64_t key) const { return words_[(key & mask_) >> 6] >> (key & 63) & 1; }
    void clear() { std::ranges::fill(words_, 0); }

private:
    uint64_t mask_;
    std::vector<uint64_t> words_;
};

// Every pair (i, j) asks for a third member beyond j. A task is a block of first members.
class Triples final : public Meeting {
public:
    Triples(Evidence evidence, Keys keys)
        : Meeting(std::move(evidence), std::move(keys)),
          filter_(std::min(keys_.bits, 20)),  // 128 KiB
          shift_(std::min<int>(keys_.bits, std::bit_width(keys_.of_features.size()))),
          starts_((size_t{1} << shift_) + 1),
          order_(keys_.of_features.size()) {
        for (uint64_t key : keys_.of_features) {
            filter_.add(key);
            ++starts_[place(key) + 1];
        }
        std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
        std::vector<uint32_t> next(starts_);
        for (size_t i = 0; i < order_.size(); ++i) order_[next[place(keys_.of_features[i])]++] = static_cast<int32_t>(i);
    }

    size_t tasks() const override { return (order_.size() + BLOCK - 1) / BLOCK; }

private:
    static constexpr size_t BLOCK = 16;

    size_t place(uint64_t key) const { return key & ((size_t{1} << shift_) - 1); }

    void run(size_t task, Hits& hits, Moment end) const override {
        const size_t n = order_.size();
        const uint64_t* keys = keys_.of_features.data();
        for (size_t i = task * BLOCK; i < std::min(n, (task + 1) * BLOCK); ++i) {
            expect_time(end);
            const uint64_t missing = keys_.target ^ keys[i];
            for (size_t j = i + 1; j < n; ++j) {
                const uint64_t key = missing ^ keys[j];
                if (filter_.has(key)) [[unlikely]] complete(hits, i, j, key);
            }
        }
    }

    void complete(Hits& hits, size_t i, size_t j, uint64_t key) const {
        const size_t bucket = place(key);
        for (uint32_t at = starts_[bucket]; at < starts_[bucket + 1]; ++at) {
            const int32_t third = order_[at];
            if (third > static_cast<int32_t>(j) && keys_.of_features[third] == key) {
                verify<3>(hits, {static_cast<int32_t>(i), static_cast<int32_t>(j), third});
            }
        }
    }

    Filter filter_;
    int shift_;
    std::vector<uint32_t> starts_;  // of features with these lowest bits, in order_
    std::vector<int32_t> order_;
};

// Pairs meet pairs. Those whose keys begin alike are one part (a task), listed without a look at the others: features
// are ordered by the first bits of their keys, and a pair's are the sum of two. Nothing is kept of a part but a filter
// and the pairs of its counterpart that pass it.
class Quadruples final : public Meeting {
public:
    Quadruples(Evidence evidence, Keys keys)
        : Meeting(std::move(evidence), std::move(keys)),
          parts_(bits_of_parts(keys_)),
          below_(keys_.bits - parts_),
          other_(keys_.target >> below_),
          starts_((size_t{1} << parts_) + 1),
          sorted_(keys_.of_features.size()) {
        for (uint64_t key : keys_.of_features) ++starts_[(key >> below_) + 1];
        std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
        std::vector<uint32_t> next(starts_);
        for (size_t i = 0; i < sorted_.size(); ++i) {
            const uint64_t key = keys_.of_features[i];
            sorted_[next[key >> below_]++] = {key, static_cast<int32_t>(i)};
        }
    }

    size_t tasks() const override { return size_t{1} << parts_; }

private:
    static constexpr int FILTER_BITS = 22;           // 512 KiB
    static constexpr size_t MOST_CANDIDATES = 1 << 18;  // 4 MiB

    struct Feature {
        uint64_t key;
        int32_t index;
    };
    struct Pair {
        uint64_t key;  // of what is missing
        int32_t first, second;
    };

    // Parts of about 2^17 pairs, so that their filter is sparse.
    static int bits_of_parts(const Keys& keys) {
        const int pairs = 2 * std::bit_width(keys.of_features.size()) - 1;
        return std::clamp(pairs - 17, 1, std::min(keys.bits - 1, 20));
    }

    void run(size_t part, Hits& hits, Moment end) const override {
        const uint64_t counterpart = part ^ other_;
        if (counterpart < part) return;  // done as the other's
        Filter filter(std::min(below_, FILTER_BITS));
        each_pair(part, end, [&](const Feature& a, const Feature& b) { filter.add(a.key ^ b.key); });
        std::vector<Pair> candidates;
        each_pair(counterpart, end, [&](const Feature& a, const Feature& b) {
            const uint64_t missing = a.key ^ b.key ^ keys_.target;
            if (!filter.has(missing)) [[likely]] return;
            candidates.push_back({missing, std::min(a.index, b.index), std::max(a.index, b.index)});
            if (candidates.size() == MOST_CANDIDATES) meet(hits, part, end, candidates);
        });
        meet(hits, part, end, candidates);
    }

    // Looks the part's pairs up among the candidates, of which none is left then.
    void meet(Hits& hits, uint64_t part, Moment end, std::vector<Pair>& candidates) const {
        std::ranges::sort(candidates, {}, &Pair::key);
        Filter filter(std::min(below_, FILTER_BITS));
        for (const Pair& each : candidates) filter.add(each.key);
        const bool alike = other_ == 0;  // the counterpart is the part itself: each two pairs meet twice
        each_pair(part, end, [&](const Feature& a, const Feature& b) {
            const uint64_t key = a.key ^ b.key;
            if (!filter.has(key)) [[likely]] return;
            const int32_t first = std::min(a.index, b.index), second = std::max(a.index, b.index);
            for (const Pair& each : std::ranges::equal_range(candidates, key, {}, &Pair::key)) {
                // Of the three ways to split four members, the one that splits them in order.
                if (second < each.first) verify<4>(hits, {first, second, each.first, each.second});
                if (!alike && each.second < first) verify<4>(hits, {each.first, each.second, first, second});
            }
        });
        candidates.clear();
    }

    template <class Visit>
    void each_pair(uint64_t part, Moment end, Visit&& visit) const {
        for (uint64_t u = 0; u < uint64_t{1} << parts_; ++u) {
            const uint64_t v = u ^ part;
            if (v < u) continue;
            if (u % 64 == 0) expect_time(end);
            for (uint32_t a = starts_[u]; a < starts_[u + 1]; ++a) {
                for (uint32_t b = u == v ? a + 1 : starts_[v]; b < starts_[v + 1]; ++b) visit(sorted_[a], sorted_[b]);
            }
        }
    }

    const int parts_, below_;
    const uint64_t other_;
    std::vector<uint32_t> starts_;  // of features whose keys begin so, in sorted_
    std::vector<Feature> sorted_;
};

}  // namespace paritylab::PARITYLAB_ISA::supports
