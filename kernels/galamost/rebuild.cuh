// Kernels of a rebuild. Particles are sorted by cell and, within a cell, by tag, so the order only depends on the
// positions. Then all arrays are moved to the new order, and the neighbor list is built.
#pragma once
#include "galamost/sort.cuh"
#include "galamost/plain_list.cuh"
#ifdef GALAMOST_RANKS
#include "galamost/ranks_barrier.cuh"
#endif

// The particles that this device counts: all of them, unless arrays are distributed. A count may then be in the memory of another
// device.
#ifdef GALAMOST_DISTRIBUTED
__device__ __forceinline__ u32 first_counted(const SortArgs& a) { return a.distributed ? a.state.own_begin : 0u; }
__device__ __forceinline__ u32 end_counted(const SortArgs& a) { return a.distributed ? a.state.own_end : a.state.n_local; }
__device__ __forceinline__ u32 count_particle(u32* count) { return atomicAdd_system(count, 1u); }
#else
__device__ __forceinline__ u32 first_counted(const SortArgs&) { return 0u; }
__device__ __forceinline__ u32 end_counted(const SortArgs& a) { return a.state.n_local; }
__device__ __forceinline__ u32 count_particle(u32* count) { return atomicAdd(count, 1u); }
#endif

// Counts the particles of each cell.
extern "C" __global__ void count_cells(SortArgs a) {
    await_launches();
    Globals* g = a.state.globals;
    if (!sorts(a.grid, g)) return;
    const u32 i = first_counted(a) + blockIdx.x * blockDim.x + threadIdx.x;
    // the staged list does not depend on cells
    if (i == 0u && a.grid.curve == 0u && !grid_fits(a)) raise_grid_outgrown(g);
    if (i >= end_counted(a)) return;
#if defined(GALAMOST_RANKS) && !defined(GALAMOST_DISTRIBUTED)
    const PosType* positions = a.ranks ? pointer<const PosType>(a.ranks->positions[rank_of(a.ranks->ranges, i)]) : a.state.pos_type;
#else
    const PosType* positions = a.state.pos_type;
#endif
    const u32 c = cell_index(a.grid, positions[i], g);
    a.grid.cell_of[i] = c;
    a.arrival[i] = count_particle(&a.count[c]);
}

// Adds the counts of each block of cells.
extern "C" __global__ void sum_cells(SortArgs a) {
    await_launches();
    if (sorts(a.grid, a.state.globals)) sum_block_of_cells(a, blockIdx.x);
}

// Turns the sums of blocks into the start of each block, if there are many. Runs as one block.
extern "C" __global__ void scan_blocks(SortArgs a) {
    await_launches();
    if (!sorts(a.grid, a.state.globals)) return;
    __shared__ u32 total;
    u32 before = 0u;
    for (u32 base = 0; base < a.n_blocks; base += blockDim.x) {
        const u32 k = base + threadIdx.x;
        const u32 x = k < a.n_blocks ? a.block_sums[k] : 0u;
        const u32 slot = block_scan(x, &total);
        if (k < a.n_blocks) a.block_sums[k] = before + slot;
        __syncthreads();
        before += total;
        __syncthreads();
    }
}

// Computes the first particle of each cell.
extern "C" __global__ void start_cells(SortArgs a) {
    await_launches();
    if (sorts(a.grid, a.state.globals)) start_block_of_cells(a, blockIdx.x);
}

// Stores the particles of each cell contiguously, in order of arrival.
extern "C" __global__ void fill_cells(SortArgs a) {
    await_launches();
    if (!sorts(a.grid, a.state.globals)) return;
    const u32 i = first_counted(a) + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= end_counted(a)) return;
    a.unordered[a.grid.start[a.grid.cell_of[i]] + a.arrival[i]] = i;
}

// Sorts the particles of each cell by tag.
extern "C" __global__ void order_cells(SortArgs a) {
    await_launches();
    if (!sorts(a.grid, a.state.globals)) return;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    u32 slot = thread, end = a.state.n_local;
#ifdef GALAMOST_RANKS
    if (a.distributed) {
        // all ranks have used the counts
        for (u32 c = a.first_cell + thread; c < a.end_cell; c += gridDim.x * blockDim.x) a.count[c] = 0u;
    }
    if (a.ranks) {
        slot += a.state.own_begin;
        end = a.state.own_end;
        // a rank orders its new particles and the others of the first and the last cell
        if (thread == 0u) {
            for (u32 k = a.grid.start[a.grid.cell_of[a.unordered[slot]]]; k < slot; ++k) order_slot(a, k);
        }
        if (slot + 1u == end) {
            for (u32 k = end; k < a.grid.start[a.grid.cell_of[a.unordered[slot]] + 1u]; ++k) order_slot(a, k);
        }
    }
#endif
    if (slot < end) order_slot(a, slot);
}

// Copies every array to its scratch memory in the new order.
extern "C" __global__ void gather_arrays(MoveArgs a) {
    await_launches();
    if (!sorts(a.grid, a.state.globals)) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    const u32 old = a.order[i];
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const SortedArrayArgs& m = a.arrays[k];
        copy_words(m.scratch + u64(i) * m.words, m.data + u64(old) * m.words, m.words);
    }
}

// Copies the arrays back, and updates everything that follows directly from the new order.
extern "C" __global__ void copy_back_arrays(MoveArgs a) {
    await_launches();
    if (!sorts(a.grid, a.state.globals)) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const SortedArrayArgs& m = a.arrays[k];
        copy_words(m.data + u64(i) * m.words, m.scratch + u64(i) * m.words, m.words);
    }
    const PosType p = a.state.pos_type[i];
    a.state.pos_at_build[i] = p;
    a.state.index_of_tag[a.state.tag[i]] = i;
    if (a.grid.curve == 0u) a.grid.cell_of[i] = cell_index(a.grid, p, a.state.globals);
}

extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS, TILE_BLOCKS) build_list(ListArgs a) {
    await_launches();
    __shared__ TileMemory memories[TILE_WARPS];
    const u32 warp = threadIdx.x >> 5;
    build_tile<false>(a, memories[warp], own_begin(a.state) + (blockIdx.x * TILE_WARPS + warp) * TILE);
}

// The same kernel with exclusions.
extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS, TILE_BLOCKS) build_list_excluding(ListArgs a) {
    await_launches();
    __shared__ TileMemory memories[TILE_WARPS];
    const u32 warp = threadIdx.x >> 5;
    build_tile<true>(a, memories[warp], own_begin(a.state) + (blockIdx.x * TILE_WARPS + warp) * TILE);
}

extern "C" __global__ void build_list_of_members(MemberListArgs m) {
    await_launches();
    build_row_of_members(m, own_begin(m.list.state) + blockIdx.x * blockDim.x + threadIdx.x);
}

extern "C" __global__ void end_rebuild(Globals* g) {
    await_launches();
    if (!g->halt) finish_rebuild(g);
}
