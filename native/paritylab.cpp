#include "paritylab.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "kernels.h"
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

static_assert(int(Family::polynet) == PARITYLAB_POLYNET && int(Activation::gelu) == PARITYLAB_GELU);
static_assert(int(Rule::sign) == PARITYLAB_SIGN);
static_assert(int(Loss::l1) == PARITYLAB_L1 && int(Status::diverged) == PARITYLAB_DIVERGED);
static_assert(int(Layout::deep) == PARITYLAB_DEEP);

// A Config, or why there is none.
struct Parsed {
    const char* refusal;
    Config config;
    Layout layout;
};

template <class Enum>
bool among(int32_t value, Enum last) {
    return value >= 0 && value <= static_cast<int32_t>(last);
}

std::vector<float> to_vector(const paritylab_floats& floats) { return {floats.data, floats.data + floats.count}; }

// Null if there are no factors. Past the last one nothing is asked: see paritylab_add.
std::shared_ptr<Schedule> to_schedule(const paritylab_floats& factors) {
    if (factors.count == 0) return nullptr;
    return std::make_shared<Schedule>([factors = to_vector(factors)](int64_t number) {
        Schedule::Block block(Schedule::SIZE);
        const auto first = factors.begin() + number * Schedule::SIZE;
        std::copy(first, first + std::min<int64_t>(Schedule::SIZE, factors.end() - first), block.begin());
        return block;
    });
}

const char* refusal_of_names(const paritylab_config& c) {
    if (!among(c.family, Family::polynet)) return "family: unknown";
    if (!among(c.activation, Activation::gelu)) return "activation: unknown";
    if (!among(c.loss, Loss::l1)) return "loss: unknown";
    if (!among(c.bias, 2)) return "bias: expected 0, 1 or 2";
    if (!among(c.rule, Rule::sign)) return "rule: unknown";
    if (!among(c.layout, PARITYLAB_BY_SHAPE)) return "layout: unknown";
    if (c.layers < 1 || c.widths == nullptr) return "layers: expected at least 1, and their widths";
    for (const paritylab_floats* floats : {&c.activation_params, &c.loss_params, &c.schedule, &c.rates, &c.rule_params}) {
        if (floats->count < 0 || (floats->count > 0 && floats->data == nullptr)) return "floats: expected as many as said";
    }
    return nullptr;
}

Parsed parse(const paritylab_config& c) {
    if (const char* why = refusal_of_names(c)) return {why, {}, {}};
    Config config{
        .family = Family(c.family), .inputs = c.inputs, .width = c.widths[c.layers - 1],
        .below = {c.widths, c.widths + c.layers - 1}, .bias = c.bias != 0,
        .head_bias = c.bias == 1,
        .activation = Activation(c.activation), .activation_params = to_vector(c.activation_params),
        .loss = Loss(c.loss), .loss_params = to_vector(c.loss_params), .batch = c.batch,
        .schedule = to_schedule(c.schedule), .rates = to_vector(c.rates),
        .decay_coupled = c.decay_coupled, .decay_plain = c.decay_plain,
        .rule = Rule(c.rule), .rule_params = to_vector(c.rule_params), .clip = c.clip, .decay_gradient = c.decay_gradient,
        .problem = {}, .sample = c.sample, .replacement = c.replacement != 0, .short_last = false,
        .eval_every = c.eval_every, .eval_size = c.eval_size, .eval_fresh = c.eval_fresh != 0,
        .allowed_errors = c.allowed_errors, .within = -1, .consecutive = c.consecutive, .keep_params = true};
    if (const char* why = refusal(config)) return {why, {}, {}};
    const Layout layout = c.layout == PARITYLAB_BY_SHAPE ? choose_layout(config) : Layout(c.layout);
    return {refusal_of_layout(config, layout), std::move(config), layout};
}

void copy(const Parameters& from, const paritylab_weights& to) {
    if (to.W) std::copy(from.W.begin(), from.W.end(), to.W);
    if (to.b) std::copy(from.b.begin(), from.b.end(), to.b);
    if (to.u) std::copy(from.u.begin(), from.u.end(), to.u);
    if (to.c) *to.c = from.c;
}

}  // namespace

PARITYLAB_API const char* paritylab_isa(int32_t index) {
    const std::vector<Kernel>& kernels = supported_kernels();
    return index >= 0 && index < int64_t(kernels.size()) ? kernels[index].name : nullptr;
}

PARITYLAB_API const char* paritylab_refusal(const paritylab_config* config) { return parse(*config).refusal; }

PARITYLAB_API paritylab_pool* paritylab_start(const paritylab_config* config, const char* isa) {
    Parsed parsed = parse(*config);
    const Kernel* kernel = find_kernel(isa ? isa : "auto");
    if (parsed.refusal || kernel == nullptr) return nullptr;
    auto group = kernel->make_group(parsed.config, parsed.layout, nullptr);
    const int64_t longest = config->schedule.count ? config->schedule.count : INT64_MAX;
    return new paritylab_pool{std::move(parsed.config), longest, std::move(group), {}, {}};
}

PARITYLAB_API void paritylab_end(paritylab_pool* pool) { delete pool; }

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
    if (head) added.start.u.assign(w.u, w.u + config.width), added.start.c = *w.c;
    pool->stock.add(std::move(added));
    return nullptr;
}

PARITYLAB_API int64_t paritylab_advance(paritylab_pool* pool, double seconds) {
    pool->group->advance(pool->stock, deadline_after(seconds));
    for (Record& record : pool->stock.collect()) pool->done.push_back(std::move(record));
    return pool->stock.waiting() + pool->group->active();
}

PARITYLAB_API int32_t paritylab_take(paritylab_pool* pool, paritylab_record* record, const paritylab_weights* room) {
    if (pool->done.empty()) return 0;
    const Record& first = pool->done.front();
    *record = {first.tag, int32_t(first.status), first.solved_at, first.steps, first.accuracy, first.loss};
    if (room) copy(first.end, *room);
    pool->done.pop_front();
    return 1;
}

PARITYLAB_API int64_t paritylab_look(paritylab_pool* pool, int64_t tag, const paritylab_weights* room) {
    const std::optional<Snapshot> now = pool->group->look(tag);
    if (now && room) copy(now->weights, *room);
    return now ? now->steps : -1;
}
