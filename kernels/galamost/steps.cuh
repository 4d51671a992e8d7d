// Many time steps in one persistent kernel, for systems so small that a launch takes as long as the work it starts.
//
// All blocks are resident at once. A grid barrier separates phases that need each other's results. The engine generates
// the kernel itself. It calls the same functions as the kernels of single steps do, and adds in the same order, so every bit is the same.
#pragma once
#include "galamost/pair.cuh"
#include "galamost/angles.cuh"
#include "galamost/integrate.cuh"
#include "galamost/grid_barrier.cuh"

// The pair loop as a grid-stride loop over all particles. Returns the requested stop flag.
template <class PairTerms, int TERMS, u32 TEAM, u32 SUMS, u32 THREADS> __device__ __forceinline__ u32 pair_loop_all(const PairArgs& a) {
    PairTerms terms(a);
    const u32 threads = a.state.n_local * TEAM;
    u32 requested = 0u;
    VirialSum<TEAM> virial;
    for (u32 first = blockIdx.x * blockDim.x; first < threads; first += gridDim.x * blockDim.x) {
        Accumulator<TERMS, SUMS> sum;
        const u32 thread = first + threadIdx.x;
        pair_rows<PairTerms, TERMS, TEAM, SUMS, THREADS>(a, terms, thread, sum);
        if constexpr (SUMS == DIAGONAL) requested |= add_pair_virial(a, sum, thread / TEAM, thread < threads, virial);
    }
    if constexpr (SUMS == DIAGONAL) virial.finish(a.virial);
    return requested;
}

// Calls `f(i)` for the particles of this block, whose forces pair_loop_all has computed in it, from ROWS rows at a time. The same
// thread always handles the same particle, and the threads of a warp 32 consecutive ones. All threads call `f` equally often, with numbers
// past the end if no particle is left: a loop that threads leave at different times made steps up to 9 % slower on an H200.
template <u32 ROWS, class F> __device__ __forceinline__ void for_each_particle(const StateView& s, const F& f) {
    static_assert(ROWS % 32u == 0u, "warps handle consecutive particles");
    const u32 passes = (s.n_local + ROWS - 1u) / ROWS, held = blockDim.x / ROWS;
    for (u32 first = blockIdx.x; first < passes; first += held * gridDim.x) {
        f((first + threadIdx.x / ROWS * gridDim.x) * ROWS + threadIdx.x % ROWS);
    }
}
