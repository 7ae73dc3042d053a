// Searches for parities of few features that explain given labels: what they are given, and what they find.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace paritylab {

inline constexpr int MOST_MEMBERS = 16;

// Bits of examples and labels, as words of 64 examples. A parity and its opposite have the errors of the better one.
struct Evidence {
    static constexpr size_t ROUND = 8;  // features are padded to a multiple of it

    size_t features, stride, words;
    std::vector<uint64_t> columns;  // [word][feature]
    std::vector<uint64_t> labels;   // [word]
    std::vector<uint32_t> rows;     // examples up to the end of each word
    std::vector<uint32_t> limits;   // the most errors that a parity may have up to the end of each word

    const uint64_t* row(size_t word) const { return columns.data() + word * stride; }
};

struct Hit {
    bool negated;  // labels are the opposite
    std::array<int32_t, MOST_MEMBERS> members;
};

// The parities of fewest errors among those offered.
class Hits {
public:
    static constexpr size_t KEPT = 8;  // the first in order, so that they do not depend on threads

    explicit Hits(uint32_t most = UINT32_MAX) : errors(most) {}

    uint32_t errors;
    int64_t count = 0;
    std::vector<Hit> some;

    void offer(uint32_t wrong, const Hit& hit) {
        if (wrong > errors) return;
        if (wrong < errors) *this = Hits(wrong);
        ++count;
        keep(hit);
    }

    void join(const Hits& others) {
        if (others.some.empty() || others.errors > errors) return;
        if (others.errors < errors) *this = Hits(others.errors);
        count += others.count;
        for (const Hit& hit : others.some) keep(hit);
    }

private:
    void keep(const Hit& hit) {
        some.insert(std::ranges::upper_bound(some, hit.members, {}, &Hit::members), hit);
        if (some.size() > KEPT) some.pop_back();
    }
};

using Moment = std::chrono::steady_clock::time_point;

// A search in tasks that threads share; made for one instruction set.
class Search {
public:
    explicit Search(Evidence evidence) : evidence_(std::move(evidence)) {}
    virtual ~Search() = default;
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

    // Begins tasks until `pause`, ends those under way, or leaves them where they are at `end`: then it was cut short.
    void advance(int threads, Moment pause, Moment end);

    virtual size_t tasks() const = 0;
    size_t begun() const { return std::min(next_.load(), tasks()); }
    bool cut() const { return cut_; }
    const Hits& hits() const { return hits_; }

protected:
    struct Cut {};  // thrown by a task at the end
    virtual void run(size_t task, Hits& hits, Moment end) const = 0;

    const Evidence evidence_;

private:
    std::atomic<size_t> next_{0};
    std::atomic<bool> cut_{false};
    Hits hits_;
    std::mutex mutex_;
};

// Keys are sums over GF(2): of a parity that may be right they add up to the target.
struct Keys {
    std::vector<uint64_t> of_features;
    uint64_t target;
    int bits;  // which they have; those above are 0
};

struct Searches {
    const char* isa;
    // All supports of `size` members; tests all of them first after `first` words.
    std::unique_ptr<Search> (*enumerate)(Evidence evidence, int size, size_t first);
    // Supports of 3 or 4 members whose keys add up to the target.
    std::unique_ptr<Search> (*meet)(Evidence evidence, int size, Keys keys);
    // Adds 1024 words to a mask and counts their ones, so many times: the floor of an enumeration.
    int64_t (*count_words)(int64_t times);
};

// Those this machine can run, best first.
const std::vector<Searches>& supported_searches();

}  // namespace paritylab
