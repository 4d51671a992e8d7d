// The cell grid of the neighbor list; the same arithmetic as engine/src/state/cells.rs.
#pragma once
#include "galamost/state.cuh"
#include "galamost/args.cuh"

// Returns true if this rebuild sorts the particles.
__device__ __forceinline__ bool sort_is_due(const CellGrid& c, const Globals* g) {
    return c.sort_every != 0u && g->rebuilds % c.sort_every == 0ull;
}

__device__ __forceinline__ bool sorts(const CellGrid& c, const Globals* g) { return !g->halt && sort_is_due(c, g); }

// Returns the number of a point on the Hilbert curve through a cube of 2^bits points per axis (Skilling, 2004). The
// curve begins at the origin and ends at the other end of the x axis.
__device__ __forceinline__ u32 hilbert_index(u32 x, u32 y, u32 z, u32 bits) {
    u32 v[3] = {x, y, z};
    for (u32 q = 1u << (bits - 1u); q > 1u; q >>= 1) {
        const u32 p = q - 1u;
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            if (v[k] & q) {
                v[0] ^= p;
            } else {
                const u32 t = (v[0] ^ v[k]) & p;
                v[0] ^= t;
                v[k] ^= t;
            }
        }
    }
    v[1] ^= v[0];
    v[2] ^= v[1];
    u32 t = 0u;
    for (u32 q = 1u << (bits - 1u); q > 1u; q >>= 1) {
        if (v[2] & q) t ^= q - 1u;
    }
    u32 index = 0u;
    for (int k = int(bits) - 1; k >= 0; --k) {
        index = index << 3 | ((v[0] ^ t) >> k & 1u) << 2 | ((v[1] ^ t) >> k & 1u) << 1 | ((v[2] ^ t) >> k & 1u);
    }
    return index;
}

__device__ __forceinline__ u32 cell_coordinate(double x, double length, u32 n) {
    if (length == 0.0) return 0u;
    const u32 c = u32((x / length + 0.5) * double(n));
    return c < n ? c : n - 1u;
}
__device__ __forceinline__ u32 cell_coordinate(int x, double, u32 n) {
    return u32((u64(u32(x) ^ 0x80000000u) * n) >> 32);
}

__device__ __forceinline__ u32 cell_index(const CellGrid& c, const PosType& p, const Globals* g) {
    const u32 x = cell_coordinate(p.x, g->box_length[0], c.n[0]);
    const u32 y = cell_coordinate(p.y, g->box_length[1], c.n[1]);
    const u32 z = cell_coordinate(p.z, g->box_length[2], c.n[2]);
    if (c.curve == 0u) return (z * c.n[1] + y) * c.n[0] + x;
    const u32 b = c.curve, within = (1u << b) - 1u;
    const u32 cube = ((z >> b) * (c.n[1] >> b) + (y >> b)) * (c.n[0] >> b) + (x >> b);
    return cube << (3u * b) | hilbert_index(x & within, y & within, z & within, b);
}

// Returns a coordinate in units of cells: from the lower end of its cell on, and that cell.
__device__ __forceinline__ float place_in_cell(double x, double length, u32 n, u32& cell) {
    cell = cell_coordinate(x, length, n);
    return length == 0.0 ? 0.0f : float((x / length + 0.5) * double(n) - double(cell));
}
__device__ __forceinline__ float place_in_cell(int x, double, u32 n, u32& cell) {
    const u64 place = u64(u32(x) ^ 0x80000000u) * n;
    cell = u32(place >> 32);
    return float(u32(place)) * (1.0f / 4294967296.0f);
}

// The place of a particle in its cell, in units of cells, and the number of the cell along x.
struct alignas(16) CellPlace {
    float x, y, z;
    int cell;
};

// Finds the cell of a particle, and returns its place there.
__device__ __forceinline__ CellPlace place_in_cells(const CellGrid& c, const PosType& p, const Globals* g, u32 (&cell)[3]) {
    const float x = place_in_cell(p.x, g->box_length[0], c.n[0], cell[0]);
    const float y = place_in_cell(p.y, g->box_length[1], c.n[1], cell[1]);
    const float z = place_in_cell(p.z, g->box_length[2], c.n[2], cell[2]);
    return {x, y, z, int(cell[0])};
}

__device__ __forceinline__ u32 wrap_cell(u32 c, int offset, u32 n, u32 whole) {
    if (whole) return u32(offset);
    const int s = int(c) + offset;
    return u32(s < 0 ? s + int(n) : s >= int(n) ? s - int(n) : s);
}
