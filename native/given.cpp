#include "given.h"

#include <algorithm>
#include <span>
#include <utility>

#include "problem_parts.h"
#include "refusal.h"

namespace paritylab {
namespace {

static_assert(int(Family::polynet) == PARITYLAB_POLYNET && int(Activation::gelu) == PARITYLAB_GELU);
static_assert(int(Rule::sign) == PARITYLAB_SIGN);
static_assert(int(Loss::clipped_logistic) == PARITYLAB_CLIPPED_LOGISTIC && int(Status::diverged) == PARITYLAB_DIVERGED);
static_assert(int(Layout::samples) == PARITYLAB_SAMPLES && int(TargetKind::tasks) == PARITYLAB_TASKS);
static_assert(int(Status::training) == PARITYLAB_TRAINING && int(StartKind::tilted_signs) == PARITYLAB_TILTED_SIGNS);

template <class Enum>
bool among(int32_t value, Enum last) {
    return value >= 0 && value <= static_cast<int32_t>(last);
}

// Structures of data and a count.
template <class Given>
auto to_span(const Given& given) {
    return std::span(given.data, static_cast<size_t>(given.count));
}

template <class Given>
auto to_vector(const Given& given) {
    const auto all = to_span(given);
    return std::vector(all.begin(), all.end());
}

bool is_there(const auto&... given) { return (... && (given.count >= 0 && (given.count == 0 || given.data != nullptr))); }

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
    if (!among(c.loss, Loss::clipped_logistic)) return "loss: unknown";
    if (!among(c.bias, 2)) return "bias: expected 0, 1 or 2";
    if (!among(c.rule, Rule::sign)) return "rule: unknown";
    if (!among(c.layout, PARITYLAB_BY_SHAPE)) return "layout: unknown";
    if (c.layers < 1 || c.widths == nullptr) return "layers: expected at least 1, and their widths";
    const bool there = is_there(c.activation_params, c.loss_params, c.schedule, c.rates, c.rule_params);
    return there ? nullptr : "floats: expected as many as said";
}

// Whether the arrays are as long as they say of one another; what is in them, refusal(Problem) checks.
const char* refusal_of_sizes(const paritylab_problem& p, int64_t words) {
    const bool there = is_there(p.components, p.uniform, p.cumulative, p.planes, p.always, p.copied, p.copies, p.stages,
                                p.coefficients, p.terms, p.places, p.table, p.task_cumulative, p.task_masks, p.task_allowed,
                                p.task_controls);
    if (!there) return "problem: expected as many numbers as said";
    int64_t components = 0, copies = 0;
    for (const int64_t count : to_span(p.components)) {
        if (count < 1 || count > 1 << 20) return "laws: expected at least one component";
        components += count;
    }
    if (p.copied.count != components) return "laws: expected copies of each component";
    for (const int64_t count : to_span(p.copied)) {
        if (count < 0 || count > 1 << 20) return "laws: expected copies of each component";
        copies += count;
    }
    const bool fits = p.uniform.count == p.components.count && p.planes.count == components * MOST_DIGITS * words &&
                      p.cumulative.count == components - p.components.count && p.always.count == components * words &&
                      p.copies.count == 2 * copies && p.stages.count % 5 == 0 &&
                      p.terms.count == p.coefficients.count * words && p.task_masks.count == p.task_allowed.count * words;
    if (!fits) return "problem: arrays of a wrong size";
    if (!among(p.target, TargetKind::tasks)) return "target: unknown";
    if (p.leak < -1 || p.leak > int64_t{1} << 31) return "leak: expected at most 2^31, or -1";
    return p.places.count <= MOST_TABLE_BITS ? nullptr : "places: expected at most 20";
}

std::vector<Law> to_laws(const paritylab_problem& p, size_t words) {
    const size_t digits = MOST_DIGITS * words;
    std::vector<Law> laws;
    size_t component = 0, threshold = 0, copy = 0;
    for (int64_t l = 0; l < p.components.count; ++l) {
        const size_t count = p.components.data[l];
        Law law{{p.cumulative.data + threshold, p.cumulative.data + threshold + count - 1}, {}};
        threshold += count - 1;
        for (size_t c = 0; c < count; ++c, ++component) {
            Copies copies;
            for (int64_t i = 0; i < p.copied.data[component]; ++i, copy += 2) {
                copies.emplace_back(p.copies.data[copy], p.copies.data[copy + 1]);
            }
            law.components.push_back(component_of(p.uniform.data[l] != 0, to_span(p.planes).subspan(component * digits, digits),
                                                  to_span(p.always).subspan(component * words, words), std::move(copies)));
        }
        laws.push_back(std::move(law));
    }
    return laws;
}

Problem to_problem(const paritylab_problem& p, size_t words) {
    Problem made;
    made.words = static_cast<int>(words);
    made.stride = p.stride;
    made.leaks = p.leak >= 0;
    made.leak = made.leaks ? static_cast<uint32_t>(p.leak) : 0;
    made.laws = to_laws(p, words);
    made.law = p.law;
    made.evaluation_law = p.evaluation_law;
    for (int64_t i = 0; i < p.stages.count; i += 5) {
        const int64_t* s = p.stages.data + i;
        add_stage(made.stages, s[0], static_cast<int>(s[1]), static_cast<int>(s[2]), s[3], static_cast<int>(s[4]));
    }
    Target& target = made.target;
    target.kind = TargetKind(p.target);
    target.scale = p.scale;
    for (int64_t i = 0; i < p.coefficients.count; ++i) {
        target.terms.push_back(term_of(p.coefficients.data[i], to_span(p.terms).subspan(i * words, words)));
    }
    target.sign = p.sign != 0;
    target.fields = fields_of(std::vector<int32_t>(p.places.data, p.places.data + p.places.count));
    target.table = to_vector(p.table);
    target.tasks = static_cast<int>(p.task_allowed.count);
    target.task_cumulative = to_vector(p.task_cumulative);
    target.task_masks = by_word(to_span(p.task_masks), words);
    target.task_allowed = to_vector(p.task_allowed);
#if defined(__wasm__)  // on a page each task has a control bit of its own, and is drawn
    target.controls = target.tasks;
#else
    put_controls(target, to_span(p.task_controls), words);
    target.in_turn = p.in_turn != 0;
#endif
    return made;
}

}  // namespace

Parsed parsed(const paritylab_config& c) {
    if (const char* why = refusal_of_names(c)) return {why, {}, {}};
    if (c.problem && (c.inputs < 1 || c.inputs > 1 << 20)) return {"n: expected 1 to 2^20 inputs", {}, {}};
    const size_t words = (static_cast<size_t>(c.inputs) + 31) / 32;
    if (const char* why = c.problem ? refusal_of_sizes(*c.problem, words) : nullptr) return {why, {}, {}};
    Config config{
        .family = Family(c.family), .inputs = c.inputs, .width = c.widths[c.layers - 1],
        .below = {c.widths, c.widths + c.layers - 1}, .bias = c.bias != 0,
        .head_bias = c.bias == 1,
        .activation = Activation(c.activation), .activation_params = to_vector(c.activation_params),
        .loss = Loss(c.loss), .loss_params = to_vector(c.loss_params), .batch = c.batch,
        .schedule = to_schedule(c.schedule), .rates = to_vector(c.rates),
        .decay_coupled = c.decay_coupled, .decay_plain = c.decay_plain,
        .rule = Rule(c.rule), .rule_params = to_vector(c.rule_params), .clip = c.clip, .decay_gradient = c.decay_gradient,
        .skips_satisfied = c.skips_satisfied != 0,
        .problem = c.problem ? std::make_shared<const Problem>(to_problem(*c.problem, words)) : nullptr,
        .sample = c.sample, .replacement = c.replacement != 0, .short_last = c.short_last != 0,
        .eval_every = c.eval_every, .eval_size = c.eval_size, .eval_fresh = c.eval_fresh != 0,
        .allowed_errors = c.allowed_errors, .within = c.within, .consecutive = c.consecutive, .keep_params = true};
#if !defined(__wasm__)
    config.bits = c.bits != 0;
#endif
    if (const char* why = refusal(config)) return {why, {}, {}};
    const Layout layout = c.layout == PARITYLAB_BY_SHAPE ? choose_layout(config) : Layout(c.layout);
    return {refusal_of_layout(config, layout), std::move(config), layout};
}

std::optional<Start> parsed(const paritylab_law& l) {
    if (!among(l.hidden, StartKind::tilted_signs) || !among(l.output, StartKind::tilted_signs)) return {};
    if (!is_there(l.hidden_params, l.output_params, l.scales)) return {};
    return Start{{StartKind(l.hidden), to_vector(l.hidden_params)}, {StartKind(l.output), to_vector(l.output_params)},
                 to_vector(l.scales), l.biased != 0, l.mirrored != 0};
}

}  // namespace paritylab
