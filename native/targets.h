// What is to be said of inputs, for a register of them at a time.
#pragma once

#include <algorithm>
#include <bit>

#include "problem.h"
#include "simd.h"

namespace paritylab::PARITYLAB_ISA {

inline vu gather(const uint32_t* from, vu index) {
    vu found;
    for (int lane = 0; lane < LANES; ++lane) found[lane] = from[index[lane]];
    return found;
}

// How many of the cumulative thresholds a random word has reached.
inline vu task_of(const Target& target, vu word) {
    const std::vector<uint32_t>& cumulative = target.task_cumulative;
    vu task{};
    if (cumulative.size() <= 64) {
        for (const uint32_t threshold : cumulative) task -= (vu)(word >= threshold);
        return task;
    }
    for (int lane = 0; lane < LANES; ++lane) {
        task[lane] = std::upper_bound(cumulative.begin(), cumulative.end(), word[lane]) - cumulative.begin();
    }
    return task;
}

// The tasks of examples in turn.
inline vu task_in_turn(const Target& target, vu index) {
    vu task;
    for (int lane = 0; lane < LANES; ++lane) {
        const bool same = lane > 0 && index[lane] == index[lane - 1];
        task[lane] = same ? task[lane - 1] : index[lane] % target.tasks;
    }
    return task;
}

// The control bits of tasks in word w.
inline vu controls_of([[maybe_unused]] const Target& target, vu task, int w) {
#if !defined(__wasm__)  // on a page each task has one of its own
    if (!target.task_controls.empty()) return gather(&target.task_controls[w * target.tasks], task);
#endif
    return (vu)((task >> 5) == static_cast<uint32_t>(w)) & (broadcast(1u) << (task & 31u));
}

// Of the control bits those of the task are -1, the others are +1.
inline void set_controls(const Target& target, vu task, vu* words) {
    for (int w = 0; w * 32 < target.controls; ++w) {
        const int controls = std::min(32, target.controls - w * 32);
        const uint32_t kept = controls == 32 ? 0u : ~0u << controls;
        words[w] = (words[w] & kept) | controls_of(target, task, w);
    }
}

class Labels {
public:
    Labels(const Problem& problem) : target_(problem.target), words_(problem.words) {}

    // Of one output; only where there are several it matters which.
    vf operator()(const vu* words, const vu* mask, vu task, int output) const {
        const vf value = unscaled(words, mask, task, output);
        return target_.scale == 1 ? value : target_.scale * value;
    }

private:
    vf unscaled(const vu* words, const vu* mask, vu task, int output) const {
        switch (target_.kind) {
            case TargetKind::product: return product(words, [&](int w) { return mask[w]; });
            case TargetKind::tasks:
                return product(words, [&](int w) { return gather(&target_.task_masks[w * target_.tasks], task); });
            case TargetKind::outputs: {
                const size_t outputs = target_.counted.size();
                return product(words, [&](int w) { return broadcast(target_.output_masks[w * outputs + output]); });
            }
            case TargetKind::sum: return sum(words);
            case TargetKind::table: return entry(words);
        }
        return vf{};
    }

    template <class Mask>
    vf product(const vu* words, Mask&& mask) const {
        vu masked{};
        for (int w = 0; w < words_; ++w) masked ^= words[w] & mask(w);
        return sign_of(parity_to_sign(masked));
    }

    vf sum(const vu* words) const {
        vf total{};
        for (const Term& term : target_.terms) {
            vu masked{};
            for (const MaskWord& part : term.mask) masked ^= words[part.word] & part.bits;
            total += term.coefficient * sign_of(parity_to_sign(masked));
        }
        return target_.sign ? select(total >= 0.0f, broadcast(1.0f), broadcast(-1.0f)) : total;
    }

    vf entry(const vu* words) const {
        vu index{};
        for (const Field& field : target_.fields) index |= ((words[field.word] >> field.shift) & field.bits) << field.at;
        const vu bits = gather(target_.table.data(), index >> 5) >> (index & 31u);
        return sign_of(bits << 31);
    }

    const Target& target_;
    int words_;
};

}  // namespace paritylab::PARITYLAB_ISA
