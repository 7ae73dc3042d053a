// Runs that enter the table: what the host says of each, and its initial params where the law makes a weight of one
// random word, exactly as `Init.layers` draws them.

// An entry is words: the row, the key, lr, noise, flip, max_steps and the mask.
constexpr int ENTRY = 7 + WORDS;
constexpr bool DRAWS = START_LAW != DRAWS_NOTHING;
constexpr int ITEMS = DRAWS || MEMORIES > 0 ? PARAMS : 1;  // of an entry; the first also writes its numbers

DEVICE void write_numbers(const Table& table, const u32* entry) {
    const int row = (int)entry[0];
    table.key[2 * row] = entry[1], table.key[2 * row + 1] = entry[2];
    table.lr[row] = __uint_as_float(entry[3]), table.noise[row] = __uint_as_float(entry[4]);
    table.flip[row] = entry[5], table.max_steps[row] = (int)entry[6];
    for (int w = 0; w < WORDS; ++w) table.mask[row * WORDS + w] = entry[7 + w];
    table.step[row] = 0, table.streak[row] = 0, table.status[row] = ACTIVE;
}

DEVICE float weight_from(u32 word) {
    if (START_LAW == DRAWS_SIGNS) return 1.0f - 2.0f * (float)(word & 1);
    return 2.0f * (__uint_as_float((word >> 9) | 0x3f800000u) - 1.0f) - 1.0f;
}

DEVICE float initial_param(Key own, int p) {
    const Key key = START_FIXED ? Key{0, (u32)START_KEY} : fold_in(own, INIT);
    int layer = 0;
    while (p >= params_below(layer + 1)) ++layer;
    const int number = p - params_below(layer), weights = (int)sizes(layer) * (int)sizes(layer + 1);
    const bool bias = number >= weights;
    const u32 word = random_bits(fold_in(fold_in(key, layer), bias), bias ? number - weights : number);
    return scales(layer) * weight_from(word);
}

extern "C" __global__ void start(const Table* rows, const u32* entries, int count) {
    const Table table = *rows;
    const size_t all = (size_t)count * ITEMS, stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += stride) {
        const u32* entry = entries + i / ITEMS * ENTRY;
        const int p = i % ITEMS;
        if (p == 0) write_numbers(table, entry);
        const size_t row = entry[0];
        if (DRAWS) table.params[row * PARAMS + p] = initial_param({entry[1], entry[2]}, p);
        for (int k = 0; k < MEMORIES; ++k) table.memory[(row * MEMORIES + k) * PARAMS + p] = 0.0f;
    }
}
