#include "galamost/reduce.cuh"

__device__ __forceinline__ double number(const void* array, u32 single, u64 k) {
    return single ? double(static_cast<const float*>(array)[k]) : static_cast<const double*>(array)[k];
}

// Ends the run because of a number that is NaN or infinite; `kind` is the index of the message in `PythonForce::faults`.
__device__ __forceinline__ void undefined(const PythonForceArgs& a, u32 tag, u32 kind) {
    raise_fault(a.state.globals, FaultKind::Component, a.component, tag, kind);
}

// Adds forces and, with `full`, energies that are in tag order; the energies of the blocks are added in a fixed order.
extern "C" __global__ void add_python_force(PythonForceArgs a) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool full = a.full && a.energies;
    double sums[1] = {0.0};
    if (i < s.n_local && in_group(s, i, a.group)) {
        const u64 tag = s.tag[i];
        double given[3];
        for (u32 k = 0; k < 3; ++k) given[k] = number(a.forces, a.single_forces, 3 * tag + k);
        // also of particles that no integrator moves
        if (!isfinite(given[0]) || !isfinite(given[1]) || !isfinite(given[2])) undefined(a, u32(tag), 0u);
        if (a.energies && !isfinite(number(a.energies, a.single_energies, tag))) undefined(a, u32(tag), 1u);
        Vec4 f = s.force[i];
        f.x += real(given[0]);
        f.y += real(given[1]);
        f.z += real(given[2]);
        if (full) {
            sums[0] = number(a.energies, a.single_energies, tag);
            f.w += real(sums[0]);
        }
        s.force[i] = f;
    }
    if (!a.full) return;
    __shared__ double memory[32];
    __shared__ u32 flag;
    block_sum(sums, memory);
    if (threadIdx.x == 0) a.partial[blockIdx.x] = sums[0];
    if (last_block(a.counter, &flag)) {
        double total[1];
        sum_partials(a.partial, gridDim.x, total, memory);
        if (threadIdx.x == 0) {
            a.sums->energy = total[0];
            for (u32 k = 0; a.virial && k < 6; ++k) {
                const double w = number(a.virial, a.single_virial, k);
                if (!isfinite(w)) undefined(a, NO_TAG, 2u);
                a.sums->virial[k] = w;
            }
        }
    }
}
