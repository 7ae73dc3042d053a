// How inputs are cut into groups, for a layer whose sums are looked up in tables: a row for each pattern of a group.
#pragma once

#include <cstdint>
#include <vector>

#include "config.h"

namespace paritylab {

struct InputGroup {
    int first, inputs;
    int row;      // the first of its rows
    bool one_on;  // exactly one of its inputs is -1: it has a row for each input

    int rows() const { return one_on ? inputs : 1 << inputs; }
};

inline int rows_of(const std::vector<InputGroup>& groups) { return groups.back().row + groups.back().rows(); }

// Control bits of which each task has its own are a group of their own. Other inputs are cut into groups of nearly equal
// size. A group costs a batch about 3.5 cycles a sample, for 16 units: a row is added on the way forward, and added to on
// the way back. A row costs about 8: it is made, cleared, and added up (measured on Zen 4).
inline std::vector<InputGroup> plan_groups(const Config& config) {
    std::vector<InputGroup> plan;
    const bool one_on = config.problem && config.problem->target.task_controls.empty();
    const int controls = one_on ? config.tasks() : 0, bits = config.inputs - controls;
    if (controls > 0) plan.push_back({0, controls, 0, true});
    const auto start = [&](int parts, int i) { return static_cast<int>(int64_t{bits} * i / parts); };
    const auto cost = [&](int parts) {
        int64_t rows = 0;
        for (int i = 0; i < parts; ++i) rows += int64_t{1} << (start(parts, i + 1) - start(parts, i));
        return 7 * int64_t{config.batch} * parts + 16 * rows;
    };
    int parts = (bits + 7) / 8;
    while (parts < bits && cost(parts + 1) < cost(parts)) ++parts;
    for (int i = 0; i < parts; ++i) {
        const int row = plan.empty() ? 0 : rows_of(plan);
        plan.push_back({controls + start(parts, i), start(parts, i + 1) - start(parts, i), row, false});
    }
    return plan;
}

}  // namespace paritylab
