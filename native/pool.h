// A pool of runs with one configuration: a stock, and one group per thread that works through it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels.h"

namespace paritylab {

const Kernel& expect_kernel(const std::string& isa);  // throws if this machine cannot run it

class Pool {
public:
    Pool(const Config& config, int threads, const std::string& isa, const std::string& layout,
         std::unique_ptr<Trace> trace = nullptr);  // with a trace, runs are traced and not judged

    const Config& config() const { return config_; }
    const char* isa() const { return kernel_.name; }
    Layout layout() const { return layout_; }

    void check(int64_t tag, int64_t max_steps) const;  // throws if no run can have them
    void add(Run run);
    std::vector<Record> advance(double seconds);
    void discard(const Tags& tags);

    size_t stock() const { return stock_.waiting(); }
    int slots() const;
    int active() const;
    int64_t steps() const;
    DrawnExamples examples(const Run& run, int64_t step, bool evaluation) const {
        return kernel_.draw_examples(config_, layout_, run, step, evaluation);
    }
    std::unique_ptr<Trace> take_trace();  // once all is done

private:
    const Config config_;
    const Kernel& kernel_;
    Layout layout_;
    Stock stock_;
    std::unique_ptr<Trace> trace_;
    std::vector<std::unique_ptr<Group>> groups_;
    mutable std::mutex mutex_;  // held while the groups work
};

}  // namespace paritylab
