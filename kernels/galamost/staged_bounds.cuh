// Bounding boxes of consecutive particles, with which blocks find their halo.
#pragma once
#include "galamost/list.cuh"
#include "galamost/staged.cuh"
#ifdef GALAMOST_RANKS
#include "galamost/ranks_barrier.cuh"
#endif

struct Interval3 {
    int low[3], high[3];
};

// Minimum and maximum over a warp.
__device__ __forceinline__ void warp_bounds(Interval3& b) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        b.low[k] = __reduce_min_sync(0xffffffffu, b.low[k]);
        b.high[k] = __reduce_max_sync(0xffffffffu, b.high[k]);
    }
}

__device__ __forceinline__ int middle(int low, int high) { return (low >> 1) + (high >> 1); }

// Half the length of an interval, rounded up.
__device__ __forceinline__ float half_length(int low, int high, float unit) {
    return (0.5f * float(u32(high) - u32(low)) + 4.0f) * unit * 1.00001f;
}

__device__ __forceinline__ void store_bounds(const Bounds& bounds, u32 k, const Interval3& b, const int4& origin,
                                             const BoxScale& scale) {
    bounds.center[k] = {int(u32(origin.x) + u32(middle(b.low[0], b.high[0]))),
                        int(u32(origin.y) + u32(middle(b.low[1], b.high[1]))),
                        int(u32(origin.z) + u32(middle(b.low[2], b.high[2]))), 0};
    bounds.half[k] = {half_length(b.low[0], b.high[0], scale.unit[0]), half_length(b.low[1], b.high[1], scale.unit[1]),
                      half_length(b.low[2], b.high[2], scale.unit[2]), 0.0f};
}

// Returns the position of a particle; with several ranks (GPUs), that of another rank from its memory.
__device__ __forceinline__ int4 load_position(const StagedListArgs& a, u32 i) {
#if defined(GALAMOST_RANKS) && !defined(GALAMOST_DISTRIBUTED)
    if (a.ranks && (i < a.state.own_begin || i >= a.state.own_end)) {
        return __ldg(pointer<const int4>(a.ranks->positions[rank_of(a.ranks->ranges, i)]) + i);
    }
#endif
    return __ldg(reinterpret_cast<const int4*>(a.state.pos_type) + i);
}

// Stores the box of a tile or a group of tiles; with several ranks of one process, in the memory of all.
template <bool OF_TILES>
__device__ __forceinline__ void store_for_all(const StagedListArgs& a, u32 k, const Interval3& b, const int4& origin, const BoxScale& scale) {
#ifdef GALAMOST_RANKS
    if (a.ranks) {
        const RankListArgs& r = *a.ranks;
        for (u32 to = 0; to < r.copies; ++to) {
            store_bounds((OF_TILES ? r.tiles : r.groups)[to], k, b, origin, scale);
        }
        return;
    }
#endif
    store_bounds(OF_TILES ? a.list.tiles : a.list.groups, k, b, origin, scale);
}

// Bounds the tiles and groups of this rank; a block of threads handles a group. Also notes the positions of the rebuild.
__device__ __forceinline__ void bound_group(const StagedListArgs& a, u32 group, Interval3* of_tiles) {
    const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, first = group * blockDim.x, i = first + threadIdx.x;
    const u32 last = a.state.n_local - 1u;
    const BoxScale scale = make_scale(a.state.globals);
    const int4 p = load_position(a, i < last ? i : last), origin = load_position(a, first);
    if (i <= last) reinterpret_cast<int4*>(a.state.pos_at_build)[i] = p;
    if (blockIdx.x == 0u && threadIdx.x < 8u) a.list.statistics[threadIdx.x] = 0u;
    const int r[3] = {difference_of(p.x, origin.x), difference_of(p.y, origin.y), difference_of(p.z, origin.z)};
    Interval3 b = {{r[0], r[1], r[2]}, {r[0], r[1], r[2]}};
    warp_bounds(b);
    const u32 tile = group * LEVEL + warp;
    if (lane == 0u) {
        if (tile < a.list.tiles.count) store_for_all<true>(a, tile, b, origin, scale);
        of_tiles[warp] = b;
    }
    __syncthreads();
    if (warp != 0u) return;
    b = of_tiles[lane];
    warp_bounds(b);
    if (lane == 0u) store_for_all<false>(a, group, b, origin, scale);
}

// A group at the end of a range belongs to two ranks, which find the same boxes. Ranks meet after this kernel.
extern "C" __global__ void __launch_bounds__(1024) bound_tiles(StagedListArgs a) {
    await_launches();
    __shared__ Interval3 of_tiles[LEVEL];
    if (a.state.globals->halt) return;
    u32 group = blockIdx.x;
#ifdef GALAMOST_RANKS
    if (a.ranks) group += a.state.own_begin / blockDim.x;
#endif
    bound_group(a, group, of_tiles);
}

// Bounds groups of groups, a warp for each.
extern "C" __global__ void __launch_bounds__(128) bound_tops(StagedListArgs a) {
    await_launches();
    if (a.state.globals->halt) return;
    const u32 lane = threadIdx.x & 31u, top = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    if (top >= a.list.tops.count) return;
    const Bounds& groups = a.list.groups;
    const u32 last = groups.count - 1u, own = top * LEVEL + lane, group = own < last ? own : last;
    const int4 origin = groups.center[top * LEVEL], c = groups.center[group];
    const float4 half = groups.half[group];
    const BoxScale scale = make_scale(a.state.globals);
    const float h[3] = {half.x, half.y, half.z};
    const int d[3] = {difference_of(c.x, origin.x), difference_of(c.y, origin.y), difference_of(c.z, origin.z)};
    int center[3];
    float length[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const float x = float(d[k]) * scale.unit[k];
        float low = x - h[k], high = x + h[k];
        for (u32 m = 16u; m > 0u; m >>= 1) {
            low = fminf(low, __shfl_xor_sync(0xffffffffu, low, m));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, m));
        }
        // 2^12 units cover the rounding of sums
        center[k] = int((long long)(0.5f * (low + high) / scale.unit[k]));
        length[k] = (0.5f * (high - low) + 4096.0f * scale.unit[k]) * 1.00001f;
    }
    if (lane == 0u) {
        a.list.tops.center[top] = {int(u32(origin.x) + u32(center[0])), int(u32(origin.y) + u32(center[1])),
                                   int(u32(origin.z) + u32(center[2])), 0};
        a.list.tops.half[top] = {length[0], length[1], length[2], 0.0f};
    }
}
