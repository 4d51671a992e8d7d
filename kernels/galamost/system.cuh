// Small kernels of the step loop.
#pragma once
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"
#include "galamost/virial.cuh"

// Sets forces to 0, if no pair loop initializes them.
extern "C" __global__ void clear_forces(StateView s) {
    await_launches();
    if (s.globals->halt) return;
    const u32 i = own_begin(s) + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= own_end(s)) return;
    s.force[i] = {real(0), real(0), real(0), real(0)};
    if (s.torque) {
        for (u32 k = 0; k < 3u; ++k) s.torque[3u * i + k] = real(0);
    }
    if (s.virial) {
        for (u32 k = 0; k < 6u; ++k) s.virial[6u * i + k] = real(0);
    }
}

// Scales positions with the box in double precision; fixed-point positions are relative to the box. With several ranks, the
// others write the positions of their particles, which they have scaled.
extern "C" __global__ void scale_positions(StateView s) {
#ifdef GALAMOST_DOUBLE
    Globals* g = s.globals;
    if (g->halt) return;
    const u32 i = own_begin(s) + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= own_end(s)) return;
    PosType p = s.pos_type[i];
    p.x *= g->scale[0];
    p.y *= g->scale[1];
    p.z *= g->scale[2];
    s.pos_type[i] = p;
#endif
}

// Resets the scale factors after all positions are scaled.
extern "C" __global__ void end_scaling(Globals* g) {
    if (g->halt) return;
    for (int k = 0; k < 3; ++k) g->scale[k] = 1.0;
}

// Adds the virials of all components, for barostats.
extern "C" __global__ void total_virial(TotalVirialArgs a) {
    await_launches();
    if (!a.globals->halt) take_virial(a.globals, a.virial, a.words, a.ranks, a.others, a.n_others);
}

// Begins the next step, if no integrator's phase does.
extern "C" __global__ void next_step(Globals* g) {
    await_launches();
    if (!g->halt) begin_next_step(g);
}

// Returns the rotational kinetic energy of particle i: the sum of L'_k^2 / (2 I_k) with L' in the body frame.
__device__ __forceinline__ double rotational_energy(const StateView& s, u32 i) {
    const Vec4 v = s.quaternion[i];
    const Quaternion<double> q = {v.x, v.y, v.z, v.w};
    const real *l = s.angular_momentum + 3u * i, *inertia = s.inertia + 3u * i;
    const Vec3<double> body = device_rotate_back(q, Vec3<double>{l[0], l[1], l[2]});
    const double of[3] = {body.x, body.y, body.z};
    double energy = 0.0;
    for (int k = 0; k < 3; ++k) {
        if (inertia[k] > real(0)) energy += 0.5 * of[k] * of[k] / double(inertia[k]);
    }
    return energy;
}

// Computes the sums of m v v (xx, xy, xz, yy, yz, zz) and m v, and the rotational kinetic energy, in f64.
extern "C" __global__ void motion_sums(StateView s, double* partial, u32* counter, double* result) {
    __shared__ double memory[10 * 32];
    __shared__ u32 flag;
    double sums[10] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
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
        if (s.inertia) sums[9] += rotational_energy(s, i);
    }
    block_sum(sums, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 10; ++k) partial[blockIdx.x * 10u + k] = sums[k];
    }
    if (last_block(counter, &flag)) {
        double total[10];
        sum_partials(partial, gridDim.x, total, memory);
        if (threadIdx.x == 0) {
            for (int k = 0; k < 10; ++k) result[k] = total[k];
        }
    }
}
