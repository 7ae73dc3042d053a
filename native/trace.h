// Training curves: what every run of a pool does at chosen steps, whether or not it is solved.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "stock.h"

namespace paritylab {

// Accuracy and mean loss, (runs, steps).
struct Series {
    std::vector<double> accuracy, loss;

    explicit Series(size_t size) : accuracy(size, NAN), loss(size, NAN) {}

    void put(size_t at, double errors, double summed_loss, double size) {
        accuracy[at] = (size - errors) / size;
        loss[at] = summed_loss / size;
    }
};

// A run writes the row of its tag; what it does not reach, be it that it has stopped, or reaches with a parameter that is not finite, stays NaN.
struct Trace {
    std::vector<int64_t> steps;  // increasing
    int64_t runs;
    size_t parts;  // tasks, or outputs where there are several
    Series evaluation;
    Series by_part;                 // (runs, steps, parts)
    std::vector<double> skill;      // the same; of one part where there are none
    Series train;                   // on the finite sample; empty unless asked for
    Series train_by_output;         // the same of each of several outputs
    double stop;                    // a run leaves at a point where its loss there is below this
    std::vector<float> W, b, u, c;  // (runs, steps, ...); empty unless asked for

    Trace(const Config& config, std::vector<int64_t> chosen, int64_t count, bool on_train, double stop_below)
        : steps(std::move(chosen)),
          runs(count),
          parts(config.parts()),
          evaluation(points()),
          by_part(points() * parts),
          skill(points() * std::max(parts, size_t{1}), NAN),
          train(on_train ? points() : 0),
          train_by_output(on_train && config.outputs > 1 ? points() * parts : 0),
          stop(stop_below) {
        if (!config.keep_params) return;
        W.assign(points() * config.weights(), NAN);
        b.assign(points() * config.units(), NAN);
        u.assign(points() * config.width * config.outputs, NAN);
        c.assign(points() * config.outputs, NAN);
    }

    bool stops(size_t at) const { return !train.loss.empty() && train.loss[at] < stop; }

    size_t points() const { return static_cast<size_t>(runs) * steps.size(); }

    void put_weights(size_t at, const Parameters& parameters) {
        const auto copy = [&](const std::vector<float>& from, std::vector<float>& to) {
            std::copy(from.begin(), from.end(), to.begin() + at * from.size());
        };
        copy(parameters.W, W);
        copy(parameters.b, b);
        copy(parameters.u, u);
        copy(parameters.c, c);
    }
};

}  // namespace paritylab
