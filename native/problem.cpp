// Whether a problem that comes from outside hangs together.
#include "problem.h"

#include <algorithm>

#include "config.h"
#include "refusal.h"

namespace paritylab {
namespace {

bool rises(const std::vector<uint32_t>& numbers) { return std::is_sorted(numbers.begin(), numbers.end()); }

const char* refusal(const Component& component, const Config& config) {
    const size_t words = config.words();
    if (component.digits < 0 || component.digits > MOST_DIGITS) return "laws: expected at most 16 digits";
    if (!component.plain && component.planes.size() != component.digits * words) return "laws: planes of a wrong size";
    if (!component.plain && component.always.size() != words) return "laws: always of a wrong size";
    const auto n = static_cast<uint32_t>(config.inputs);
    for (const auto& [i, j] : component.copies) {
        if (i >= n || j >= n) return "laws: a copy of an input that there is not";
    }
    return nullptr;
}

const char* refusal(const Law& law, const Config& config) {
    if (law.components.empty()) return "laws: expected at least one component";
    if (law.cumulative.size() + 1 != law.components.size()) return "laws: expected a threshold between components";
    if (!rises(law.cumulative)) return "laws: thresholds must not fall";
    for (const Component& component : law.components) {
        if (const char* why = refusal(component, config)) return why;
    }
    return nullptr;
}

const char* refusal_of_stages(const Problem& problem, const Config& config) {
    const auto known = [&](int law) { return law >= 0 && law < static_cast<int>(problem.laws.size()); };
    if (!known(problem.law) || !known(problem.evaluation_law)) return "laws: no such law";
    int64_t before = 0;
    for (const Stage& stage : problem.stages) {
        if (!known(stage.law) || !known(stage.next)) return "stages: no such law";
        if (stage.start != before || stage.until <= before || stage.until >= int64_t{1} << 31) {
            return "stages: each must end after the one before, below step 2^31";
        }
        if (stage.flip < -1 || stage.flip >= int64_t{1} << 32) return "stages: expected a flip below 2^32, or -1";
        if (stage.batch < 1 || stage.batch > config.batch) return "stages: expected a batch of at most the learner's";
        before = stage.until;
    }
    return nullptr;
}

const char* refusal_of_tasks(const Target& target, const Config& config) {
    if (target.tasks < 1) return "tasks: expected at least one";
    if (target.controls > config.inputs) return "tasks: expected control bits among the inputs";
    const auto tasks = static_cast<size_t>(target.tasks);
    if (target.task_cumulative.size() + 1 != tasks) return "tasks: expected a threshold between two";
    if (!rises(target.task_cumulative)) return "tasks: thresholds must not fall";
    if (target.task_masks.size() != tasks * config.words()) return "tasks: masks of a wrong size";
    const size_t controls = target.task_controls.size();
    if (controls != 0 && controls != tasks * config.words()) return "tasks: controls of a wrong size";
    return target.task_allowed.size() == tasks ? nullptr : "tasks: expected allowed errors of each";
}

const char* refusal_of_outputs(const Target& target, const Config& config) {
    const size_t outputs = config.outputs;
    if (target.output_masks.size() != outputs * config.words()) return "outputs: expected a mask of each";
    if (target.counted.size() != outputs) return "outputs: expected in how many examples each counts";
    const bool counts = std::ranges::all_of(target.counted, [&](int count) { return count >= 0 && count <= config.batch; });
    return counts ? nullptr : "outputs: expected to count in 0 to batch examples";
}

const char* refusal(const Target& target, const Config& config) {
    const auto inside = [&](int word) { return word >= 0 && word < config.words(); };
    if (config.outputs > 1 && target.kind != TargetKind::outputs) return "outputs: expected a parity for each";
    switch (target.kind) {
        case TargetKind::product: break;
        case TargetKind::outputs: return refusal_of_outputs(target, config);
        case TargetKind::tasks: return refusal_of_tasks(target, config);
        case TargetKind::sum:
            for (const Term& term : target.terms) {
                for (const MaskWord& part : term.mask) {
                    if (!inside(part.word)) return "terms: a mask of a wrong size";
                }
            }
            return target.terms.empty() ? "terms: expected at least one" : nullptr;
        case TargetKind::table: {
            uint64_t largest = 0;
            for (const Field& field : target.fields) {
                if (!inside(field.word) || field.shift < 0 || field.shift > 31 || field.at < 0 || field.at >= MOST_TABLE_BITS) {
                    return "places: a bit that there is not";
                }
                largest |= uint64_t{field.bits} << field.at;
            }
            if (largest >= uint64_t{1} << MOST_TABLE_BITS) return "places: expected at most 20";
            if (target.table.size() != (largest + 32) / 32) return "table: of a wrong size";
            return nullptr;
        }
    }
    return target.tasks == 0 ? nullptr : "tasks: another target has none";
}

}  // namespace

const char* refusal(const Problem& problem, const Config& config) {
    if (problem.words != config.words()) return "problem: of another n";
    if (problem.laws.empty()) return "laws: expected at least one";
    bool simple = problem.target.tasks == 0;
    for (const Law& law : problem.laws) {
        if (const char* why = refusal(law, config)) return why;
        simple &= law.components.size() == 1 && law.components[0].plain;
    }
    if (problem.leaks && (!simple || problem.laws.size() > 1)) return "leak: for uniform inputs and one target";
    const int stride = problem.words + (problem.leaks ? 1 : simple ? 0 : 3);
    if (problem.stride != stride) return "stride: expected the words of an example";
    if (const char* why = refusal_of_stages(problem, config)) return why;
    return refusal(problem.target, config);
}

}  // namespace paritylab
