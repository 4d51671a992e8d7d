// The cell grid of the neighbor list; the same arithmetic as engine/src/state/cells.rs.
#pragma once
#include "galamost/state.cuh"
#include "galamost/args.cuh"

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
    return (z * c.n[1] + y) * c.n[0] + x;
}

__device__ __forceinline__ u32 wrap_cell(u32 c, int offset, u32 n, u32 whole) {
    if (whole) return u32(offset);
    const int s = int(c) + offset;
    return u32(s < 0 ? s + int(n) : s >= int(n) ? s - int(n) : s);
}
