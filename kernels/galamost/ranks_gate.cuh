// The barrier after a move, inside the pair loop: blocks of particles whose halo this rank owns do not wait for the others.
//
// Its words have the number of the next epoch. One ends in each step after the forces, so the numbers of two steps differ, and a word is read
// before the next one is sent.
#pragma once
#include "galamost/ranks_barrier.cuh"

// Positions of other ranks are loaded as constants of the kernel (`__ldg`), although they change while it runs: no block loads a line of them before it has
// waited, and waiting forgets what the L1 cache holds.

// Flags of the globals while the pair loop runs: those of others are set by blocks of the loop, and those of this rank before it. A block
// may return early because of the latter only, which all its threads see.
static constexpr u32 OF_OTHERS = 4u;

// Waits until the rank with the number of this thread has sent its word, and returns what it requests; 0 if there is no such rank. Many
// blocks wait at the same time, so each looks rarely.
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

// Returns whether a block computes forces: no rank requests a rebuild or a halt. Otherwise they are computed after the rebuild. The first
// block says that this rank has moved its particles, and waits for all ranks, so that later kernels know what they request. Others wait if
// they read particles of other ranks (`outer`). `own`: what this rank requests. All threads of the block call it.
__device__ __forceinline__ bool begin_pairs(const RankBarrierArgs& a, u32 own, bool outer) {
    const bool first = blockIdx.x == 0u;
    if (!first && !outer) return true;
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
