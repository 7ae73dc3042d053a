// A network in a column of shared memory, as a lane trains it: the ways forward and back, and what moves its params.
//
// The params of a warp's 32 networks lie in shared memory as [param][lane]: each lane reads and writes a column of its
// own, so nothing conflicts and nothing waits.
//
// A step of a network moves every weight from and to shared memory: SAMPLES samples of a batch go through at once. Where
// they are all of it, w moves on the next way forward, and 2 N WIDTH accesses serve 2 N WIDTH BATCH multiply-adds. Larger
// batches add up their gradient in a second column below the first, with PASSES times 3 N WIDTH accesses; what an optimiser
// keeps has columns below that.
constexpr int PASSES = (BATCH + SAMPLES - 1) / SAMPLES;
constexpr bool KEPT = PASSES > 1 || !PLAIN;  // there is a column for the gradient
constexpr int MEMORY = PARAMS * (KEPT ? 2 : 1);    // where the optimiser's begin
constexpr int COLUMN = MEMORY + PARAMS * MEMORIES;  // numbers of shared memory for each lane

// +1 or -1 where bit `bit` of the word is 0 or 1; or that bit itself.
DEVICE float read_at(u32 word, int bit) {
    if (READS_BITS) return (float)(word >> bit & 1u);
    return __uint_as_float(((word << (31 - bit)) & 0x80000000u) | 0x3f800000u);
}

// Calls work(j, x_j of each sample) for every input j.
template <int S, class Work>
DEVICE void for_each_input(const u32 (&x)[S][WORDS], const Work& work) {
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        constexpr int TOGETHER = 8;
#pragma unroll 1
        for (int base = 0; base < 32 && 32 * w + base < N; base += TOGETHER) {
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                if (32 * w + base + k < N) {
                    float signs[S];
#pragma unroll
                    for (int s = 0; s < S; ++s) signs[s] = read_at(x[s][w] >> base, k);
                    work(32 * w + base + k, signs);
                }
            }
        }
    }
}

// Pre-activations, as far as biases go.
template <int S>
DEVICE void begin(const float* net, float (&z)[S][WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        const float b = BIAS ? net[(AT_B + i) * 32] : 0.0f;
#pragma unroll
        for (int s = 0; s < S; ++s) z[s][i] = b;
    }
}

// From pre-activations to outputs.
template <int S>
DEVICE void finish(const float* net, const float (&z)[S][WIDTH], float (&f)[S]) {
#pragma unroll
    for (int s = 0; s < S; ++s) f[s] = FAMILY == POLYNET ? 1.0f : FAMILY == MLP && BIAS ? net[AT_C * 32] : 0.0f;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        const float u = FAMILY == MLP ? net[(AT_U + i) * 32] : 0.0f;
#pragma unroll
        for (int s = 0; s < S; ++s) {
            if (FAMILY == POLYNET) f[s] *= z[s][i];
            else if (FAMILY == NEURON) f[s] = Act::value(z[s][i]);
            else f[s] = fmaf(u, Act::value(z[s][i]), f[s]);
        }
    }
}

// From inputs to pre-activations z and outputs f, with the network in column `net`.
template <int S>
DEVICE void forward(const float* net, const u32 (&x)[S][WORDS], float (&z)[S][WIDTH], float (&f)[S]) {
    begin<S>(net, z);
    for_each_input<S>(x, [&](int j, const float (&signs)[S]) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            const float weight = net[(j * WIDTH + i) * 32];
#pragma unroll
            for (int s = 0; s < S; ++s) z[s][i] = fmaf(signs[s], weight, z[s][i]);
        }
    });
    finish<S>(net, z, f);
}

// A step's update of w that is still to come, if FUSED: the next way forward makes it, which has the weights in hand.
constexpr bool FUSED = PASSES == 1 && PLAIN && !NOISY;
struct Pending {
    u32 x[SAMPLES][WORDS];
    float change[SAMPLES][WIDTH];  // the loss's slope in z, times minus the rate
    float keep;
};

DEVICE void postpone(Pending& pending, const u32 (&x)[SAMPLES][WORDS], const float (&slopes)[SAMPLES][WIDTH],
                     Update update) {
#pragma unroll
    for (int s = 0; s < SAMPLES; ++s) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) pending.x[s][w] = x[s][w];
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) pending.change[s][i] = -update.rate * slopes[s][i];
    }
    pending.keep = update.keep;
}

// Makes what is pending and calls work(i, weight, x_j of each sample) with every weight that comes of it.
template <class Work>
DEVICE void for_each_moved(float* net, const Pending& pending, const u32 (&x)[SAMPLES][WORDS], const Work& work) {
    u32 both[2 * SAMPLES][WORDS];
#pragma unroll
    for (int i = 0; i < SAMPLES * WORDS; ++i) {
        both[i / WORDS][i % WORDS] = x[i / WORDS][i % WORDS];
        both[SAMPLES + i / WORDS][i % WORDS] = pending.x[i / WORDS][i % WORDS];
    }
    for_each_input<2 * SAMPLES>(both, [&](int j, const float (&signs)[2 * SAMPLES]) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            float& weight = net[(j * WIDTH + i) * 32];
            float now = DECAYS ? weight * pending.keep : weight;
#pragma unroll
            for (int s = 0; s < SAMPLES; ++s) now = fmaf(signs[SAMPLES + s], pending.change[s][i], now);
            weight = now;
            work(i, now, signs);
        }
    });
}

DEVICE void flush(float* net, const Pending& pending) {
    for_each_moved(net, pending, pending.x, [](int, float, const float (&)[2 * SAMPLES]) {});
}

DEVICE void move_and_forward(float* net, const Pending& pending, const u32 (&x)[SAMPLES][WORDS],
                             float (&z)[SAMPLES][WIDTH], float (&f)[SAMPLES]) {
    begin<SAMPLES>(net, z);
    for_each_moved(net, pending, x, [&](int i, float weight, const float (&signs)[2 * SAMPLES]) {
#pragma unroll
        for (int s = 0; s < SAMPLES; ++s) z[s][i] = fmaf(signs[s], weight, z[s][i]);
    });
    finish<SAMPLES>(net, z, f);
}

// A lane's column on the way back: adds to the gradient, and in the last pass of plain SGD moves the params.
struct Column {
    float* net;
    bool first, last;
};

DEVICE void put(const Column& column, int param, float gradient, Update update) {
    float* theta = column.net + param * 32;
    if (KEPT) {
        float* sum = theta + PARAMS * 32;
        gradient += column.first ? 0.0f : *sum;
        if (!PLAIN || !column.last) {
            *sum = gradient;
            return;
        }
    }
    *theta = move(*theta, gradient, update);
}

// From the loss's slopes in f (over the batch size) to the gradient, but if FUSED that of w; z is overwritten by the
// slopes in z.
template <int S>
DEVICE void backward(const Column& column, const u32 (&x)[S][WORDS], float (&z)[S][WIDTH], const float (&slope)[S],
                     const Pace& pace) {
    if (FAMILY == POLYNET) {  // d f / d z_i is the product of those before it and of those after
#pragma unroll
        for (int s = 0; s < S; ++s) {
            float after[WIDTH], product = 1.0f, before = slope[s];
#pragma unroll
            for (int i = WIDTH; i-- > 0;) after[i] = product, product *= z[s][i];
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                const float g = before * after[i];
                before *= z[s][i];
                z[s][i] = g;
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            const float u = FAMILY == MLP ? column.net[(AT_U + i) * 32] : 1.0f;
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < S; ++s) {
                sum = fmaf(slope[s], Act::value(z[s][i]), sum);
                z[s][i] = slope[s] * u * Act::slope(z[s][i]);
            }
            if (FAMILY == MLP) put(column, AT_U + i, sum, pace.output);
        }
    }
    if (FAMILY == MLP && BIAS) {
        float sum = 0.0f;
#pragma unroll
        for (int s = 0; s < S; ++s) sum += slope[s];
        put(column, AT_C, sum, pace.output);
    }
    if (BIAS) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < S; ++s) sum += z[s][i];
            put(column, AT_B + i, sum, pace.hidden);
        }
    }
    if (FUSED) return;
    for_each_input<S>(x, [&](int j, const float (&signs)[S]) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < S; ++s) sum = fmaf(signs[s], z[s][i], sum);
            put(column, j * WIDTH + i, sum, pace.hidden);
        }
    });
}

// Adds to every param of a column, or to its gradient, so much of a standard normal.
DEVICE void add_noise(float* net, Key root, float hidden, float output) {
    const Key leaves[4] = {fold_in(root, 0), fold_in(root, BIAS), fold_in(root, 2), fold_in(root, 1 + 2 * BIAS)};
#pragma unroll 1
    for (int p = 0; p < PARAMS; ++p) {  // the arrays are numbered b, w, c, u, or w, u where there are no biases
        const int leaf = p < AT_B ? 1 : p < AT_U ? 0 : p < AT_C ? 3 : 2;
        const int start = p < AT_B ? 0 : p < AT_U ? AT_B : p < AT_C ? AT_U : AT_C;
        const Key key = leaf == 0 ? leaves[0] : leaf == 1 ? leaves[1] : leaf == 2 ? leaves[2] : leaves[3];
        net[p * 32] = fmaf(p < AT_U ? hidden : output, random_normal(key, p - start), net[p * 32]);
    }
}

// Moves all params by the optimiser, once their gradient is complete.
DEVICE void move_all(float* net, Pace pace) {
    float* gradient = net + PARAMS * 32;
    if (CLIPS) {
        float squared = 0.0f;
#pragma unroll 4
        for (int p = 0; p < PARAMS; ++p) {
            const bool frozen = (p < AT_U ? RATE_HIDDEN : RATE_OUTPUT) == 0.0f;
            const float g = gradient[p * 32];
            if (!frozen) squared = fmaf(g, g, squared);
        }
        pace.scale = clipping(squared);
    }
#pragma unroll 4
    for (int p = 0; p < PARAMS; ++p) {
        float none = 0.0f, *theta = net + p * 32, *one = theta + MEMORY * 32, *two = one + PARAMS * 32;
        *theta = moved(*theta, gradient[p * 32], MEMORIES > 0 ? *one : none, MEMORIES > 1 ? *two : none, pace,
                       p < AT_U ? pace.hidden : pace.output);
    }
}
