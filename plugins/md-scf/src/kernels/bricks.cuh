// Densities and fields on several GPUs, if fields are new in every step and need no Fourier transform. Sums are kept in bricks of 4 x 4 x 4
// vertices, and a GPU computes fields only in bricks that its particles touch; see block_sums.cuh.
#include "galamost/block_sums.cuh"

static constexpr u32 BRICK = 64u;

__device__ __forceinline__ u32 bricks_along(const MdScfArgs& a, u32 axis) { return (a.grid[axis] + 3u) >> 2; }

__device__ __forceinline__ u32 brick_of(const MdScfArgs& a, u32 x, u32 y, u32 z) {
    return ((z >> 2) * bricks_along(a, 1u) + (y >> 2)) * bricks_along(a, 0u) + (x >> 2);
}

// Index of the sum of a vertex among those of a field, whose first one is at `first_sum`. A brick has the sums of all its fields.
__device__ __forceinline__ u32 sum_index(const MdScfArgs& a, u32 x, u32 y, u32 z) {
    return brick_of(a, x, y, z) * (u32(FIELDS) * BRICK) + ((z & 3u) << 4 | (y & 3u) << 2 | (x & 3u));
}
__device__ __forceinline__ u64* first_sum(const MdScfArgs& a, u32 field) {
    return block_values(a.bricks, a.bricks.rank, next_update(a.bricks), 0u) + field * BRICK;
}

// Marks the bricks of the vertices to which a particle adds, and with the scheme Paper those of which it reads fields besides.
__device__ __forceinline__ void mark_bricks(const MdScfArgs& a, const GridPosition& g) {
    const u64 update = next_update(a.bricks);
#pragma unroll
    for (u32 corner = 0; corner < 8u; ++corner) {
        u32 at[3];
        bool another = true;
        for (u32 k = 0; k < 3u; ++k) {
            const bool upper = corner >> k & 1u;
            at[k] = upper ? g.high[k] : g.low[k];
            another = another && !(upper && g.high[k] >> 2 == g.low[k] >> 2);
        }
        if (another) mark_block(a.bricks, update, brick_of(a, at[0], at[1], at[2]), true);
    }
#ifdef PAPER
    for (u32 axis = 0; axis < 3u; ++axis) {
        u32 at[3];
        for (u32 k = 0; k < 3u; ++k) {
            const bool upper = g.offset[k] > 0.5;
            at[k] = upper ? g.high[k] : g.low[k];
            if (k == axis) at[k] = upper ? (at[k] + 1u == a.grid[k] ? 0u : at[k] + 1u) : (at[k] == 0u ? a.grid[k] : at[k]) - 1u;
        }
        mark_block(a.bricks, update, brick_of(a, at[0], at[1], at[2]), false);
    }
#endif
}

// Computes the fields of a vertex, and its densities if `all`, from the sums of all GPUs. Returns whether a sum is too large.
__device__ __forceinline__ bool set_vertex(const MdScfArgs& a, u64 update, double volume, u32 brick, u32 at, bool all) {
    const u32 nx = bricks_along(a, 0u), ny = bricks_along(a, 1u);
    const u32 x = (brick % nx) << 2 | (at & 3u), y = (brick / nx % ny) << 2 | (at >> 2 & 3u), z = brick / (nx * ny) << 2 | at >> 4;
    if (x >= a.grid[0] || y >= a.grid[1] || z >= a.grid[2]) return false;
    u64 sum[FIELDS];
    block_total<FIELDS>(a.bricks, update, brick, at, BRICK, sum);
    bool too_large = false;
#ifdef LIMITED
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) too_large = too_large || sum[k] >= SUM_LIMIT;
#endif
    const u32 v = vertex_at(a, x, y, z);
    real n[FIELDS];
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) n[k] = real(double(sum[k]) * a.of_type);
    if (all) {
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) a.density[u64(k) * a.vertices + v] = n[k];
    }
    set_fields(a, v, n, volume);
    return too_large;
}

// Computes the fields that own particles need. If energies are requested, computes all fields and densities.
extern "C" __global__ void __launch_bounds__(256) md_scf_field(MdScfArgs a) {
    await_launches();
    const u64 update = next_update(a.bricks);
    if (!begin_update(a.bricks)) return;
    const Globals* g = a.state.globals;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, brick = thread / BRICK, at = thread % BRICK;
    if (brick < a.bricks.blocks) {
        clear_before<FIELDS>(a.bricks, update, brick, at, BRICK);
        if (thread == 0u) *a.volume = volume_of(g);
        const bool needed = a.full || is_needed(a.bricks, update, brick);
        const bool too_large = needed && set_vertex(a, update, volume_of(g), brick, at, a.full);
#ifdef LIMITED
        if (too_large) note_too_large(a);
#endif
    }
    end_update(a.bricks);
}

// Computes all densities and fields of the last update again, for a checkpoint. The other GPUs are at rest.
extern "C" __global__ void __launch_bounds__(256) md_scf_complete(MdScfArgs a) {
    await_launches();
    const u64 update = next_update(a.bricks) - 1ull;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, brick = thread / BRICK;
    if (update != 0ull && brick < a.bricks.blocks) set_vertex(a, update, *a.volume, brick, thread % BRICK, true);
}
