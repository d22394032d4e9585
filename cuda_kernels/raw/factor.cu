// The block Cholesky factor: twins of `gather_slots`, `factor_pivots`, `divide_slots` (a level of rows), and
// `invert_pivots` in cuda_kernels/linear/factor.py.

#include "factor.cuh"

namespace {

using Staged = double2[72];
constexpr int GROUPS = BLOCK / 16;

__device__ inline void stage(Staged& staged, const Tile& tile, const Lane& lane) {
    if (lane.holds) {
        for (int i = 0; i < 3; ++i) staged[lane.offset() + 24 * i] = tile.at[i];
    }
}

// Add a coupling's block to the tile, as it is or transposed.
__device__ inline void add_source(Tile& sum, const double* blocks, int entry, Staged& staged, const Lane& lane) {
    if (entry < 0) return;
    Tile tile = load_tile(blocks, entry / 2, lane);
    if (entry % 2 != 0) {
        const double* block = reinterpret_cast<const double*>(staged);
        stage(staged, tile, lane);
        __syncwarp();
        for (int i = 0; i < 3; ++i) {
            const int r = lane.row + 4 * i;
            tile.at[i] = {block[24 * lane.pair + r], block[24 * lane.pair + 12 + r]};
        }
        __syncwarp();
    }
    for (int i = 0; i < 3; ++i) {
        sum.at[i].x += tile.at[i].x;
        sum.at[i].y += tile.at[i].y;
    }
}

// sum -= left^T right.
__device__ inline void subtract_product(Tile& sum, const Staged& left, const Staged& right, const Lane& lane) {
    const double* factors = reinterpret_cast<const double*>(left);
#pragma unroll
    for (int m = 0; m < 12; ++m) {
        const double2 row = right[6 * m + lane.pair];
        for (int i = 0; i < 3; ++i) {
            const double scale = factors[12 * m + lane.row + 4 * i];
            sum.at[i].x -= scale * row.x;
            sum.at[i].y -= scale * row.y;
        }
    }
}

// Slot of U_ki among the updates of row i, -1 if there is none.
__device__ inline int find_update(const Pattern& p, int i, int k) {
    int lo = p.ups[i], hi = p.ups[i + 1];
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (p.up_row[mid] < k) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < p.ups[i + 1] && p.up_row[lo] == k ? p.up_slot[lo] : -1;
}

}  // namespace

// A_ji - sum_k U_kj^T U_ki of one slot of a level, by growing k; a warp per slot.
extern "C" __global__ void __launch_bounds__(BLOCK) gather_slots(int first, int count, Pattern p, Sources a, Factor f) {
    __shared__ Staged staged[WARPS][2];
    const int warp = threadIdx.x / 32;
    const int item = blockIdx.x * WARPS + warp;
    if (item >= count) return;
    const int s = first + item;
    const int j = p.row[s], i = p.column[s];
    if (f.done[p.body[j]] != 0) return;
    const Lane lane(threadIdx.x);
    Staged &left = staged[warp][0], &right = staged[warp][1];

    Tile sum = {};
    if (i == j) {
        sum = load_tile(a.diagonal, p.body[j], lane);
    } else {
        for (int c = 0; c < a.number; ++c) {
            add_source(sum, a.addresses[COLUMNS * c + BLOCKS].numbers, a.slot[c * a.stride + s], left, lane);
        }
    }
    const int end = p.ups[j + 1];
    for (int begin = p.ups[j]; begin < end; begin += 32) {
        // every lane looks whether its row k updates column i too
        int slot_j = -1, slot_i = -1;
        if (begin + lane.index < end) {
            const int k = p.up_row[begin + lane.index];
            slot_j = p.up_slot[begin + lane.index];
            if (f.done[p.body[k]] == 0) slot_i = i == j ? slot_j : find_update(p, i, k);
        }
        for (unsigned both = __ballot_sync(ALL, slot_i >= 0); both != 0; both &= both - 1) {
            const int source = __ffs(both) - 1;
            const Tile u_j = load_tile(f.entries, __shfl_sync(ALL, slot_j, source), lane);
            const Tile u_i = load_tile(f.entries, __shfl_sync(ALL, slot_i, source), lane);
            // the blocks before are in use until all lanes are here; these ones are there when all lanes are beyond
            __syncwarp();
            stage(left, u_j, lane);
            stage(right, u_i, lane);
            __syncwarp();
            subtract_product(sum, left, right, lane);
        }
    }
    store_tile(f.entries, s, lane, sum);
}

// Factor of the diagonal block of one row of a level, in place; half a warp per row, a lane per column.
extern "C" __global__ void __launch_bounds__(BLOCK) factor_pivots(int first, int count, Pattern p, Factor f) {
    __shared__ Staged staged[GROUPS];
    const int group = threadIdx.x / 16, lane = threadIdx.x % 16;
    const int item = blockIdx.x * GROUPS + group;
    const int j = first + (item < count ? item : 0);
    const bool works = item < count && f.done[p.body[j]] == 0;
    double* block = reinterpret_cast<double*>(staged[group]);
    double2* pairs = reinterpret_cast<double2*>(f.entries + 144 * size_t(p.starts[j]));
    const int c = lane < 12 ? lane : 11;

    for (int m = lane; m < 72; m += 16) staged[group][m] = works ? pairs[m] : double2{1.0, 1.0};
    __syncwarp();
    double column[12], largest = 0.0;
#pragma unroll
    for (int r = 0; r < 12; ++r) {
        column[r] = block[12 * r + c];
        largest = fmax(largest, fabs(block[13 * r]));
    }
    if (!(largest > 0.0)) largest = 1.0;
    int bad = 0;
    double scales[12];
    // rows are scaled at the end: square roots would lengthen the chain of operations from one pivot to the next
#pragma unroll
    for (int r = 0; r < 12; ++r) {
        double pivot = __shfl_sync(ALL, column[r], r, 16);
        if (!(pivot > 0.0)) {
            bad = 1;
            pivot = largest;
        }
        const double reciprocal = 1.0 / pivot;
        scales[r] = reciprocal;
#pragma unroll
        for (int i = r + 1; i < 12; ++i) column[i] -= (reciprocal * __shfl_sync(ALL, column[r], i, 16)) * column[r];
    }
    __syncwarp();
    if (lane < 12) {
#pragma unroll
        for (int r = 0; r < 12; ++r) {
            const double scale = sqrt(scales[r]);
            if (r < c) {
                block[12 * r + c] = block[12 * c + r] = scale * column[r];
            } else if (r == c) {
                block[13 * r] = scale;
            }
        }
    }
    __syncwarp();
    if (!works) return;
    for (int m = lane; m < 72; m += 16) pairs[m] = staged[group][m];
    if (lane == 0) {
        f.failed[j] = bad;
        if (bad != 0) f.any_failed[0] = 1;
    }
}

// U_ji = U_jj^-T A_ji of the other blocks of a level, in place; half a warp per slot, a lane per column.
extern "C" __global__ void __launch_bounds__(BLOCK) divide_slots(int first, int count, Pattern p, Factor f) {
    __shared__ Staged staged[GROUPS];
    const int group = threadIdx.x / 16, lane = threadIdx.x % 16;
    const int item = blockIdx.x * GROUPS + group;
    const int s = first + (item < count ? item : 0);
    const int j = p.row[s];
    const bool works = item < count && p.column[s] > j && f.done[p.body[j]] == 0;
    const double* pivot = reinterpret_cast<const double*>(staged[group]);
    if (works) {
        const double2* pairs = reinterpret_cast<const double2*>(f.entries + 144 * size_t(p.starts[j]));
        for (int m = lane; m < 72; m += 16) staged[group][m] = pairs[m];
    }
    __syncwarp();
    if (!works || lane >= 12) return;
    double* block = f.entries + 144 * size_t(s) + lane;
    double column[12];
#pragma unroll
    for (int r = 0; r < 12; ++r) column[r] = block[12 * r];
#pragma unroll
    for (int r = 0; r < 12; ++r) {
#pragma unroll
        for (int m = 0; m < r; ++m) column[r] -= pivot[12 * m + r] * column[m];
        column[r] *= pivot[13 * r];
    }
#pragma unroll
    for (int r = 0; r < 12; ++r) block[12 * r] = column[r];
}

// U_jj^-1 U_jj^-T of one row at its body's place in `inverse`, U_jj^-T in `room`; half a warp per row, a lane per column.
extern "C" __global__ void __launch_bounds__(BLOCK)
invert_pivots(int first, int count, Pattern p, Factor f, double* room, double* inverse) {
    __shared__ Staged staged[GROUPS];
    const int group = threadIdx.x / 16, lane = threadIdx.x % 16;
    const int item = blockIdx.x * GROUPS + group;
    const int j = first + (item < count ? item : 0), b = p.body[j];
    const bool works = item < count && f.done[b] == 0;
    const double* pivot = reinterpret_cast<const double*>(staged[group]);
    const double2* pairs = reinterpret_cast<const double2*>(f.entries + 144 * size_t(p.starts[j]));
    for (int m = lane; m < 72; m += 16) staged[group][m] = pairs[m];
    __syncwarp();
    double column[12];
#pragma unroll
    for (int r = 0; r < 12; ++r) {
        double v = r == lane ? 1.0 : 0.0;
#pragma unroll
        for (int m = 0; m < r; ++m) v -= pivot[12 * m + r] * column[m];
        column[r] = pivot[13 * r] * v;
    }
    const bool stores = works && lane < 12;
    const size_t at = 144 * size_t(b) + lane;
#pragma unroll
    for (int r = 0; r < 12; ++r) {
        double v = 0.0;
#pragma unroll
        for (int m = r; m < 12; ++m) v += __shfl_sync(ALL, column[m], r, 16) * column[m];
        if (stores) {
            room[at + 12 * r] = column[r];
            inverse[at + 12 * r] = v;
        }
    }
}
