// The Python class paritylab._lanes.Problem.
#include "bind_problem.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "problem_parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace paritylab {
namespace {

template <size_t N>
using Words = nb::ndarray<const uint32_t, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using GivenLaw = std::tuple<Words<1>, Words<3>, Words<2>, std::vector<Copies>, bool>;
using GivenStage = std::tuple<int64_t, int, int, int64_t, int>;

std::vector<uint32_t> to_vector(const uint32_t* from, size_t count) { return {from, from + count}; }

Law to_law(const GivenLaw& given, size_t words) {
    const auto& [cumulative, planes, always, copies, plain] = given;
    const size_t count = planes.shape(0), size = MOST_DIGITS * words;
    if (planes.shape(1) != MOST_DIGITS || planes.shape(2) != words || always.shape(0) != count ||
        always.shape(1) != words || copies.size() != count) {
        throw std::invalid_argument("laws: wrong shape");
    }
    Law law{to_vector(cumulative.data(), cumulative.size()), {}};
    for (size_t c = 0; c < count; ++c) {
        law.components.push_back(
            component_of(plain, {planes.data() + c * size, size}, {always.data() + c * words, words}, copies[c]));
    }
    return law;
}

std::vector<Stage> to_stages(const std::vector<GivenStage>& given) {
    std::vector<Stage> stages;
    for (const auto& [until, law, next, flip, batch] : given) add_stage(stages, until, law, next, flip, batch);
    return stages;
}

std::vector<Field> to_fields(const std::vector<int>& places) {
    if (places.size() > MOST_TABLE_BITS) throw std::invalid_argument("places: expected at most 20");
    return fields_of(places);
}

std::vector<Term> to_terms(const std::vector<std::pair<float, Words<1>>>& given) {
    std::vector<Term> terms;
    for (const auto& [coefficient, mask] : given) terms.push_back(term_of(coefficient, {mask.data(), mask.size()}));
    return terms;
}

TargetKind to_kind(const std::string& name) {
    if (name == "product") return TargetKind::product;
    if (name == "sum") return TargetKind::sum;
    if (name == "table") return TargetKind::table;
    if (name == "tasks") return TargetKind::tasks;
    if (name == "outputs") return TargetKind::outputs;
    throw std::invalid_argument("target: '" + name + "' is none of product, sum, table, tasks, outputs");
}

}  // namespace

void bind_problem(nb::module_& m) {
    nb::class_<Problem>(m, "Problem", "What is learned, where it is not a parity of uniform inputs.")
        .def("__init__", [](Problem* self, int n, int stride, const std::vector<GivenLaw>& laws, int law, int evaluation_law,
                            const std::vector<GivenStage>& stages, std::optional<uint32_t> leak, const std::string& target,
                            float scale, const std::vector<std::pair<float, Words<1>>>& terms, bool sign,
                            const std::vector<int>& places, Words<1> table, Words<1> task_cumulative, Words<2> task_masks,
                            std::vector<int64_t> task_allowed, Words<2> task_controls, bool in_turn, Words<2> output_masks,
                            std::vector<int> counted) {
            if (n < 1 || n > 1 << 20) throw std::invalid_argument("n: expected 1 to 2^20 inputs");
            Problem made;
            made.words = (n + 31) / 32;
            made.stride = stride;
            made.leaks = leak.has_value();
            made.leak = leak.value_or(0);
            for (const GivenLaw& given : laws) made.laws.push_back(to_law(given, made.words));
            made.law = law;
            made.evaluation_law = evaluation_law;
            made.stages = to_stages(stages);
            made.target.kind = to_kind(target);
            made.target.scale = scale;
            made.target.terms = to_terms(terms);
            made.target.sign = sign;
            made.target.fields = to_fields(places);
            made.target.table = to_vector(table.data(), table.size());
            made.target.tasks = static_cast<int>(task_masks.shape(0));
            made.target.task_cumulative = to_vector(task_cumulative.data(), task_cumulative.size());
            made.target.task_masks = by_word({task_masks.data(), task_masks.size()}, made.words);
            made.target.task_allowed = std::move(task_allowed);
            put_controls(made.target, {task_controls.data(), task_controls.size()}, made.words);
            made.target.in_turn = in_turn;
            made.target.output_masks = by_word({output_masks.data(), output_masks.size()}, made.words);
            made.target.counted = std::move(counted);
            new (self) Problem(std::move(made));
        }, nb::kw_only(), "n"_a, "stride"_a, "laws"_a, "law"_a, "evaluation_law"_a, "stages"_a, "leak"_a.none(), "target"_a,
           "scale"_a, "terms"_a, "sign"_a, "places"_a, "table"_a, "task_cumulative"_a, "task_masks"_a, "task_allowed"_a,
           "task_controls"_a, "in_turn"_a, "output_masks"_a, "counted"_a,
           "laws: (cumulative, planes, always, copies, whether it is uniform) of each. "
           "stages: (until, law, next law, flip or -1, batch) of each. "
           "table: a bit for each index, set where the value is -1. "
           "task_controls: of each task, or of none where each has its own control bit. "
           "counted: the first examples of a batch, in which the loss of each output counts.");
}

}  // namespace paritylab
