#include "paritylab.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "given.h"
#include "refusal.h"

using namespace paritylab;

#define PARITYLAB_API extern "C" __attribute__((visibility("default")))

struct paritylab_pool {
    const Config config;
    const int64_t longest;  // steps that the schedule has
    std::unique_ptr<Group> group;
    Stock stock;
    std::deque<Record> done;
};

namespace {

void copy(const Parameters& from, const paritylab_weights& to) {
    if (to.W) std::copy(from.W.begin(), from.W.end(), to.W);
    if (to.b) std::copy(from.b.begin(), from.b.end(), to.b);
    if (to.u) std::copy(from.u.begin(), from.u.end(), to.u);
    if (to.c) *to.c = from.c[0];
}

paritylab_record to_c(const Record& record) {
    return {record.tag, int32_t(record.status), record.solved_at, record.steps, record.accuracy, record.loss};
}

int64_t advance(paritylab_pool* pool, Clock::time_point deadline, int64_t most) {
    pool->group->advance(pool->stock, deadline, most);
    for (Record& record : pool->stock.collect()) pool->done.push_back(std::move(record));
    return pool->stock.waiting() + pool->group->active();
}

}  // namespace

PARITYLAB_API const char* paritylab_isa(int32_t index) {
    const std::vector<Kernel>& kernels = supported_kernels();
    return index >= 0 && index < int64_t(kernels.size()) ? kernels[index].name : nullptr;
}

PARITYLAB_API const char* paritylab_refusal(const paritylab_config* config) { return parsed(*config).refusal; }

PARITYLAB_API paritylab_pool* paritylab_start(const paritylab_config* config, const char* isa) {
    Parsed given = parsed(*config);
    const Kernel* kernel = find_kernel(isa ? isa : "auto");
    if (given.refusal || kernel == nullptr) return nullptr;
    auto group = kernel->make_group(given.config, given.layout, nullptr);
    const int64_t longest = config->schedule.count ? config->schedule.count : INT64_MAX;
    return new paritylab_pool{std::move(given.config), longest, std::move(group), {}, {}};
}

PARITYLAB_API void paritylab_end(paritylab_pool* pool) { delete pool; }

PARITYLAB_API int32_t paritylab_slots(paritylab_pool* pool) { return pool->group->slots(); }

PARITYLAB_API const char* paritylab_add(paritylab_pool* pool, const paritylab_run* run) {
    const Config& config = pool->config;
    if (const char* why = refusal_of_run(run->max_steps)) return why;
    if (run->max_steps > pool->longest) return "schedule: shorter than max_steps";
    const paritylab_weights& w = run->start;
    const bool head = config.family == Family::mlp;
    if (!run->mask || !w.W || !w.b || (head && (!w.u || !w.c))) return "run: expected a mask and start weights";
    Run added{.tag = run->tag, .key = {run->key[0], run->key[1]}, .lr = run->lr, .tau = run->noise, .flip = run->flip,
              .max_steps = run->max_steps, .mask = {run->mask, run->mask + config.words()}, .start = {}};
    added.start.W.assign(w.W, w.W + config.weights());
    added.start.b.assign(w.b, w.b + config.units());
    added.start.u.assign(config.width, 0.0f);
    added.start.c = {0.0f};
    if (head) added.start.u.assign(w.u, w.u + config.width), added.start.c = {*w.c};
    pool->stock.add(std::move(added));
    return nullptr;
}

PARITYLAB_API const char* paritylab_draw(paritylab_pool* pool, const paritylab_law* law, const uint32_t key[2],
                                         const paritylab_weights* room) {
    const std::optional<Start> start = parsed(*law);
    if (!start) return "start: unknown";
    if (const char* why = refusal(*start, pool->config)) return why;
    copy(draw_start(pool->config, *start, {key[0], key[1]}), *room);
    return nullptr;
}

PARITYLAB_API int64_t paritylab_advance(paritylab_pool* pool, double seconds) {
    return advance(pool, deadline_after(seconds), INT64_MAX);
}

PARITYLAB_API int64_t paritylab_train(paritylab_pool* pool, int64_t steps) {
    return advance(pool, Clock::time_point::max(), std::max<int64_t>(steps, 0));
}

PARITYLAB_API int64_t paritylab_move(paritylab_pool* from, paritylab_pool* to) {
    return from->group->give(*to->group).value_or(-1);
}

PARITYLAB_API int32_t paritylab_take(paritylab_pool* pool, paritylab_record* record, const paritylab_weights* room) {
    if (pool->done.empty()) return 0;
    const Record& first = pool->done.front();
    *record = to_c(first);
    if (room) copy(first.end, *room);
    pool->done.pop_front();
    return 1;
}

PARITYLAB_API int64_t paritylab_look(paritylab_pool* pool, int64_t tag, const paritylab_weights* room) {
    const std::optional<Snapshot> now = pool->group->look(tag);
    if (now && room) copy(now->weights, *room);
    return now ? now->steps : -1;
}

PARITYLAB_API int32_t paritylab_survey(paritylab_pool* pool, int64_t examples, int32_t of_sample,
                                       paritylab_record* records) {
    const std::vector<Record> found = pool->group->survey(examples, of_sample != 0);
    std::ranges::transform(found, records, to_c);
    return int32_t(found.size());
}
