// The initial params of rows, for laws that make a weight of one random word, exactly as `Init.layers` draws them.

DEVICE float weight_from(u32 word) {
    if (START_LAW == DRAWS_SIGNS) return 1.0f - 2.0f * (float)(word & 1);
    return 2.0f * (__uint_as_float((word >> 9) | 0x3f800000u) - 1.0f) - 1.0f;
}

// A thread for each param of the first `count` rows of `order`.
extern "C" __global__ void start(const Table* rows, int count) {
    const Table table = *rows;
    const size_t all = (size_t)count * PARAMS, stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += stride) {
        const int row = table.order[i / PARAMS], p = i % PARAMS;
        const Key own = fold_in({table.key[2 * row], table.key[2 * row + 1]}, INIT);
        const Key key = START_FIXED ? Key{0, (u32)START_KEY} : own;
        const int layer = p < AT_U ? 0 : 1, part = (p >= AT_B && p < AT_U) || p >= AT_C ? 1 : 0;
        const int first = p < AT_B ? 0 : p < AT_U ? AT_B : p < AT_C ? AT_U : AT_C;
        const u32 word = random_bits(fold_in(fold_in(key, layer), part), p - first);
        table.params[(size_t)row * PARAMS + p] = (layer == 0 ? SCALE_HIDDEN : SCALE_OUTPUT) * weight_from(word);
    }
}
