// The inverse blocks of a factor without others: CUDA C++ version of `invert_pivots` in cuda_kernels/linear/factor.py.

#include "factor.cuh"

namespace {

using Staged = double2[72];
constexpr int GROUPS = BLOCK / 16;

}  // namespace

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
