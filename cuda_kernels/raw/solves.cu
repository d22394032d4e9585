// Triangular solves with a level of the block Cholesky factor: twins of `forward_rows` and `backward_rows` in
// cuda_kernels/linear/factor.py; a warp per row.

#include "factor.cuh"

namespace {

// Column `lane` of a row's diagonal block, whose upper triangle is mirrored below, with reciprocals on the diagonal.
struct Pivot {
    double column[12];

    __device__ Pivot(const Factor& f, int slot, const Lane& lane) {
        const double* block = f.entries + 144 * size_t(slot) + (lane.index < 12 ? lane.index : 11);
#pragma unroll
        for (int r = 0; r < 12; ++r) column[r] = block[12 * r];
    }

    // Entry `lane` of U^-T v, or with `upwards` of U^-1 v.
    template <bool upwards>
    __device__ double solve(double v, const Lane& lane) const {
        double out = 0.0;
#pragma unroll
        for (int q = 0; q < 12; ++q) {
            const int r = upwards ? 11 - q : q;
            const double solved = __shfl_sync(ALL, v * column[r], r);
            if (lane.index == r) out = solved;
            v -= solved * column[r];
        }
        return out;
    }
};

}  // namespace

// x of one row = U_jj^-T (scale rhs - sum_k U_kj^T x_k).
extern "C" __global__ void __launch_bounds__(BLOCK)
forward_rows(int first, int count, Pattern p, Factor f, double scale, const double* rhs, double* x) {
    __shared__ Shares shares[WARPS];
    const int warp = threadIdx.x / 32;
    const int item = blockIdx.x * WARPS + warp;
    if (item >= count) return;
    const int j = first + item, b = p.body[j];
    if (f.done[b] != 0) return;
    const Lane lane(threadIdx.x);
    Partial part;
    const int end = p.ups[j + 1];
    for (int begin = p.ups[j]; begin < end; begin += 32) {
        int slot = -1, other = 0;
        if (begin + lane.index < end) {
            other = p.body[p.up_row[begin + lane.index]];
            if (f.done[other] == 0) slot = p.up_slot[begin + lane.index];
        }
        for (unsigned left = __ballot_sync(ALL, slot >= 0); left != 0; left &= left - 1) {
            const int source = __ffs(left) - 1;
            const Tile tile = load_tile(f.entries, __shfl_sync(ALL, slot, source), lane);
            part.add_transposed(tile, x + 12 * size_t(__shfl_sync(ALL, other, source)), lane);
        }
    }
    const Pivot pivot(f, p.starts[j], lane);
    const double sum = collect(part, shares[warp], lane);
    const size_t at = 12 * size_t(b) + lane.index;
    const double out = pivot.solve<false>(lane.index < 12 ? scale * rhs[at] - sum : 0.0, lane);
    if (lane.index < 12) x[at] = out;
}

// x of one row = U_jj^-1 (x_j - sum_i U_ji x_i), and rhs . x of its body.
extern "C" __global__ void __launch_bounds__(BLOCK)
backward_rows(int first, int count, Pattern p, Factor f, const double* rhs, double* x, double* dots) {
    __shared__ Shares shares[WARPS];
    const int warp = threadIdx.x / 32;
    const int item = blockIdx.x * WARPS + warp;
    if (item >= count) return;
    const int j = first + item, b = p.body[j];
    if (f.done[b] != 0) return;
    const Lane lane(threadIdx.x);
    Partial part;
    const int end = p.starts[j + 1];
    for (int begin = p.starts[j] + 1; begin < end; begin += 32) {
        const int others = min(32, end - begin);
        const int other = lane.index < others ? p.body[p.column[begin + lane.index]] : 0;
        for (int m = 0; m < others; ++m) {
            part.add(load_tile(f.entries, begin + m, lane), pair_of(x, __shfl_sync(ALL, other, m), lane.pair));
        }
    }
    const Pivot pivot(f, p.starts[j], lane);
    const double sum = collect(part, shares[warp], lane);
    const size_t at = 12 * size_t(b) + lane.index;
    const double out = pivot.solve<true>(lane.index < 12 ? x[at] - sum : 0.0, lane);
    double dot = 0.0;
    if (lane.index < 12) {
        x[at] = out;
        dot = rhs[at] * out;
    }
    dot = sum_of_16(dot);
    if (lane.index == 0) dots[b] = dot;
}
