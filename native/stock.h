// The runs that wait and the runs that are done, shared by all workers.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

#include "config.h"
#include "mutex.h"
#include "threefry.h"

namespace paritylab {

struct Parameters {
    std::vector<float> W;  // layer after layer, each (inputs, units), row-major
    std::vector<float> b;  // of all units
    std::vector<float> u;  // (units, outputs)
    std::vector<float> c;  // of each output
};

struct Run {
    int64_t tag = 0;
    Key<uint32_t> key{};
    float lr = 0;
    float tau = 0;       // size of the gradient noise
    uint32_t flip = 0;   // a label is flipped when its random word is below this
    int64_t max_steps = 0;
    std::vector<uint32_t> mask;  // the parity's support, as bits
    Parameters start;
    int64_t step = 0;  // that it starts at: not the first if it was moved here
    int streak = 0;    // of checks that it has passed

    Key<uint32_t> stream(Stream s) const { return fold_in(key, static_cast<uint32_t>(s)); }
};

struct Record {
    int64_t tag;
    Status status;
    int64_t solved_at;  // -1 unless solved
    int64_t steps;
    double accuracy;
    double loss;
    Parameters end;  // empty unless the pool keeps parameters
};

using Tags = std::unordered_set<int64_t>;

class Stock {
public:
    void add(Run run);
    bool take(Run& run);  // the oldest waiting run; false when none waits
    void finish(Record record);
    std::vector<Record> collect();  // all finished runs, by tag
    void discard(const Tags& tags);
    size_t waiting() const;

private:
    mutable Mutex mutex_;
    std::deque<Run> runs_;
    std::vector<Record> records_;
};

}  // namespace paritylab
