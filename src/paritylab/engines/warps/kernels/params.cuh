// The params of a deep MLP one by one, wherever its kernel has put them: from the table and back, noise, optimisers that
// move them once the gradient is complete. The kernel says where a weight is (weight_at, biases_at, HEAD_AT), that gradients
// lie ALL_PARAMS further, and what it has to know of params that have moved (look_at).

// Calls work(where in the team's memory, place in the row, layer, whether a bias) for every param of this thread but c.
template <int L = 0, class Work>
DEVICE void for_each_param(const Work& work) {
    constexpr bool HEAD = L == LAYERS;
    constexpr int OUT = units_of(L), IN = units_of(L - 1);
    for (int i = thread_of_team(); i < IN * OUT; i += THREADS) {
        work(HEAD ? HEAD_AT + i : weight_at(L, i / OUT, i % OUT), params_below(L) + i, L, false);
    }
    if constexpr (!HEAD) {
        for (int i = thread_of_team(); i < BIAS * OUT; i += THREADS) {
            work(biases_at(L) + i, params_below(L) + IN * OUT + i, L, true);
        }
        for_each_param<L + 1>(work);
    }
}

DEVICE void load_network(Network& net, const float* params) {
    meet<THREADS>();
    for (int i = thread_of_team(); i < ALL_PARAMS; i += THREADS) net.at[i] = 0.0f;
    meet<THREADS>();
    for_each_param([&](int at, int place, int, bool) { net.at[at] = params[place]; });
    net.c = HAS_C ? params[PARAMS - 1] : 0.0f;
    meet<THREADS>();
}

DEVICE void save_network(const Network& net, float* params) {
    for_each_param([&](int at, int place, int, bool) { params[place] = net.at[at]; });
    if (HAS_C && thread_of_team() == 0) params[PARAMS - 1] = net.c;
}

// A thread's share of the gradient's squared norm, frozen layers left out.
DEVICE float squared_norm(const Network& net, const Gradient& gradient) {
    float sum = HAS_C && RATE_OUTPUT != 0.0f && thread_of_team() == 0 ? gradient.c * gradient.c : 0.0f;
    for_each_param([&](int at, int, int layer, bool) {
        const float g = net.at[ALL_PARAMS + at];
        if (layer_rates(layer) != 0.0f) sum = fmaf(g, g, sum);
    });
    return sum;
}

DEVICE void move_network(Network& net, Memory& memory, const Gradient& gradient, const Pace& pace) {
    if (HAS_C) net.c = moved(net.c, gradient.c, memory.number[0].c, memory.number[LAST].c, pace, pace.output);
    if (!KEPT) return;
    for_each_param([&](int at, int, int layer, bool) {
        float none = 0.0f;
        float& one = MEMORIES > 0 ? memory.number[0].at[at] : none;
        float& two = MEMORIES > 0 ? memory.number[LAST].at[at] : none;
        const Update update = make_update(pace.lr, layer_rates(layer));
        net.at[at] = moved(net.at[at], net.at[ALL_PARAMS + at], one, two, pace, update);
    });
    meet<THREADS>();
    look_at(net);
}

// Noise goes to the gradient, or where the gradient moves the params as it comes, to them. Arrays are numbered b, W, b, W, ...,
// or W, W, ... where there are no biases.
template <class Size>
DEVICE void add_noise(float* params, float& c, Key root, const Size& size_of) {
    for_each_param([&](int at, int place, int layer, bool bias) {
        const Key key = fold_in(root, layer * (1 + BIAS) + (BIAS && !bias));
        const int first = params_below(layer) + (bias ? units_of(layer - 1) * units_of(layer) : 0);
        params[at] = fmaf(size_of(layer), random_normal(key, place - first), params[at]);
    });
    if (HAS_C) c = fmaf(size_of(LAYERS), random_normal(fold_in(root, 2 * LAYERS), 0), c);
}

DEVICE void add_noise_before(const Network& net, Gradient& gradient, Key root, float size) {
    if (!PLAIN) add_noise(net.at + ALL_PARAMS, gradient.c, root, [&](int) { return size; });
}
DEVICE void add_noise_after(Network& net, Key root, float size, const Pace& pace) {
    if (!PLAIN) return;
    add_noise(net.at, net.c, root, [&](int layer) { return -pace.lr * layer_rates(layer) * size; });
    meet<THREADS>();
    look_at(net);
}
