// Several ranks (GPUs) share a run: each propagates a range of whole blocks of the sorted particles. Every rank has arrays
// of all particles, so an index means the same everywhere. A rank writes what it computes into the memory of the others:
// what their ghosts need in every step, and at a rebuild the boxes of its tiles (staged list) or all positions (plain list). It reads
// from their memory what migrates at a sort, and positions near its own.
#pragma once
#include "galamost/cells.cuh"
#include "galamost/list.cuh"
#include "galamost/ranks_barrier.cuh"
#include "galamost/staged.cuh"

// Launched with one warp.
extern "C" __global__ void release_ghosts(RankBarrierArgs a) { await_launches(); release_values(a); }

extern "C" __global__ void rank_barrier(RankBarrierArgs a) { await_launches(); barrier_of_ranks(a); }

// Copies `words` words from the same place of another rank's memory with all threads of the grid.
__device__ __forceinline__ void copy_range(u32* to, const u32* from, u64 begin, u64 end) {
    const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x, threads = u64(gridDim.x) * blockDim.x;
    const u64 aligned = begin % 4ull == 0ull ? begin + (end - begin) / 4ull * 4ull : begin;
    for (u64 w = begin + 4ull * thread; w < aligned; w += 4ull * threads) {
        *reinterpret_cast<uint4*>(to + w) = *reinterpret_cast<const uint4*>(from + w);
    }
    for (u64 w = aligned + thread; w < end; w += threads) to[w] = from[w];
}

// The words of the part of an array that belongs to a rank; an element of the array belongs to `particles` particles.
struct Part {
    u64 begin, end;
};

__device__ __forceinline__ Part part_of(const PullArgs& a, u32 rank) {
    return {u64(a.ranges.begin[rank] / a.particles) * a.words,
            u64((a.ranges.begin[rank + 1u] + a.particles - 1u) / a.particles) * a.words};
}

// Reads the parts of other ranks from them, or the own part from one of them.
extern "C" __global__ void pull_parts(PullArgs a) {
    await_launches();
    const u32 own = a.ranges.rank;
    for (u32 k = 0; k < a.ranges.count; ++k) {
        if (k == own || (a.from != ALL_RANKS && k != a.from)) continue;
        const Part part = part_of(a, a.from == ALL_RANKS ? k : own);
        copy_range(pointer<u32>(a.data[own]), pointer<const u32>(a.data[k]), part.begin, part.end);
    }
}

// Writes the own part into the memory of the other ranks, and ends with a barrier.
extern "C" __global__ void push_parts(PullArgs a) {
    await_launches();
    const u32 own = a.ranges.rank;
    const Part part = part_of(a, own);
    for (u32 k = 1u; k < a.ranges.count; ++k) {
        // each rank begins with another one
        const u32 to = (own + k) % a.ranges.count;
        copy_range(pointer<u32>(a.data[to]), pointer<const u32>(a.data[own]), part.begin, part.end);
    }
    barrier_of_ranks(a.barrier);
}

// Reads `words` words from the beginning of an array of rank `from`.
extern "C" __global__ void pull_words(PullArgs a) {
    if (a.from != a.ranges.rank) copy_range(pointer<u32>(a.data[a.ranges.rank]), pointer<const u32>(a.data[a.from]), 0ull, a.words);
}

// Adds the integers of all ranks. Begins and ends with an epoch: all ranks have their integers, and all have read those of the
// others. All ranks take part or none: a rank that has halted by itself since the last epoch does, because the others do not
// know of it.
extern "C" __global__ void all_reduce(AllReduceArgs a) {
    await_launches();
    const RankBarrierArgs& b = a.barrier;
    if (b.epochs[4] != 0ull || (a.when && *a.when == 0u)) return;
    const RankEpoch before = begin_epoch(b);
    const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x, threads = u64(gridDim.x) * blockDim.x;
    for (u64 k = thread; k < a.n; k += threads) {
        u64 sum = 0ull;
        for (u32 r = 0; r < b.ranks; ++r) sum += __ldcg(pointer<const u64>(a.values[r]) + k);
        a.total[k] = sum;
    }
    __shared__ u32 flag;
    if (!last_block(b.counter, &flag) || !b.waits) return;
    if (threadIdx.x == 0u) end_epoch(b, before);
    __syncthreads();
    const Arrival own = next_arrival(b);
    arrive<false>(b, own);
    const RankEpoch after = {own.number, await_ranks(b, own.number)};
    if (threadIdx.x == 0u) end_epoch(b, after);
}

// Notes a neighbor or bonded partner of an own particle that belongs to another rank, once, and marks it in the memory of its
// owner.
__device__ __forceinline__ void note_ghost(const GhostArgs& a, u32 j) {
    const StateView& s = a.state;
    if (j >= s.own_begin && j < s.own_end) return;
    const u32 bit = 1u << (j & 31u);
    if (a.marks[j >> 5] & bit) return;
    if (atomicOr(&a.marks[j >> 5], bit) & bit) return;
    const RankRanges& r = a.ranges;
    const u32 owner = rank_of(r, j);
    // a message requests it from an owner in another process
    if (a.wanted[owner] == 0ull) return;
    pointer<unsigned char>(a.wanted[owner])[u64(r.rank) * (r.begin[owner + 1u] - r.begin[owner]) + j - r.begin[owner]] = 1u;
}

extern "C" __global__ void find_ghosts_of_list(GhostArgs a) {
    const u32 i = a.state.own_begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (a.state.globals->halt || i >= a.state.own_end) return;
    const u32 n = a.list.count[i];
    for (u32 k = 0; k < n; ++k) note_ghost(a, neighbor(a.list, i, k));
}

// A block of threads handles a block of the staged list.
extern "C" __global__ void find_ghosts_of_blocks(GhostArgs a) {
    if (a.state.globals->halt) return;
    const u32 block = a.state.own_begin / BLOCK + blockIdx.x;
    const int4 of_block = a.staged.blocks[block];
    const u32 n = slot_count(of_block);
    if (a.boundary && threadIdx.x == 0u && (u32(of_block.w) & BOUNDARY)) a.boundary[1u + atomicAdd(a.boundary, 1u)] = block;
    const u32* halo = a.staged.halo + u64(block) * (a.staged.slots - BLOCK);
    for (u32 slot = BLOCK + threadIdx.x; slot < n; slot += blockDim.x) note_ghost(a, halo[slot - BLOCK]);
}

extern "C" __global__ void find_ghosts_of_links(GhostArgs a) {
    const u32 i = a.state.own_begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (a.state.globals->halt || i >= a.state.own_end) return;
    const u32 n = a.links.count[i], width = a.links.width;
    for (u32 e = 0; e < n; ++e) {
        for (u32 w = 0; w + 1u < width; ++w) note_ghost(a, a.links.words[u64(e * width + w) * a.links.stride + i]);
    }
}

// Members of groups that have an own particle are ghosts. A thread handles a group.
extern "C" __global__ void find_ghosts_of_groups(GhostArgs a) {
    const StateView& s = a.state;
    const u32 group = blockIdx.x * blockDim.x + threadIdx.x;
    if (s.globals->halt || group >= a.n_groups) return;
    const u32 begin = a.group_starts[group], end = a.group_starts[group + 1u];
    bool own = false;
    for (u32 k = begin; k < end && !own; ++k) {
        const u32 i = s.index_of_tag[a.group_tags[k]];
        own = i >= s.own_begin && i < s.own_end;
    }
    for (u32 k = begin; k < end && own; ++k) note_ghost(a, s.index_of_tag[a.group_tags[k]]);
}

__device__ __forceinline__ void copy_element(u32* to, const u32* from, u32 words) {
    if ((words & 3u) == 0u) {
        for (u32 w = 0; w < words; w += 4u) *reinterpret_cast<uint4*>(to + w) = *reinterpret_cast<const uint4*>(from + w);
    } else {
        for (u32 w = 0; w < words; ++w) to[w] = from[w];
    }
}

// Lists the own particles that are ghosts of other ranks, with a bit for each of these. Begins with a barrier.
extern "C" __global__ void list_wanted(WantedArgs a) {
    const RankEpoch e = begin_epoch(a.barrier);
    const RankRanges& r = a.ranges;
    const u32 begin = r.begin[r.rank], n = r.begin[r.rank + 1u] - begin;
    for (u32 k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
        u32 ranks = 0u;
        for (u32 other = 0; other < r.count; ++other) ranks |= u32(a.wanted[u64(other) * n + k]) << other;
        if (ranks == 0u) continue;
        const u32 at = atomicAdd(a.count, 1u);
        a.particles[at] = begin + k;
        a.ranks[at] = ranks;
    }
    end_of_kernel(a.barrier, e);
}

// Writes a field of an own particle into the memory of ranks, word by word or in larger pieces T.
template <typename T>
__device__ __forceinline__ void push_field(const GhostField& field, u32 own, u32 i, u32 ranks) {
    const u64 at = u64(i) * field.words;
    for (u32 w = 0; w < field.words; w += u32(sizeof(T) / 4u)) {
        const T x = *reinterpret_cast<const T*>(pointer<const u32>(field.data[own]) + at + w);
        for (u32 left = ranks; left; left &= left - 1u) {
            *reinterpret_cast<T*>(pointer<u32>(field.data[__ffs(int(left)) - 1]) + at + w) = x;
        }
    }
}

// Writes the fields of own particles into the memory of the ranks of which they are ghosts, after all ranks have released
// the former values, if they have not met since. Ends with a barrier. At the end of a rebuild, the rebuild is over if all ranks
// had room for their lists: a rank that halts alone would count other rebuilds than the others.
extern "C" __global__ void push_ghosts(GhostPushArgs a) {
    await_launches();
    const u32 n = *a.count, own = a.ranges.rank;
    const u64 waited = a.released && a.barrier.waits ? await_release(a.barrier) : 0ull;
    for (u32 k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
        const u32 i = a.particles[k], ranks = a.to[k];
        for (u32 f = 0; f < a.n_fields; ++f) {
            const GhostField& field = a.fields[f];
            if (field.words & 3u) {
                push_field<u32>(field, own, i, ranks);
            } else {
                push_field<uint4>(field, own, i, ranks);
            }
        }
    }
    Globals* g = a.barrier.globals;
    if (barrier_of_ranks(a.barrier, waited) && a.ends_rebuild && !g->halt) finish_rebuild(g);
}

// The particle of a thread of a sort, and whether it is one of those that this rank moves.
__device__ __forceinline__ bool sorted_particle(const RankMoveArgs& a, u32& i, bool& own) {
    const bool own_only = a.distributed || a.shares;
    i = (own_only ? a.state.own_begin : 0u) + blockIdx.x * blockDim.x + threadIdx.x;
    own = i >= a.state.own_begin && i < a.state.own_end;
    return own || (!own_only && i < a.state.n_local);
}

// Marks the particles that become those of this rank and belong to another one, in another process.
extern "C" __global__ void mark_migrants(RankMoveArgs a) {
    const StateView& s = a.state;
    const u32 i = s.own_begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (!sorts(a.grid, s.globals) || i >= s.own_end) return;
    const u32 old = a.order[i];
    if (old < s.own_begin || old >= s.own_end) atomicOr(&a.marks[old >> 5], 1u << (old & 31u));
}

// As gather_arrays: copies arrays to the scratch memory in the new order. Arrays that every rank has complete are read from
// the own memory, others from the present owners. A rank that shares the list or has distributed arrays handles its new particles only.
extern "C" __global__ void gather_from_ranks(RankMoveArgs a) {
    if (!sorts(a.grid, a.state.globals)) return;
    u32 i;
    bool own;
    if (!sorted_particle(a, i, own)) return;
    const u32 old = a.order[i], from = own ? rank_of(a.ranges, old) : 0u;
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const RankArray& m = a.arrays[k];
        if (!m.everywhere && !own) continue;
        const u32* source = pointer<const u32>(m.data[m.everywhere ? a.ranges.rank : from]);
        copy_element(pointer<u32>(m.scratch) + u64(i) * m.words, source + u64(old) * m.words, m.words);
    }
}

// As copy_back_arrays. With `shares`, a rank writes what all ranks have complete into the memory of all.
__device__ __forceinline__ void copy_back(const RankMoveArgs& a) {
    u32 i;
    bool own;
    if (!sorted_particle(a, i, own)) return;
    const u32 rank = a.ranges.rank;
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const RankArray& m = a.arrays[k];
        if (!m.everywhere && !own) continue;
        const bool all = a.shares && m.everywhere;
        for (u32 to = all ? 0u : rank; to < (all ? a.ranges.count : rank + 1u); ++to) {
            copy_element(pointer<u32>(m.data[to]) + u64(i) * m.words, pointer<const u32>(m.scratch) + u64(i) * m.words, m.words);
        }
    }
    if (a.shares) {
        if (a.distributed && a.indexes_tags) a.state.index_of_tag[a.state.tag[i]] = i;
        return;
    }
    const PosType p = a.state.pos_type[i];
    a.state.pos_at_build[i] = p;
    a.state.index_of_tag[a.state.tag[i]] = i;
    if (a.grid.curve == 0u) a.grid.cell_of[i] = cell_index(a.grid, p, a.state.globals);
}

// Begins with a barrier, because other ranks gather what this one overwrites. All ranks sort at the same rebuilds.
extern "C" __global__ void copy_back_own(RankMoveArgs a) {
    const RankEpoch e = begin_epoch(a.barrier);
    if (!(e.wanted & u32(WANTS_HALT)) && sorts(a.grid, a.state.globals)) copy_back(a);
    end_of_kernel(a.barrier, e);
}

// A barrier before other ranks use what this one has done for a sort. Also runs after a halt, as other barriers do.
extern "C" __global__ void barrier_of_sort(RankMoveArgs a) {
    if (sort_is_due(a.grid, a.state.globals)) barrier_of_ranks(a.barrier);
}

// Notes where tags are after a sort that ranks share.
extern "C" __global__ void index_tags(RankMoveArgs a) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (sorts(a.grid, a.state.globals) && i < a.state.n_local) a.state.index_of_tag[a.state.tag[i]] = i;
}
