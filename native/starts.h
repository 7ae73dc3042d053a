// Start weights as paritylab's Python side draws them (setups/inits.py), bit for bit.
//
// Uniform laws and signs are single roundings of random words. Normal numbers are those of jax.random.normal as XLA
// computes them on a CPU that fuses multiply-adds: every operation below is one of its, in its order. On the sphere norms
// are rounded properly, where XLA begins with the processor's own approximate root: weights may differ in the last bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config.h"
#include "stock.h"
#include "threefry.h"

namespace paritylab {

// Of one weight, before its layer's scale. The numbers in brackets are its parameters.
enum class StartKind {
    uniform,      // U(-1, 1)
    signs,        // -1 or 1
    normal,       // N(0, 1)
    near_signs,   // a sign plus N(0, s^2) [s]
    wide_signs,   // a sign plus U(-w, w) [w]
    few_signs,    // a sign, or 0 [its chance]
    points,       // one of these [points]
    sphere,       // each unit's weights uniform on the unit sphere
    tilted_signs  // 1, or -1 [the chance of 1]
};

struct StartLaw {
    StartKind kind;
    std::vector<float> params;
};

struct Start {
    StartLaw hidden, output;
    std::vector<float> scales;  // of each layer, the head included
    bool biased;                // false: biases start at 0
    bool mirrored;              // units of the last hidden layer in pairs of opposite output
};

Parameters draw_start(const Config& config, const Start& start, Key<uint32_t> key);
const char* refusal(const Start& start, const Config& config);

}  // namespace paritylab
