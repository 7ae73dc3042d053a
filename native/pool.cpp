#include "pool.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "refusal.h"
#include "threads.h"

namespace paritylab {

const Kernel& expect_kernel(const std::string& isa) {
    if (const Kernel* kernel = find_kernel(isa)) return *kernel;
    throw std::invalid_argument("isa: this machine cannot run '" + isa + "'");
}

static Layout parse_layout(const Config& config, const std::string& name) {
    const auto found = std::ranges::find(LAYOUT_NAMES, name);
    const bool chosen = name == "auto";
    if (!chosen && found == LAYOUT_NAMES.end()) throw std::invalid_argument("layout: expected 'auto', 'lanes', 'within', 'deep', 'tables' or 'samples'");
    const auto layout = chosen ? choose_layout(config) : static_cast<Layout>(found - LAYOUT_NAMES.begin());
    if (const char* why = refusal_of_layout(config, layout)) throw std::invalid_argument(why);
    return layout;
}

Pool::Pool(const Config& config, int threads, const std::string& isa, const std::string& layout,
           std::unique_ptr<Trace> trace)
    : config_(config), kernel_(expect_kernel(isa)), layout_(parse_layout(config, layout)), trace_(std::move(trace)) {
    if (threads < 1) throw std::invalid_argument("threads: expected at least 1");
    for (int i = 0; i < threads; ++i) groups_.push_back(kernel_.make_group(config_, layout_, trace_.get()));
}

void Pool::check(int64_t tag, int64_t max_steps) const {
    if (trace_ && (tag < 0 || tag >= trace_->runs)) throw std::invalid_argument("tag: the trace has no such row");
    if (trace_ && max_steps < trace_->steps.back()) throw std::invalid_argument("max_steps: the trace goes further");
    if (const char* why = refusal_of_run(max_steps)) throw std::invalid_argument(why);
}

void Pool::add(Run run) {
    check(run.tag, run.max_steps);
    stock_.add(std::move(run));
}

std::vector<Record> Pool::advance(double seconds) {
    std::lock_guard lock(mutex_);
    const auto deadline = deadline_after(seconds);
    std::vector<std::exception_ptr> errors(groups_.size());
    const auto work = [&](size_t i) {
        try {
            groups_[i]->advance(stock_, deadline);
        } catch (...) {
            errors[i] = std::current_exception();
        }
    };
    in_threads(groups_.size(), work);
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
