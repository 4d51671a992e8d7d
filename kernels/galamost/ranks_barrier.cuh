// Barriers over several ranks (GPUs) inside of kernels: how ranks meet, and learn whether one of them requests a rebuild or a halt.
#pragma once
#include "galamost/reduce.cuh"
#include "galamost/state.cuh"

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
// There are two forms. A kernel that uses what other ranks have computed begins with begin_epoch: its first block sends the word of this
// rank, all its blocks wait for the others, and its last block ends the epoch. Others call barrier_of_ranks: kernels that write into the memory
// of others, at their end, and kernels of one block, which then read what others have written.
static constexpr u64 EPOCH_UNIT = 4ull, WANTS_REBUILD = 1ull, WANTS_HALT = 2ull;

// Nanoseconds after which a rank is lost. Kernels on the CPU are slow.
#ifdef GALAMOST_HOST
static constexpr u64 LIMIT = 20ull * RANK_LIMIT * 1000000000ull;
#else
static constexpr u64 LIMIT = RANK_LIMIT * 1000000000ull;
#endif

// Waits until the word of a mailbox has at least this number of units, and returns it. A rank that does not come
// within the time limit is lost: the word then asks for a halt, and a fault is raised.
__device__ __forceinline__ u64 await_word(const RankBarrierArgs& a, const u64* word, u64 number, u64 unit, u32 rank) {
    u64 w = acquire_system(word);
    if (w / unit >= number) return w;
    const u64 start = nanoseconds();
    // nobody waits for a lost rank again
    const u64 limit = a.globals->fault.code == FaultKind::RankLost ? 0ull : LIMIT;
    for (;;) {
        // the clock is read rarely, because it takes longer than the word
        for (u32 k = 0; k < 256u; ++k) {
            w = acquire_system(word);
            if (w / unit >= number) return w;
        }
        if (nanoseconds() - start > limit) {
            raise_fault(a.globals, FaultKind::RankLost, 0xffffffffu, 0xffffffffu, rank);
            return WANTS_HALT;
        }
    }
}

__device__ __forceinline__ u64 await_rank(const RankBarrierArgs& a, const u64* word, u64 epoch, u32 rank) {
    return await_word(a, word, epoch, EPOCH_UNIT, rank);
}

// Where the words of moves begin in a mailbox; see ranks_gate.cuh.
static constexpr u32 MOVE_WORDS = 4u * MAX_RANKS;

// Lets other threads run while this one waits.
__device__ __forceinline__ void pause_thread() {
#ifndef GALAMOST_HOST
    __nanosleep(100u);
#endif
}

// An epoch as a block sees it.
struct RankEpoch {
    u64 number;
    // WANTS_REBUILD and WANTS_HALT, if a rank requests them
    u32 wanted;
};

// The word of this rank at its next epoch, and its counts of nanoseconds and blocks.
struct Arrival {
    u64 number, waited, blocks;
    u32 requests;
};

// Loads all of it at once, which takes as long as one word.
__device__ __forceinline__ Arrival next_arrival(const RankBarrierArgs& a) {
    const Globals* g = a.globals;
    const u64 epoch = a.epochs[0], waited = a.epochs[2], blocks = a.epochs[3];
    const u32 rebuild = g->rebuild, halt = g->halt;
    return {epoch + 1ull, waited, blocks, (rebuild ? u32(WANTS_REBUILD) : 0u) | (halt ? u32(WANTS_HALT) : 0u)};
}

// Tells the other ranks that this one has arrived at an epoch. With PUBLISHES, earlier writes are visible to them then.
// Called by a block.
template <bool PUBLISHES> __device__ __forceinline__ void arrive(const RankBarrierArgs& a, const Arrival& own) {
    if (threadIdx.x >= a.ranks) return;
    u64* to = pointer<u64>(a.mailboxes[threadIdx.x]) + (own.number & 1ull) * MAX_RANKS + a.rank;
    const u64 word = own.number * EPOCH_UNIT | own.requests;
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
    if (blockIdx.x == 0u) arrive<true>(a, next_arrival(a));
    e.wanted = await_ranks(a, e.number);
    return e;
}

// Ends the epoch of a kernel that began with the barrier, in its last block.
__device__ __forceinline__ void end_of_kernel(const RankBarrierArgs& a, const RankEpoch& e) {
    __shared__ u32 flag;
    if (last_block_to_end(a.counter, &flag) && threadIdx.x == 0u && a.waits) end_epoch(a, e);
}

// The barrier after a kernel has written into the memory of other ranks, or in a kernel of one block. With several blocks, each adds to a counter in each
// rank, after its writes: a fence of the whole system takes microseconds, so all blocks make theirs at the same time. The last block
// waits, and its thread 0 returns true. All threads of all blocks call it; the number of blocks is the same in all ranks. `waited`: nanoseconds for
// which this block has waited for other ranks before.
__device__ __forceinline__ bool barrier_of_ranks(const RankBarrierArgs& a, u64 waited = 0ull) {
    const u32 thread = threadIdx.x, last = gridDim.x - 1u;
    __syncthreads();
    if (!a.waits) return blockIdx.x == last && thread == 0u;
    if (last != 0u && thread < a.ranks) add_release_system(pointer<u64>(a.mailboxes[thread]) + 3u * MAX_RANKS + a.rank, 1ull);
    if (blockIdx.x != last) return false;
    const Arrival own = next_arrival(a);
    const u64 blocks = own.blocks + (last != 0u ? u64(gridDim.x) : 0ull);
    if (last == 0u) arrive<true>(a, own);
    else arrive<false>(a, own);
    const u64 start = nanoseconds();
    const RankEpoch e = {own.number, await_ranks(a, own.number)};
    if (last != 0u && thread < a.ranks && !(e.wanted & u32(WANTS_HALT))) {
        await_word(a, pointer<u64>(a.mailboxes[a.rank]) + 3u * MAX_RANKS + thread, blocks, 1ull, thread);
    }
    __syncthreads();
    if (thread != 0u) return false;
    a.epochs[2] = own.waited + waited + nanoseconds() - start;
    a.epochs[3] = blocks;
    end_epoch(a, e);
    return true;
}

// Tells the other ranks that this one no longer uses the present values of its ghosts. Called by one warp.
__device__ __forceinline__ void release_values(const RankBarrierArgs& a) {
    const u64 number = a.epochs[1] + 1ull;
    __syncwarp();
    if (threadIdx.x < a.ranks) {
        store_system(pointer<u64>(a.mailboxes[threadIdx.x]) + 2u * MAX_RANKS + a.rank, number * EPOCH_UNIT);
    }
    if (threadIdx.x == 0u) a.epochs[1] = number;
}

// Waits until no rank uses the present values of its ghosts. Called by a block. Returns how long, in nanoseconds.
__device__ __forceinline__ u64 await_release(const RankBarrierArgs& a) {
    const u32 thread = threadIdx.x;
    const u64 start = nanoseconds();
    if (thread < a.ranks) {
        const u64* word = pointer<u64>(a.mailboxes[a.rank]) + 2u * MAX_RANKS + thread;
        if (await_rank(a, word, a.epochs[1], thread) == WANTS_HALT) a.globals->halt = 1u;
    }
    __syncthreads();
    return nanoseconds() - start;
}
