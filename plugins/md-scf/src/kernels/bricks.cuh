// Densities and fields on several GPUs, if fields are new in every step and need no Fourier transform. Sums are kept in bricks of 4 x 4 x 4
// vertices, and a GPU computes fields only in bricks that its particles touch; see block_sums.cuh.
#include "galamost/block_sums.cuh"

// Vertices whose sums a word holds, and words of a brick: packed ones have the sums of vertices 2 k and 2 k + 1 along x in their halves.
#ifdef PACKED
static constexpr u32 PER_WORD = 2u;
#else
static constexpr u32 PER_WORD = 1u;
#endif
static constexpr u32 BRICK = 64u / PER_WORD;

__device__ __forceinline__ u32 bricks_along(const MdScfArgs& a, u32 axis) { return (a.grid[axis] + 3u) >> 2; }

__device__ __forceinline__ u32 brick_of(const MdScfArgs& a, u32 x, u32 y, u32 z) {
    return ((z >> 2) * bricks_along(a, 1u) + (y >> 2)) * bricks_along(a, 0u) + (x >> 2);
}

// Index of the word of a vertex among those of a field, whose first one is at `first_sum`. A brick has the words of all its fields.
__device__ __forceinline__ u32 sum_index(const MdScfArgs& a, u32 x, u32 y, u32 z) {
    return brick_of(a, x, y, z) * (u32(FIELDS) * BRICK) + ((z & 3u) << 4 | (y & 3u) << 2 | (x & 3u)) / PER_WORD;
}
__device__ __forceinline__ u64* first_sum(const MdScfArgs& a, u32 field) {
    return block_values(a.bricks, a.bricks.rank, next_update(a.bricks), 0u) + field * BRICK;
}

// Adds weights to the sums of the two vertices of a particle along x, in one row of the grid: if they are packed, in one addition if both
// vertices have the same word.
__device__ __forceinline__ void add_weights(const MdScfArgs& a, u64* sum, const GridPosition& g, u32 y, u32 z, u64 low, u64 high) {
    const u32 at = sum_index(a, g.low[0], y, z), next = sum_index(a, g.high[0], y, z);
#ifdef PACKED
    low <<= (g.low[0] & 1u) * 32u;
    high <<= (g.high[0] & 1u) * 32u;
    if (at == next) {
        atomicAdd(&sum[at], low + high);
        return;
    }
#endif
    atomicAdd(&sum[at], low);
    atomicAdd(&sum[next], high);
}

#ifdef PACKED
// Words are reset by clear_before.
__device__ __forceinline__ void reset_sums(const MdScfArgs&) {}

// The checked sums are those of the particles of this GPU.
__device__ __forceinline__ u32 checked_particles(const StateView& s) { return own_end(s) - own_begin(s); }
#endif

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

// Adds the sums of the vertices of a word over all GPUs. Returns the sum of the halves of the own words.
__device__ __forceinline__ u64 read_words(const MdScfArgs& a, u64 update, u32 brick, u32 at, u64 (&sum)[PER_WORD][FIELDS]) {
    u64 own = 0ull;
#ifdef PACKED
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) sum[0][k] = sum[1][k] = 0ull;
    for_touching(a.bricks, update, brick, [&](u32 rank, const u64* words) {
        // all of them are loaded before the first one is used
        u64 word[FIELDS];
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) word[k] = __ldcg(words + at + u32(k) * BRICK);
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) {
            sum[0][k] += lower_sum(word[k]);
            sum[1][k] += upper_sum(word[k]);
            if (rank == a.bricks.rank) own += lower_sum(word[k]) + upper_sum(word[k]);
        }
    });
#else
    block_total<FIELDS>(a.bricks, update, brick, at, BRICK, sum[0]);
#endif
    return own;
}

// Computes the fields of the vertices of a word, and their densities if `all`, from the sums of all GPUs. Returns the sum of the halves of the own
// words, if they are packed, and sets whether a sum is too large.
__device__ __forceinline__ u64 set_vertices(const MdScfArgs& a, u64 update, double volume, u32 brick, u32 at, bool all, bool& too_large) {
    const u32 nx = bricks_along(a, 0u), ny = bricks_along(a, 1u), place = at * PER_WORD;
    const u32 first = (brick % nx) << 2 | (place & 3u), y = (brick / nx % ny) << 2 | (place >> 2 & 3u), z = brick / (nx * ny) << 2 | place >> 4;
    if (first >= a.grid[0] || y >= a.grid[1] || z >= a.grid[2]) return 0ull;
    u64 sum[PER_WORD][FIELDS];
    const u64 own = read_words(a, update, brick, at, sum);
#pragma unroll
    for (u32 h = 0; h < PER_WORD; ++h) {
        if (first + h >= a.grid[0]) break;
        const u32 v = vertex_at(a, first + h, y, z);
        real n[FIELDS];
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) {
            n[k] = real(double(sum[h][k]) * a.of_type);
#ifdef PACKED
            too_large = too_large || sum[h][k] >= SUM_LIMIT;
#endif
            if (all) a.density[u64(k) * a.vertices + v] = n[k];
        }
        set_fields(a, v, n, volume);
    }
    return own;
}

// Computes the fields that own particles need. If energies are requested, computes all fields and densities.
extern "C" __global__ void __launch_bounds__(256) md_scf_field(MdScfArgs a) {
    await_launches();
    const u64 update = next_update(a.bricks);
    if (!begin_update(a.bricks)) return;
    const Globals* g = a.state.globals;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, brick = thread / BRICK, at = thread % BRICK;
    u64 halves = 0ull;
    if (brick < a.bricks.blocks) {
        clear_before<FIELDS>(a.bricks, update, brick, at, BRICK);
        if (thread == 0u) *a.volume = volume_of(g);
        bool too_large = false;
        if (a.full || is_needed(a.bricks, update, brick)) {
            halves = set_vertices(a, update, volume_of(g), brick, at, a.full, too_large);
        }
#ifdef PACKED
        if (too_large) note_too_large(a);
#endif
    }
#ifdef PACKED
    note_sums(a, halves);
#endif
    end_update(a.bricks);
}

// Computes all densities and fields of the last update again, for a checkpoint. The other GPUs are at rest.
extern "C" __global__ void __launch_bounds__(256) md_scf_complete(MdScfArgs a) {
    await_launches();
    const u64 update = next_update(a.bricks) - 1ull;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, brick = thread / BRICK;
    bool too_large = false;
    if (update != 0ull && brick < a.bricks.blocks) set_vertices(a, update, *a.volume, brick, thread % BRICK, true, too_large);
}
