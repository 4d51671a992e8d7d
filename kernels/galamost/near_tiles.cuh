// Tiles that ranks in several processes send each other at a rebuild of a staged list. A rank bounds its own tiles and groups of tiles,
// and gets the boxes of all groups. It sends each other rank those of its tiles that are near one of that rank's groups: their boxes and the
// positions of their particles. So what a rank sends grows with its surface, apart from the boxes of groups, 32 bytes for 1024 particles.
#pragma once
#include "galamost/args.cuh"
#include "galamost/list.cuh"
#include "galamost/ranks_barrier.cuh"
#include "galamost/staged.cuh"

// Half the length of a box that is near no other.
static constexpr float NOWHERE = -1e15f;

// Puts the tiles of other ranks nowhere; those that are near are received afterwards.
__device__ __forceinline__ void clear_other_tiles(const NearTilesArgs& a) {
    const u32 own_begin = a.state.own_begin / LEVEL, own_end = (a.state.own_end + LEVEL - 1u) / LEVEL;
    for (u32 tile = blockIdx.x * blockDim.x + threadIdx.x; tile < a.tiles.count; tile += gridDim.x * blockDim.x) {
        if (tile < own_begin || tile >= own_end) a.tiles.half[tile] = {NOWHERE, NOWHERE, NOWHERE, 0.0f};
    }
}

struct NearBox {
    int4 center;
    float4 half;
};

__device__ __forceinline__ NearBox load_box(const Bounds& b, u32 k) { return {b.center[k], b.half[k]}; }

// The first particle of group k, or the end of the particles.
__device__ __forceinline__ u32 group_begin(const NearTilesArgs& a, u32 k) {
    const u64 i = u64(k) * LEVEL * LEVEL;
    return i < a.state.n_local ? u32(i) : a.state.n_local;
}

// The records of a rank, from number k on.
__device__ __forceinline__ u32* tile_record(const NearTilesArgs& a, u32 k) { return a.records + u64(k) * TILE_WORDS; }

// Lists a tile for each of some ranks, or counts it, and stores its records. Called by a warp.
__device__ __forceinline__ void pack_tile(const NearTilesArgs& a, u32 tile, u32 ranks) {
    const u32 lane = threadIdx.x & 31u;
    for (; ranks; ranks &= ranks - 1u) {
        const u32 rank = u32(__ffs(int(ranks))) - 1u;
        u32 at = 0u;
        if (lane == 0u) at = a.lists.first[rank] + atomicAdd(&a.lists.counts[rank], 1u);
        at = __shfl_sync(0xffffffffu, at, 0);
        if (!a.lists.list) continue;
        if (at >= a.lists.first[rank + 1u]) {
            // the rebuild begins again with larger messages
            if (lane == 0u) a.state.globals->halt = 1u;
            continue;
        }
        int4* record = reinterpret_cast<int4*>(tile_record(a, at));
        if (lane == 0u) {
            record[0] = {int(tile), 0, 0, 0};
            record[1] = a.tiles.center[tile];
            *reinterpret_cast<float4*>(record + 2) = a.tiles.half[tile];
        }
        const u32 i = tile * LEVEL + lane, last = a.state.n_local - 1u;
        record[3u + lane] = reinterpret_cast<const int4*>(a.state.pos_type)[i < last ? i : last];
    }
}

// Finds the ranks that have a group near each own tile. A block of threads handles a group of tiles, a lane of each warp one of these.
//
// It must find all tiles that the search for neighbors takes, which compares tiles with blocks. The box of a block is inside that of its
// group, if that is shorter than half the box of the system. Otherwise the block may reach around the system in the other direction, because it
// is measured from another particle; so a longer group is near everything along that axis. Rounding differs by much less than a thousandth of the
// radius and a millionth of the system.
extern "C" __global__ void __launch_bounds__(256) find_near_tiles(NearTilesArgs a) {
    constexpr u32 ALL = 0xffffffffu;
    __shared__ u32 ranks_near[LEVEL];
    const StateView& s = a.state;
    const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, group = s.own_begin / (LEVEL * LEVEL) + blockIdx.x;
    if (has_halted(s.globals)) return;
    clear_other_tiles(a);
    if (threadIdx.x < LEVEL) ranks_near[threadIdx.x] = 0u;
    __syncthreads();
    const BoxScale scale = make_scale(s.globals);
    const float longest = fmaxf(scale.unit[0], fmaxf(scale.unit[1], scale.unit[2])) * 4294967296.0f;
    const float reach = float(a.r_list) * 1.001f + longest * 1e-6f;
    // half the length of a group of another rank, or of several groups, of which some are such
    const auto half_of = [&](float half, int axis) { return half > scale.unit[axis] * 1.07e9f ? 1e15f : half; };
    const auto near = [&](const NearBox& p, const NearBox& q) {
        return gap2(difference_of(p.center.x, q.center.x), difference_of(p.center.y, q.center.y),
                    difference_of(p.center.z, q.center.z), p.half.x + half_of(q.half.x, 0), p.half.y + half_of(q.half.y, 1),
                    p.half.z + half_of(q.half.z, 2), scale) <= reach * reach;
    };
    const auto all_own = [&](u32 begin, u32 end) { return begin >= s.own_begin && end <= s.own_end; };
    const u32 tile = group * LEVEL + lane, n_tops = a.tops.count;
    const bool has_tile = tile < a.tiles.count;
    const NearBox own = load_box(a.groups, group), of_tile = load_box(a.tiles, has_tile ? tile : group * LEVEL);
    u32 ranks = 0u;
    for (u32 base = 32u * warp; base < n_tops; base += blockDim.x) {
        const u32 k = base + lane;
        const bool is_near = k < n_tops && !all_own(group_begin(a, k * LEVEL), group_begin(a, (k + 1u) * LEVEL)) &&
                             near(own, load_box(a.tops, k));
        for (u32 tops = __ballot_sync(ALL, is_near); tops; tops &= tops - 1u) {
            const u32 other = (base + u32(__ffs(int(tops))) - 1u) * LEVEL + lane;
            const bool close = other < a.groups.count && !all_own(group_begin(a, other), group_begin(a, other + 1u)) &&
                               near(own, load_box(a.groups, other));
            for (u32 groups = __ballot_sync(ALL, close); groups; groups &= groups - 1u) {
                const u32 found = other - lane + u32(__ffs(int(groups))) - 1u;
                if (near(of_tile, load_box(a.groups, found))) ranks |= 1u << rank_of(a.ranges, group_begin(a, found));
            }
        }
    }
    if (has_tile && ranks) atomicOr(&ranks_near[lane], ranks);
    __syncthreads();
    for (u32 k = warp; k < LEVEL; k += blockDim.x >> 5) {
        if (ranks_near[k]) pack_tile(a, group * LEVEL + k, ranks_near[k]);
    }
}

// Reads the tiles of other ranks. A warp handles a record.
extern "C" __global__ void unpack_tiles(NearTilesArgs a) {
    const u32 lane = threadIdx.x & 31u, k = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    if (k >= a.lists.first[a.ranges.count] || a.state.globals->halt) return;
    u32 rank = 0u;
    while (k >= a.lists.first[rank + 1u]) ++rank;
    if (k - a.lists.first[rank] >= a.lists.counts[rank]) return;
    const int4* record = reinterpret_cast<const int4*>(tile_record(a, k));
    const u32 tile = u32(record[0].x), i = tile * LEVEL + lane;
    if (lane == 0u) {
        a.tiles.center[tile] = record[1];
        a.tiles.half[tile] = *reinterpret_cast<const float4*>(record + 2);
    }
    if (i < a.state.n_local) reinterpret_cast<int4*>(a.state.pos_type)[i] = record[3u + lane];
}
