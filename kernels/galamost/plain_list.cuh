// Rows of the plain neighbor list.
#pragma once
#include "galamost/cells.cuh"
#include "galamost/list.cuh"
#include "galamost/reduce.cuh"

// A warp builds the rows of TILE consecutive particles. They are close in space, so they share most candidates: each lane reads another
// candidate, and all lanes test theirs with one particle after the other. A row is ordered like its candidates, by cell and tag, so it is the
// same in every run. Rows are collected in shared memory and written to the list in whole cache lines. The code is not split into functions
// that are called twice: the compiler would inline both calls, and the kernel would no longer fit the instruction cache.

// Capacity of a row in shared memory.
static constexpr u32 ROW_CAPACITY = 160u;
// Blocks of TILE_WARPS warps that should fit a multiprocessor: with fewer, too few loads are in flight.
#ifdef GALAMOST_DOUBLE
static constexpr u32 TILE_BLOCKS = 5u;
#elif defined(GALAMOST_BATCHED)
static constexpr u32 TILE_BLOCKS = 7u;
#else
static constexpr u32 TILE_BLOCKS = 9u;
#endif

struct TileMemory {
    u32 row[TILE][ROW_CAPACITY];
    // for two ranges of particles of each row of cells: the difference between index and number of a candidate, and the number of candidates
    // before the range
    u32 shift[64], before[64];
    PosType particle[TILE];
    CellPlace place[TILE];
};

// Particles of a range of cells in a row of cells: two ranges if the range of cells crosses the boundary.
struct Ranges {
    u32 begin, end, begin2, end2;
};

// The cells from number `from` on to before `to` of a row of cells; outside of the box, they are those of an image.
struct CellRange {
    int from, to;
};

#if !defined(GALAMOST_SHEAR) && !defined(GALAMOST_TRICLINIC)
// Leaves out cells that are farther than the list radius from all particles of a tile. A margin covers rounding.
struct NearCells {
    // the squared extents of a cell along y and z, and the inverse one along x, in units of the list radius: lengths in double precision may
    // be out of the range of a float
    float y2, z2, per_x;

    static constexpr float MARGIN = 1e-3f;

    // All lanes of a warp call it.
    __device__ __forceinline__ NearCells(const CellGrid& c, const Globals* g, double r_list, u32 lane) {
        constexpr u32 ALL = 0xffffffffu;
        const u32 axis = lane % 3u;
        const float extent = float(g->box_length[axis] / (double(c.n[axis]) * r_list));
        per_x = 1.0f / __shfl_sync(ALL, extent, 0);
        y2 = __shfl_sync(ALL, extent * extent, 1);
        z2 = __shfl_sync(ALL, extent * extent, 2);
    }

    // Returns the distance between a coordinate within a cell and the cell `offset` cells away, in cells.
    static __device__ __forceinline__ float gap(int offset, float within) {
        const float above = float(offset) - within, below = within - float(offset + 1), d = (offset > 0 ? above : below) - MARGIN;
        return offset != 0 && d > 0.0f ? d : 0.0f;
    }

    // Returns those of the cells `all` of the row of cells at `offset` that are near one of the particles of a tile in the set `same`.
    __device__ __forceinline__ CellRange cells(const CellGrid& c, const TileMemory& memory, u32 same, int2 offset, CellRange all) const {
        CellRange near = {all.to, all.from};
        if (c.whole_y) offset.x = 0;
        if (c.whole_z) offset.y = 0;
#pragma unroll
        for (u32 k = 0; k < TILE; ++k) {
            const CellPlace p = memory.place[k];
            const float dy = gap(offset.x, p.y), dz = gap(offset.y, p.z), rest = 1.0f + MARGIN - dy * dy * y2 - dz * dz * z2;
            if (!(same >> k & 1u) || !(rest > 0.0f)) continue;
            const float reach = rest * device_rsqrt(rest) * per_x + MARGIN;
            const int from = p.cell + int(device_floor(p.x - reach)), to = p.cell + int(device_floor(p.x + reach)) + 1;
            near.from = from < near.from ? from : near.from;
            near.to = to > near.to ? to : near.to;
        }
        return {near.from < all.from ? all.from : near.from, near.to > all.to ? all.to : near.to};
    }
};
#endif

// Returns the candidates in the row of cells at `offset` from row (y, z), in these of its cells.
__device__ __forceinline__ Ranges candidates(const CellGrid& c, const Globals* g, CellRange cells, u32 y, u32 z, int2 offset) {
    const u32 first =
        (wrap_cell(z, offset.y, c.n[2], c.whole_z) * c.n[1] + wrap_cell(y, offset.x, c.n[1], c.whole_y)) * c.n[0];
    const int n = int(c.n[0]);
    int from = cells.from, to = cells.to;
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
    if (from >= to) return {0u, 0u, 0u, 0u};
    const u32* start = c.start + first;
    if (whole || to - from >= n) return {start[0], start[n], 0u, 0u};
    if (to <= 0 || from >= n) {
        const int image = to <= 0 ? n : -n;
        return {start[from + image], start[to + image], 0u, 0u};
    }
    if (from < 0) return {start[0], start[to], start[from + n], start[n]};
    if (to > n) return {start[0], start[to - n], start[from], start[n]};
    return {start[from], start[to], 0u, 0u};
}

// Returns true if a particle is excluded from the row of the particle with this tag.
__device__ __forceinline__ bool is_excluded(const Excluded& x, u32 tag, u32 tag_j) {
    bool out = false;
    if (x.excluded_count) {
        const u32* row = x.excluded + u64(tag) * x.excluded_capacity;
        const u32 n = x.excluded_count[tag];
        for (u32 e = 0; e < n; ++e) out |= row[e] == tag_j;
    }
    if (x.molecule) out |= (x.molecule[tag_j] == x.molecule[tag]) != (x.other == 0u);
    return out;
}

// Stores the ranges of all lanes in shared memory, two for each lane if there are second ones. Returns the total number of candidates.
__device__ __forceinline__ u32 store_ranges(TileMemory& memory, u32 lane, const Ranges& r, bool two) {
    const u32 first = r.end - r.begin, both = first + r.end2 - r.begin2, up_to = warp_scan(both), before = up_to - both;
    const u32 total = __shfl_sync(0xffffffffu, up_to, 31), at = two ? 2u * lane : lane;
    __syncwarp();
    memory.shift[at] = r.begin - before;
    memory.before[at] = before;
    if (two) {
        memory.shift[at + 1u] = r.begin2 - before - first;
        memory.before[at + 1u] = before + first;
    }
    __syncwarp();
    return total;
}

// Returns the index of a candidate.
__device__ __forceinline__ u32 candidate(const TileMemory& memory, u32 number, bool two) {
    // binary search for the last range that begins at or before this candidate
    u32 range = two && memory.before[32] <= number ? 32u : 0u;
#pragma unroll
    for (u32 half = 16u; half > 0u; half >>= 1) range += memory.before[range + half] <= number ? half : 0u;
    return number + memory.shift[range];
}

// Writes the entries of all rows of a tile that are in shared memory to the list. Lane k knows how many entries of row k there are, and how many
// are in the list already.
__device__ __forceinline__ void write_rows(const ListView& list, const TileMemory& memory, u32 first, u32 lane, u32 held,
                                           u32 written, u32 shift) {
    constexpr u32 ALL = 0xffffffffu;
    u32 longest = held;
    for (u32 d = 1u; d < TILE; d <<= 1) {
        const u32 other = __shfl_xor_sync(ALL, longest, d);
        longest = other > longest ? other : longest;
    }
    const u32 rounds = ((longest + list.team - 1u) >> shift) << shift, team = list.team - 1u;
    // a line of the list has entries of `team` consecutive slots of some particles
    const u32 particles = 5u - shift, line = first >> particles, words = (list.capacity >> shift) * 32u;
    u32* index = list.index + u64(line) * words;
    for (u32 w = 0; w < rounds * TILE; w += 32u) {
        // neighboring lanes write neighboring words of the list
        const u32 word = w + lane, row = (word >> shift) % TILE, i = first + row;
        const u32 entry = ((word >> shift) / TILE << shift) + (word & team);
        const u32 length = __shfl_sync(ALL, held, int(row)), slot = __shfl_sync(ALL, written, int(row)) + entry;
        if (entry < length && slot < list.capacity) {
            const u32 within = (slot >> shift) * 32u + ((i & ((1u << particles) - 1u)) << shift) + (slot & team);
            index[((i >> particles) - line) * words + within] = memory.row[row][entry];
        }
    }
}

// Returns the element of an array in registers.
__device__ __forceinline__ u32 held_of(const u32 (&held)[TILE], u32 own) {
    u32 x = held[0];
#pragma unroll
    for (u32 k = 1u; k < TILE; ++k) x = own == k ? held[k] : x;
    return x;
}

// Builds the rows of the tile that begins with particle `first`. All lanes of a warp call it.
template <bool EXCLUDES> __device__ __forceinline__ void build_tile(const ListArgs& a, TileMemory& memory, u32 first) {
    constexpr u32 ALL = 0xffffffffu;
    Globals* g = a.state.globals;
    if (g->halt) return;
    const CellGrid& c = a.grid;
    const ListView& list = a.list;
    if (first >= own_end(a.state)) return;
    const u32 lane = threadIdx.x & 31u, last = own_end(a.state) - 1u, shift = 31u - u32(__clz(int(list.team)));
    // the particle whose row this lane knows; others know the same one
    const u32 own = lane % TILE, i = first + own;
    const bool mine = i <= last;
    u32 held[TILE], written = 0u;
#pragma unroll
    for (u32 k = 0; k < TILE; ++k) held[k] = 0u;
    if (lane < TILE) memory.particle[lane] = load(&a.state.pos_type[mine ? i : last]);
    __syncwarp();
    const BoxScale scale = make_scale(g);
    const real radius2 = real(list.r_list * list.r_list);
    // a tile may extend over several rows of cells
    for (u32 done = 0; done < TILE && first + done <= last;) {
        u32 cell[3];
        const CellPlace place = place_in_cells(c, memory.particle[own], g, cell);
        if (lane < TILE) memory.place[lane] = place;
        __syncwarp();
        const u32 x0 = __shfl_sync(ALL, cell[0], int(done)), y = __shfl_sync(ALL, cell[1], int(done)), z = __shfl_sync(ALL, cell[2], int(done));
        // the particles in this row of cells
        const u32 same = __ballot_sync(ALL, mine && lane < TILE && cell[1] == y && cell[2] == z), end = 31u - u32(__clz(int(same)));
        const u32 x1 = __shfl_sync(ALL, cell[0], int(end));
        done = end + 1u;
        for (u32 base = 0; base < c.n_rows; base += 32u) {
#if !defined(GALAMOST_SHEAR) && !defined(GALAMOST_TRICLINIC)
            const NearCells near_cells(c, g, list.r_list, lane);
#endif
            Ranges r = {0u, 0u, 0u, 0u};
            if (base + lane < c.n_rows) {
                const int2 offset = c.rows[base + lane];
                CellRange cells = {int(x0) - c.reach_x, int(x1) + c.reach_x + 1};
#if !defined(GALAMOST_SHEAR) && !defined(GALAMOST_TRICLINIC)
                cells = near_cells.cells(c, memory, same, offset, cells);
#endif
                r = candidates(c, g, cells, y, z, offset);
            }
            const bool two = __any_sync(ALL, r.end2 != r.begin2);
            const u32 total = store_ranges(memory, lane, r, two);
            for (u32 from = 0u; from < total; from += 32u) {
                const bool valid = from + lane < total;
                const u32 j = candidate(memory, valid ? from + lane : from, two);
                const PosType pj = load(&a.state.pos_type[j]);
                bool near[TILE];
#pragma unroll
                for (u32 k = 0; k < TILE; ++k) {
                    near[k] = (device_norm2(difference(memory.particle[k], pj, scale)) < radius2) & (j != first + k) & valid & ((same >> k & 1u) != 0u);
                }
                bool any = false;
#pragma unroll
                for (u32 k = 0; k < TILE; ++k) any |= near[k];
                if (EXCLUDES && any) {
                    const u32 tag_j = a.state.tag[j];
#pragma unroll
                    for (u32 k = 0; k < TILE; ++k) near[k] = near[k] && !is_excluded(a.excluded, a.state.tag[first + k], tag_j);
                }
                u32 longest = 0u;
#pragma unroll
                for (u32 k = 0; k < TILE; ++k) {
                    const u32 votes = __ballot_sync(ALL, near[k]);
                    if (near[k]) memory.row[k][held[k] + __popc(votes & ((1u << lane) - 1u))] = j;
                    held[k] += __popc(votes);
                    longest = held[k] > longest ? held[k] : longest;
                }
                // write the rows if the next candidates may not fit
                if (longest > ROW_CAPACITY - 32u) {
                    __syncwarp();
                    const u32 own_held = held_of(held, own);
                    write_rows(list, memory, first, lane, own_held, written, shift);
                    written += own_held;
#pragma unroll
                    for (u32 k = 0; k < TILE; ++k) held[k] = 0u;
                    __syncwarp();
                }
            }
        }
    }
    __syncwarp();
    const u32 own_held = held_of(held, own), n = written + own_held;
    write_rows(list, memory, first, lane, own_held, written, shift);
    if (!mine || lane >= TILE) return;
    if (n > list.capacity) {
        raise_fault(g, FaultKind::ListOverflow, 0xffffffffu, a.state.tag[i], n);
    } else {
        list.count[i] = n;
        if (n > g->longest_row) atomicMax(&g->longest_row, n);
    }
}

// Builds the row of particle i in a list of pairs within molecules that are smaller than a neighborhood. It tests the members of the
// particle's molecule instead of the particles of the cells around it. A row is ordered by tag.
__device__ __forceinline__ void build_row_of_members(const MemberListArgs& m, u32 i) {
    const ListArgs& a = m.list;
    Globals* g = a.state.globals;
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
