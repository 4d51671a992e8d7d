// Several ranks (GPUs) share a run: each propagates a range of whole blocks of the sorted particles. Every rank has arrays
// of all particles, so an index means the same everywhere. A rank writes what it computes into the memory of the others:
// what their ghosts need in every step, all positions at a rebuild. It reads what migrates at a sort from their memory.
#pragma once
#include "galamost/cells.cuh"
#include "galamost/list.cuh"
#include "galamost/reduce.cuh"

// Loads a word that another device may change; writes before its store are visible afterwards.
__device__ __forceinline__ u64 acquire_system(const u64* word) {
#ifdef GALAMOST_HOST
    return galamost_host::acquire(word);
#else
    u64 x;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(word) : "memory");
    return x;
#endif
}

// Stores a word for other devices, after all earlier writes.
__device__ __forceinline__ void release_system(u64* word, u64 x) {
#ifdef GALAMOST_HOST
    galamost_host::release(word, x);
#else
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory");
#endif
}

// Adds to a word for other devices, after all earlier writes.
__device__ __forceinline__ void add_release_system(u64* word, u64 x) {
#ifdef GALAMOST_HOST
    galamost_host::add_release(word, x);
#else
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory");
#endif
}

// Stores a word for other devices, not ordered with other writes.
__device__ __forceinline__ void store_system(u64* word, u64 x) {
#ifdef GALAMOST_HOST
    galamost_host::release(word, x);
#else
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory");
#endif
}

// Nanoseconds of a clock.
__device__ __forceinline__ u64 nanoseconds() {
#ifdef GALAMOST_HOST
    return galamost_host::nanoseconds();
#else
    u64 x;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(x));
    return x;
#endif
}

__device__ __forceinline__ u32 rank_of(const RankRanges& r, u32 particle) {
    u32 k = 0u;
    while (k + 1u < r.count && particle >= r.begin[k + 1u]) ++k;
    return k;
}

template <class T> __device__ __forceinline__ T* pointer(u64 address) { return reinterpret_cast<T*>(address); }

// A barrier over all ranks. Each rank has a mailbox with a word for each sender: the epoch, and what the sender requests.
// Words of odd and even epochs are apart, because a rank may arrive at the next barrier before another has read. The
// barrier also runs after a halt, so no rank waits for one that has halted.
//
// A kernel that uses what other ranks have computed begins with the barrier: its first block tells the others that this
// rank has arrived, all its blocks wait for the others, and its last block ends the epoch. A kernel that writes into the memory
// of others ends with the barrier, in its last block.
static constexpr u64 EPOCH_UNIT = 4ull, WANTS_REBUILD = 1ull, WANTS_HALT = 2ull;

// Waits until the word of a mailbox has at least this number of units, and returns it. A rank that does not come
// within the time limit is lost: the word then asks for a halt, and a fault is raised.
__device__ __forceinline__ u64 await_word(const RankBarrierArgs& a, const u64* word, u64 number, u64 unit, u32 rank) {
    u64 w = acquire_system(word);
    if (w / unit >= number) return w;
    const u64 start = nanoseconds();
    // nobody waits for a lost rank again
    const u64 limit = a.globals->fault.code == FaultKind::RankLost ? 0ull : a.limit;
    for (;;) {
        // the clock is read rarely, because it takes longer than the word
        for (u32 k = 0; k < 256u; ++k) {
            w = acquire_system(word);
            if (w / unit >= number) return w;
        }
#ifdef GALAMOST_HOST
        // kernels on the CPU are slow
        if (nanoseconds() - start > 20ull * limit) {
#else
        if (nanoseconds() - start > limit) {
#endif
            raise_fault(a.globals, FaultKind::RankLost, 0xffffffffu, 0xffffffffu, rank);
            return WANTS_HALT;
        }
    }
}

__device__ __forceinline__ u64 await_rank(const RankBarrierArgs& a, const u64* word, u64 epoch, u32 rank) {
    return await_word(a, word, epoch, EPOCH_UNIT, rank);
}

// An epoch as a block sees it.
struct RankEpoch {
    u64 number;
    // WANTS_REBUILD and WANTS_HALT, if a rank requests them
    u32 wanted;
};

// Tells the other ranks that this one has arrived at an epoch. With PUBLISHES, earlier writes are visible to them then.
// Called by a block.
template <bool PUBLISHES> __device__ __forceinline__ void arrive(const RankBarrierArgs& a, u64 epoch) {
    if (threadIdx.x >= a.ranks) return;
    const Globals* g = a.globals;
    const u64 word = epoch * EPOCH_UNIT | (g->rebuild ? WANTS_REBUILD : 0ull) | (g->halt ? WANTS_HALT : 0ull);
    u64* to = pointer<u64>(a.mailboxes[threadIdx.x]) + (epoch & 1ull) * MAX_RANKS + a.rank;
    if (PUBLISHES) release_system(to, word);
    else store_system(to, word);
}

// Waits until all ranks have arrived at an epoch, and returns what they request. Called by a block.
__device__ __forceinline__ u32 await_ranks(const RankBarrierArgs& a, u64 epoch) {
    const u32 thread = threadIdx.x;
    u64 w = 0ull;
    if (thread < a.ranks) {
        const u64* words = pointer<u64>(a.mailboxes[a.rank]) + (epoch & 1ull) * MAX_RANKS;
        w = await_rank(a, words + thread, epoch, thread);
    }
    return (__syncthreads_or((w & WANTS_REBUILD) != 0ull) ? u32(WANTS_REBUILD) : 0u) |
           (__syncthreads_or((w & WANTS_HALT) != 0ull) ? u32(WANTS_HALT) : 0u);
}

// Ends an epoch: a rebuild or a halt that one rank requests now applies to this rank as well. Called by one thread.
__device__ __forceinline__ void end_epoch(const RankBarrierArgs& a, const RankEpoch& e) {
    a.epochs[0] = e.number;
    a.epochs[4] = e.wanted & u32(WANTS_HALT);
    if (e.wanted & u32(WANTS_REBUILD)) a.globals->rebuild = 1u;
    if (e.wanted & u32(WANTS_HALT)) a.globals->halt = 1u;
}

// The barrier at the beginning of a kernel: afterwards, earlier writes of all ranks are visible. All threads of all blocks
// call it, and `end_of_kernel` at the end. Without `waits`, the ranks meet on the host.
__device__ __forceinline__ RankEpoch begin_epoch(const RankBarrierArgs& a) {
    RankEpoch e = {a.epochs[0] + 1ull, 0u};
    if (!a.waits) return e;
    if (blockIdx.x == 0u) arrive<true>(a, e.number);
    e.wanted = await_ranks(a, e.number);
    return e;
}

// Ends the epoch of a kernel that began with the barrier, in its last block.
__device__ __forceinline__ void end_of_kernel(const RankBarrierArgs& a, const RankEpoch& e) {
    __shared__ u32 flag;
    if (last_block(a.counter, &flag) && threadIdx.x == 0u && a.waits) end_epoch(a, e);
}

// The barrier at the end of a kernel that has written into the memory of other ranks. Each block adds to a counter in each
// rank, after its writes: a fence of the whole system takes microseconds, so all blocks make theirs at the same time. The last block
// waits, and its thread 0 returns true. All threads of all blocks call it; the number of blocks is the same in all ranks.
__device__ __forceinline__ bool barrier_at_end(const RankBarrierArgs& a) {
    const u32 thread = threadIdx.x, last = gridDim.x - 1u;
    __syncthreads();
    if (!a.waits) return blockIdx.x == last && thread == 0u;
    if (last != 0u && thread < a.ranks) add_release_system(pointer<u64>(a.mailboxes[thread]) + 3u * MAX_RANKS + a.rank, 1ull);
    if (blockIdx.x != last) return false;
    RankEpoch e = {a.epochs[0] + 1ull, 0u};
    const u64 blocks = a.epochs[3] + (last != 0u ? u64(gridDim.x) : 0ull);
    if (last == 0u) arrive<true>(a, e.number);
    else arrive<false>(a, e.number);
    const u64 start = nanoseconds();
    e.wanted = await_ranks(a, e.number);
    if (thread < a.ranks && !(e.wanted & u32(WANTS_HALT))) {
        await_word(a, pointer<u64>(a.mailboxes[a.rank]) + 3u * MAX_RANKS + thread, blocks, 1ull, thread);
    }
    __syncthreads();
    if (thread != 0u) return false;
    a.epochs[2] += nanoseconds() - start;
    a.epochs[3] = blocks;
    end_epoch(a, e);
    return true;
}

// Tells the other ranks that this one no longer uses the present values of its ghosts. One warp.
extern "C" __global__ void release_ghosts(RankBarrierArgs a) {
    const u64 number = a.epochs[1] + 1ull;
    __syncwarp();
    if (threadIdx.x < a.ranks) {
        store_system(pointer<u64>(a.mailboxes[threadIdx.x]) + 2u * MAX_RANKS + a.rank, number * EPOCH_UNIT);
    }
    if (threadIdx.x == 0u) a.epochs[1] = number;
}

// Waits until no rank uses the present values of its ghosts. Called by a block.
__device__ __forceinline__ void await_release(const RankBarrierArgs& a) {
    const u32 thread = threadIdx.x;
    if (thread < a.ranks) {
        const u64* word = pointer<u64>(a.mailboxes[a.rank]) + 2u * MAX_RANKS + thread;
        if (await_rank(a, word, a.epochs[1], thread) == WANTS_HALT) a.globals->halt = 1u;
    }
    __syncthreads();
}

extern "C" __global__ void rank_barrier(RankBarrierArgs a) {
    barrier_at_end(a);
}

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
    const u32 own = a.ranges.rank;
    for (u32 k = 0; k < a.ranges.count; ++k) {
        if (k == own || (a.from != ALL_RANKS && k != a.from)) continue;
        const Part part = part_of(a, a.from == ALL_RANKS ? k : own);
        copy_range(pointer<u32>(a.data[own]), pointer<const u32>(a.data[k]), part.begin, part.end);
    }
}

// Writes the own part into the memory of the other ranks, and ends with a barrier.
extern "C" __global__ void push_parts(PullArgs a) {
    const u32 own = a.ranges.rank;
    const Part part = part_of(a, own);
    for (u32 k = 1u; k < a.ranges.count; ++k) {
        // each rank begins with another one
        const u32 to = (own + k) % a.ranges.count;
        copy_range(pointer<u32>(a.data[to]), pointer<const u32>(a.data[own]), part.begin, part.end);
    }
    barrier_at_end(a.barrier);
}

// Reads `words` words from the beginning of an array of rank `from`.
extern "C" __global__ void pull_words(PullArgs a) {
    if (a.from != a.ranges.rank) copy_range(pointer<u32>(a.data[a.ranges.rank]), pointer<const u32>(a.data[a.from]), 0ull, a.words);
}

// Adds the integers of all ranks. Begins and ends with an epoch: all ranks have their integers, and all have read those of the
// others. All ranks take part or none: a rank that has halted by itself since the last epoch does, because the others do not
// know of it.
extern "C" __global__ void all_reduce(AllReduceArgs a) {
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
    RankEpoch after = {before.number + 1ull, 0u};
    arrive<false>(b, after.number);
    after.wanted = await_ranks(b, after.number);
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
    const u32 n = u32(a.staged.blocks[block].w) & 0x7fffffffu;
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

// Writes the fields of own particles into the memory of the ranks of which they are ghosts, after all ranks have released
// the former values, if they have not met since. Ends with a barrier. At the end of a rebuild, the rebuild is over if all ranks
// had room for their lists: a rank that halts alone would count other rebuilds than the others.
extern "C" __global__ void push_ghosts(GhostPushArgs a) {
    const u32 n = *a.count, own = a.ranges.rank;
    if (a.released && a.barrier.waits) await_release(a.barrier);
    for (u32 k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
        const u32 i = a.particles[k], ranks = a.to[k];
        for (u32 f = 0; f < a.n_fields; ++f) {
            const GhostField& field = a.fields[f];
            const u64 at = u64(i) * field.words;
            for (u32 w = 0; w < field.words; w += 4u) {
                const uint4 x = *reinterpret_cast<const uint4*>(pointer<const u32>(field.data[own]) + at + w);
                for (u32 left = ranks; left; left &= left - 1u) {
                    *reinterpret_cast<uint4*>(pointer<u32>(field.data[__ffs(int(left)) - 1]) + at + w) = x;
                }
            }
        }
    }
    Globals* g = a.barrier.globals;
    if (barrier_at_end(a.barrier) && a.ends_rebuild && !g->halt) finish_rebuild(g);
}

// As gather_arrays: copies arrays to the scratch memory in the new order. Arrays that every rank has complete are sorted
// by every rank; of the others, a rank reads what it will own from the present owners.
extern "C" __global__ void gather_from_ranks(RankMoveArgs a) {
    if (!sorts(a.grid, a.state.globals)) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    const bool own = i >= a.state.own_begin && i < a.state.own_end;
    const u32 old = a.order[i], from = own ? rank_of(a.ranges, old) : 0u;
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const RankArray& m = a.arrays[k];
        if (!m.everywhere && !own) continue;
        const u32* source = pointer<const u32>(m.data[m.everywhere ? a.ranges.rank : from]);
        copy_element(pointer<u32>(m.scratch) + u64(i) * m.words, source + u64(old) * m.words, m.words);
    }
}

// As copy_back_arrays.
__device__ __forceinline__ void copy_back(const RankMoveArgs& a) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    const bool own = i >= a.state.own_begin && i < a.state.own_end;
    for (u32 k = 0; k < a.n_arrays; ++k) {
        const RankArray& m = a.arrays[k];
        if (!m.everywhere && !own) continue;
        copy_element(pointer<u32>(m.data[a.ranges.rank]) + u64(i) * m.words, pointer<const u32>(m.scratch) + u64(i) * m.words, m.words);
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
