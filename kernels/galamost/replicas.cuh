// Kernels of launches that several replicas share. A replica takes part in a condition if it is active outside of it and
// wants what the condition asks for. The condition holds if any replica takes part.
#pragma once
#include "galamost/state.cuh"

// Sets memory to 0.
extern "C" __global__ void clear_memory(u32* words, u64 bytes) {
    const u64 first = u64(blockIdx.x) * blockDim.x + threadIdx.x, threads = u64(gridDim.x) * blockDim.x;
    for (u64 k = first; k < bytes / 4ull; k += threads) words[k] = 0u;
    const u64 end = bytes / 4ull * 4ull + first;
    if (first < 4ull && end < bytes) reinterpret_cast<unsigned char*>(words)[end] = 0u;
}

// Activates the replicas that request a rebuild. Runs as one block; `any` are globals that only hold the answer.
extern "C" __global__ void find_rebuilds(Globals* const* globals, const u32* outside, u32* inside, Globals* any, u32 replicas) {
    u32 found = 0u;
    for (u32 r = threadIdx.x; r < replicas; r += blockDim.x) {
        const Globals* g = globals[r];
        inside[r] = outside[r] && g && g->rebuild && !g->halt ? 1u : 0u;
        found |= inside[r];
    }
    found = u32(__syncthreads_or(int(found)));
    if (threadIdx.x == 0u) any->rebuild = found;
}

// Begins a loop for the replicas that are active outside of it.
extern "C" __global__ void begin_loop(const u32* outside, u32* inside, u32 replicas) {
    for (u32 r = threadIdx.x; r < replicas; r += blockDim.x) inside[r] = outside[r];
}

// Ends the loop of the replicas whose word is 0 or that have halted. Runs as one block.
extern "C" __global__ void find_unfinished(Globals* const* globals, const u32* const* words, u32* inside, Globals* any, u32 replicas) {
    u32 found = 0u;
    for (u32 r = threadIdx.x; r < replicas; r += blockDim.x) {
        if (inside[r] && (*words[r] == 0u || globals[r]->halt)) inside[r] = 0u;
        found |= inside[r];
    }
    found = u32(__syncthreads_or(int(found)));
    if (threadIdx.x == 0u) any->rebuild = found;
}
