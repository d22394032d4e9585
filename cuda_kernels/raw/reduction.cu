// Sums of contact blocks per body pair and body: CUDA C++ version of `join_runs` and `gather_bodies` in cuda_kernels/contact/blocks.py.
// A warp per pair or body: 24 lanes add up blocks, the next six the gradients; every number by one lane, in order.

#include "tile.cuh"

struct PairSums {
    double* g_i;
    double* g_j;
    double* H_ii;
    double* H_ij;
    double* H_jj;
};

namespace {

__device__ inline void add(double2& sum, double2 term) {
    sum.x += term.x;
    sum.y += term.y;
}

__device__ inline void add(Tile& sum, const Tile& term) {
    for (int i = 0; i < 3; ++i) add(sum.at[i], term.at[i]);
}

// Add the blocks begin .. end to block n.
__device__ inline void join(double* blocks, int n, int begin, int end, const Lane& lane) {
    Tile sum = load_tile(blocks, n, lane);
    for (int m = begin; m < end; ++m) add(sum, load_tile(blocks, m, lane));
    store_tile(blocks, n, lane, sum);
}

__device__ inline void join_gradients(double* gradients, int n, int begin, int end, int pair) {
    double2 sum = pair_of(gradients, n, pair);
    for (int m = begin; m < end; ++m) add(sum, pair_of(gradients, m, pair));
    reinterpret_cast<double2*>(gradients + 12 * size_t(n))[pair] = sum;
}

}  // namespace

// Add the further runs of every pair to its first; twelve items per pair. counts = [pairs, runs].
extern "C" __global__ void __launch_bounds__(BLOCK)
join_runs(int first, int items, const int* counts, const int* rest, PairSums out) {
    const int item = blockIdx.x * WARPS + threadIdx.x / 32;
    if (item >= items / 12) return;
    const int n = first / 12 + item, pairs = counts[0];
    if (n >= pairs) return;
    const int begin = pairs + rest[n], end = pairs + rest[n + 1];
    if (begin == end) return;
    const Lane lane(threadIdx.x);
    join(out.H_ii, n, begin, end, lane);
    join(out.H_ij, n, begin, end, lane);
    join(out.H_jj, n, begin, end, lane);
    const int pair = lane.index - 24;
    if (pair >= 0 && pair < 6) {
        join_gradients(out.g_i, n, begin, end, pair);
        join_gradients(out.g_j, n, begin, end, pair);
    }
}

// Add the pairs' shares to the gradient and the block of one body that is not done; twelve items per body.
extern "C" __global__ void __launch_bounds__(BLOCK)
gather_bodies(int first, int items, const int* done, const int* starts, const int* entries, PairSums sums,
              double* gradient, double* diagonal) {
    const int item = blockIdx.x * WARPS + threadIdx.x / 32;
    if (item >= items / 12) return;
    const int b = first / 12 + item;
    const int end = starts[b + 1];
    if (done[b] != 0 || starts[b] == end) return;
    const Lane lane(threadIdx.x);
    const int pair = lane.index - 24;
    const bool adds_gradient = pair >= 0 && pair < 6;
    Tile sum = load_tile(diagonal, b, lane);
    double2 g = {0.0, 0.0};
    for (int begin = starts[b]; begin < end; begin += 32) {
        const int here = min(32, end - begin);
        const int entry = lane.index < here ? entries[begin + lane.index] : 0;
#pragma unroll 2
        for (int m = 0; m < here; ++m) {
            const int e = __shfl_sync(ALL, entry, m);
            const bool is_row = e % 2 == 0;
            add(sum, load_tile(is_row ? sums.H_ii : sums.H_jj, e / 2, lane));
            if (adds_gradient) add(g, pair_of(is_row ? sums.g_i : sums.g_j, e / 2, pair));
        }
    }
    store_tile(diagonal, b, lane, sum);
    if (adds_gradient) {
        double2& target = reinterpret_cast<double2*>(gradient + 12 * size_t(b))[pair];
        add(target, g);
    }
}
