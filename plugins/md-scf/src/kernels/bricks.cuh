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

// Marks the bricks of the words to which a particle adds, and those of which it reads fields besides: with the scheme Paper, and if packed
// words are in the brick before along x.
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
#ifdef PACKED
        const bool touches = !(corner & 1u);
#else
        const bool touches = true;
#endif
        if (another) mark_block(a.bricks, update, brick_of(a, at[0], at[1], at[2]), touches);
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

#ifdef PACKED
// The particles whose weights md_scf_field checks: those of this GPU. Other GPUs check theirs, and each sum of a vertex is checked.
__device__ __forceinline__ u32 particles_in_sums(const StateView& s) { return own_end(s) - own_begin(s); }

// md_scf_field has reset those of the update before.
__device__ __forceinline__ void reset_sums(const MdScfArgs&) {}

// Adds the sums of a vertex over all GPUs, whose words may overflow only together. Returns whether one is too large.
__device__ __forceinline__ bool total_of(const MdScfArgs& a, u64 update, u32 brick, u32 at, u32 x, u32 y, u32 z, u64 (&sum)[FIELDS]) {
    const BlockSums& b = a.bricks;
    const u32 x_before = (x == 0u ? a.grid[0] : x) - 1u, before = brick_of(a, x_before, y, z);
    const u32 touched = ranks_of_block(b, update, brick), touched_before = before == brick ? touched : ranks_of_block(b, update, before);
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) sum[k] = 0ull;
    add_parts(b, touched, update, brick, at, BRICK, [](u64 word) { return lower_sum(word); }, sum);
    add_parts(b, touched_before, update, before, (at & ~3u) | (x_before & 3u), BRICK, [](u64 word) { return upper_sum(word); }, sum);
    bool too_large = false;
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) too_large = too_large || sum[k] >= SUM_LIMIT;
    return too_large;
}

// The sum of the halves of the words of a vertex that this GPU has added.
__device__ __forceinline__ u64 own_halves(const MdScfArgs& a, u64 update, u32 brick, u32 at) {
    const BlockSums& b = a.bricks;
    u64 sum[FIELDS] = {}, halves = 0ull;
    const u32 touched = (__ldcg(block_mark(b, b.rank, update, b.rank, brick)) == 2ull * update + 1ull ? 1u : 0u) << b.rank;
    add_parts(b, touched, update, brick, at, BRICK, [](u64 word) { return lower_sum(word) + upper_sum(word); }, sum);
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) halves += sum[k];
    return halves;
}
#endif

// Computes the fields of a vertex, and its densities if `all`, from the sums of all GPUs. Returns whether a sum is too large.
__device__ __forceinline__ bool set_vertex(const MdScfArgs& a, u64 update, double volume, u32 brick, u32 at, bool all) {
    const u32 nx = bricks_along(a, 0u), ny = bricks_along(a, 1u);
    const u32 x = (brick % nx) << 2 | (at & 3u), y = (brick / nx % ny) << 2 | (at >> 2 & 3u), z = brick / (nx * ny) << 2 | at >> 4;
    if (x >= a.grid[0] || y >= a.grid[1] || z >= a.grid[2]) return false;
    u64 sum[FIELDS];
#ifdef PACKED
    const bool too_large = total_of(a, update, brick, at, x, y, z, sum);
#else
    const bool too_large = false;
    block_total<FIELDS>(a.bricks, update, brick, at, BRICK, sum);
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
    bool too_large = false;
    if (brick < a.bricks.blocks) {
        clear_before<FIELDS>(a.bricks, update, brick, at, BRICK);
        if (thread == 0u) *a.volume = volume_of(g);
        if (a.full || is_needed(a.bricks, update, brick)) too_large = set_vertex(a, update, volume_of(g), brick, at, a.full);
    }
#ifdef PACKED
    note_sums(a, brick < a.bricks.blocks ? own_halves(a, update, brick, at) : 0ull, too_large);
#endif
    end_update(a.bricks);
}

// Computes all densities and fields of the last update again, for a checkpoint. The other GPUs are at rest.
extern "C" __global__ void __launch_bounds__(256) md_scf_complete(MdScfArgs a) {
    await_launches();
    const u64 update = next_update(a.bricks) - 1ull;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, brick = thread / BRICK;
    if (update != 0ull && brick < a.bricks.blocks) set_vertex(a, update, *a.volume, brick, thread % BRICK, true);
}
