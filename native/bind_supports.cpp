// The Python class paritylab._lanes.Search.
#include "bind_supports.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "supports.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace paritylab {

namespace {

template <class T, size_t N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

const Searches& expect_searches(const std::string& isa) {
    const std::vector<Searches>& all = supported_searches();
    if (isa == "auto") return all.front();
    const auto found = std::ranges::find(all, isa, [](const Searches& each) { return std::string(each.isa); });
    if (found == all.end()) throw std::invalid_argument("isa: this machine cannot run '" + isa + "'");
    return *found;
}

// Columns are (features, words) here.
Evidence to_evidence(Array<uint64_t, 2> columns, Array<uint64_t, 1> labels, int64_t rows, Array<uint32_t, 1> limits) {
    const size_t features = columns.shape(0), words = columns.shape(1);
    const bool fits = words >= 1 && rows > int64_t(64 * (words - 1)) && rows <= int64_t(64 * words);
    if (!fits || labels.shape(0) != words || limits.shape(0) != words) throw std::invalid_argument("evidence: wrong shape");
    if (features < 1 || features >= size_t{1} << 31) throw std::invalid_argument("evidence: expected 1 to 2^31 - 1 features");
    const size_t stride = (features + Evidence::ROUND - 1) / Evidence::ROUND * Evidence::ROUND;
    Evidence made{features, stride, words, std::vector<uint64_t>(stride * words),
                  {labels.data(), labels.data() + words}, {}, {limits.data(), limits.data() + words}};
    for (size_t w = 0; w < words; ++w) {
        for (size_t j = 0; j < features; ++j) made.columns[w * stride + j] = columns.data()[j * words + w];
        made.rows.push_back(static_cast<uint32_t>(std::min<int64_t>(rows, 64 * (w + 1))));
    }
    return made;
}

void expect_size(int size, int least, int most, size_t features) {
    if (size < least || size > most || size_t(size) > features) throw std::invalid_argument("size: out of range");
}

struct Found {
    std::unique_ptr<Search> search;
    int size;
};

}  // namespace

void bind_supports(nb::module_& m) {
    m.def("search_isas", [] {
        std::vector<std::string> names;
        for (const Searches& each : supported_searches()) names.emplace_back(each.isa);
        return names;
    }, "The instruction sets that searches have on this machine, best first.");
    m.def("count_words", [](int64_t times, const std::string& isa) { return expect_searches(isa).count_words(times); },
          "times"_a, "isa"_a = "auto", nb::call_guard<nb::gil_scoped_release>(),
          "Counts the ones of 1024 words so many times, out of the first cache, for benchmarks.");
    nb::class_<Found>(m, "Search", "A search for the parities of fewest errors, in tasks that threads share.")
        .def_static("enumerate", [](Array<uint64_t, 2> columns, Array<uint64_t, 1> labels, int64_t rows,
                                    Array<uint32_t, 1> limits, int size, size_t first, const std::string& isa) {
            Evidence evidence = to_evidence(columns, labels, rows, limits);
            expect_size(size, 1, MOST_MEMBERS, evidence.features);
            if (first < 1) throw std::invalid_argument("first: expected at least 1");
            return Found{expect_searches(isa).enumerate(std::move(evidence), size, first), size};
        }, "columns"_a, "labels"_a, "rows"_a, "limits"_a, "size"_a, "first"_a, "isa"_a = "auto",
           "All supports of a size; `limits` are the most errors up to the end of each word, tested from word `first` on.")
        .def_static("meet", [](Array<uint64_t, 2> columns, Array<uint64_t, 1> labels, int64_t rows,
                               Array<uint32_t, 1> limits, int size, Array<uint64_t, 1> keys, uint64_t target, int bits,
                               const std::string& isa) {
            Evidence evidence = to_evidence(columns, labels, rows, limits);
            expect_size(size, 3, 4, evidence.features);
            if (keys.shape(0) != evidence.features) throw std::invalid_argument("keys: wrong shape");
            if (bits < 2 || bits > 64) throw std::invalid_argument("bits: expected 2 to 64");
            Keys made{{keys.data(), keys.data() + keys.shape(0)}, target, bits};
            const auto wide = [&](uint64_t key) { return bits < 64 && key >> bits != 0; };
            if (wide(target) || std::ranges::any_of(made.of_features, wide)) {
                throw std::invalid_argument("keys: more bits than stated");
            }
            return Found{expect_searches(isa).meet(std::move(evidence), size, std::move(made)), size};
        }, "columns"_a, "labels"_a, "rows"_a, "limits"_a, "size"_a, "keys"_a, "target"_a, "bits"_a, "isa"_a = "auto",
           "Supports of 3 or 4 members whose keys add up, by exclusive or, to the target.")
        .def("advance", [](Found& found, int threads, double seconds, double left) {
            nb::gil_scoped_release release;
            const auto now = std::chrono::steady_clock::now();
            const auto in = [&](double s) {
                return now + std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(s, 0.0, 1e8) * 1e9));
            };
            found.search->advance(threads, in(seconds), in(left));
        }, "threads"_a, "seconds"_a, "left"_a, "Begins tasks for so many seconds; cuts them short when none are left.")
        .def_prop_ro("done", [](const Found& found) { return found.search->begun(); }, "Tasks begun.")
        .def_prop_ro("total", [](const Found& found) { return found.search->tasks(); }, "Tasks in all.")
        .def_prop_ro("cut", [](const Found& found) { return found.search->cut(); }, "Whether tasks were cut short.")
        .def("hits", [](const Found& found) {
            const Hits& hits = found.search->hits();
            std::vector<std::tuple<std::vector<int32_t>, bool>> some;
            for (const Hit& hit : hits.some) {
                some.emplace_back(std::vector(hit.members.begin(), hit.members.begin() + found.size), hit.negated);
            }
            return std::tuple(hits.some.empty() ? int64_t{-1} : int64_t{hits.errors}, hits.count, some);
        }, "The fewest errors (-1: nothing found), how many supports have them, and some of these: members, opposite.");
}

}  // namespace paritylab
