// Kernels of a rebuild. Particles are sorted by cell and, within a cell, by tag, so the order only depends on the
// positions. Then all arrays are moved to the new order, and the neighbor list is built.
#pragma once
#include "galamost/cells.cuh"
#include "galamost/list.cuh"
#include "galamost/reduce.cuh"
#ifdef GALAMOST_RANKS
#include "galamost/ranks_barrier.cuh"
#endif

// The grid stays valid in a larger box up to this ratio; its cells then hold more particles.
static constexpr double GRID_GROWS = 1.15;

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
    Globals* g = a.state.globals;
    if (!sorts(a.grid, g)) return;
    const u32 i = first_counted(a) + blockIdx.x * blockDim.x + threadIdx.x;
    // the staged list does not depend on cells
    if (i == 0u && a.grid.curve == 0u) {
        double height[3];
        box_heights(g->box_length, g->tilt, height);
        bool fits = true;
        for (u32 k = 0; k < a.dimensions; ++k) {
            fits &= height[k] >= a.grid_height[k] && height[k] <= GRID_GROWS * a.grid_height[k];
        }
#ifdef GALAMOST_TRICLINIC
        fits &= a.most_tilt == 0.0 || !is_skewed<double>(*g, a.most_tilt);
#endif
        if (!fits) raise_fault(g, FaultKind::GridOutgrown, 0xffffffffu, 0xffffffffu, 0u);
    }
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

// Adds the counts of each block of SCAN_BLOCK * SCAN_ITEMS cells.
extern "C" __global__ void sum_cells(SortArgs a) {
    if (!sorts(a.grid, a.state.globals)) return;
    __shared__ u32 total;
    const u32 first = (blockIdx.x * SCAN_BLOCK + threadIdx.x) * SCAN_ITEMS;
    u32 items[SCAN_ITEMS], sum = 0u;
    load_counts(a, first, items);
    for (u32 k = 0; k < SCAN_ITEMS; ++k) sum += items[k];
    block_scan(sum, &total);
    if (threadIdx.x == 0) a.block_sums[blockIdx.x] = total;
}

// Turns the sums of blocks into the start of each block, if there are many. Runs as one block.
extern "C" __global__ void scan_blocks(SortArgs a) {
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

// Returns the number of particles in cells of earlier blocks, from their sums. All threads of the block call it.
__device__ __forceinline__ u32 count_before(const SortArgs& a) {
    __shared__ u32 total;
    u32 sum = 0u;
    for (u32 k = threadIdx.x; k < blockIdx.x; k += SCAN_BLOCK) sum += a.block_sums[k];
    block_scan(sum, &total);
    const u32 before = total;
    // the next scan of this block uses the same memory
    __syncthreads();
    return before;
}

// Computes the first particle of each cell.
extern "C" __global__ void start_cells(SortArgs a) {
    if (!sorts(a.grid, a.state.globals)) return;
    __shared__ u32 total;
    const u32 first = (blockIdx.x * SCAN_BLOCK + threadIdx.x) * SCAN_ITEMS;
    u32 items[SCAN_ITEMS], sum = 0u;
    load_counts(a, first, items);
    for (u32 k = 0; k < SCAN_ITEMS; ++k) sum += items[k];
    const u32 before = a.scanned ? a.block_sums[blockIdx.x] : count_before(a);
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

// Stores the particles of each cell contiguously, in order of arrival.
extern "C" __global__ void fill_cells(SortArgs a) {
    if (!sorts(a.grid, a.state.globals)) return;
    const u32 i = first_counted(a) + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= end_counted(a)) return;
    a.unordered[a.grid.start[a.grid.cell_of[i]] + a.arrival[i]] = i;
}

// Finds the place of the particle in a slot by its tag.
__device__ __forceinline__ void order_slot(const SortArgs& a, u32 slot) {
    const u32 i = a.unordered[slot];
    const u32 c = a.grid.cell_of[i], tag = a.state.tag[i];
    const u32 from = a.grid.start[c], to = a.grid.start[c + 1u];
    u32 rank = 0u;
    for (u32 k = from; k < to; ++k) rank += a.state.tag[a.unordered[k]] < tag ? 1u : 0u;
    a.order[from + rank] = i;
}

// Sorts the particles of each cell by tag.
extern "C" __global__ void order_cells(SortArgs a) {
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

__device__ __forceinline__ void copy_words(u32* to, const u32* from, u32 words) {
    if ((words & 3u) == 0u) {
        for (u32 w = 0; w < words; w += 4u) *reinterpret_cast<uint4*>(to + w) = *reinterpret_cast<const uint4*>(from + w);
    } else {
        for (u32 w = 0; w < words; ++w) to[w] = from[w];
    }
}

// Copies every array to its scratch memory in the new order.
extern "C" __global__ void gather_arrays(MoveArgs a) {
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

extern "C" __global__ void index_links(LinkArgs a) {
    if (a.state.globals->halt) return;
    const u32 i = own_begin(a.state) + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= own_end(a.state)) return;
    const u32 tag = a.state.tag[i], n = a.tag_count[tag], width = a.links.width;
    const u32* row = a.tag_words + u64(tag) * a.links.capacity * width;
    a.links.count[i] = n;
    for (u32 e = 0; e < n; ++e) {
        for (u32 w = 0; w < width; ++w) {
            const u32 word = row[e * width + w];
            a.links.words[u64(e * width + w) * a.links.stride + i] = w + 1u < width ? a.state.index_of_tag[word] : word;
        }
    }
}

// A warp builds the rows of TILE consecutive particles, with LANES lanes for each. Consecutive particles are close in
// space, so they share most candidates: these are read once, contiguously, and tested by all. A row is ordered like its
// candidates, by cell and tag, so it is the same in every run. Rows are collected in shared memory and written to the
// list in whole cache lines. The code is not split into functions that are called twice: the compiler would inline both
// calls, and the kernel would no longer fit the instruction cache.
static constexpr u32 LANES = 32u / TILE;
// Number of candidates staged at once, and capacity of a row in shared memory.
static constexpr u32 STAGED = 64u, ROW_CAPACITY = 160u;

struct TileMemory {
    // the index replaces the type
    PosType candidate[STAGED];
    u32 row[TILE][ROW_CAPACITY];
    // ranges of particles, two for each row of cells, and the number of candidates before each
    u32 begin[64], before[64];
};

// Particles of a range of cells in a row of cells: two ranges if the range of cells crosses the boundary.
struct Ranges {
    u32 begin, end, begin2, end2;
};

// Returns the candidates in the row of cells at `offset` from a tile. The tile extends from cell x0 to
// x1 in row (y, z).
__device__ __forceinline__ Ranges candidates(const CellGrid& c, const Globals* g, u32 x0, u32 x1, u32 y, u32 z,
                                             int2 offset) {
    const u32 first =
        (wrap_cell(z, offset.y, c.n[2], c.whole_z) * c.n[1] + wrap_cell(y, offset.x, c.n[1], c.whole_y)) * c.n[0];
    const int n = int(c.n[0]);
    int from = int(x0) - c.reach_x, to = int(x1) + c.reach_x + 1;
    bool whole = c.whole_x;
#ifdef GALAMOST_SHEAR
    const int row = int(y) + offset.x, rows = int(c.n[1]);
    const int box_of = row >= rows ? 1 : row < 0 ? -1 : 0;
    if (c.whole_y || box_of != 0) {
        // cell x of the displaced image is cell x - offset of the box
        const double shift = -double(box_of) * (g->shear_offset / g->box_length[0] * double(n));
        const int width = int(ceil(double(to) + shift)) - int(floor(double(from) + shift));
        from = ((int(floor(double(from) + shift)) % n) + n) % n;
        to = from + width;
        whole = whole || c.whole_y;
    }
#endif
    const u32* start = c.start + first;
    if (whole || to - from >= n) return {start[0], start[n], 0u, 0u};
    if (from < 0) return {start[0], start[to], start[from + n], start[n]};
    if (to > n) return {start[0], start[to - n], start[from], start[n]};
    return {start[from], start[to], 0u, 0u};
}

// Returns true if particle j is excluded from the row of a particle with these exclusions and this molecule.
__device__ __forceinline__ bool is_excluded(const ListArgs& a, const u32* excluded, u32 n_excluded, u32 molecule,
                                            u32 j) {
    const u32 tag_j = a.state.tag[j];
    bool out = false;
    for (u32 e = 0; e < n_excluded; ++e) out |= excluded[e] == tag_j;
    if (a.excluded.molecule) out |= (a.excluded.molecule[tag_j] == molecule) != (a.excluded.other == 0u);
    return out;
}

// Stores the ranges of all lanes in shared memory and returns the total number of candidates.
__device__ __forceinline__ u32 store_ranges(TileMemory& memory, u32 lane, const Ranges& r) {
    const u32 first = r.end - r.begin, both = first + r.end2 - r.begin2, up_to = warp_scan(both);
    const u32 total = __shfl_sync(0xffffffffu, up_to, 31);
    __syncwarp();
    memory.begin[2u * lane] = r.begin;
    memory.begin[2u * lane + 1u] = r.begin2;
    memory.before[2u * lane] = up_to - both;
    memory.before[2u * lane + 1u] = up_to - both + first;
    __syncwarp();
    return total;
}

// Stages `count` candidates, from candidate number `from` on, in shared memory.
__device__ __forceinline__ void stage_candidates(const StateView& state, TileMemory& memory, u32 lane, u32 from,
                                                 u32 count) {
#pragma unroll
    for (u32 s = 0; s < STAGED; s += 32u) {
        if (s + lane >= count) continue;
        // binary search for the last range that begins at or before this candidate
        const u32 k = from + s + lane;
        u32 range = 0u;
#pragma unroll
        for (u32 half = 32u; half > 0u; half >>= 1) range += memory.before[range + half] <= k ? half : 0u;
        const u32 j = memory.begin[range] + k - memory.before[range];
        PosType p = load(&state.pos_type[j]);
        p.kind = j;
        memory.candidate[s + lane] = p;
    }
}

// Writes the entries of all rows of a tile that are in shared memory to the list. `n` is the number of entries of this
// lane's row; the first `written` ones are in the list already.
__device__ __forceinline__ void write_rows(const ListView& list, const TileMemory& memory, u32 first, u32 lane, u32 n,
                                           u32 written, u32 shift) {
    constexpr u32 ALL = 0xffffffffu;
    u32 longest = n - written;
    for (u32 d = LANES; d < 32u; d <<= 1) {
        const u32 other = __shfl_xor_sync(ALL, longest, d);
        longest = other > longest ? other : longest;
    }
    const u32 rounds = ((longest + list.team - 1u) >> shift) << shift;
    for (u32 w = 0; w < rounds * TILE; w += 32u) {
        // neighboring lanes write neighboring words of the list
        const u32 word = w + lane, row = (word >> shift) % TILE;
        const u32 entry = ((word >> shift) / TILE << shift) + (word & (list.team - 1u));
        const u32 length = __shfl_sync(ALL, n - written, int(row * LANES));
        const u32 slot = __shfl_sync(ALL, written, int(row * LANES)) + entry;
        if (entry < length && slot < list.capacity) {
            list.index[list_offset(list, first + row, slot)] = memory.row[row][entry];
        }
    }
}

template <bool EXCLUDES> __device__ __forceinline__ void build_tile(const ListArgs& a, TileMemory* memories) {
    constexpr u32 ALL = 0xffffffffu, UNROLL = EXCLUDES ? 1u : 4u;
    Globals* g = a.state.globals;
    if (g->halt) return;
    const CellGrid& c = a.grid;
    const ListView& list = a.list;
    const u32 lane = threadIdx.x & 31u;
    const u32 first = own_begin(a.state) + (blockIdx.x * TILE_WARPS + (threadIdx.x >> 5)) * TILE;
    if (first >= own_end(a.state)) return;
    TileMemory& memory = memories[threadIdx.x >> 5];
    // the particle of this lane, and the index of the lane within the lanes of the particle
    const u32 local = lane / LANES, sublane = lane % LANES, i = first + local, last = own_end(a.state) - 1u;
    const bool mine = i <= last;
    const PosType pi = load(&a.state.pos_type[mine ? i : last]);
    const u32 cell = c.cell_of[mine ? i : last];
    const BoxScale scale = make_scale(g);
    const real limit = real(list.r_list * list.r_list);
    const u32* excluded = nullptr;
    u32 n_excluded = 0u, molecule = 0u;
    if (EXCLUDES && mine && a.excluded.excluded_count) {
        const u32 tag = a.state.tag[i];
        excluded = a.excluded.excluded + u64(tag) * a.excluded.excluded_capacity;
        n_excluded = a.excluded.excluded_count[tag];
    }
    if (EXCLUDES && mine && a.excluded.molecule) molecule = a.excluded.molecule[a.state.tag[i]];
    u32* row_memory = memory.row[local];
    const u32 shift = 31u - u32(__clz(int(list.team)));
    // entries of the particle's row, and how many of them are already written to the list
    u32 n = 0u, written = 0u;
    // a tile may extend over several rows of cells
    for (u32 done = 0; done < TILE && first + done <= last;) {
        const u32 cell0 = __shfl_sync(ALL, cell, int(done * LANES)), row = cell0 / c.n[0];
        const bool active = mine && cell / c.n[0] == row;
        const u32 end = (31u - u32(__clz(int(__ballot_sync(ALL, active))))) / LANES;
        const u32 x0 = cell0 % c.n[0], x1 = __shfl_sync(ALL, cell, int(end * LANES)) % c.n[0];
        done = end + 1u;
        const bool last_cells = done >= TILE || first + done > last;
        for (u32 base = 0; base < c.n_rows; base += 32u) {
            Ranges r = {0u, 0u, 0u, 0u};
            if (base + lane < c.n_rows) r = candidates(c, g, x0, x1, row % c.n[1], row / c.n[1], c.rows[base + lane]);
            const u32 total = store_ranges(memory, lane, r);
            const bool last_rows = last_cells && base + 32u >= c.n_rows;
            for (u32 from = 0u;; from += STAGED) {
                const u32 count = total - from < STAGED ? total - from : STAGED;
                stage_candidates(a.state, memory, lane, from, count);
                __syncwarp();
                // several candidates at a time, without branches unless there are exclusions
                for (u32 s = sublane; s < count + sublane; s += UNROLL * LANES) {
                    bool near[UNROLL];
                    u32 j[UNROLL];
#pragma unroll
                    for (u32 k = 0; k < UNROLL; ++k) {
                        const PosType pj = memory.candidate[s + k * LANES];
                        j[k] = pj.kind;
                        near[k] = (device_norm2(difference(pi, pj, scale)) < limit) & (pj.kind != i) & active &
                                  (s + k * LANES < count);
                        if (EXCLUDES && near[k]) near[k] = !is_excluded(a, excluded, n_excluded, molecule, pj.kind);
                    }
#pragma unroll
                    for (u32 k = 0; k < UNROLL; ++k) {
                        const u32 votes = __ballot_sync(ALL, near[k]) >> (lane - sublane) & ((1u << LANES) - 1u);
                        if (near[k]) row_memory[n - written + __popc(votes & ((1u << sublane) - 1u))] = j[k];
                        n += __popc(votes);
                    }
                }
                const bool over = from + STAGED >= total;
                // write the row unless the next candidates fit even if all of them are neighbors
                if ((over && last_rows) || __any_sync(ALL, n - written > ROW_CAPACITY - STAGED)) {
                    __syncwarp();
                    write_rows(list, memory, first, lane, n, written, shift);
                    written = n;
                }
                __syncwarp();
                if (over) break;
            }
        }
    }
    if (!mine || sublane != 0u) return;
    if (n > list.capacity) {
        raise_fault(g, FaultKind::ListOverflow, 0xffffffffu, a.state.tag[i], n);
    } else {
        list.count[i] = n;
        if (n > g->longest_row) atomicMax(&g->longest_row, n);
    }
}

extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS) build_list(ListArgs a) {
    __shared__ TileMemory memories[TILE_WARPS];
    build_tile<false>(a, memories);
}

// The same kernel with exclusions.
extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS) build_list_excluding(ListArgs a) {
    __shared__ TileMemory memories[TILE_WARPS];
    build_tile<true>(a, memories);
}

// Builds a list of pairs within molecules that are smaller than a neighborhood. A thread tests the members of its
// particle's molecule instead of the particles of the cells around it. A row is ordered by tag.
extern "C" __global__ void build_list_of_members(MemberListArgs m) {
    const ListArgs& a = m.list;
    Globals* g = a.state.globals;
    const u32 i = own_begin(a.state) + blockIdx.x * blockDim.x + threadIdx.x;
    if (g->halt || i >= own_end(a.state)) return;
    const u32 tag = a.state.tag[i], end = m.end[tag];
    const PosType pi = load(&a.state.pos_type[i]);
    const BoxScale scale = make_scale(g);
    const real limit = real(a.list.r_list * a.list.r_list);
    const bool excludes = a.excluded.excluded_count != nullptr;
    const u32* excluded = excludes ? a.excluded.excluded + u64(tag) * a.excluded.excluded_capacity : nullptr;
    const u32 n_excluded = excludes ? a.excluded.excluded_count[tag] : 0u;
    u32 n = 0u;
    for (u32 k = m.first[tag]; k < end; ++k) {
        const u32 other = m.members[k];
        bool out = other == tag;
        for (u32 e = 0; e < n_excluded; ++e) out |= excluded[e] == other;
        if (out) continue;
        const u32 j = a.state.index_of_tag[other];
        if (!(device_norm2(difference(pi, load(&a.state.pos_type[j]), scale)) < limit)) continue;
        if (n < a.list.capacity) a.list.index[list_offset(a.list, i, n)] = j;
        ++n;
    }
    if (n > a.list.capacity) {
        raise_fault(g, FaultKind::ListOverflow, 0xffffffffu, tag, n);
    } else {
        a.list.count[i] = n;
        if (n > g->longest_row) atomicMax(&g->longest_row, n);
    }
}

extern "C" __global__ void end_rebuild(Globals* g) {
    if (!g->halt) finish_rebuild(g);
}
