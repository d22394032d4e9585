// A 12x12 block of doubles (1152 bytes, by rows) in the registers of a warp, and sums over products with such blocks.
//
// A block is 72 pairs of neighbouring columns. Lane l < 24 holds the pair l % 6 of the rows l / 6, l / 6 + 4 and
// l / 6 + 8: three 16-byte accesses in which 24 lanes touch 384 bytes side by side. Lanes 24 .. 31 repeat the first
// eight, so that no load needs a branch; they store nothing.
//
// Every sum runs in an order that depends on the data's layout alone, so results are the same bits in every run.

#pragma once

constexpr unsigned ALL = 0xffffffffu;
constexpr int WARPS = 4;
constexpr int BLOCK = 32 * WARPS;

// Where arrays of a coupling are, by the columns of a table; see cuda_kernels/linear/couplings.py.
union Address {
    const int* integers;
    const double* numbers;
    double* results;
};
constexpr int STARTS = 0, ENTRIES = 1, COLUMN = 2, BLOCKS = 3, MERGED = 4, PARTS = 5, COLUMNS = 6;

// What one lane of a warp sees of a block.
struct Lane {
    int index;   // 0 .. 31
    int pair;    // columns 2 pair and 2 pair + 1
    int row;     // rows row, row + 4 and row + 8
    bool holds;  // not one of those that repeat others

    __device__ explicit Lane(int thread) {
        index = thread & 31;
        holds = index < 24;
        const int l = holds ? index : index - 24;
        pair = l % 6;
        row = l / 6;
    }

    __device__ int offset() const { return 6 * row + pair; }
};

struct Tile {
    double2 at[3];
};

__device__ inline double2 pair_of(const double* vectors, size_t body, int pair) {
    return reinterpret_cast<const double2*>(vectors + 12 * body)[pair];
}

__device__ inline Tile load_tile(const double* blocks, size_t k, const Lane& lane) {
    const double2* pairs = reinterpret_cast<const double2*>(blocks + 144 * k) + lane.offset();
    return {{pairs[0], pairs[24], pairs[48]}};
}

__device__ inline void store_tile(double* blocks, size_t k, const Lane& lane, const Tile& tile) {
    if (lane.holds) {
        double2* pairs = reinterpret_cast<double2*>(blocks + 144 * k) + lane.offset();
        for (int i = 0; i < 3; ++i) pairs[24 * i] = tile.at[i];
    }
}

// Shares of one lane in a vector v of 12: of B w in its rows, and of B^T w in its columns.
struct Partial {
    double row[3] = {0.0, 0.0, 0.0};
    double2 column = {0.0, 0.0};

    // v += B w, the lane's pair of w being given.
    __device__ void add(const Tile& tile, double2 w) {
        for (int i = 0; i < 3; ++i) row[i] += tile.at[i].x * w.x + tile.at[i].y * w.y;
    }

    // v += B^T w, the lane's rows of w being given.
    __device__ void add_transposed(const Tile& tile, const double (&w)[3]) {
        for (int i = 0; i < 3; ++i) {
            column.x += tile.at[i].x * w[i];
            column.y += tile.at[i].y * w[i];
        }
    }

    __device__ void add_transposed(const Tile& tile, const double* w, const Lane& lane) {
        add_transposed(tile, {w[lane.row], w[lane.row + 4], w[lane.row + 8]});
    }
};

// Room of a warp for the shares of its lanes; rows of 11 numbers keep them in different banks.
using Shares = double[12][11];

// Lane r < 12 gets entry r of the vector whose shares the lanes hold; the others get 0.
__device__ inline double collect(const Partial& part, Shares& shares, const Lane& lane) {
    if (lane.holds) {
        for (int i = 0; i < 3; ++i) shares[lane.row + 4 * i][lane.pair] = part.row[i];
        shares[2 * lane.pair][6 + lane.row] = part.column.x;
        shares[2 * lane.pair + 1][6 + lane.row] = part.column.y;
    }
    __syncwarp();
    double sum = 0.0;
    if (lane.index < 12) {
        for (int m = 0; m < 10; ++m) sum += shares[lane.index][m];
    }
    return sum;
}

// Sum over the lanes with the same columns, in the first six lanes.
__device__ inline double2 over_rows(double2 v) {
    for (int step = 12; step > 0; step -= 6) {
        v.x += __shfl_down_sync(ALL, v.x, step, 32);
        v.y += __shfl_down_sync(ALL, v.y, step, 32);
    }
    return v;
}

// Sum over the first 16 lanes, in lane 0.
__device__ inline double sum_of_16(double value) {
    for (int step = 8; step > 0; step /= 2) value += __shfl_down_sync(ALL, value, step, 16);
    return value;
}
