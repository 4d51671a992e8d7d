// The barrier after a move, inside the pair loop. Only boundary blocks wait: those with particles of other ranks in their halo.
//
// A word contains the number of the next epoch. Each step has an epoch after the forces, so the numbers of two steps differ, and all ranks
// have read a word before the next one is sent.
#pragma once
#include "galamost/ranks_barrier.cuh"

// Positions of other ranks are loaded with `__ldg` although they change while the kernel runs. No block loads them before it has waited, and
// the acquire that ends the wait invalidates the L1 cache.

// Value of the flags `rebuild` and `halt` for requests of other ranks, which blocks set while the pair loop runs. Requests of this rank are set
// before it, so all threads of a block see the same ones: only these make a block return before its first barrier.
static constexpr u32 OF_OTHERS = 4u;

// Waits until the rank with the number of this thread has sent its word, and returns what it requests; 0 if there is no such rank. The
// polls are 100 ns apart because many blocks wait at the same time.
__device__ __forceinline__ u32 await_move(const RankBarrierArgs& a, u64 number) {
    const u32 rank = threadIdx.x;
    if (rank >= a.ranks) return 0u;
    const u64* word = pointer<u64>(a.mailboxes[a.rank]) + MOVE_WORDS + rank;
    u64 w = acquire_system(word);
    if (w / EPOCH_UNIT < number) {
        const u64 start = nanoseconds();
        const u64 limit = a.globals->fault.code == FaultKind::RankLost ? 0ull : LIMIT;
        do {
            pause_thread();
            w = acquire_system(word);
            if (w / EPOCH_UNIT < number && nanoseconds() - start > limit) {
                raise_fault(a.globals, FaultKind::RankLost, 0xffffffffu, 0xffffffffu, rank);
                a.globals->halt = OF_OTHERS;
                return u32(WANTS_HALT);
            }
        } while (w / EPOCH_UNIT < number);
    }
    return u32(w) & u32(WANTS_REBUILD | WANTS_HALT);
}

// What this rank requests.
__device__ __forceinline__ u32 own_requests(const Globals* g) {
    const u32 rebuild = g->rebuild, halt = g->halt;
    return (rebuild & ~OF_OTHERS ? u32(WANTS_REBUILD) : 0u) | (halt & ~OF_OTHERS ? u32(WANTS_HALT) : 0u);
}

// Returns whether a block has seen that other ranks request something.
__device__ __forceinline__ bool others_request(const Globals* g) {
    const volatile u32 *rebuild = &g->rebuild, *halt = &g->halt;
    return ((*rebuild | *halt) & OF_OTHERS) != 0u;
}

// Returns whether a block computes forces: no rank has requested a rebuild or a halt. Otherwise they are computed after the rebuild. The first
// block signals that this rank has moved its particles, and waits for all ranks, so that later kernels know their requests. `boundary`
// blocks wait, too. `own`: requests of this rank. All threads of the block call it.
__device__ __forceinline__ bool begin_pairs(const RankBarrierArgs& a, u32 own, bool boundary) {
    const bool first = blockIdx.x == 0u;
    if (!first && !boundary) return true;
    const u64 start = first ? nanoseconds() : 0ull, number = a.epochs[0] + 1ull;
    if (first && threadIdx.x < a.ranks) {
        release_system(pointer<u64>(a.mailboxes[threadIdx.x]) + MOVE_WORDS + a.rank, number * EPOCH_UNIT | own);
    }
    const u32 others = await_move(a, number);
    const bool rebuild = __syncthreads_or((others & u32(WANTS_REBUILD)) != 0u), halt = __syncthreads_or((others & u32(WANTS_HALT)) != 0u);
    if (threadIdx.x == 0u) {
        Globals* g = a.globals;
        if (first) a.epochs[2] += nanoseconds() - start;
        if (first) a.epochs[4] = halt ? WANTS_HALT : 0ull;
        if (rebuild && !(own & u32(WANTS_REBUILD))) g->rebuild = OF_OTHERS;
        if (halt && !(own & u32(WANTS_HALT))) g->halt = OF_OTHERS;
    }
    return !rebuild && !halt;
}
