// Parts of the sort of particles by cell and tag; see rebuild.cuh.
#pragma once
#include "galamost/cells.cuh"
#include "galamost/reduce.cuh"

// The grid stays valid in a larger box up to this ratio; its cells then hold more particles.
static constexpr double GRID_GROWS = 1.15;

// Returns whether the grid is valid in the present box.
__device__ __forceinline__ bool grid_fits(const SortArgs& a) {
    const Globals* g = a.state.globals;
    double height[3];
    box_heights(g->box_length, g->tilt, height);
    bool fits = true;
    for (u32 k = 0; k < a.dimensions; ++k) {
        fits &= height[k] >= a.grid_height[k] && height[k] <= GRID_GROWS * a.grid_height[k];
    }
#ifdef GALAMOST_TRICLINIC
    fits &= a.most_tilt == 0.0 || !is_skewed<double>(*g, a.most_tilt);
#endif
    return fits;
}

__device__ __forceinline__ void raise_grid_outgrown(Globals* g) {
    raise_fault(g, FaultKind::GridOutgrown, 0xffffffffu, 0xffffffffu, 0u);
}

// The counts of SCAN_ITEMS cells of a thread. A thread loads them as whole as possible: single words of neighboring threads would
// lie far apart.
__device__ __forceinline__ void load_counts(const SortArgs& a, u32 first, u32 (&items)[SCAN_ITEMS]) {
    static_assert(SCAN_ITEMS % 4u == 0u, "counts are loaded by fours");
    if (first + SCAN_ITEMS <= a.grid.cells) {
#pragma unroll
        for (u32 k = 0; k < SCAN_ITEMS; k += 4u) {
            const uint4 four = *reinterpret_cast<const uint4*>(a.count + first + k);
            items[k] = four.x;
            items[k + 1u] = four.y;
            items[k + 2u] = four.z;
            items[k + 3u] = four.w;
        }
        return;
    }
    for (u32 k = 0; k < SCAN_ITEMS; ++k) items[k] = first + k < a.grid.cells ? a.count[first + k] : 0u;
}

// Adds the counts of a block of SCAN_BLOCK * SCAN_ITEMS cells. All threads of the block of threads call it.
__device__ __forceinline__ void sum_block_of_cells(const SortArgs& a, u32 block) {
    __shared__ u32 total;
    const u32 first = (block * SCAN_BLOCK + threadIdx.x) * SCAN_ITEMS;
    u32 items[SCAN_ITEMS], sum = 0u;
    load_counts(a, first, items);
    for (u32 k = 0; k < SCAN_ITEMS; ++k) sum += items[k];
    block_scan(sum, &total);
    if (threadIdx.x == 0) a.block_sums[block] = total;
}

// Returns the number of particles in cells of earlier blocks, from their sums. All threads of the block call it.
__device__ __forceinline__ u32 count_before(const SortArgs& a, u32 block) {
    __shared__ u32 total;
    u32 sum = 0u;
    for (u32 k = threadIdx.x; k < block; k += SCAN_BLOCK) sum += a.block_sums[k];
    block_scan(sum, &total);
    const u32 before = total;
    // the next scan of this block uses the same memory
    __syncthreads();
    return before;
}

// Computes the first particle of each cell of a block of cells. All threads of the block of threads call it.
__device__ __forceinline__ void start_block_of_cells(const SortArgs& a, u32 block) {
    __shared__ u32 total;
    const u32 first = (block * SCAN_BLOCK + threadIdx.x) * SCAN_ITEMS;
    u32 items[SCAN_ITEMS], sum = 0u;
    load_counts(a, first, items);
    for (u32 k = 0; k < SCAN_ITEMS; ++k) sum += items[k];
    const u32 before = a.scanned ? a.block_sums[block] : count_before(a, block);
    u32 slot = before + block_scan(sum, &total);
    u32 starts[SCAN_ITEMS];
#pragma unroll
    for (u32 k = 0; k < SCAN_ITEMS; ++k) {
        starts[k] = slot;
        slot += items[k];
    }
    if (first < a.grid.cells && first + SCAN_ITEMS >= a.grid.cells) a.grid.start[a.grid.cells] = slot;
    if (first + SCAN_ITEMS <= a.grid.cells) {
#pragma unroll
        for (u32 k = 0; k < SCAN_ITEMS; k += 4u) {
            *reinterpret_cast<uint4*>(a.grid.start + first + k) = {starts[k], starts[k + 1u], starts[k + 2u], starts[k + 3u]};
        }
        return;
    }
    for (u32 k = 0; k < SCAN_ITEMS; ++k) {
        if (first + k < a.grid.cells) a.grid.start[first + k] = starts[k];
    }
}

// Finds the place of the particle in a slot by its tag, and returns it. `first`: the slot of the first particle in the first of the counted cells.
__device__ __forceinline__ u32 order_slot(const SortArgs& a, u32 slot, u32 first = 0u) {
    const u32 i = a.unordered[slot];
    const u32 c = a.grid.cell_of[i], tag = a.state.tag[i];
    const u32 from = first + a.grid.start[c], to = first + a.grid.start[c + 1u];
    u32 rank = 0u;
    for (u32 k = from; k < to; ++k) rank += a.state.tag[a.unordered[k]] < tag ? 1u : 0u;
    a.order[from + rank] = i;
    return from + rank;
}

__device__ __forceinline__ void copy_words(u32* to, const u32* from, u32 words) {
    if ((words & 3u) == 0u) {
        for (u32 w = 0; w < words; w += 4u) *reinterpret_cast<uint4*>(to + w) = *reinterpret_cast<const uint4*>(from + w);
    } else {
        for (u32 w = 0; w < words; ++w) to[w] = from[w];
    }
}

// Looks up the particles of the links of particle i by their tags.
__device__ __forceinline__ void index_links_of(const StateView& s, const LinkTable& a, u32 i) {
    const u32 tag = s.tag[i], n = a.tag_count[tag], width = a.links.width;
    const u32* row = a.tag_words + u64(tag) * a.links.capacity * width;
    a.links.count[i] = n;
    for (u32 e = 0; e < n; ++e) {
        for (u32 w = 0; w < width; ++w) {
            const u32 word = row[e * width + w];
            a.links.words[u64(e * width + w) * a.links.stride + i] = w + 1u < width ? s.index_of_tag[word] : word;
        }
    }
}
