// Finite samples. An example is drawn again whenever it is used, by its number: that is cheaper than to keep it. What is
// kept, for each team that is at work, is the order of a pass and of the next: pairs of a random word and a number.
constexpr bool IN_PASSES = EXAMPLES > 0 && !REPLACED;
constexpr int SIZE = EXAMPLES > 0 ? EXAMPLES : 1;  // what one may divide by

DEVICE constexpr int bits_of(u64 size) {
    int bits = 1;
    while ((1ull << bits) < size) ++bits;
    return bits;
}
constexpr int BUCKET_BITS = bits_of(SIZE);  // leading bits by which words fall into buckets of one or a few
constexpr u32 BUCKETS = 1u << BUCKET_BITS;

// Waits for the threads that work together: one, a warp or a block.
template <int MEMBERS>
DEVICE void meet() {
    if (MEMBERS == 32) __syncwarp();
    if (MEMBERS > 32) __syncthreads();
}

// From counts to where each begins.
template <int MEMBERS>
DEVICE void sum_before(u32* counts, int member) {
    u32 before = 0;
    if (MEMBERS == 1) {
        for (u32 b = 0; b < BUCKETS; ++b) {
            const u32 count = counts[b];
            counts[b] = before, before += count;
        }
    } else if (member < 32) {
        for (u32 first = 0; first < BUCKETS; first += 32) {
            const u32 b = first + member, count = b < BUCKETS ? counts[b] : 0;
            u32 sum = count;
#pragma unroll
            for (int d = 1; d < 32; d *= 2) {
                const u32 other = __shfl_sync(ALL, sum, (member - d) & 31);
                if (member >= d) sum += other;
            }
            if (b < BUCKETS) counts[b] = before + sum - count;
            before += __shfl_sync(ALL, sum, 31);
        }
    }
}

// jnp.argsort(jax.random.bits(key, (EXAMPLES,)), stable=True), in the low halves of `order`.
template <int MEMBERS>
DEVICE void shuffle(Key key, u64* order, u32* counts, int member) {
    meet<MEMBERS>();
    for (u32 b = member; b < BUCKETS; b += MEMBERS) counts[b] = 0;
    meet<MEMBERS>();
    for (u32 i = member; i < (u32)EXAMPLES; i += MEMBERS) {
        atomicAdd(&counts[random_bits(key, i) >> (32 - BUCKET_BITS)], 1u);
    }
    meet<MEMBERS>();
    sum_before<MEMBERS>(counts, member);
    meet<MEMBERS>();
    for (u32 i = member; i < (u32)EXAMPLES; i += MEMBERS) {
        const u32 word = random_bits(key, i);
        order[atomicAdd(&counts[word >> (32 - BUCKET_BITS)], 1u)] = (u64)word << 32 | i;
    }
    meet<MEMBERS>();
    for (u32 b = member; b < BUCKETS; b += MEMBERS) {
        const u32 begin = b == 0 ? 0 : counts[b - 1], end = counts[b];
        for (u32 i = begin + 1; i < end; ++i) {
            const u64 pair = order[i];
            u32 at = i;
            for (; at > begin && order[at - 1] > pair; --at) order[at] = order[at - 1];
            order[at] = pair;
        }
    }
    meet<MEMBERS>();
}

// Where a run is in its sample: the pass, the place in it at which the batch of step t begins, and the last pass whose
// order is known.
struct Place {
    int pass, at, known;
};

// Batches follow each other through the endless concatenation of passes, or begin anew with each pass.
DEVICE Place find_place(int t) {
    if (!IN_PASSES) return {0, 0, 0};
    constexpr int EACH = (SIZE + BATCH - 1) / BATCH;  // batches of a pass
    const u64 from = (u64)t * BATCH;
    const int pass = SHORT_LAST ? t / EACH : (int)(from / SIZE);
    return {pass, SHORT_LAST ? t % EACH * BATCH : (int)(from % SIZE), pass - 1};
}

DEVICE void next_place(Place& place) {
    if (!IN_PASSES) return;
    place.at += BATCH;
    if (place.at >= EXAMPLES) place.at = SHORT_LAST ? 0 : place.at - EXAMPLES, ++place.pass;
}

// How many examples of the batch count, of which a stage may have fewer.
DEVICE int batch_at(const Place& place, const Stage& stage) {
    return SHORT_LAST ? min(BATCH, EXAMPLES - place.at) : stage.batch;
}

// The orders of the passes that the batch is from; `scratch` is that of the team.
struct Scratch {
    u64* order;  // [2][EXAMPLES], passes in turns
    u32* counts;
};

DEVICE Scratch scratch_of(const Table& table, size_t team) {
    return {table.order + team * (2 * (size_t)EXAMPLES), table.counts + team * BUCKETS};
}

template <int MEMBERS>
DEVICE void prepare(Place& place, Key key, const Scratch& scratch, int member) {
    if (!IN_PASSES) return;
    const int last = place.pass + (!SHORT_LAST && place.at + BATCH > EXAMPLES);
    while (place.known < last) {
        ++place.known;
        u64* order = scratch.order + (place.known & 1) * (size_t)EXAMPLES;
        shuffle<MEMBERS>(fold_in(fold_in(key, ORDER), place.known), order, scratch.counts, member);
    }
}

// The number of a batch's example; `step` is the key of this step's random choices.
DEVICE u32 example_of(const Place& place, const Scratch& scratch, Key step, int i) {
    if (REPLACED) return random_bits(step, i) % (u32)SIZE;
    int at = place.at + i, pass = place.pass;
    if (at >= EXAMPLES) at = SHORT_LAST ? EXAMPLES - 1 : at - EXAMPLES, ++pass;
    if (at >= EXAMPLES) at = EXAMPLES - 1;  // no example of the batch: a tile has more
    return (u32)scratch.order[(pass & 1) * (size_t)EXAMPLES + at];
}
