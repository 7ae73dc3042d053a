// What the pool sees of a kernel, whatever its instruction set and layout.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "config.h"
#include "stock.h"
#include "trace.h"

namespace paritylab {

using Clock = std::chrono::steady_clock;

inline Clock::time_point deadline_after(double seconds) {
    // Beyond a day the conversion to the clock's integer could overflow.
    const auto span = std::chrono::duration<double>(std::clamp(seconds, 0.0, 86400.0));
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(span);
}

// A run on its way.
struct Snapshot {
    int64_t steps;
    Parameters weights;
};

// A few slots trained in lock-step by one thread. A slot whose run is finished takes the next from the stock.
class Group {
public:
    virtual ~Group() = default;
    // Until the deadline, or all is done, or every run has made `most` steps.
    virtual void advance(Stock& stock, Clock::time_point deadline, int64_t most = INT64_MAX) = 0;
    virtual void discard(const Tags& tags) = 0;
    virtual std::optional<Snapshot> look(int64_t tag) = 0;  // at a run, if it has a slot
    // How runs with a slot do on inputs that they are judged on, or on their finite sample.
    virtual std::vector<Record> survey(int64_t examples, bool of_sample) = 0;
    // Moves a run, as it is, to a free slot of a group of the same configuration and kind; says which, or nothing: no run,
    // no room, or an optimiser that remembers.
    virtual std::optional<int64_t> give(Group& other) = 0;
    virtual bool receive(Run run) = 0;
    virtual int slots() const = 0;
    virtual int active() const = 0;
    virtual int64_t steps() const = 0;  // updates done so far, summed over the slots
};

enum class Layout { lanes, within, deep, tables, samples };
inline constexpr std::array LAYOUT_NAMES{"lanes", "within", "deep", "tables", "samples"};

// The examples of one step of a run, or those that it is judged on.
struct DrawnExamples {
    std::vector<uint32_t> bits;  // [example][word]
    std::vector<float> labels;
};

// One instruction set's build of the kernel.
struct Kernel {
    const char* name;
    std::unique_ptr<Group> (*make_group)(const Config&, Layout, Trace*);  // a trace, or null: to judge the runs
    DrawWords draw_words;
    DrawnExamples (*draw_examples)(const Config&, Layout, const Run&, int64_t step, bool evaluation);
    double (*fma_flops)(double seconds);  // floating-point operations per second of one thread
};

namespace avx512vbmi {
Kernel kernel();
}
namespace avx512 {
Kernel kernel();
}
namespace avx2 {
Kernel kernel();
}
namespace neon {
Kernel kernel();
}
namespace baseline {
Kernel kernel();
}

}  // namespace paritylab
