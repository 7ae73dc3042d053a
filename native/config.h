// What every run of a pool has in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "problem.h"
#include "schedule.h"

namespace paritylab {

enum class Family { mlp, neuron, polynet };
enum class Activation { clip, power, zigzag, triangle, polynomial, sinusoid, gelu };
enum class Loss { hinge, square, logistic, correlation, l1, clipped_logistic };
enum class Rule { sgd, momentum, adam, rmsprop, sign };
enum class Status : int32_t { solved, censored, diverged, training };

inline constexpr int MOST_OUTPUTS = 16;

struct Config {
    // The network: one linear layer of `width` units on `inputs` numbers, and a head. A deep mlp has layers below it.
    Family family;
    int inputs;
    int width;
    std::vector<int> below;  // their widths, from the inputs up
#if defined(__wasm__)  // no page has more
    static constexpr int outputs = 1;
    static constexpr bool bits = false;
#else
    int outputs = 1;  // of an mlp
    bool bits = false;  // an input of +1 is read as 0, one of -1 as 1; false: as they are
#endif
    bool bias;       // false: there are no b, which stay 0
    bool head_bias;  // false: there is no c, which stays 0
    Activation activation;
    std::vector<float> activation_params;

    // Training: theta <- theta (1 - lr coupled - plain) - lr rule(gradient + noise, clipped, + decay_gradient theta), a
    // rate of its own for each layer.
    Loss loss;
    std::vector<float> loss_params;
    int batch;
    std::shared_ptr<Schedule> schedule;  // null: lr stays as it is
    std::vector<float> rates;
    float decay_coupled;
    float decay_plain;
    Rule rule;
    std::vector<float> rule_params;  // momentum: mu, Nesterov's or not; adam: b1, b2, eps; rmsprop: alpha, eps, mu; sign: b1, b2
    float clip;            // the largest norm of a gradient; 0: any
    float decay_gradient;
    bool skips_satisfied;  // a batch whose gradient is exactly 0 moves nothing

    // Data: parities of uniform inputs unless a problem says otherwise; fresh every step, or a sample drawn once.
    std::shared_ptr<const Problem> problem;
    int64_t sample;  // 0: fresh
    bool replacement;
    bool short_last;  // each pass over the sample ends with a batch of what is left

    // Judging a run.
    int64_t eval_every;
    int64_t eval_size;
    bool eval_fresh;
    int64_t allowed_errors;
    float within;  // an output is right if it is at most so far from its label; -1: if it has its sign
    int consecutive;
    bool keep_params;

    // Units of each layer, from the inputs to the last hidden layer.
    std::vector<int> sizes() const {
        std::vector<int> all{inputs};
        all.insert(all.end(), below.begin(), below.end());
        all.push_back(width);
        return all;
    }
    int64_t weights() const {  // of all layers but the head
        const std::vector<int> all = sizes();
        int64_t total = 0;
        for (std::size_t i = 1; i < all.size(); ++i) total += int64_t{all[i - 1]} * all[i];
        return total;
    }
    int64_t units() const {
        int64_t total = width;
        for (int w : below) total += w;
        return total;
    }
    int words() const { return (inputs + 31) / 32; }
    int stride() const { return problem ? problem->stride : words(); }  // random numbers of an example
    int tasks() const { return problem ? problem->target.tasks : 0; }
    // What is told apart of an example: its task, or each of several outputs; 0: nothing.
    int parts() const { return outputs > 1 ? outputs : tasks(); }
    // Whether the sums of a batch move the weights as they are.
    bool plain() const { return rule == Rule::sgd && clip == 0 && decay_gradient == 0 && !skips_satisfied; }
    bool decays() const { return decay_coupled != 0 || decay_plain != 0; }
};

}  // namespace paritylab
