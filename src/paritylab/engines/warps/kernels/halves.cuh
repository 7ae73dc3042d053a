// Products of float32 matrices on tensor cores, in two parts of half precision.
//
// A matrix is multiplied by a power of two that brings its largest number to 2^14 or more and below 2^15; then a number is
// the half nearest to it and the half nearest to what is left, which are right to 2^-22 of it, or to 2^-39 of the largest.
// Of the four products of parts that of both small ones, below 2^-22, is left out. These three take half of the time of the
// six of three bfloat16 parts that have float32's range by themselves. The fragments are those of fragments.cuh.
#ifdef __CUDACC__
DEVICE void mma_f16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The halves nearest to two floats, the first in the low half of the word; and back.
DEVICE u32 to_halves(float low, float high) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
DEVICE float low_half(u32 both) {
    float x;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(x) : "r"(both));
    return x;
}
DEVICE float high_half(u32 both) {
    float x;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(both));
    return x;
}

// Four 8 x 8 matrices of halves from shared memory; lane l brings where row l % 8 of matrix l / 8 begins. A lane gets
// columns 2q and 2q + 1 of row g, or if TURNED rows 2q and 2q + 1 of column g.
template <bool TURNED>
DEVICE void load_matrices(u32 (&m)[4], const u16* row) {
    const u32 at = (u32)__cvta_generic_to_shared(row);
    if (TURNED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at) : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at) : "memory");
    }
}

// The same pointer, known not to lead to shared memory.
DEVICE float* in_device_memory(float* at) {
    __builtin_assume(__isGlobal(at));
    return at;
}

// Four floats are sent from device memory to shared memory; that closes a group, and one waits for all but the last groups.
DEVICE void send(float* to, const float* from) {
    const u32 at = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
DEVICE void that_is_sent() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int GROUPS>
DEVICE void await_all_but() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }
#endif

// A power of two for a matrix whose largest number has these bits, and one over it.
struct Scale {
    float up, down;
};
DEVICE Scale scale_for(u32 largest) {
    const u32 exponent = max((int)(largest >> 23), 15);
    return {__uint_as_float((268u - exponent) << 23), __uint_as_float((exponent - 14u) << 23)};
}
DEVICE u32 magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }  // NaN is above all

// Raises a number in shared memory to the largest of a warp's lanes.
DEVICE void raise(u32* largest, u32 own) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) own = max(own, __shfl_xor_sync(ALL, own, d));
    if (lane_id() == 0) atomicMax(largest, own);
}

// Two floats, scaled, in parts.
DEVICE void split_halves(float low, float high, float up, u32& large, u32& small) {
    low *= up, high *= up;
    large = to_halves(low, high);
    small = to_halves(low - low_half(large), high - high_half(large));
}

// A tile of 16 x 16 floats as it lies in memory: of[h][2 r + e] is row g + 8 r, column 8 h + 2q + e. So it is a factor A, and
// two results D beside each other.
struct Tile {
    Quad half[2];
};
constexpr int TILE = 256;
DEVICE Tile tile_at(const float* at) { return {quad_at(at + 4 * lane_id()), quad_at(at + TILE / 2 + 4 * lane_id())}; }
DEVICE void send_tile(float* to, const float* from) {  // each lane what it will take
    send(to + 4 * lane_id(), from + 4 * lane_id());
    send(to + TILE / 2 + 4 * lane_id(), from + TILE / 2 + 4 * lane_id());
}
DEVICE int place_in_tile(int row, int column) {
    return TILE / 2 * (column / 8) + 4 * (row % 8 * 4 + column % 8 / 2) + 2 * (row / 8) + column % 2;
}

DEVICE void split_tile(const Tile& tile, float up, u32 (&large)[4], u32 (&small)[4]) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const Quad& half = tile.half[r / 2];
        split_halves(half.of[2 * (r % 2)], half.of[2 * (r % 2) + 1], up, large[r], small[r]);
    }
}

// The factor A transposed.
DEVICE void turn_tile(u32 (&a)[4]) {
    const u32 first = turn_halves(a[0]), second = turn_halves(a[2]), third = turn_halves(a[1]);
    a[3] = turn_halves(a[3]), a[0] = first, a[1] = second, a[2] = third;
}

// Adds to columns m and m + 1 of TILES rows of tiles the product of A in two parts and B in one or two; b[part] has both
// registers of the first column of tiles, then of the second.
template <int PARTS, int TILES, int COLUMNS>
DEVICE void add_products(float (&sum)[TILES][COLUMNS][4], const u32 (&a)[2][TILES][4], const u32 (&b)[PARTS][4], int m) {
#pragma unroll
    for (int both = 1; both >= 0; --both) {  // the small products first
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            if (part > both) continue;
#pragma unroll
            for (int i = 0; i < 2 * TILES; ++i) {
                mma_f16(sum[i / 2][m + i % 2], a[both - part][i / 2], b[part][2 * (i % 2)], b[part][2 * (i % 2) + 1]);
            }
        }
    }
}
