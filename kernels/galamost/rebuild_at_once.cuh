// A rebuild of a plain list in two kernels, for systems so small that a launch takes as long as the work it starts.
//
// The order of particles and the rows are those of rebuild.cuh. The first kernel sorts: between grid barriers, its blocks count the particles
// of the cells, find the first particle of each cell, store the particles of each cell, and copy all arrays to scratch memory in the new order.
// The second one copies them back while it builds the rows from the copies.
#pragma once
#include "galamost/sort.cuh"
#include "galamost/plain_list.cuh"
#include "galamost/grid_barrier.cuh"

// Particles whose rows a block builds, and threads that copy the arrays of each back.
static constexpr u32 ROWS = TILE * TILE_WARPS, PARTS = 32u * TILE_WARPS / ROWS;
static_assert(PARTS >= LINK_TABLES, "each table of links has a thread for each particle");

// Counts the particles of each cell.
__device__ __forceinline__ void count_all(const SortArgs& a, u32 thread, u32 threads) {
    for (u32 i = thread; i < a.state.n_local; i += threads) {
        const u32 c = cell_index(a.grid, a.state.pos_type[i], a.state.globals);
        a.grid.cell_of[i] = c;
        a.arrival[i] = atomicAdd(&a.count[c], 1u);
    }
}

// Stores the particles of each cell contiguously, in order of arrival. The counts are 0 for the next rebuild.
__device__ __forceinline__ void fill_all(const SortArgs& a, u32 thread, u32 threads) {
    for (u32 c = thread; c < a.grid.cells; c += threads) a.count[c] = 0u;
    for (u32 i = thread; i < a.state.n_local; i += threads) a.unordered[a.grid.start[a.grid.cell_of[i]] + a.arrival[i]] = i;
}

// Sorts the particles of each cell by tag, and copies every array to its scratch memory in the new order. Afterwards, `arrival` has the
// cell of each particle in the new order.
__device__ __forceinline__ void copy_all_sorted(const RebuildArgs& r, u32 threads) {
    constexpr u32 ALL = 0xffffffffu;
    const SortArgs& a = r.sort;
    const u32 n = a.state.n_local;
    u32 shift = 0u;
    while ((2u << shift) <= MOST_COPIERS && u64(n) << (shift + 1u) <= threads) ++shift;
    const u32 copiers = 1u << shift, part = threadIdx.x & (copiers - 1u);
    // all threads of a warp do equally many passes, because they exchange numbers
    for (u32 base = blockIdx.x * blockDim.x; base < n << shift; base += threads) {
        const u32 slot = (base + threadIdx.x) >> shift, i = a.unordered[slot < n ? slot : n - 1u];
        const u32 c = a.grid.cell_of[i], tag = a.state.tag[i], from = a.grid.start[c], to = a.grid.start[c + 1u];
        u32 rank = 0u;
        for (u32 k = from + part; k < to; k += copiers) rank += a.state.tag[a.unordered[k]] < tag ? 1u : 0u;
        for (u32 d = 1u; d < copiers; d <<= 1) rank += __shfl_xor_sync(ALL, rank, d);
        if (slot >= n) continue;
        const u32 moved = from + rank;
        for (u32 k = part; k < r.n_arrays; k += copiers) {
            const SortedArrayArgs& m = r.arrays[k];
            copy_words(m.scratch + u64(moved) * m.words, m.data + u64(i) * m.words, m.words);
        }
        if (part == 0u) {
            a.state.index_of_tag[tag] = moved;
            a.arrival[moved] = c;
        }
    }
}

extern "C" __global__ void __launch_bounds__(SCAN_BLOCK) sort_at_once(RebuildArgs r) {
    const SortArgs& a = r.sort;
    const Globals* g = a.state.globals;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    // no block changes these numbers before all have read them
    if (g->halt || !(r.always || g->rebuild)) {
        if (thread == 0u) r.control->sorted = 0u;
        return;
    }
    GridBarrier barrier(&r.control->barrier, g);
    // a fault before the first barrier would keep a block that begins late from arriving there
    u32 requested = thread == 0u && !grid_fits(a) ? STOP_HALT : 0u;
    count_all(a, thread, threads);
    const u32 stop = barrier.wait(requested);
    if (stop & STOP_HALT) {
        if (thread == 0u) raise_grid_outgrown(a.state.globals);
    } else {
        if (a.n_blocks > 1u) {
            for (u32 b = blockIdx.x; b < a.n_blocks; b += gridDim.x) sum_block_of_cells(a, b);
            barrier.wait(requested);
        }
        for (u32 b = blockIdx.x; b < a.n_blocks; b += gridDim.x) start_block_of_cells(a, b);
        barrier.wait(requested);
        fill_all(a, thread, threads);
        barrier.wait(requested);
        copy_all_sorted(r, threads);
    }
    if (thread == 0u) {
        r.control->sorted = stop & STOP_HALT ? 0u : 1u;
        barrier.finish();
    }
}

// Copies the arrays of ROWS particles back, and looks up their links.
__device__ __forceinline__ void copy_back(const RebuildArgs& r, u32 first) {
    const SortArgs& a = r.sort;
    const u32 i = first + threadIdx.x % ROWS, part = threadIdx.x / ROWS;
    if (i >= a.state.n_local) return;
    for (u32 k = part; k < r.n_arrays; k += PARTS) {
        const SortedArrayArgs& m = r.arrays[k];
        copy_words(m.data + u64(i) * m.words, m.scratch + u64(i) * m.words, m.words);
    }
    if (part < r.n_links) index_links_of(r.list.list.state, r.links[part], i);
    if (part == PARTS - 1u) {
        a.state.pos_at_build[i] = r.list.list.state.pos_type[i];
        a.grid.cell_of[i] = a.arrival[i];
    }
}

// Ends the rebuild when the last block has done its part, unless a row is too long.
__device__ __forceinline__ void end_rebuild_of_blocks(const RebuildArgs& r) {
    __shared__ u32 flag;
    Globals* g = r.sort.state.globals;
    if (last_block_after_thread_0(&r.control->ended, &flag) && threadIdx.x == 0u && !g->halt) finish_rebuild(g);
}

template <bool EXCLUDES> __device__ __forceinline__ void build_at_once(const RebuildArgs& r, TileMemory* memories) {
    if (!r.control->sorted) return;
    const u32 first = blockIdx.x * ROWS, warp = threadIdx.x >> 5;
    copy_back(r, first);
    build_tile<EXCLUDES>(r.list.list, memories[warp], first + warp * TILE);
    end_rebuild_of_blocks(r);
}

extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS, TILE_BLOCKS) build_sorted(RebuildArgs r) {
    await_launches();
    __shared__ TileMemory memories[TILE_WARPS];
    build_at_once<false>(r, memories);
}

// The same kernel with exclusions, which needs some registers more.
extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS, TILE_BLOCKS - 1u) build_sorted_excluding(RebuildArgs r) {
    await_launches();
    __shared__ TileMemory memories[TILE_WARPS];
    build_at_once<true>(r, memories);
}

// The same for a list of pairs within small molecules, or without a list.
extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS, TILE_BLOCKS) build_sorted_members(RebuildArgs r) {
    await_launches();
    if (!r.control->sorted) return;
    const u32 block = blockIdx.x * blockDim.x;
#pragma unroll 1
    for (u32 k = 0; k < blockDim.x; k += ROWS) copy_back(r, block + k);
    if (r.list.members) build_row_of_members(r.list, block + threadIdx.x);
    end_rebuild_of_blocks(r);
}
