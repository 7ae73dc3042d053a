#include "pool.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

namespace paritylab {

const std::vector<Kernel>& supported_kernels() {
    static const std::vector<Kernel> kernels = [] {
        std::vector<Kernel> found;
#if defined(PARITYLAB_X86)
        __builtin_cpu_init();
        const bool fma = __builtin_cpu_supports("fma");
        if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
            found.push_back(avx512::kernel());
        }
        if (fma && __builtin_cpu_supports("avx2")) found.push_back(avx2::kernel());
#endif
        found.push_back(baseline::kernel());
        return found;
    }();
    return kernels;
}

const Kernel& find_kernel(const std::string& isa) {
    const std::vector<Kernel>& kernels = supported_kernels();
    if (isa == "auto") return kernels.front();
    const auto found = std::ranges::find(kernels, isa, &Kernel::name);
    if (found == kernels.end()) throw std::invalid_argument("isa: this machine cannot run '" + isa + "'");
    return *found;
}

Layout choose_layout(const Config& config) {
    if (config.family != Family::mlp) return Layout::lanes;
    if (!config.below.empty()) return Layout::deep;
    // Measured on Zen 4. Sixteen lanes on every instruction set, so that all choose alike.
    const int64_t lanes_bytes = int64_t{64} * config.inputs * config.width;
    const int64_t limit = config.batch >= 4 ? 224 * 1024 : 1024 * 1024;
    const int padded_width = (config.width + 15) / 16 * 16;
    return lanes_bytes > limit && 4 * config.width >= 3 * padded_width ? Layout::within : Layout::lanes;
}

static Layout parse_layout(const Config& config, const std::string& name) {
    if (name == "auto") return choose_layout(config);
    const bool deep = !config.below.empty();
    if (deep && name != "deep") throw std::invalid_argument("layout: a deep mlp has 'deep' only");
    if (name == "lanes") return Layout::lanes;
    if (config.family != Family::mlp) throw std::invalid_argument("layout: all but 'lanes' are for the mlp only");
    if (name == "within") return Layout::within;
    if (name == "deep") return Layout::deep;
    throw std::invalid_argument("layout: expected 'auto', 'lanes', 'within' or 'deep'");
}

Pool::Pool(const Config& config, int threads, const std::string& isa, const std::string& layout,
           std::unique_ptr<Trace> trace)
    : config_(config), kernel_(find_kernel(isa)), layout_(parse_layout(config, layout)), trace_(std::move(trace)) {
    if (threads < 1) throw std::invalid_argument("threads: expected at least 1");
    for (int i = 0; i < threads; ++i) groups_.push_back(kernel_.make_group(config_, layout_, trace_.get()));
}

void Pool::check(int64_t tag, int64_t max_steps) const {
    if (trace_ && (tag < 0 || tag >= trace_->runs)) throw std::invalid_argument("tag: the trace has no such row");
    if (trace_ && max_steps < trace_->steps.back()) throw std::invalid_argument("max_steps: the trace goes further");
    if (max_steps < 1) throw std::invalid_argument("max_steps: expected at least 1");
}

void Pool::add(Run run) {
    check(run.tag, run.max_steps);
    stock_.add(std::move(run));
}

std::vector<Record> Pool::advance(double seconds) {
    std::lock_guard lock(mutex_);
    // Beyond a day the conversion to the clock's integer could overflow.
    const auto span = std::chrono::duration<double>(std::clamp(seconds, 0.0, 86400.0));
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(span);
    std::vector<std::exception_ptr> errors(groups_.size());
    const auto work = [&](size_t i) {
        try {
            groups_[i]->advance(stock_, deadline);
        } catch (...) {
            errors[i] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (size_t i = 1; i < groups_.size(); ++i) threads.emplace_back(work, i);
        work(0);
    }
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
    return stock_.collect();
}

void Pool::discard(const Tags& tags) {
    std::lock_guard lock(mutex_);
    stock_.discard(tags);
    for (const auto& group : groups_) group->discard(tags);
}

std::unique_ptr<Trace> Pool::take_trace() {
    if (!trace_) throw std::invalid_argument("trace: this pool has none");
    if (stock() > 0 || active() > 0) throw std::invalid_argument("trace: not all runs are done");
    groups_.clear();
    return std::move(trace_);
}

int Pool::slots() const {
    std::lock_guard lock(mutex_);
    int total = 0;
    for (const auto& group : groups_) total += group->slots();
    return total;
}

int Pool::active() const {
    std::lock_guard lock(mutex_);
    int total = 0;
    for (const auto& group : groups_) total += group->active();
    return total;
}

int64_t Pool::steps() const {
    std::lock_guard lock(mutex_);
    int64_t total = 0;
    for (const auto& group : groups_) total += group->steps();
    return total;
}

}  // namespace paritylab
