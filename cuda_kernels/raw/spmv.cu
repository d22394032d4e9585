// Conjugate gradients: kernels of cuda_kernels/linear/krylov.py. y = H x by one warp per body, and the updates of the vectors.

#include "tile.cuh"

namespace {

// Products of all blocks of body i in the coupling at some addresses; pairs that are merged are passed over.
__device__ inline void couple(const Address* at, int i, const double* x, const Lane& lane, Partial& part) {
    const int *starts = at[STARTS].integers, *entries = at[ENTRIES].integers, *merged = at[MERGED].integers;
    const int *row = at[ROW].integers, *column = at[COLUMN].integers;
    const double* blocks = at[BLOCKS].numbers;
    const int end = starts[i + 1];
    for (int begin = starts[i]; begin < end; begin += 32) {
        // 32 entries and their bodies are looked up at once: no block waits for the index of the one before
        int entry = -1, other = 0;
        if (begin + lane.index < end) {
            entry = entries[begin + lane.index];
            const int k = entry / 2;
            other = entry % 2 == 0 ? column[k] : row[k];
            if (merged != nullptr && merged[k] != 0) entry = -1;
        }
        for (unsigned left = __ballot_sync(ALL, entry >= 0); left != 0; left &= left - 1) {
            const int source = __ffs(left) - 1;
            const int e = __shfl_sync(ALL, entry, source);
            const int body = __shfl_sync(ALL, other, source);
            const Tile tile = load_tile(blocks, e / 2, lane);
            if (e % 2 == 0) {
                part.add(tile, pair_of(x, body, lane.pair));
            } else {
                part.add_transposed(tile, x + 12 * size_t(body), lane);
            }
        }
    }
}

}  // namespace

// y = H x of one body and its shares of r . x and x . y.
extern "C" __global__ void __launch_bounds__(BLOCK)
multiply(int first, int count, const int* done, const double* __restrict__ diagonal, int number,
         const Address* addresses, const double* __restrict__ x, const double* __restrict__ r, double* __restrict__ y,
         double2* __restrict__ products) {
    __shared__ Shares shares[WARPS];
    const int warp = threadIdx.x / 32;
    const int item = blockIdx.x * WARPS + warp;
    if (item >= count) return;
    const int i = first + item;
    if (done[i] != 0) return;
    const Lane lane(threadIdx.x);
    const double* own = x + 12 * size_t(i);
    Partial part;
    part.add_transposed(load_tile(diagonal, i, lane), own, lane);
    for (int c = 0; c < number; ++c) couple(addresses + COLUMNS * c, i, x, lane, part);
    const double v = collect(part, shares[warp], lane);
    double2 dots = {0.0, 0.0};
    if (lane.index < 12) {
        const size_t at = 12 * size_t(i) + lane.index;
        y[at] = v;
        dots = {r[at] * x[at], x[at] * v};
    }
    dots = {sum_of_16(dots.x), sum_of_16(dots.y)};
    if (lane.index == 0) products[i] = dots;
}

// p = z + b p, q = w + b q, x += a p, r -= a q by the numbers of the body's island, unless a = 0; with inverse blocks then
// z = M^-1 r; a warp per body.
extern "C" __global__ void __launch_bounds__(BLOCK)
descend(int first, int count, const int* done, const int* island, const double* a, const double* b, double* __restrict__ z,
        const double* __restrict__ w, double* __restrict__ p, double* __restrict__ q, double* __restrict__ x,
        double* __restrict__ r, const double* __restrict__ inverse, int has_inverse) {
    __shared__ Shares shares[WARPS];
    const int warp = threadIdx.x / 32;
    const int item = blockIdx.x * WARPS + warp;
    if (item >= count) return;
    const int i = first + item;
    const double a_i = a[island[i]], b_i = b[island[i]];
    if (done[i] != 0 || a_i == 0.0) return;
    const Lane lane(threadIdx.x);
    Tile tile;
    if (has_inverse != 0) tile = load_tile(inverse, i, lane);
    const size_t at = 12 * size_t(i) + lane.index;
    double rest = 0.0;
    if (lane.index < 12) {
        const double direction = z[at] + b_i * p[at], change = w[at] + b_i * q[at];
        rest = r[at] - a_i * change;
        p[at] = direction;
        q[at] = change;
        x[at] += a_i * direction;
        r[at] = rest;
    }
    if (has_inverse == 0) return;
    double part_of_rest[3];
    for (int m = 0; m < 3; ++m) part_of_rest[m] = __shfl_sync(ALL, rest, lane.row + 4 * m);
    Partial part;
    part.add_transposed(tile, part_of_rest);
    const double v = collect(part, shares[warp], lane);
    if (lane.index < 12) z[at] = v;
}
