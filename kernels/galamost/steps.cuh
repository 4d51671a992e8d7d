// Many steps in one kernel, for systems so small that a launch takes as long as what it launches. Its blocks are all on the device
// together; between parts of a step that need each other's results they meet. The engine writes the kernel itself, which calls the same
// functions on the same particles, in blocks of the same size, as the kernels of single steps do, so that every bit is the same.
#pragma once
#include "galamost/pair.cuh"
#include "galamost/angles.cuh"
#include "galamost/integrate.cuh"

// What the kernel goes by, kept from one launch to the next.
struct StepsControl {
    // steps that are still to be done
    u32 left;
    // the step under way has moved its particles
    u32 begun;
    // blocks that are at the next meeting, all of which are 0 outside of kernels
    u32 arrived;
    // number of meetings so far, and in the two lowest bits what the last one decided
    u32 meetings;
};

static constexpr u32 STOP_HALT = 1u, STOP_REBUILD = 2u;

// Word of a control that other blocks change.
__device__ __forceinline__ u32 now(const u32* word) { return *static_cast<const volatile u32*>(word); }

// Waits for all blocks; what they wrote before is visible to all of them then. The block that comes last calls `action` with all its
// threads before the others go on. Every block gets the same answer: whether the run has to stop, or the list to be built anew.
template <class Action> __device__ __forceinline__ u32 meet(StepsControl* control, const Globals* g, const Action& action) {
    __shared__ u32 shared[2];
    u32 before = 0u;
    __syncthreads();
    if (threadIdx.x == 0u) {
        // it cannot change before this block has arrived
        before = now(&control->meetings);
        __threadfence();
        shared[0] = atomicAdd(&control->arrived, 1u) == gridDim.x - 1u ? 1u : 0u;
    }
    __syncthreads();
    if (shared[0]) {
        __threadfence();
        action();
        __syncthreads();
        if (threadIdx.x == 0u) {
            const u32 stop = (now(&g->halt) ? STOP_HALT : 0u) | (now(&g->rebuild) ? STOP_REBUILD : 0u);
            control->arrived = 0u;
            __threadfence();
            *static_cast<volatile u32*>(&control->meetings) = ((before >> 2) + 1u) << 2 | stop;
        }
    }
    if (threadIdx.x == 0u) {
        u32 word;
        do word = now(&control->meetings);
        while (word >> 2 == before >> 2);
        __threadfence();
        shared[1] = word & 3u;
    }
    __syncthreads();
    return shared[1];
}

// The pair loop, by blocks that go over all particles.
template <class Parts, int PARTS, u32 TEAM> __device__ __forceinline__ void pair_all(const PairArgs& a) {
    Parts parts(a);
    const u32 threads = a.state.n_local * TEAM;
    for (u32 first = blockIdx.x * blockDim.x; first < threads; first += gridDim.x * blockDim.x) {
        Accumulator<PARTS, false> sum;
        pair_rows<Parts, PARTS, TEAM, false>(a, parts, first + threadIdx.x, sum);
    }
}

// Blocks of particles.
__device__ __forceinline__ u32 particle_blocks(const StateView& s) { return (s.n_local + blockDim.x - 1u) / blockDim.x; }

// Does a function of a block's number for all blocks of particles, each particle always by the same thread.
template <class F> __device__ __forceinline__ void for_blocks(const StateView& s, const F& f) {
    const u32 blocks = particle_blocks(s);
    for (u32 block = blockIdx.x; block < blocks; block += gridDim.x) f(block);
}
