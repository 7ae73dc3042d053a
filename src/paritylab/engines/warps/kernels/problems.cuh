// What is learned: laws of inputs, stages, targets, tasks. The numbers come before, as arrays: see problems.py; how inputs
// come from random words is said in setups/problems/draws.py. For parities of uniform inputs nothing of this is left when
// the compiler is done.
constexpr bool VARYING = SHORT_LAST || STAGES > 0;  // not all batches have the same number of examples that count
constexpr int GROUPS = TASK_COUNT > 0 ? TASK_COUNT : 1;  // of inputs, judged apart

// How often a loop is unrolled: wholly, or not at all where it is long.
DEVICE constexpr int unrolled(int count) { return count > 0 && count <= 32 ? count : 1; }

// Where inputs come from at a step: from `law`, or if an example's word is below `moved` from `next`.
struct Standing {
    int law, next;
    u32 moved;
};

// What a stage says of step t; `own` is the run's noise. An input is of the next law where the high half of its word times
// the stage's length is below the steps done.
struct Stage {
    Standing standing;
    u32 flip;
    int batch;
};

DEVICE Stage stage_at(int t, u32 own) {
    Stage now = {{LAW, LAW, 0}, own, BATCH};
    int start = 0;
#pragma unroll 1
    for (int s = 0; s < STAGES; ++s) {
        const int until = STAGE_UNTIL[s];
        if (t >= until) {
            start = until;
            continue;
        }
        now = {{STAGE_LAW[s], STAGE_NEXT[s], 0}, STAGE_FLIPS[s] ? STAGE_FLIP[s] : own, STAGE_BATCH[s]};
        const u64 done = t - start, length = until - start;
        if (now.standing.next != now.standing.law) now.standing.moved = (u32)(((done << 32) + length - 1) / length);
        break;
    }
    return now;
}

// How many of the thresholds, which rise, a random word has reached.
DEVICE int reached(const u32* thresholds, int count, u32 word) {
    int low = 0;
    while (low < count) {
        const int middle = (low + count) / 2;
        if (thresholds[middle] <= word) low = middle + 1;
        else count = middle;
    }
    return low;
}

// A bijection whose output bits depend on all input bits (the finaliser of MurmurHash3).
DEVICE u32 mix(u32 x) {
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

// 32 inputs of a component from the two words of a random number: digits of their chances, the last first.
DEVICE u32 inputs_from(Key both, int component, int w) {
    if (UNIFORM) return both.a ^ both.b;
    const u32* planes = PLANES + component * (DIGITS * WORDS) + w;
    u32 less = 0;
#pragma unroll
    for (int i = DIGITS; i-- > 0;) {
        const u32 digit = i == 0 ? both.a ^ both.b : mix(both.a + (u32)i * (both.b | 1u)), plane = planes[i * WORDS];
        less = (plane & digit) | (less & (plane | digit));
    }
    return less | ALWAYS[component * WORDS + w];
}

// Bit `input` of the words: without an index into registers.
DEVICE u32 input_at(const u32 (&x)[WORDS], int input) {
    u32 word = x[0];
#pragma unroll
    for (int w = 1; w < WORDS; ++w) word = input / 32 == w ? x[w] : word;
    return word >> (input % 32) & 1u;
}

DEVICE void copy_inputs(u32 (&x)[WORDS], int component) {
#pragma unroll(unrolled(CHOOSES ? 1 : COPIES))
    for (int k = COPY_FIRST[component]; k < COPY_FIRST[component + 1]; ++k) {
        const int to = COPY_TO[k];
        const u32 bit = input_at(x, COPY_FROM[k]) << (to % 32);
#pragma unroll
        for (int w = 0; w < WORDS; ++w) x[w] ^= to / 32 == w ? bit : 0u;
    }
}

// +1 or -1, from how many of the support's inputs are -1.
DEVICE float parity(const u32 (&x)[WORDS], const u32* mask) {
    u32 odd = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) odd ^= x[w] & mask[w];
    return __popc(odd) & 1 ? -1.0f : 1.0f;
}

DEVICE float target_of(const u32 (&x)[WORDS], const u32 (&mask)[WORDS], int task) {
    if (TARGET == PRODUCT) return parity(x, mask);
    if (TARGET == TASKS) return parity(x, TASK_MASKS + task * WORDS);
    if (TARGET == TABLE) {
        u32 index = 0;
#pragma unroll(unrolled(PLACE_COUNT))
        for (int i = 0; i < PLACE_COUNT; ++i) index |= input_at(x, PLACES[i]) << i;
        return ENTRIES[index >> 5] >> (index & 31u) & 1u ? -1.0f : 1.0f;
    }
    float sum = 0.0f;
#pragma unroll(unrolled(TERM_COUNT))
    for (int i = 0; i < TERM_COUNT; ++i) sum = fmaf(COEFFICIENTS_OF_TERMS[i], parity(x, TERM_MASKS + i * WORDS), sum);
    return !SIGN_OF_SUM ? sum : sum >= 0.0f ? 1.0f : -1.0f;
}

// Where inputs to be judged on come from; their tasks come in turn, those of other examples are drawn.
DEVICE Standing evaluation_standing() { return {EVALUATION_LAW, EVALUATION_LAW, 0}; }
DEVICE Standing sample_standing() { return {LAW, LAW, 0}; }

// The inputs of example `index`, and its label.
DEVICE float draw(Key key, u32 index, const Standing& standing, const u32 (&mask)[WORDS], bool in_turn, u32 (&x)[WORDS]) {
    const u32 at = index * STRIDE;
    int component = 0;
    if (CHOOSES) {
        const int law = MOVES && random_bits(key, at + WORDS + 1) < standing.moved ? standing.next : standing.law;
        const int first = LAW_FIRST[law], others = LAW_FIRST[law + 1] - first - 1;
        component = first;
        if (others > 0) component += reached(CUMULATIVE + first, others, random_bits(key, at + WORDS));
    }
#pragma unroll
    for (int w = 0; w < WORDS; ++w) x[w] = inputs_from(threefry(key, at + w), component, w);
    if (COPIES > 0) copy_inputs(x, component);
    if (LEAKS) {
        const u32 word = random_bits(key, at + WORDS), equal = 0u - (word & 1u);
#pragma unroll
        for (int w = 0; w < WORDS; ++w) x[w] = (word >> 1) < (u32)LEAK ? (x[w] & ~mask[w]) | (equal & mask[w]) : x[w];
    }
    int task = 0;
    if (TARGET == TASKS) {
        task = in_turn || TASKS_IN_TURN ? (int)(index % GROUPS)
                                        : reached(TASK_CUMULATIVE, GROUPS - 1, random_bits(key, at + WORDS + 2));
#pragma unroll
        for (int w = 0; w < WORDS && w * 32 < CONTROL_BITS; ++w) {  // of the control bits those of the task are -1
            const u32 kept = CONTROL_BITS - w * 32 >= 32 ? 0u : ALL << (CONTROL_BITS - w * 32 & 31);
            const u32 on = COMPOSED ? TASK_CONTROLS[task * WORDS + w] : task / 32 == w ? 1u << (task % 32) : 0u;
            x[w] = (x[w] & kept) | on;
        }
    }
    const float label = target_of(x, mask, task);
    return SCALE == 1.0f ? label : SCALE * label;
}

// Whether an output is right: f = 0 and NaN are not.
DEVICE bool is_right(float f, float y) { return WITHIN < 0.0f ? y * f > 0.0f : fabsf(f - y) <= WITHIN; }
