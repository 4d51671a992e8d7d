// Kernels of a rebuild: particles are sorted by cell and, inside a cell, by tag, so that the order depends only on
// where particles are; then everything that follows the order is moved, and the neighbour list is built.
#pragma once
#include "galamost/cells.cuh"
#include "galamost/reduce.cuh"

struct SortArgs {
    StateView state;
    CellGrid grid;
    // particles of each cell, later the next free place
    u32* count;
    // place of each particle among those that came to its cell, in order of arrival
    u32* arrival;
    // by place: particles of each cell in order of arrival, then order[new] = old
    u32* unordered;
    u32* order;
    // sums of blocks of cells
    u32* block_sums;
    u32 n_blocks, dimensions;
    // the grid is made for a box of these lengths
    double grid_length[3];
};

// In a larger box its cells are wide enough as well, though they hold more particles: up to this ratio.
static constexpr double GRID_GROWS = 1.15;

static constexpr u32 SCAN_BLOCK = 256u, SCAN_ITEMS = 8u;

// Counts the particles of each cell.
extern "C" __global__ void count_cells(SortArgs a) {
    Globals* g = a.state.globals;
    if (g->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0u) {
        bool fits = true;
        for (u32 k = 0; k < a.dimensions; ++k) {
            fits &= g->box_length[k] >= a.grid_length[k] && g->box_length[k] <= GRID_GROWS * a.grid_length[k];
        }
        if (!fits) raise_fault(g, 7u, 0xffffffffu, 0xffffffffu, 0u);
    }
    if (i >= a.state.n_local) return;
    const u32 c = cell_index(a.grid, a.state.pos_type[i], g);
    a.grid.cell_of[i] = c;
    a.arrival[i] = atomicAdd(&a.count[c], 1u);
}

// Sum of each block of SCAN_BLOCK * SCAN_ITEMS cells.
extern "C" __global__ void sum_cells(SortArgs a) {
    if (a.state.globals->halt) return;
    __shared__ u32 total;
    const u32 first = (blockIdx.x * SCAN_BLOCK + threadIdx.x) * SCAN_ITEMS;
    u32 sum = 0u;
    for (u32 k = 0; k < SCAN_ITEMS; ++k) {
        if (first + k < a.grid.cells) sum += a.count[first + k];
    }
    block_scan(sum, &total);
    if (threadIdx.x == 0) a.block_sums[blockIdx.x] = total;
}

// One block: the sums of blocks become the places where blocks start.
extern "C" __global__ void scan_blocks(SortArgs a) {
    if (a.state.globals->halt) return;
    __shared__ u32 total;
    u32 before = 0u;
    for (u32 base = 0; base < a.n_blocks; base += blockDim.x) {
        const u32 k = base + threadIdx.x;
        const u32 x = k < a.n_blocks ? a.block_sums[k] : 0u;
        const u32 place = block_scan(x, &total);
        if (k < a.n_blocks) a.block_sums[k] = before + place;
        __syncthreads();
        before += total;
        __syncthreads();
    }
}

// First particle of each cell.
extern "C" __global__ void start_cells(SortArgs a) {
    if (a.state.globals->halt) return;
    __shared__ u32 total;
    const u32 first = (blockIdx.x * SCAN_BLOCK + threadIdx.x) * SCAN_ITEMS;
    u32 items[SCAN_ITEMS], sum = 0u;
    for (u32 k = 0; k < SCAN_ITEMS; ++k) {
        items[k] = first + k < a.grid.cells ? a.count[first + k] : 0u;
        sum += items[k];
    }
    u32 place = a.block_sums[blockIdx.x] + block_scan(sum, &total);
    for (u32 k = 0; k < SCAN_ITEMS; ++k) {
        if (first + k < a.grid.cells) a.grid.start[first + k] = place;
        place += items[k];
        if (first + k + 1u == a.grid.cells) a.grid.start[a.grid.cells] = place;
    }
}

// Particles of each cell, side by side, in order of arrival.
extern "C" __global__ void fill_cells(SortArgs a) {
    if (a.state.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    a.unordered[a.grid.start[a.grid.cell_of[i]] + a.arrival[i]] = i;
}

// Inside its cell each particle takes the place that its tag gives it.
extern "C" __global__ void order_cells(SortArgs a) {
    if (a.state.globals->halt) return;
    const u32 place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= a.state.n_local) return;
    const u32 i = a.unordered[place];
    const u32 c = a.grid.cell_of[i], tag = a.state.tag[i];
    const u32 from = a.grid.start[c], to = a.grid.start[c + 1u];
    u32 rank = 0u;
    for (u32 k = from; k < to; ++k) rank += a.state.tag[a.unordered[k]] < tag ? 1u : 0u;
    a.order[from + rank] = i;
}

// An array that follows the order: `words` 32-bit words per particle.
struct MovedArray {
    u32* data;
    u32* scratch;
    u32 words, reserved;
};

static constexpr u32 MOVED = 16u;

struct MoveArgs {
    StateView state;
    CellGrid grid;
    const u32* order;
    u32 n_arrays, reserved;
    MovedArray arrays[MOVED];
};

__device__ __forceinline__ void copy_words(u32* to, const u32* from, u32 words) {
    if ((words & 3u) == 0u) {
        for (u32 w = 0; w < words; w += 4u) *reinterpret_cast<uint4*>(to + w) = *reinterpret_cast<const uint4*>(from + w);
    } else {
        for (u32 w = 0; w < words; ++w) to[w] = from[w];
    }
}

// Every array into its scratch, in the new order.
extern "C" __global__ void gather_arrays(MoveArgs a) {
    if (a.state.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    const u32 old = a.order[i];
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const MovedArray& m = a.arrays[k];
        copy_words(m.scratch + u64(i) * m.words, m.data + u64(old) * m.words, m.words);
    }
}

// And back; with it everything that follows directly from the new order.
extern "C" __global__ void settle_arrays(MoveArgs a) {
    if (a.state.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const MovedArray& m = a.arrays[k];
        copy_words(m.data + u64(i) * m.words, m.scratch + u64(i) * m.words, m.words);
    }
    const PosType p = a.state.pos_type[i];
    a.state.pos_at_build[i] = p;
    a.state.index_of_tag[a.state.tag[i]] = i;
    a.grid.cell_of[i] = cell_index(a.grid, p, a.state.globals);
}

// Links by tag, as the host makes them, become links by index.
struct LinkArgs {
    StateView state;
    LinkView links;
    const u32* tag_count;
    const u32* tag_words;
};

extern "C" __global__ void index_links(LinkArgs a) {
    if (a.state.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
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

// Pairs that are no neighbours. Rows of excluded tags with room for `excluded_capacity`; `excluded_count` is null if
// nothing is excluded. The molecule of each tag, null if it does not count; else only pairs of one molecule are neighbours, with `other` only
// pairs of different ones.
struct LeftOut {
    const u32* excluded_count;
    const u32* excluded;
    const u32* molecule;
    u32 other, excluded_capacity;
};

struct ListArgs {
    StateView state;
    CellGrid grid;
    ListView list;
    LeftOut left_out;
};

// `TEAM` threads test the candidates of one particle; who is near takes the next place by counting the votes before
// it, so the row is in the order of the cells, the same in every run.
template <u32 TEAM> struct RowBuilder {
    PosType pi;
    BoxScale scale;
    real limit;
    u64 base;
    const u32* excluded;
    u32 i, n, n_excluded, molecule, lane, team_mask;

    // Tests the particles from ... to - 1.
    __device__ __forceinline__ void range(const ListArgs& a, u32 from, u32 to) {
        for (u32 first = from; first < to; first += TEAM) {
            const u32 j = first + lane;
            bool near = false;
            if (j < to) {
                const Vec3<real> d = difference(pi, load(&a.state.pos_type[j]), scale);
                near = device_norm2(d) < limit && j != i;
                if (near && n_excluded) {
                    const u32 tag_j = a.state.tag[j];
                    for (u32 k = 0; k < n_excluded; ++k) near &= excluded[k] != tag_j;
                }
                if (near && a.left_out.molecule) {
                    near = (a.left_out.molecule[a.state.tag[j]] == molecule) == (a.left_out.other == 0u);
                }
            }
            u32 place = n;
            if (TEAM == 1u) {
                n += near ? 1u : 0u;
            } else {
                const u32 votes = __ballot_sync(team_mask, near) & team_mask;
                const u32 before = votes & ((1u << (threadIdx.x & 31u)) - 1u);
                place += __popc(before);
                n += __popc(votes);
            }
            if (near && place < a.list.capacity) a.list.index[base + place / a.list.team * 32u + place % a.list.team] = j;
        }
    }
};

template <u32 TEAM> __device__ __forceinline__ void build_rows(const ListArgs& a) {
    Globals* g = a.state.globals;
    if (g->halt) return;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 i = thread / TEAM;
    if (i >= a.state.n_local) return;
    const CellGrid& c = a.grid;
    const u32 cell = c.cell_of[i];
    const u32 x = cell % c.n[0], y = cell / c.n[0] % c.n[1], z = cell / c.n[0] / c.n[1];
    RowBuilder<TEAM> row;
    row.pi = a.state.pos_type[i];
    row.scale = make_scale(g);
    row.limit = real(a.list.r_list * a.list.r_list);
    row.i = i;
    row.n = 0u;
    row.lane = thread % TEAM;
    row.team_mask = TEAM == 32u ? 0xffffffffu : ((1u << TEAM) - 1u) << ((threadIdx.x & 31u) / TEAM * TEAM);
    const u32 per_warp = 32u / a.list.team;
    row.base = u64(i / per_warp) * (a.list.capacity / a.list.team) * 32u + (i % per_warp) * a.list.team;
    row.excluded = nullptr;
    row.n_excluded = row.molecule = 0u;
    if (a.left_out.excluded_count) {
        const u32 tag = a.state.tag[i];
        row.excluded = a.left_out.excluded + u64(tag) * a.left_out.excluded_capacity;
        row.n_excluded = a.left_out.excluded_count[tag];
    }
    if (a.left_out.molecule) row.molecule = a.left_out.molecule[a.state.tag[i]];
    for (u32 r = 0; r < c.n_rows; ++r) {
        const int2 offset = c.rows[r];
        const u32 first =
            (wrap_cell(z, offset.y, c.n[2], c.whole_z) * c.n[1] + wrap_cell(y, offset.x, c.n[1], c.whole_y)) * c.n[0];
#ifdef GALAMOST_SHEAR
        const int s = int(y) + offset.x, rows = int(c.n[1]), across = int(c.n[0]);
        const int box_of = s >= rows ? 1 : s < 0 ? -1 : 0;
        if (c.whole_y || box_of != 0) {
            // cells that stand at x in the displaced box stand at x - offset in their own
            const double shift = -double(box_of) * (g->shear_offset / g->box_length[0] * double(across));
            const int from = int(floor(double(int(x) - c.reach_x) + shift));
            const int to = int(ceil(double(int(x) + c.reach_x + 1) + shift));
            if (c.whole_x || c.whole_y || to - from >= across) {
                row.range(a, c.start[first], c.start[first + c.n[0]]);
                continue;
            }
            const int begin = ((from % across) + across) % across, end = begin + to - from;
            row.range(a, c.start[first + begin], c.start[first + (end < across ? end : across)]);
            if (end > across) row.range(a, c.start[first], c.start[first + end - across]);
            continue;
        }
#endif
        if (c.whole_x) {
            row.range(a, c.start[first], c.start[first + c.n[0]]);
            continue;
        }
        const int from = int(x) - c.reach_x, to = int(x) + c.reach_x + 1, n = int(c.n[0]);
        if (from < 0) {
            row.range(a, c.start[first], c.start[first + to]);
            row.range(a, c.start[first + from + n], c.start[first + n]);
        } else if (to > n) {
            row.range(a, c.start[first], c.start[first + to - n]);
            row.range(a, c.start[first + from], c.start[first + n]);
        } else {
            row.range(a, c.start[first + from], c.start[first + to]);
        }
    }
    if (row.lane != 0u) return;
    if (row.n > a.list.capacity) {
        raise_fault(g, 2u, 0xffffffffu, a.state.tag[i], row.n);
    } else {
        a.list.count[i] = row.n;
        if (row.n > g->longest_row) atomicMax(&g->longest_row, row.n);
    }
}

extern "C" __global__ void build_list_1(ListArgs a) { build_rows<1u>(a); }
extern "C" __global__ void build_list_4(ListArgs a) { build_rows<4u>(a); }
extern "C" __global__ void build_list_8(ListArgs a) { build_rows<8u>(a); }
extern "C" __global__ void build_list_16(ListArgs a) { build_rows<16u>(a); }
extern "C" __global__ void build_list_32(ListArgs a) { build_rows<32u>(a); }

// The rebuild is done.
extern "C" __global__ void end_rebuild(Globals* g) {
    if (g->halt) return;
    g->rebuild = 0u;
    g->rebuilds += 1ull;
    begin_list(g);
}
