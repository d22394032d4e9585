// Sums of contact terms per run: CUDA C++ version of `sum_elements` in cuda_kernels/contact/elements.py; a warp per run.
//
// Every lane sums its entries of the three blocks of a run in registers, item by item. Entry (r, q) of K (x) Ya Yb^T is
// Ya[entry of r] K[coordinate of r, coordinate of q] Yb[entry of q]; what an item says is read by all lanes at once.

#include "tile.cuh"

struct Elements {
    const int* item;
    const int* part;
    const double* f;
    const double* K;
    const double* Y_i;
    const double* Y_j;
    const int* kind;
    const double* vectors;
    const double* numbers;
};

struct Runs {
    const int* pair;
    const int* begin;
    const int* end;
};

struct PairSums {
    double* g_i;
    double* g_j;
    double* H_ii;
    double* H_ij;
    double* H_jj;
};

namespace {

// As cuda_kernels/contact/elements.py, surfaces.py and contact.py have them.
constexpr int TURNING = 1, MOLLIFIED = 2;
constexpr int EDGE_OF_I = 1, EDGES = 3, FACE_OF_I = 4;
constexpr double PARALLEL = 1.0e-3;

// Where number q of a state stands: the coordinate, and the entry of the homogeneous rest point.
struct Place {
    int coordinate, entry;

    __device__ explicit Place(int q) : coordinate(q < 3 ? q : (q - 3) / 3), entry(q < 3 ? 0 : 1 + (q - 3) % 3) {}
};

// Homogeneous coordinates of a direction: (0, v).
struct Direction {
    const double* v;

    __device__ double operator[](int entry) const { return entry == 0 ? 0.0 : v[entry - 1]; }
};

// scale a b^T.
struct Outer {
    double scale;
    const double *a, *b;

    __device__ double operator()(int r, int c) const { return scale * (a[r] * b[c]); }
};

// scale (s 1 + t a b^T).
struct Shifted {
    double scale, s, t;
    const double *a, *b;

    __device__ double operator()(int r, int c) const { return scale * ((r == c ? s : 0.0) + t * (a[r] * b[c])); }
};

struct Stiffness {
    const double* K;

    __device__ double operator()(int r, int c) const { return K[3 * r + c]; }
};

// sum += sign K (x) Ya Yb^T.
template <class Matrix, class Left, class Right>
__device__ inline void add(Tile& sum, double sign, const Matrix& K, const Left& Ya, const Right& Yb, const Lane& lane) {
    const Place x(2 * lane.pair), y(2 * lane.pair + 1);
    const double Yx = sign * Yb[x.entry], Yy = sign * Yb[y.entry];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const Place r(lane.row + 4 * i);
        const double left = Ya[r.entry];
        sum.at[i].x += left * (K(r.coordinate, x.coordinate) * Yx);
        sum.at[i].y += left * (K(r.coordinate, y.coordinate) * Yy);
    }
}

// scale (s a - t b).
struct Push {
    double scale, s, t;
    const double *a, *b;

    __device__ double operator[](int c) const { return scale * (s * a[c] - t * b[c]); }
};

// sum += sign f Y^T, the lane's pair of it.
template <class Force, class Point>
__device__ inline void add(double2& sum, double sign, const Force& f, const Point& Y, const Lane& lane) {
    const Place x(2 * lane.pair), y(2 * lane.pair + 1);
    sum.x += sign * (f[x.coordinate] * Y[x.entry]);
    sum.y += sign * (f[y.coordinate] * Y[y.entry]);
}

__device__ inline double dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

}  // namespace

// Blocks and gradients of one run; twelve items per run. counts = [pairs, runs].
extern "C" __global__ void __launch_bounds__(BLOCK, 3)
sum_elements(int first, int items, Elements elements, Runs runs, const int* counts, PairSums out) {
    const int item = blockIdx.x * WARPS + threadIdx.x / 32;
    if (item >= items / 12) return;
    const int t = first / 12 + item;
    if (t >= counts[1]) return;
    const Lane lane(threadIdx.x);
    Tile ii = {}, ij = {}, jj = {};
    double2 g_i = {0.0, 0.0}, g_j = {0.0, 0.0};
    const int end = runs.end[t];
    for (int e = runs.begin[t]; e < end; ++e) {
        const Stiffness K{elements.K + 9 * size_t(e)};
        const double *Y_i = elements.Y_i + 4 * size_t(e), *Y_j = elements.Y_j + 4 * size_t(e);
        const double* f = elements.f + 3 * size_t(e);
        add(ii, 1.0, K, Y_i, Y_i, lane);
        add(ij, -1.0, K, Y_i, Y_j, lane);
        add(jj, 1.0, K, Y_j, Y_j, lane);
        add(g_i, 1.0, f, Y_i, lane);
        add(g_j, -1.0, f, Y_j, lane);
        const int* kind = elements.kind + 3 * size_t(e);
        const double *v = elements.vectors + 12 * size_t(e), *numbers = elements.numbers + 2 * size_t(e);
        if (kind[0] == TURNING) {
            const Direction Y0{v + 3}, Y1{v + 6};
            Outer N{numbers[0], v, v};
            if (kind[1] == EDGES) {
                const double cosine = numbers[1];
                N.scale /= fmax(1.0 - cosine * cosine, PARALLEL);
                add(ii, 1.0, N, Y0, Y0, lane);
                add(ij, -cosine, N, Y0, Y1, lane);
                add(jj, 1.0, N, Y1, Y1, lane);
            } else {
                // two branches: a reference to the block that takes it would put both blocks in memory
                if (kind[1] == EDGE_OF_I || kind[1] == FACE_OF_I) {
                    add(ii, 1.0, N, Y0, Y0, lane);
                    if (kind[2] == 2) add(ii, 1.0, N, Y1, Y1, lane);
                } else {
                    add(jj, 1.0, N, Y0, Y0, lane);
                    if (kind[2] == 2) add(jj, 1.0, N, Y1, Y1, lane);
                }
            }
        } else if (kind[0] == MOLLIFIED) {
            const double *ea = v, *eb = v + 3;
            const Direction Ya{v + 6}, Yb{v + 9};
            const double q = 2.0 * numbers[0], aa = dot(ea, ea), ab = dot(ea, eb), bb = dot(eb, eb);
            add(ii, 1.0, Shifted{q, bb, -1.0, eb, eb}, Ya, Ya, lane);
            add(ij, 1.0, Shifted{q, -ab, 1.0, ea, eb}, Ya, Yb, lane);
            add(jj, 1.0, Shifted{q, aa, -1.0, ea, ea}, Yb, Yb, lane);
            add(g_i, 1.0, Push{q, bb, ab, ea, eb}, Ya, lane);
            add(g_j, 1.0, Push{q, aa, ab, eb, ea}, Yb, lane);
        }
    }
    store_tile(out.H_ii, t, lane, ii);
    store_tile(out.H_ij, t, lane, ij);
    store_tile(out.H_jj, t, lane, jj);
    if (lane.index < 6) {
        reinterpret_cast<double2*>(out.g_i + 12 * size_t(t))[lane.pair] = g_i;
        reinterpret_cast<double2*>(out.g_j + 12 * size_t(t))[lane.pair] = g_j;
    }
}
