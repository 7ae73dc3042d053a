// Matrix products on tensor cores, and how a 32 x 32 block of random bits becomes their factors.
//
// mma_bf16 is D += A B for one warp, A 16 x 16, B 16 x 8. With g = lane / 4 and q = lane % 4 a lane holds
//
//     A   a[0] row g, a[1] row g + 8 of columns 2q, 2q + 1;  a[2], a[3] the same of columns 2q + 8, 2q + 9
//     B   b0 rows 2q, 2q + 1 of column g;  b1 rows 2q + 8, 2q + 9
//     D   d[0], d[1] row g, columns 2q, 2q + 1;  d[2], d[3] row g + 8
//
// two bfloat16 to a register of A and B. So the D of two neighbouring products is the A of the next, in place.
//
// A block holds 32 samples of 32 inputs, sample l being the word of lane l = 8 m + 4 e + q (m, q < 4, e < 2). It takes
// column 8 m + 2q + e among the columns of four tiles, and input 4 m + 16 e + q, bit b of a word, takes column 8 m + 2q + e
// of four others. A register of X then holds inputs b = 4 m + q and b + 16 of one word, that is
//
//     ((word << (15 - b)) & 0x80008000) | 0x3f803f80        +-1 in both halves
//
// and what a lane holds of D has its sums over the units end in the lane that drew the sample. After the shift by 3 - q
// that does not depend on m, a half has a bit of each tile of inputs at the same place in all lanes. So the words of a tile
// of samples, an 8 x 8 matrix of such halves, need only be transposed to be X' for all four tiles of inputs.
#ifdef __CUDACC__
DEVICE void mma_bf16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Bytes of x and y; unlike __byte_perm it knows the selectors 8 to 15, eight times the sign of a byte.
template <u32 SELECTOR>
DEVICE u32 prmt(u32 x, u32 y) {
    asm("prmt.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(y), "n"(SELECTOR));
    return x;
}

// Transposes a matrix of 8 x 8 halves, of which a lane holds columns 2q and 2q + 1 of row g.
DEVICE u32 turn_halves(u32 x) {
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(x));
    return x;
}
#endif

constexpr u32 ONES = 0x3f803f80u, SIGNS = 0x80008000u;

DEVICE u32 group_id() { return lane_id() / 4; }
DEVICE u32 quad_id() { return lane_id() % 4; }

// Which column of tile 0 is a lane's own in a factor B, as the lane that holds its word; tile m: 8 m further.
DEVICE u32 column_owner() { return 4 * (group_id() & 1) + (group_id() >> 1); }

// The words of a lane's columns, one in each of four tiles, shifted so that `input_pair` need not know the lane.
DEVICE void gather_words(u32 word, u32 (&columns)[4]) {
#pragma unroll
    for (int m = 0; m < 4; ++m) columns[m] = __shfl_sync(ALL, word, column_owner() + 8 * m) << (3 - quad_id());
}

// The inputs of tile m, or minus them: of one sample and inputs 2q and 2q + 1, or turned, of one input and two samples.
// They are signs, or bits where the network reads those. `ones` is ONES, or 0 for zeros.
template <bool MINUS>
DEVICE u32 input_pair(u32 column, int m, u32 ones) {
    const u32 bits = column << (12 - 4 * m);
    if (READS_BITS) {
        const u32 minus = bits & SIGNS;
        return ((minus - (minus >> 7)) >> 1 & ones) | (MINUS ? minus : 0u);  // 0x8000 becomes 0x3f80, which is 1
    }
    return ((MINUS ? ~bits : bits) & SIGNS) | ones;
}

// Two floats as bfloat16 in three parts, highest first: each is what the float's upper half holds of what is left, so
// that nothing is lost. A shift and an *and* get that half back, because there are pipes for both.
DEVICE void split(float low, float high, u32 (&parts)[3]) {
#pragma unroll
    for (int part = 0; part < 3; ++part) {
        parts[part] = prmt<0x7632>(__float_as_uint(low), __float_as_uint(high));
        if (part == 2) return;
        low -= __uint_as_float(parts[part] << 16);
        high -= __uint_as_float(__float_as_uint(high) & 0xffff0000u);
    }
}

// All bits of each half where the sign of that half's float is set.
DEVICE u32 sign_masks(float low, float high) {
    return prmt<0xffbb>(__float_as_uint(low), __float_as_uint(high));
}

// From eight partial sums in each lane, one for each group, to the sum over the groups of a lane's own.
DEVICE float scatter_sums(float (&v)[8]) {
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
        const bool upper = group_id() & half;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float sent = upper ? v[i] : v[i + half], kept = upper ? v[i + half] : v[i];
            v[i] = kept + __shfl_xor_sync(ALL, sent, 4 * half);
        }
    }
    return v[0];
}

DEVICE float sum_over_quad(float value) {
    value += __shfl_xor_sync(ALL, value, 1);
    return value + __shfl_xor_sync(ALL, value, 2);
}
