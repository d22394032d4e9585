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

__device__ inline double quotient(const double* a, const double* b, int island) {
    return b[island] > 0.0 ? a[island] / b[island] : 0.0;
}

__device__ inline double2 axpy(double a, double2 x, double2 y) { return {y.x + a * x.x, y.y + a * x.y}; }

}  // namespace

// y = H x of one body and its share of x . y.
extern "C" __global__ void __launch_bounds__(BLOCK)
multiply(int first, int count, const int* done, const double* __restrict__ diagonal, int number,
         const Address* addresses, const double* __restrict__ x, double* __restrict__ y, double* __restrict__ product) {
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
    double dot = 0.0;
    if (lane.index < 12) {
        y[12 * size_t(i) + lane.index] = v;
        dot = own[lane.index] * v;
    }
    dot = sum_of_16(dot);
    if (lane.index == 0) product[i] = dot;
}

// x += a p, r -= a q with a = rz / pq of the body's island; a thread per pair of numbers.
extern "C" __global__ void __launch_bounds__(BLOCK)
descend(int first, int count, const int* done, const int* island, const double* rz, const double* pq,
        const double* __restrict__ p, const double* __restrict__ q, double* __restrict__ x, double* __restrict__ r) {
    const int t = blockIdx.x * BLOCK + threadIdx.x;
    if (t >= 6 * count) return;
    const int i = first + t / 6;
    if (done[i] != 0) return;
    const size_t at = 6 * size_t(first) + t;
    const double a = quotient(rz, pq, island[i]);
    double2& x_t = reinterpret_cast<double2*>(x)[at];
    double2& r_t = reinterpret_cast<double2*>(r)[at];
    x_t = axpy(a, reinterpret_cast<const double2*>(p)[at], x_t);
    r_t = axpy(-a, reinterpret_cast<const double2*>(q)[at], r_t);
}

// The same, then z = M^-1 r by inverse blocks, and r . z; a warp per body.
extern "C" __global__ void __launch_bounds__(BLOCK)
descend_and_divide(int first, int count, const int* done, const int* island, const double* rz, const double* pq,
                   const double* __restrict__ p, const double* __restrict__ q, double* __restrict__ x,
                   double* __restrict__ r, const double* __restrict__ inverse, double* __restrict__ z,
                   double* __restrict__ product) {
    __shared__ Shares shares[WARPS];
    const int warp = threadIdx.x / 32;
    const int item = blockIdx.x * WARPS + warp;
    if (item >= count) return;
    const int i = first + item;
    if (done[i] != 0) return;
    const Lane lane(threadIdx.x);
    const Tile tile = load_tile(inverse, i, lane);
    const double a = quotient(rz, pq, island[i]);
    const size_t at = 12 * size_t(i) + lane.index;
    double rest = 0.0;
    if (lane.index < 12) {
        x[at] += a * p[at];
        rest = r[at] - a * q[at];
        r[at] = rest;
    }
    double w[3];
    for (int m = 0; m < 3; ++m) w[m] = __shfl_sync(ALL, rest, lane.row + 4 * m);
    Partial part;
    part.add_transposed(tile, w);
    const double v = collect(part, shares[warp], lane);
    if (lane.index < 12) z[at] = v;
    const double dot = sum_of_16(rest * v);
    if (lane.index == 0) product[i] = dot;
}

// p = z + (fresh / stale) p of the body's island; a thread per pair of numbers.
extern "C" __global__ void __launch_bounds__(BLOCK)
turn(int first, int count, const int* done, const int* island, const double* fresh, const double* stale,
     const double* __restrict__ z, double* __restrict__ p) {
    const int t = blockIdx.x * BLOCK + threadIdx.x;
    if (t >= 6 * count) return;
    const int i = first + t / 6;
    if (done[i] != 0) return;
    const size_t at = 6 * size_t(first) + t;
    double2& p_t = reinterpret_cast<double2*>(p)[at];
    p_t = axpy(quotient(fresh, stale, island[i]), p_t, reinterpret_cast<const double2*>(z)[at]);
}
