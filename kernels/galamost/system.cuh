// Small kernels of the step loop.
#pragma once
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

// Forces start at 0 where no pair loop writes them first.
extern "C" __global__ void clear_forces(StateView s) {
    if (s.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < s.n_local) s.force[i] = {real(0), real(0), real(0), real(0)};
}

// The next step begins, where no integrator's phase does it.
extern "C" __global__ void next_step(Globals* g) {
    if (!g->halt) begin_next_step(g);
}

// Sums of m v v (xx, xy, xz, yy, yz, zz) and m v, in f64.
extern "C" __global__ void motion_sums(StateView s, double* partial, u32* counter, double* result) {
    __shared__ double memory[9 * 32];
    __shared__ u32 flag;
    double sums[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < s.n_local; i += gridDim.x * blockDim.x) {
        const Vec4 v = s.velocity_mass[i];
        const double x = v.x, y = v.y, z = v.z, m = v.w;
        sums[0] += m * x * x;
        sums[1] += m * x * y;
        sums[2] += m * x * z;
        sums[3] += m * y * y;
        sums[4] += m * y * z;
        sums[5] += m * z * z;
        sums[6] += m * x;
        sums[7] += m * y;
        sums[8] += m * z;
    }
    block_sum(sums, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 9; ++k) partial[blockIdx.x * 9u + k] = sums[k];
    }
    if (last_block(counter, &flag)) {
        double total[9];
        sum_partials(partial, gridDim.x, total, memory);
        if (threadIdx.x == 0) {
            for (int k = 0; k < 9; ++k) result[k] = total[k];
        }
    }
}
