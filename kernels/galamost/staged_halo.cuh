// The halo of a block: the particles of other blocks within the radius of the list around the boxes of its warps. Their
// positions are kept in half precision for the search of neighbors.
#pragma once
#include "galamost/staged_bounds.cuh"

#ifdef GALAMOST_HOST
__device__ __forceinline__ u32 to_half(float x) { return galamost_host::to_half(x); }
__device__ __forceinline__ float from_half(u32 bits) { return galamost_host::from_half(bits); }
__device__ __forceinline__ u32 half2_gap(u32 a, u32 b, u32 c) { return galamost_host::half2_gap(a, b, c); }
__device__ __forceinline__ u32 half2_square_add(u32 a, u32 b) { return galamost_host::half2_square_add(a, b); }
#else
// Bits of the nearest half-precision number.
__device__ __forceinline__ u32 to_half(float x) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
__device__ __forceinline__ float from_half(u32 bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(u16(bits)));
    return x;
}
// max(|a - b| - c, 0) of the low and the high halves of words.
__device__ __forceinline__ u32 half2_gap(u32 a, u32 b, u32 c) {
    u32 x;
    asm("{.reg .b32 d;\n sub.f16x2 d, %1, %2;\n abs.f16x2 d, d;\n sub.f16x2 d, d, %3;\n max.f16x2 %0, d, %4;}"
        : "=r"(x)
        : "r"(a), "r"(b), "r"(c), "r"(0));
    return x;
}
// a^2 + b of the low and the high halves of words.
__device__ __forceinline__ u32 half2_square_add(u32 a, u32 b) {
    u32 x;
    asm("fma.rn.f16x2 %0, %1, %1, %2;" : "=r"(x) : "r"(a), "r"(b));
    return x;
}
#endif

// Address of slot h: words of 32 slots of one bank class (h % 8), columns of matrix B in the order in which the signs
// of D are collected.
__device__ __forceinline__ u32* slot_address(unsigned char* b, u32 h) {
    const u32 word = ((h >> 8) << 3) | (h & 7u), o = (h >> 3) & 31u;
    const u32 column = ((o & 3u) << 1) | ((o >> 3) & 1u), tile = (((o >> 2) & 1u) << 1) | (o >> 4);
    return reinterpret_cast<u32*>(b + word * SLOT_BYTES + column * 48u + tile * 4u);
}

// |b|^2 of a slot that is nobody's neighbor: 60,000 in half precision.
static constexpr u32 NOBODY = 0x7b53u;

// A sum of squares as the sum of two half-precision numbers.
__device__ __forceinline__ u32 split(float x) {
    const u32 high = to_half(x);
    return high | to_half(x - from_half(high)) << 16;
}

// Stores -2 b and |b|^2 of a slot at the half-precision position b.
__device__ __forceinline__ void store_slot(unsigned char* memory, u32 h, u32 x, u32 y, u32 z) {
    const float bx = from_half(x), by = from_half(y), bz = from_half(z);
    u32* slot = slot_address(memory, h);
    slot[0] = to_half(-2.0f * bx) | to_half(-2.0f * by) << 16;
    slot[4] = to_half(-2.0f * bz);
    slot[8] = split(bx * bx + by * by + bz * bz);
}

// Sizes and scales of the search around a block.
struct Search {
    BoxScale box;
    int4 center;
    // half lengths of the block; squared search radius
    float half[3], reach2;
    // factor to half-precision coordinates, and the squared search radius there
    float scale, limit2;
    bool wide;
};

// Coordinates of two warps' boxes in half precision: of warp q in the low halves and of warp q + 4 in the high ones.
struct alignas(16) HalfBoxes { u32 x, y, z, unused; };

struct SearchMemory {
    Interval3 warps[BLOCK_WARPS];
    // boxes of the warps, relative to the center of the block
    float4 center[BLOCK_WARPS];
    float4 half[BLOCK_WARPS];
    // the same in half precision
    HalfBoxes center2[BLOCK_WARPS / 2u], half2[BLOCK_WARPS / 2u];
    // minus the squared search radius around these, in both halves
    u32 minus_limit2;
    int origin[4];
    // for each 256 slots: one bit for each warp whose box is close to a tile among them
    u32 near[16];
    unsigned char counts[2][8];
};

// Prefix sum of small counts over the warps of a block: the number before this warp, and the total. `round` alternates,
// so one barrier suffices.
__device__ __forceinline__ u32 count_warps(SearchMemory& m, u32& round, u32 count, u32& total) {
    const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5;
    if (lane == 0u) m.counts[round][warp] = (unsigned char)count;
    __syncthreads();
    const u32* c = reinterpret_cast<const u32*>(m.counts[round]);
    const u32 low = c[0], high = c[1], ones = 0x01010101u;
    const u32 low_mask = warp >= 4u ? 0xffffffffu : (1u << (8u * warp)) - 1u;
    const u32 high_mask = warp <= 4u ? 0u : (1u << (8u * (warp - 4u))) - 1u;
    round ^= 1u;
    total = __dp4a(low, ones, __dp4a(high, ones, 0u));
    return __dp4a(low & low_mask, ones, __dp4a(high & high_mask, ones, 0u));
}

// Finds center and size of a block, and the boxes of its warps. p is the position of this thread's particle.
__device__ __forceinline__ Search begin_search(const StagedListArgs& a, SearchMemory& m, const int4& p) {
    const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5;
    Search s;
    s.box = make_scale(a.state.globals);
    if (threadIdx.x == 0u) {
        m.origin[0] = p.x;
        m.origin[1] = p.y;
        m.origin[2] = p.z;
    }
    if (threadIdx.x < 16u) {
        m.counts[threadIdx.x >> 3][threadIdx.x & 7u] = 0;
        // the first slots are those of the block
        m.near[threadIdx.x] = threadIdx.x == 0u ? 255u : 0u;
    }
    __syncthreads();
    const int origin[3] = {m.origin[0], m.origin[1], m.origin[2]};
    const int r[3] = {difference_of(p.x, origin[0]), difference_of(p.y, origin[1]), difference_of(p.z, origin[2])};
    Interval3 b = {{r[0], r[1], r[2]}, {r[0], r[1], r[2]}};
    warp_bounds(b);
    if (lane == 0u) m.warps[warp] = b;
    __syncthreads();
    int center[3];
    float longest = 0.0f, shortest_box = 1e30f;
    const float reach = float(a.r_list) * 1.00001f;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        int low = m.warps[0].low[k], high = m.warps[0].high[k];
#pragma unroll
        for (u32 w = 1; w < BLOCK_WARPS; ++w) {
            low = device_min(low, m.warps[w].low[k]);
            high = device_max(high, m.warps[w].high[k]);
        }
        center[k] = int(u32(origin[k]) + u32(middle(low, high)));
        const int c = difference_of(center[k], origin[k]);
        const u32 above = u32(high) - u32(c), below = u32(c) - u32(low);
        s.half[k] = (float(above > below ? above : below) + 4.0f) * s.box.unit[k] * 1.00001f;
        longest = fmaxf(longest, s.half[k]);
        shortest_box = fminf(shortest_box, s.box.unit[k] * 2147483648.0f - s.half[k]);
    }
    s.center = {center[0], center[1], center[2], 0};
    // coordinates of all slots are below 16: rounding changes each by at most 2^-8, a distance by less than 4 * 2^-8
    const float extent = (longest + reach) * 1.001f, rounding = extent * (1.0f / 4096.0f);
    s.reach2 = reach * reach;
    s.scale = 16.0f / extent;
    const float limit = (reach + 4.0f * rounding) * s.scale;
    s.limit2 = limit * limit;
    // a coordinate of a particle, one of a box, their difference, and the gap are each rounded by at most 2^-8 if the particle is
    // close, so the gap along an axis grows by 2^-6 at most; each of three sums of squares, less than this limit, by 2^-11 of it
    const float box_limit = reach * s.scale + 0.028f;
    if (threadIdx.x == 0u) m.minus_limit2 = (0x8000u | to_half(box_limit * box_limit * 1.003f)) * 0x10001u;
    // until the next rebuild, particles move by half the buffer
    const Globals* g = a.state.globals;
    s.wide = !(shortest_box > reach * 1.001f + float(g->r_list - g->r_cut));
    if (threadIdx.x < BLOCK_WARPS) {
        const Interval3& own = m.warps[threadIdx.x];
        float c[3], h[3];
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const u32 middle_of_warp = u32(origin[k]) + u32(middle(own.low[k], own.high[k]));
            c[k] = float(int(middle_of_warp - u32(center[k]))) * s.box.unit[k];
            h[k] = half_length(own.low[k], own.high[k], s.box.unit[k]);
        }
        m.center[threadIdx.x] = {c[0], c[1], c[2], 0.0f};
        m.half[threadIdx.x] = {h[0], h[1], h[2], 0.0f};
        u16* center2 = reinterpret_cast<u16*>(&m.center2[threadIdx.x & 3u]) + (threadIdx.x >> 2);
        u16* half2 = reinterpret_cast<u16*>(&m.half2[threadIdx.x & 3u]) + (threadIdx.x >> 2);
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            center2[2 * k] = u16(to_half(c[k] * s.scale));
            // rounded up
            half2[2 * k] = u16(to_half(h[k] * s.scale * 1.001f));
        }
    }
    return s;
}

// Position relative to the center of the block.
__device__ __forceinline__ Vec3<float> relative(const Search& s, const int4& p) {
    return {float(difference_of(p.x, s.center.x)) * s.box.unit[0], float(difference_of(p.y, s.center.y)) * s.box.unit[1],
            float(difference_of(p.z, s.center.z)) * s.box.unit[2]};
}

// Distance along an axis between a warp's box and the nearest image of a box at x of half length h.
__device__ __forceinline__ float axis_gap(float x, float center, float half, float h, float unit) {
    const float d = fabsf(x - center);
    return fmaxf(fminf(d, unit * 4294967296.0f - d) - half - h, 0.0f);
}

// Returns the warps' boxes, one bit for each, that are close to a box at r with half lengths h or to one of its images.
__device__ __forceinline__ u32 close_warps(const Search& s, const SearchMemory& m, const Vec3<float>& r, const Vec3<float>& h) {
    u32 close = 0u;
#pragma unroll
    for (u32 w = 0; w < BLOCK_WARPS; ++w) {
        const float4 c = m.center[w], half = m.half[w];
        const float dx = axis_gap(r.x, c.x, half.x, h.x, s.box.unit[0]);
        const float dy = axis_gap(r.y, c.y, half.y, h.y, s.box.unit[1]);
        const float dz = axis_gap(r.z, c.z, half.z, h.z, s.box.unit[2]);
        if (device_norm2(Vec3<float>{dx, dy, dz}) <= s.reach2) close |= 1u << w;
    }
    return close;
}

// Returns true if a box may contain neighbors of the block.
__device__ __forceinline__ bool close_to_block(const Search& s, const int4& c, const float4& h) {
    return gap2(difference_of(c.x, s.center.x), difference_of(c.y, s.center.y), difference_of(c.z, s.center.z),
                h.x + s.half[0], h.y + s.half[1], h.z + s.half[2], s.box) <= s.reach2;
}

// Collects the boxes of one level that are close to the block. They lie in `parents`, or are all boxes of the level.
// Returns their number, which may exceed the capacity.
__device__ __forceinline__ u32 close_boxes(const Search& s, SearchMemory& m, u32& round, const Bounds& bounds,
                                           const u32* parents, u32 n_parents, u32* found, u32 capacity) {
    const u32 candidates = parents ? n_parents * LEVEL : bounds.count;
    u32 n = 0u;
    for (u32 base = 0; base < candidates; base += BLOCK) {
        const u32 k = base + threadIdx.x;
        u32 box = k < candidates ? k : 0xffffffffu;
        if (parents && k < candidates) box = parents[k / LEVEL] * LEVEL + k % LEVEL;
        const bool close = box < bounds.count && close_to_block(s, __ldg(bounds.center + box), __ldg(bounds.half + box));
        const u32 votes = __ballot_sync(0xffffffffu, close);
        u32 total;
        const u32 at = n + count_warps(m, round, __popc(votes), total) + __popc(votes & ((1u << (threadIdx.x & 31u)) - 1u));
        if (close && at < capacity) found[at] = box;
        n += total;
    }
    __syncthreads();
    return n;
}

// Collects the tiles of other blocks that are close to a warp's box, with one bit for each box in the upper 8 bits.
__device__ __forceinline__ u32 close_tiles(const StagedListArgs& a, const Search& s, SearchMemory& m, u32& round,
                                           const u32* groups, u32 n_groups, u32* found, u32 block) {
    const Bounds& tiles = a.list.tiles;
    u32 n = 0u;
    for (u32 base = 0; base < n_groups * LEVEL; base += BLOCK) {
        const u32 k = base + threadIdx.x;
        const u32 tile = k < n_groups * LEVEL ? groups[k / LEVEL] * LEVEL + k % LEVEL : 0xffffffffu;
        u32 close = 0u;
        if (tile < tiles.count && tile - block * BLOCK_WARPS >= BLOCK_WARPS) {
            const int4 c = __ldg(tiles.center + tile);
            const float4 h = __ldg(tiles.half + tile);
            if (close_to_block(s, c, h)) {
                const Vec3<float> r = relative(s, c), half = {h.x, h.y, h.z};
                // a long tile may reach the block across the boundary
                close = close_warps(s, m, r, half);
            }
        }
        const u32 votes = __ballot_sync(0xffffffffu, close != 0u);
        u32 total;
        const u32 at = n + count_warps(m, round, __popc(votes), total) + __popc(votes & ((1u << (threadIdx.x & 31u)) - 1u));
        if (close && at < a.list.tile_capacity) found[at] = tile | close << 24;
        n += total;
    }
    __syncthreads();
    return n;
}

// Half-precision coordinates of a particle, relative to the center of the block.
struct HalfPosition {
    u32 x, y, z;
};

__device__ __forceinline__ HalfPosition half_position(const Search& s, const Vec3<float>& r) {
    return {to_half(r.x * s.scale), to_half(r.y * s.scale), to_half(r.z * s.scale)};
}

// Returns the warps' boxes that are close to a particle, one bit for each, and perhaps some that nearly are.
__device__ __forceinline__ u32 close_warps(const SearchMemory& m, const HalfPosition& h) {
    const u32 x = h.x * 0x10001u, y = h.y * 0x10001u, z = h.z * 0x10001u;
    u32 signs = 0u;
#pragma unroll
    for (u32 q = 0; q < BLOCK_WARPS / 2u; ++q) {
        const HalfBoxes c = m.center2[q], half = m.half2[q];
        u32 r2 = half2_square_add(half2_gap(x, c.x, half.x), m.minus_limit2);
        r2 = half2_square_add(half2_gap(y, c.y, half.y), r2);
        r2 = half2_square_add(half2_gap(z, c.z, half.z), r2);
        signs = signs >> 1 | (r2 & 0x80008000u);
    }
    return (signs >> 12 & 0xfu) | (signs >> 24 & 0xf0u);
}

// Finds the halo: particles of the tiles that are close to a warp's box. Stores their coordinates in slots and returns
// the number of slots, own particles included; it may exceed the capacity.
__device__ __forceinline__ u32 find_halo(const StagedListArgs& a, const Search& s, SearchMemory& m, u32& round,
                                         const u32* tiles, u32 n_tiles, unsigned char* slots, u32 block) {
    constexpr u32 ALL = 0xffffffffu;
    const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, before = (1u << lane) - 1u, last = a.state.n_local - 1u;
    u32* halo = a.list.halo + u64(block) * (a.list.slots - BLOCK);
    int4 next[2];
    u32 entry[2];
    // each warp handles two tiles at a time; positions are loaded one iteration ahead
    auto fetch = [&](u32 first) {
#pragma unroll
        for (u32 u = 0; u < 2u; ++u) {
            const u32 t = first + 2u * warp + u;
            entry[u] = t < n_tiles ? tiles[t] : 0u;
            const u32 j = (entry[u] & 0xffffffu) * TILE_PARTICLES + lane;
            if (entry[u]) next[u] = load_position(a, j < last ? j : last);
        }
    };
    u32 n = BLOCK;
    fetch(0u);
    for (u32 first = 0; first < n_tiles; first += 2u * BLOCK_WARPS) {
        HalfPosition h[2];
        u32 close[2];
        u32 votes[2], j[2];
#pragma unroll
        for (u32 u = 0; u < 2u; ++u) {
            const u32 boxes = entry[u] >> 24;
            j[u] = (entry[u] & 0xffffffu) * TILE_PARTICLES + lane;
            close[u] = 0u;
            if (boxes) {
                const Vec3<float> r = relative(s, next[u]), point = {0.0f, 0.0f, 0.0f};
                h[u] = half_position(s, r);
                close[u] = s.wide ? close_warps(s, m, r, point) : close_warps(m, h[u]);
                if (j[u] > last) close[u] = 0u;
            }
        }
        fetch(first + 2u * BLOCK_WARPS);
        votes[0] = __ballot_sync(ALL, close[0] != 0u);
        votes[1] = __ballot_sync(ALL, close[1] != 0u);
        const u32 count = __popc(votes[0]);
        u32 total;
        const u32 at = n + count_warps(m, round, count + __popc(votes[1]), total);
        const u32 slot[2] = {at + __popc(votes[0] & before), at + count + __popc(votes[1] & before)};
#pragma unroll
        for (u32 u = 0; u < 2u; ++u) {
            if (close[u] && slot[u] < a.list.slots) {
                store_slot(slots, slot[u], h[u].x, h[u].y, h[u].z);
                halo[slot[u] - BLOCK] = j[u];
                const u32 quarter = slot[u] >> 8;
                if (close[u] & ~m.near[quarter]) atomicOr(&m.near[quarter], close[u]);
            }
        }
        n += total;
    }
    return n;
}
