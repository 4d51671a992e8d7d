// Access to the neighbor list; see ListView.
#pragma once
#include "galamost/state.cuh"

// Returns the offset of entry k of particle i in the list.
__device__ __forceinline__ u64 list_offset(const ListView& list, u32 i, u32 k) {
    // 32 words hold `team` entries each of 32/team particles; team is a power of two
    const u32 shift = 31u - u32(__clz(int(list.team))), particles = 5u - shift;
    return (u64(i >> particles) * (list.capacity >> shift) + (k >> shift)) * 32u +
           ((i & ((1u << particles) - 1u)) << shift) + (k & (list.team - 1u));
}

// Returns neighbor k of particle i, k < list.count[i].
__device__ __forceinline__ u32 neighbor(const ListView& list, u32 i, u32 k) {
    return list.index[list_offset(list, i, k)];
}

