#include "kernels.h"

#include <algorithm>
#include <cmath>

#include "groups.h"

namespace paritylab {

const std::vector<Kernel>& supported_kernels() {
    static const std::vector<Kernel> kernels = [] {
        std::vector<Kernel> found;
#if defined(__aarch64__)
        found.push_back(neon::kernel());  // a part of the architecture
#else
#if defined(__x86_64__)
        __builtin_cpu_init();
        const bool fma = __builtin_cpu_supports("fma");
        const bool wide = fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
        const bool bytes = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni") &&
                           __builtin_cpu_supports("avx512vpopcntdq");
        if (wide && bytes) found.push_back(avx512vbmi::kernel());
        if (wide) found.push_back(avx512::kernel());
        if (fma && __builtin_cpu_supports("avx2")) found.push_back(avx2::kernel());
#endif
        found.push_back(baseline::kernel());
#endif
        return found;
    }();
    return kernels;
}

const Kernel* find_kernel(std::string_view isa) {
    const std::vector<Kernel>& kernels = supported_kernels();
    if (isa == "auto") return &kernels.front();
    const auto found = std::ranges::find(kernels, isa, &Kernel::name);
    return found == kernels.end() ? nullptr : &*found;
}

// A group has at least as many rows as inputs, so that what is far too large needs no plan.
static bool has_rows_up_to(const Config& config, int most) {
    return config.inputs <= most && rows_of(plan_groups(config)) <= most;
}

// Whether there is a parity for each output, be it one; only tables know in which examples it counts.
static bool by_output(const Config& config) {
    return config.problem && config.problem->target.kind == TargetKind::outputs;
}

static bool can_have_tables(const Config& config) {
#if defined(__wasm__)
    return false;
#endif
    const bool relu = config.activation == Activation::clip && std::isinf(config.activation_params[0]);
    return config.family == Family::mlp && config.below.empty() && relu && has_rows_up_to(config, 1 << 16);
}

// Measured on Zen 4 (benchmarks/tables.py). From this batch on they are 1.3 to 3 times as fast, if few units pad the last 16.
static bool tables_pay(const Config& config) {
    const int padded_width = (config.width + 15) / 16 * 16;
    return config.batch >= 256 && 4 * config.width >= 3 * padded_width && has_rows_up_to(config, 8192) &&
           can_have_tables(config);
}

// Whether the gradient is counted: units are on or off, and the loss has one slope, or the other, or none.
static bool can_count(const Config& config) {
    const bool relu = config.activation == Activation::clip && std::isinf(config.activation_params[0]);
    if (config.family != Family::mlp || !config.below.empty() || !relu || config.bits || by_output(config)) return false;
    if (config.loss == Loss::l1) return true;
    const Target* target = config.problem ? &config.problem->target : nullptr;
    const bool signs = !target || (std::abs(target->scale) == 1 && (target->kind != TargetKind::sum || target->sign));
    return signs && (config.loss == Loss::hinge || config.loss == Loss::correlation);
}

// Measured on Zen 5: below, what every step costs outweighs what is saved of its sums.
static bool counting_pays(const Config& config) {
    return config.batch >= 8 && int64_t{config.inputs} * config.width * config.batch >= 4800 && config.inputs <= 4096 && can_count(config);
}

Layout choose_layout(const Config& config) {
    if (config.family != Family::mlp) return Layout::lanes;
    if (!config.below.empty()) return Layout::deep;
    if (counting_pays(config)) return Layout::samples;
    if (by_output(config) || tables_pay(config)) return Layout::tables;
    // Measured on Zen 4. Sixteen lanes on every instruction set, so that all choose alike.
    const int64_t lanes_bytes = int64_t{64} * config.inputs * config.width;
    const int64_t limit = config.batch >= 4 ? 224 * 1024 : 1024 * 1024;
    const int padded_width = (config.width + 15) / 16 * 16;
    return lanes_bytes > limit && 4 * config.width >= 3 * padded_width ? Layout::within : Layout::lanes;
}

const char* refusal_of_layout(const Config& config, Layout layout) {
    if (layout == Layout::tables) return can_have_tables(config) ? nullptr : "layout: 'tables' is for an mlp with one hidden layer of relu";
    if (by_output(config)) return "layout: parities for each output have 'tables' only";
    if (layout == Layout::samples) return can_count(config) ? nullptr : "layout: 'samples' is for an mlp with one hidden layer of relu whose loss has slopes of one size";
    if (!config.below.empty() && layout != Layout::deep) return "layout: a deep mlp has 'deep' only";
    const bool can = config.family == Family::mlp || layout == Layout::lanes;
    return can ? nullptr : "layout: all but 'lanes' are for the mlp only";
}

}  // namespace paritylab
