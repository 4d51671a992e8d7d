// The sort by ranks in several processes. Each rank orders the particles of its cells: a part of all cells, one after another along the
// curve. Others send it the numbers of the particles that have come into them.
#pragma once
#include "galamost/args.cuh"
#include "galamost/sort.cuh"

// Lists the elements that each rank gets, or counts them.
extern "C" __global__ void list_offered(OfferArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    u32 ranks = k < a.n ? a.offers[k] : 0u;
    for (; ranks; ranks &= ranks - 1u) {
        const u32 rank = u32(__ffs(int(ranks))) - 1u, at = atomicAdd(&a.counts[rank], 1u);
        if (a.list) a.list[a.first[rank] + at] = a.first_element + k;
    }
}

// Finds the cells of the own particles, and the ranks that order those in the cells of others.
extern "C" __global__ void find_cells(ProcessSortArgs a) {
    const StateView& s = a.sort.state;
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x, i = s.own_begin + k;
    if (i >= s.own_end) return;
    a.offers[k] = 0u;
    if (s.globals->halt) return;
    const u32 c = cell_index(a.sort.grid, s.pos_type[i], s.globals);
    a.sort.grid.cell_of[i] = c;
    u32 rank = 0u;
    while (c >= a.end_of_cells[rank]) ++rank;
    if (rank == a.ranges.rank) {
        a.sort.arrival[i] = atomicAdd(&a.sort.count[c], 1u);
    } else {
        a.offers[k] = 1u << rank;
    }
}

extern "C" __global__ void count_received(ProcessSortArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= a.n_received || a.sort.state.globals->halt) return;
    const u32 i = a.received[k];
    a.sort.arrival[i] = atomicAdd(&a.sort.count[a.sort.grid.cell_of[i]], 1u);
}

// As fill_cells: stores the particles of this rank's cells contiguously.
extern "C" __global__ void fill_own_cells(ProcessSortArgs a) {
    const StateView& s = a.sort.state;
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x, own = s.own_end - s.own_begin;
    if (s.globals->halt || k >= own + a.n_received || (k < own && a.offers[k] != 0u)) return;
    const u32 i = k < own ? s.own_begin + k : a.received[k - own];
    a.sort.unordered[a.first_slot + a.sort.grid.start[a.sort.grid.cell_of[i]] + a.sort.arrival[i]] = i;
}

// As order_cells, for the particles of this rank's cells.
extern "C" __global__ void order_own_cells(ProcessSortArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < a.n_slots && !a.sort.state.globals->halt) order_slot(a.sort, a.first_slot + k, a.first_slot);
}
