// The sort by ranks in several processes. Each rank orders the particles of its cells: a part of all cells, one after another along the
// curve. Others send it the numbers of the particles that have come into them.
#pragma once
#include "galamost/args.cuh"
#include "galamost/messages.cuh"
#include "galamost/sort.cuh"

// The rank that orders the particles of a cell.
__device__ __forceinline__ u32 rank_of_cell(const ProcessSortArgs& a, u32 cell) {
    u32 rank = 0u;
    while (cell >= a.end_of_cells[rank]) ++rank;
    return rank;
}

// The k-th of the particles in this rank's cells that have come from others, for whose numbers there is room. Returns false if there is none.
__device__ __forceinline__ bool incoming_particle(const ProcessSortArgs& a, u32 k, u32& i) {
    if (k >= a.incoming.first[a.ranges.count]) return false;
    u32 rank = 0u;
    while (k >= a.incoming.first[rank + 1u]) ++rank;
    if (k - a.incoming.first[rank] >= a.incoming.counts[rank]) return false;
    i = a.incoming.list[k];
    return true;
}

// Finds the cells of the own particles, and lists those in cells of other ranks for these.
extern "C" __global__ void find_cells(ProcessSortArgs a) {
    const StateView& s = a.sort.state;
    const u32 i = s.own_begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.own_end || s.globals->halt) return;
    const u32 c = cell_index(a.sort.grid, s.pos_type[i], s.globals), rank = rank_of_cell(a, c);
    a.sort.grid.cell_of[i] = c;
    if (rank == a.ranges.rank) {
        a.sort.arrival[i] = atomicAdd(&a.sort.count[c], 1u);
    } else {
        list_element(a.outgoing, s.globals, rank, i);
    }
}

extern "C" __global__ void count_incoming(ProcessSortArgs a) {
    u32 i;
    if (a.sort.state.globals->halt || !incoming_particle(a, blockIdx.x * blockDim.x + threadIdx.x, i)) return;
    a.sort.arrival[i] = atomicAdd(&a.sort.count[a.sort.grid.cell_of[i]], 1u);
}

// The first place of this rank's cells in the new order.
__device__ __forceinline__ u32 first_slot(const ProcessSortArgs& a) {
    u32 first = 0u;
    for (u32 rank = 0; rank < a.ranges.rank; ++rank) first += a.totals[rank];
    return first;
}

// As fill_cells: stores the particles of this rank's cells contiguously.
extern "C" __global__ void fill_own_cells(ProcessSortArgs a) {
    const StateView& s = a.sort.state;
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x, own = s.own_end - s.own_begin;
    if (s.globals->halt) return;
    u32 i = s.own_begin + k;
    if (k < own ? rank_of_cell(a, a.sort.grid.cell_of[i]) != a.ranges.rank : !incoming_particle(a, k - own, i)) return;
    a.sort.unordered[first_slot(a) + a.sort.grid.start[a.sort.grid.cell_of[i]] + a.sort.arrival[i]] = i;
}

// As order_cells, for the particles of this rank's cells. Lists places that belong to other ranks for these.
extern "C" __global__ void order_own_cells(ProcessSortArgs a) {
    const StateView& s = a.sort.state;
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (s.globals->halt || k >= a.sort.grid.start[a.sort.grid.cells]) return;
    const u32 first = first_slot(a), slot = order_slot(a.sort, first + k, first);
    if (slot < s.own_begin || slot >= s.own_end) list_element(a.outgoing, s.globals, rank_of(a.ranges, slot), slot);
}
