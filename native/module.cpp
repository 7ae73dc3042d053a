// The Python module paritylab._lanes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <tuple>

#include "bind_problem.h"
#include "bind_supports.h"
#include "parse.h"
#include "pool.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace paritylab {
namespace {

template <class T, size_t N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

using Weights = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;  // (runs, ...)

template <class T>
nb::object to_numpy(std::vector<T> values, std::vector<size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

// One column of the records; `values` says what each record adds to it.
template <class T, class Values>
nb::object column(const std::vector<Record>& records, std::vector<size_t> shape, Values&& values) {
    std::vector<T> all;
    for (const Record& record : records) values(record, all);
    shape.insert(shape.begin(), records.size());
    return to_numpy(std::move(all), std::move(shape));
}

// Of one layer (n, width); those of several lie in one row.
std::vector<size_t> shape_of_weights(const Config& config) {
    if (!config.below.empty()) return {size_t(config.weights())};
    return {size_t(config.inputs), size_t(config.width)};
}

// What an array of the head has for each output, if there are several.
std::vector<size_t> by_output(const Config& config, std::vector<size_t> shape) {
    if (config.outputs > 1) shape.push_back(config.outputs);
    return shape;
}

nb::dict to_dict(const std::vector<Record>& records, const Config& config) {
    const auto scalar = [&]<class T>(T, auto&& value) {
        return column<T>(records, {}, [&](const Record& r, std::vector<T>& all) { all.push_back(T(value(r))); });
    };
    nb::dict out;
    out["tag"] = scalar(int64_t{}, [](const Record& r) { return r.tag; });
    out["status"] = scalar(int32_t{}, [](const Record& r) { return r.status; });
    out["t_c"] = scalar(int64_t{}, [](const Record& r) { return r.solved_at; });
    out["steps"] = scalar(int64_t{}, [](const Record& r) { return r.steps; });
    out["accuracy"] = scalar(double{}, [](const Record& r) { return r.accuracy; });
    out["loss"] = scalar(double{}, [](const Record& r) { return r.loss; });
    if (!config.keep_params) return out;
    const auto array = [&](std::vector<size_t> shape, std::vector<float> Parameters::*member) {
        return column<float>(records, std::move(shape), [&](const Record& r, std::vector<float>& all) {
            all.insert(all.end(), (r.end.*member).begin(), (r.end.*member).end());
        });
    };
    out["W"] = array(shape_of_weights(config), &Parameters::W);
    out["b"] = array({size_t(config.units())}, &Parameters::b);
    out["u"] = array(by_output(config, {size_t(config.width)}), &Parameters::u);
    out["c"] = array(by_output(config, {}), &Parameters::c);
    return out;
}

nb::dict to_dict(Trace trace, const Config& config) {
    const size_t runs = trace.runs, points = trace.steps.size();
    nb::dict out;
    const auto series = [&](const std::string& prefix, Series& values) {
        out[(prefix + "accuracy").c_str()] = to_numpy(std::move(values.accuracy), {runs, points});
        out[(prefix + "loss").c_str()] = to_numpy(std::move(values.loss), {runs, points});
    };
    series("", trace.evaluation);
    if (trace.parts > 0) {
        out["task_accuracy"] = to_numpy(std::move(trace.by_part.accuracy), {runs, points, trace.parts});
        out["task_loss"] = to_numpy(std::move(trace.by_part.loss), {runs, points, trace.parts});
    }
    out["task_skill"] = to_numpy(std::move(trace.skill), {runs, points, std::max(trace.parts, size_t{1})});
    if (!trace.train.loss.empty()) series("train_", trace.train);
    if (!trace.train_by_output.loss.empty()) {
        out["train_task_accuracy"] = to_numpy(std::move(trace.train_by_output.accuracy), {runs, points, trace.parts});
    }
    if (!config.keep_params) return out;
    const auto array = [&](std::vector<float>& values, std::vector<size_t> shape) {
        shape.insert(shape.begin(), {runs, points});
        return to_numpy(std::move(values), std::move(shape));
    };
    out["W"] = array(trace.W, shape_of_weights(config));
    out["b"] = array(trace.b, {size_t(config.units())});
    out["u"] = array(trace.u, by_output(config, {size_t(config.width)}));
    out["c"] = array(trace.c, by_output(config, {}));
    return out;
}

// Of a function from a block's number to its factors, which is called by the threads that train.
std::shared_ptr<Schedule> make_schedule(nb::callable factors) {
    return std::make_shared<Schedule>([factors = std::move(factors)](int64_t number) {
        nb::gil_scoped_acquire acquire;
        const auto block = nb::cast<Array<float, 1>>(factors(number));
        if (block.size() != size_t(Schedule::SIZE)) throw std::invalid_argument("schedule: a block of a wrong size");
        return Schedule::Block(block.data(), block.data() + block.size());
    });
}

std::unique_ptr<Trace> make_trace(const Config& config, std::vector<int64_t> steps, int64_t runs, bool train,
                                  double stop) {
    if (runs < 1) throw std::invalid_argument("trace: expected at least one run");
    if (steps.empty() || steps.front() < 0) throw std::invalid_argument("trace: expected steps of at least 0");
    if (std::ranges::adjacent_find(steps, std::greater_equal{}) != steps.end()) {
        throw std::invalid_argument("trace: expected increasing steps");
    }
    const int64_t numbers = steps.size() * (2 * config.parts() + (config.keep_params ? config.weights() + 2 : 1));  // of a run
    if (runs > (int64_t{1} << 40) / numbers) throw std::invalid_argument("trace: too many points");
    if (train && config.sample == 0) throw std::invalid_argument("trace: there is no finite sample");
    return std::make_unique<Trace>(config, std::move(steps), runs, train, stop);
}

template <class NdArray>
void expect_shape(const char* name, const NdArray& array, std::initializer_list<size_t> shape) {
    size_t axis = 0;
    for (size_t length : shape) {
        if (array.shape(axis++) != length) throw std::invalid_argument(std::string(name) + ": wrong shape");
    }
}

void add(Pool& pool, Array<int64_t, 1> tag, Array<uint32_t, 2> key, Weights W, Array<float, 2> b,
         Weights u, Weights c, Array<float, 1> lr, Array<float, 1> tau, Array<uint32_t, 1> flip,
         Array<uint32_t, 2> mask, Array<int64_t, 1> max_steps) {
    const Config& config = pool.config();
    const size_t runs = tag.shape(0), weights = config.weights(), units = config.units(), width = config.width;
    const size_t words = config.words(), outputs = config.outputs;
    expect_shape("key", key, {runs, 2});
    const auto expect_rows = [&](const char* name, const Weights& array, size_t numbers) {
        const bool rows = array.ndim() > 0 && array.shape(0) == runs && array.size() == runs * numbers;
        if (!rows) throw std::invalid_argument(std::string(name) + ": wrong shape");
    };
    expect_rows("W", W, weights);
    expect_shape("b", b, {runs, units});
    expect_rows("u", u, width * outputs);
    expect_rows("c", c, outputs);
    expect_shape("lr", lr, {runs});
    expect_shape("tau", tau, {runs});
    expect_shape("flip", flip, {runs});
    expect_shape("mask", mask, {runs, words});
    expect_shape("max_steps", max_steps, {runs});
    for (size_t i = 0; i < runs; ++i) pool.check(tag.data()[i], max_steps.data()[i]);  // all, before any is added
    const auto row = []<class T>(const T* data, size_t index, size_t length) {
        return std::vector<T>(data + index * length, data + (index + 1) * length);
    };
    const bool has_head = config.family == Family::mlp;
    for (size_t i = 0; i < runs; ++i) {
        Run run;
        run.tag = tag.data()[i];
        run.key = {key.data()[2 * i], key.data()[2 * i + 1]};
        run.lr = lr.data()[i];
        run.tau = tau.data()[i];
        run.flip = flip.data()[i];
        run.max_steps = max_steps.data()[i];
        run.mask = row(mask.data(), i, words);
        run.start.W = row(W.data(), i, weights);
        run.start.b = row(b.data(), i, units);
        run.start.u = has_head ? row(u.data(), i, width * outputs) : std::vector<float>(width);
        run.start.c = has_head ? row(c.data(), i, outputs) : std::vector<float>(1);
        pool.add(std::move(run));
    }
}

double fma_peak(double seconds, int threads, const std::string& isa) {
    const Kernel& kernel = expect_kernel(isa);
    std::vector<double> flops(std::max(threads, 1));
    in_threads(flops.size(), [&](size_t i) { flops[i] = kernel.fma_flops(seconds); });
    double total = 0;
    for (double result : flops) total += result;
    return total;
}

#if defined(__clang__)
constexpr const char* COMPILER = "Clang " __clang_version__;
#else
constexpr const char* COMPILER = "GCC " __VERSION__;
#endif

}  // namespace

NB_MODULE(_lanes, m) {
    m.doc() = "Trains many small networks at once on sparse parities, on the CPU.";

    m.attr("SCHEDULE_BLOCK") = Schedule::SIZE;
    m.attr("compiler") = COMPILER;
    m.attr("commit") = PARITYLAB_COMMIT;
    m.def("supported_isas", [] {
        std::vector<std::string> names;
        for (const Kernel& kernel : supported_kernels()) names.emplace_back(kernel.name);
        return names;
    }, "The instruction sets this machine can run, best first.");
    m.def("fma_peak", &fma_peak, "seconds"_a, "threads"_a = 1, "isa"_a = "auto",
          nb::call_guard<nb::gil_scoped_release>(), "Measured fused multiply-add peak, in FLOP/s.");
    m.def("fold_in", [](std::pair<uint32_t, uint32_t> key, uint32_t data) {
        const Key<uint32_t> out = fold_in(Key<uint32_t>{key.first, key.second}, data);
        return std::pair(out.a, out.b);
    }, "key"_a, "data"_a, "jax.random.fold_in");
    m.def("random_bits", [](Array<uint32_t, 2> keys, uint32_t count, const std::string& isa) {
        const size_t rows = keys.shape(0);
        expect_shape("keys", keys, {rows, 2});
        std::vector<uint32_t> bits(rows * count);
        const Kernel& kernel = expect_kernel(isa);
        for (size_t i = 0; i < rows; ++i) {
            kernel.draw_words({keys(i, 0), keys(i, 1)}, count, bits.data() + i * count);
        }
        return to_numpy(std::move(bits), {rows, count});
    }, "keys"_a, "count"_a, "isa"_a = "auto", "jax.random.bits(key, (count,)) of each key.");

    bind_problem(m);
    bind_supports(m);

    nb::class_<Pool>(m, "Pool", "Runs with one configuration, trained to their end by a few threads.")
        .def("__init__", [](Pool* self, int n, const std::string& family, int width, int batch,
                            const std::string& activation, std::vector<float> activation_params,
                            const std::string& loss, std::vector<float> loss_params,
                            std::optional<nb::callable> schedule, std::vector<float> rates,
                            float decay_coupled, float decay_plain, int64_t sample, bool replacement,
                            int64_t eval_every, int64_t eval_size, bool eval_fresh,
                            int64_t allowed_errors, int consecutive, bool keep_params, int threads,
                            bool bias, bool head_bias, std::vector<int> below, const std::string& rule,
                            std::vector<float> rule_params, float clip, float decay_gradient, const Problem* problem,
                            bool short_last, float within, bool bits, bool skips_satisfied, int outputs, const std::string& isa, const std::string& layout,
                            std::optional<std::tuple<std::vector<int64_t>, int64_t, bool, double>> trace) {
            Config config{
                .family = parse_family(family), .inputs = n, .width = width, .below = std::move(below), .outputs = outputs, .bits = bits, .bias = bias,
                .head_bias = bias && head_bias,
                .activation = parse_activation(activation), .activation_params = std::move(activation_params),
                .loss = parse_loss(loss), .loss_params = std::move(loss_params), .batch = batch, .schedule = {},
                .rates = std::move(rates), .decay_coupled = decay_coupled, .decay_plain = decay_plain,
                .rule = parse_rule(rule), .rule_params = std::move(rule_params), .clip = clip,
                .decay_gradient = decay_gradient, .skips_satisfied = skips_satisfied,
                .problem = problem ? std::make_shared<const Problem>(*problem) : nullptr,
                .sample = sample, .replacement = replacement, .short_last = short_last,
                .eval_every = eval_every, .eval_size = eval_size, .eval_fresh = eval_fresh,
                .allowed_errors = allowed_errors, .within = within, .consecutive = consecutive, .keep_params = keep_params};
            if (schedule) config.schedule = make_schedule(std::move(*schedule));
            check(config);
            std::unique_ptr<Trace> traced;
            if (trace) traced = std::apply([&](auto... parts) { return make_trace(config, parts...); }, *trace);
            new (self) Pool(config, threads, isa, layout, std::move(traced));
        }, nb::kw_only(), "n"_a, "family"_a, "width"_a, "batch"_a, "activation"_a,
           "activation_params"_a, "loss"_a, "loss_params"_a, "schedule"_a.none() = nb::none(), "rates"_a,
           "decay_coupled"_a, "decay_plain"_a, "sample"_a, "replacement"_a, "eval_every"_a,
           "eval_size"_a, "eval_fresh"_a, "allowed_errors"_a, "consecutive"_a, "keep_params"_a, "threads"_a,
           "bias"_a = true, "head_bias"_a = true, "below"_a = std::vector<int>{},
           "rule"_a = "sgd", "rule_params"_a = std::vector<float>{}, "clip"_a = 0.0f, "decay_gradient"_a = 0.0f,
           "problem"_a.none() = nb::none(), "short_last"_a = false, "within"_a = -1.0f, "bits"_a = false, "skips_satisfied"_a = false,
           "outputs"_a = 1,
           "isa"_a = "auto", "layout"_a = "auto", "trace"_a.none() = nb::none(),
           "bias, head_bias: whether there are b, and c; without them those given must be 0. "
           "below: the widths of an mlp's hidden layers before the last; their W and b come one after the other. "
           "schedule: from the number of a block of SCHEDULE_BLOCK steps to the factors on lr at these steps. "
           "problem: a Problem; parities of uniform inputs unless said. within: how far from its label an output is "
           "right; -1: by its sign. bits: inputs of +1 and -1 are read as 0 and 1. "
           "skips_satisfied: a batch whose gradient is exactly 0 moves nothing. "
           "trace: (steps, runs, train, stop) to record curves of so many runs, of tags 0, 1, ..., and not to judge them; "
           "a run ends where its loss on the finite sample, which train asks for, is below stop.")
        .def("add", &add, "tag"_a, "key"_a, "W"_a, "b"_a, "u"_a, "c"_a, "lr"_a, "tau"_a, "flip"_a, "mask"_a,
             "max_steps"_a, "Puts copies of these runs at the end of the stock.")
        .def("advance", [](Pool& pool, double seconds) {
            std::vector<Record> records;
            {
                nb::gil_scoped_release release;
                records = pool.advance(seconds);
            }
            return to_dict(records, pool.config());
        }, "seconds"_a, "Trains for this long, or until all is done; returns the runs that finished.")
        .def("discard", [](Pool& pool, const std::vector<int64_t>& tags) {
            nb::gil_scoped_release release;
            pool.discard({tags.begin(), tags.end()});
        }, "tags"_a, "Forgets these runs, without a record.")
        .def("take_trace", [](Pool& pool) { return to_dict(std::move(*pool.take_trace()), pool.config()); },
             "The curves, once all runs are done; the pool is of no use afterwards.")
        .def("examples", [](const Pool& pool, std::pair<uint32_t, uint32_t> key, std::vector<uint32_t> mask, uint32_t flip,
                            int64_t step, bool evaluation) {
            Run run;
            run.key = {key.first, key.second};
            run.flip = flip;
            run.mask = std::move(mask);
            if (run.mask.size() != size_t(pool.config().words())) throw std::invalid_argument("mask: wrong shape");
            if (step < 0 || step >= int64_t{1} << 31) throw std::invalid_argument("step: expected 0 to 2^31 - 1");
            DrawnExamples drawn = pool.examples(run, step, evaluation);
            const size_t count = drawn.labels.size();
            return std::pair(to_numpy(std::move(drawn.bits), {count, size_t(pool.config().words())}),
                             to_numpy(std::move(drawn.labels), {count}));
        }, "key"_a, "mask"_a, "flip"_a, "step"_a, "evaluation"_a,
           "Packed inputs and labels of a step's batch, as a run with this key has them, or of its evaluation sample.")
        .def_prop_ro("stock", &Pool::stock, "Runs that have not started.")
        .def_prop_ro("active", &Pool::active, "Runs in slots.")
        .def_prop_ro("slots", &Pool::slots)
        .def_prop_ro("model_steps", &Pool::steps, "Updates done so far, summed over all runs.")
        .def_prop_ro("isa", &Pool::isa)
        .def_prop_ro("layout", [](const Pool& pool) {
            return LAYOUT_NAMES[static_cast<int>(pool.layout())];
        });
}

}  // namespace paritylab
