// Products of float32 matrices on tensor cores, a warp at a time: factors are read where they are and split as they come.

// A piece of a result, COLUMNS tiles of 8 wide: a lane has rows g and g + 8 of each 16, columns 2q and 2q + 1 of each 8.
template <int COLUMNS>
struct Piece {
    float sum[DEEP_TILES][COLUMNS][4];
};

// Calls work(sum, row, column) for all that a lane has of a piece.
template <int COLUMNS, class Some, class Work>
DEVICE void for_each_sum(Some& piece, const Work& work) {
#pragma unroll
    for (int i = 0; i < 4 * COLUMNS * DEEP_TILES; ++i) {
        const int tile = i / (4 * COLUMNS), m = i / 4 % COLUMNS;
        work(piece.sum[tile][m][i % 4], 16 * tile + group_id() + 8 * (i % 4 / 2), 8 * m + 2 * quad_id() + i % 2);
    }
}

// Adds A B to a piece, 16 CHUNKS products to each sum. left(row, k) are A's elements k and k + 1 in that row, right(k,
// column) B's in that column.
template <int CHUNKS, int RIGHT_PARTS, int COLUMNS, class Left, class Right>
DEVICE void multiply(Piece<COLUMNS>& piece, const Left& left, const Right& right) {
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        const int k = 16 * chunk + 2 * quad_id();
        u32 a[3][DEEP_TILES][4], b[RIGHT_PARTS][COLUMNS][2];
#pragma unroll
        for (int r = 0; r < 4 * DEEP_TILES; ++r) {
            const Pair both = left(16 * (r / 4) + group_id() + 8 * (r % 2), k + 8 * (r % 4 / 2));
            u32 parts[3];
            split(both.first, both.second, parts);
            a[0][r / 4][r % 4] = parts[0], a[1][r / 4][r % 4] = parts[1], a[2][r / 4][r % 4] = parts[2];
        }
#pragma unroll
        for (int m = 0; m < COLUMNS; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const Pair both = right(k + 8 * half, 8 * m + group_id());
                u32 parts[3];
                split(both.first, both.second, parts);
#pragma unroll
                for (int part = 0; part < RIGHT_PARTS; ++part) b[part][m][half] = parts[part];
            }
        }
#pragma unroll
        for (int both = 2; both >= 0; --both) {  // the small products first
#pragma unroll
            for (int part = 0; part < RIGHT_PARTS; ++part) {
                if (part > both) continue;
#pragma unroll
                for (int i = 0; i < COLUMNS * DEEP_TILES; ++i) {
                    const int tile = i / COLUMNS, m = i % COLUMNS;
                    mma_bf16(piece.sum[tile][m], a[both - part][tile], b[part][m][0], b[part][m][1]);
                }
            }
        }
    }
}
