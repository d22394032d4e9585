// Conjugate gradients: kernels of cuda_kernels/linear/krylov.py. y = H x by one warp per body, and the updates of the vectors.

#include "tile.cuh"

namespace {

// Calls `visit` with the pairs of the coupling at some addresses that have body i as row (side 0) or as column (side 1), and with
// their column; merged pairs are skipped.
template <class Visit>
__device__ inline void each_pair(const Address* at, int i, int side, const Lane& lane, Visit visit) {
    const int *starts = at[STARTS].integers, *entries = at[ENTRIES].integers, *merged = at[MERGED].integers;
    const int* column = at[COLUMN].integers;
    const int end = starts[i + 1];
    for (int begin = starts[i]; begin < end; begin += 32) {
        // 32 entries and their bodies are looked up at once: no block waits for the index of the one before
        int k = -1, body = 0;
        if (begin + lane.index < end) {
            const int entry = entries[begin + lane.index];
            if (entry % 2 == side && (merged == nullptr || merged[entry / 2] == 0)) {
                k = entry / 2;
                body = column[k];
            }
        }
        for (unsigned left = __ballot_sync(ALL, k >= 0); left != 0; left &= left - 1) {
            const int source = __ffs(left) - 1;
            const int pair = __shfl_sync(ALL, k, source);
            const int other = __shfl_sync(ALL, body, source);
            visit(pair, other);
        }
    }
}

}  // namespace

// y of one body by the blocks of its row, and the products of the transposed blocks with its x.
extern "C" __global__ void __launch_bounds__(BLOCK)
multiply_rows(int first, int count, const int* done, const double* __restrict__ diagonal, int number,
              const Address* addresses, const double* __restrict__ x, double* __restrict__ y) {
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
    for (int c = 0; c < number; ++c) {
        const Address* at = addresses + COLUMNS * c;
        each_pair(at, i, 0, lane, [&](int k, int body) {
            if (done[body] != 0) return;
            const Tile tile = load_tile(at[BLOCKS].numbers, k, lane);
            part.add(tile, pair_of(x, body, lane.pair));
            Partial transposed;
            transposed.add_transposed(tile, own, lane);
            const double2 sum = over_rows(transposed.column);
            if (lane.index < 6) reinterpret_cast<double2*>(at[PARTS].results + 12 * size_t(k))[lane.index] = sum;
        });
    }
    const double v = collect(part, shares[warp], lane);
    if (lane.index < 12) y[12 * size_t(i) + lane.index] = v;
}

// Adds the products of the transposed blocks to y of one body; its shares of r . x and x . y.
extern "C" __global__ void __launch_bounds__(BLOCK)
add_columns(int first, int count, const int* done, int number, const Address* addresses, const double* __restrict__ x,
            const double* __restrict__ r, double* __restrict__ y, double2* __restrict__ products) {
    const int item = blockIdx.x * WARPS + threadIdx.x / 32;
    if (item >= count) return;
    const int i = first + item;
    if (done[i] != 0) return;
    const Lane lane(threadIdx.x);
    const bool holds = lane.index < 12;
    const size_t at = 12 * size_t(i) + lane.index;
    double v = holds ? y[at] : 0.0;
    for (int c = 0; c < number; ++c) {
        const double* parts = addresses[COLUMNS * c + PARTS].numbers;
        each_pair(addresses + COLUMNS * c, i, 1, lane, [&](int k, int) {
            if (holds) v += parts[12 * size_t(k) + lane.index];
        });
    }
    double2 dots = {0.0, 0.0};
    if (holds) {
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
