#include "message.h"

namespace paritylab {
namespace {

paritylab_problem read_problem(Reader& r) {
    paritylab_problem p{};
    p.stride = r.small();
    p.leak = r.whole();
    p.components = r.wholes();
    p.uniform = r.wholes();
    p.cumulative = r.words();
    p.planes = r.words();
    p.always = r.words();
    p.copied = r.wholes();
    p.copies = r.words();
    p.law = r.small();
    p.evaluation_law = r.small();
    p.stages = r.wholes();
    p.target = r.small();
    p.scale = r.real();
    p.coefficients = r.floats();
    p.terms = r.words();
    p.sign = r.small();
    p.places = r.wholes();
    p.table = r.words();
    p.task_cumulative = r.words();
    p.task_masks = r.words();
    p.task_allowed = r.wholes();
#if !defined(__wasm__)  // no page has them
    p.task_controls = r.words();
    p.in_turn = r.small();
#endif
    return p;
}

}  // namespace

void Message::read(Reader& r) {
    paritylab_config& c = config;
    c.family = r.small();
    c.inputs = r.small();
    const paritylab_wholes given = r.wholes();
    widths.assign(given.data, given.data + given.count);
    c.layers = static_cast<int32_t>(widths.size());
    c.widths = widths.data();
    c.bias = r.small();
    c.activation = r.small();
    c.activation_params = r.floats();
    c.loss = r.small();
    c.loss_params = r.floats();
    c.batch = r.small();
    c.schedule = r.floats();
    c.rates = r.floats();
    c.decay_coupled = r.real();
    c.decay_plain = r.real();
    c.sample = r.whole();
    c.replacement = r.small();
    c.short_last = r.small();
    c.eval_every = r.whole();
    c.eval_size = r.whole();
    c.eval_fresh = r.small();
    c.allowed_errors = r.whole();
    c.within = r.real();
    c.consecutive = r.small();
    c.layout = r.small();
    c.rule = r.small();
    c.rule_params = r.floats();
    c.clip = r.real();
    c.decay_gradient = r.real();
    c.bits = r.small();
    c.skips_satisfied = r.small();
    if (r.whole() == 0) return;
    problem = read_problem(r);
    c.problem = &problem;
}

paritylab_law read_law(Reader& r) {
    paritylab_law law{};
    law.hidden = r.small();
    law.hidden_params = r.floats();
    law.output = r.small();
    law.output_params = r.floats();
    law.scales = r.floats();
    law.biased = r.small();
    law.mirrored = r.small();
    return law;
}

}  // namespace paritylab
