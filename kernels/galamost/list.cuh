// Reading the neighbour list; see ListView.
#pragma once
#include "galamost/state.cuh"

// Place of entry k of particle i in the list.
__device__ __forceinline__ u64 list_place(const ListView& list, u32 i, u32 k) {
    const u32 per_warp = 32u / list.team;
    return (u64(i / per_warp) * (list.capacity / list.team) + k / list.team) * 32u + (i % per_warp) * list.team +
           k % list.team;
}

// Neighbour k of particle i, k < list.count[i].
__device__ __forceinline__ u32 neighbour(const ListView& list, u32 i, u32 k) { return list.index[list_place(list, i, k)]; }
