// Where the blocks of a Cholesky factor are, as cuda_kernels/linear/factor_rows.py says; members in the same order.

#pragma once

#include "tile.cuh"

struct Pattern {
    const int* body;
    const int* starts;
    const int* row;
    const int* column;
    const int* ups;
    const int* up_row;
    const int* up_slot;
    const int* ranges;
};

struct Factor {
    double* rows;
    double* entries;
    int* failed;
    int* any_failed;
    const int* done;
};
