// Sums of integers over ranks in blocks of consecutive integers, most of which only one rank adds to: the integers of a block are read from
// those ranks only that have touched it. all_reduce of ranks.cuh reads all integers of all ranks instead.
//
// An update takes two kernels of every rank, which the owner of the sums writes, and a barrier between them, Host::rank_barrier:
// - One adds to own integers by atomicAdd and calls mark_block for the blocks that it adds to or needs. The first touch of a block also
//   marks it in the memory of the other ranks.
// - One begins with begin_update. For blocks that it needs it computes
//   total = sum over ranks that have touched the block of their integers, in any order. It ends with end_update, and raises no faults.
//
// Integers and marks exist twice, for updates with odd and even numbers, so that no rank waits until others have read: integers of
// update n - 1 are set to 0 after the barrier of update n, which no rank passes before all have ended update n - 1. Update n + 1 adds to
// them again.
// A mark is 2 n + 1 (touched) or 2 n (needed, but not touched) of the last such update n, so marks are never cleared.
//
// Memory of a rank: 16 bytes for each integer, and 16 bytes for each block and rank.
#pragma once
#include "galamost/args.cuh"
#include "galamost/ranks_barrier.cuh"

// The number of the update for which kernels add now; updates begin with 1.
__device__ __forceinline__ u64 next_update(const BlockSums& a) { return *pointer<const u64>(a.updates) + 1ull; }

// The integers of a block in an update, in the memory of `rank`.
__device__ __forceinline__ u64* block_values(const BlockSums& a, u32 rank, u64 update, u32 block) {
    return pointer<u64>(a.values[rank]) + ((update & 1ull) * a.blocks + block) * a.size;
}

// The mark of a block by `rank` in an update, in the memory of `holder`.
__device__ __forceinline__ u64* block_mark(const BlockSums& a, u32 holder, u64 update, u32 rank, u32 block) {
    return pointer<u64>(a.marks[holder]) + ((update & 1ull) * a.ranks + rank) * a.blocks + block;
}

// Notes that this rank needs the total of a block, and if `touches`, that it adds to its integers.
__device__ __forceinline__ void mark_block(const BlockSums& a, u64 update, u32 block, bool touches) {
    u64* mark = block_mark(a, a.rank, update, a.rank, block);
    const u64 word = 2ull * update + (touches ? 1ull : 0ull);
    if (__ldcg(mark) >= word || atomicMax(mark, word) >= word || !touches) return;
    for (u32 k = 1u; k < a.ranks; ++k) *block_mark(a, (a.rank + k) % a.ranks, update, a.rank, block) = word;
}

__device__ __forceinline__ bool is_needed(const BlockSums& a, u64 update, u32 block) {
    return __ldcg(block_mark(a, a.rank, update, a.rank, block)) >= 2ull * update;
}

// Begins the second kernel of an update. After the barrier, all ranks know whether one has halted. Then it returns false, and the kernel does
// nothing; otherwise all its threads call end_update.
__device__ __forceinline__ bool begin_update(const BlockSums& a) {
    return !pointer<const RankBarrierArgs>(a.barrier)->globals->halt;
}

// Ends an update: the last block of the kernel counts it.
__device__ __forceinline__ void end_update(const BlockSums& a) {
    __shared__ u32 flag;
    u32* counter = pointer<const RankBarrierArgs>(a.barrier)->counter;
    if (last_block_to_end(counter, &flag) && threadIdx.x == 0u) *pointer<u64>(a.updates) += 1ull;
}

// Calls `body` with each rank that has touched a block, and its integers.
template <class Body>
__device__ __forceinline__ void for_touching(const BlockSums& a, u64 update, u32 block, Body body) {
    u32 touched = 0u;
#pragma unroll 4
    for (u32 r = 0; r < a.ranks; ++r) {
        touched |= (__ldcg(block_mark(a, a.rank, update, r, block)) == 2ull * update + 1ull ? 1u : 0u) << r;
    }
    for (u32 r = 0; r < a.ranks; ++r) {
        if (touched >> r & 1u) body(r, block_values(a, r, update, block));
    }
}

// Adds N integers of a block, `stride` apart from `at` on, over all ranks that have touched it.
template <u32 N>
__device__ __forceinline__ void block_total(const BlockSums& a, u64 update, u32 block, u32 at, u32 stride, u64 (&sum)[N]) {
#pragma unroll
    for (u32 n = 0; n < N; ++n) sum[n] = 0ull;
    for_touching(a, update, block, [&](u32, const u64* values) {
#pragma unroll
        for (u32 n = 0; n < N; ++n) sum[n] += __ldcg(values + at + n * stride);
    });
}

// Sets own integers of the update before to 0, if this rank has touched the block; called by the second kernel of an update.
template <u32 N> __device__ __forceinline__ void clear_before(const BlockSums& a, u64 update, u32 block, u32 at, u32 stride) {
    const u64 before = update - 1ull;
    if (__ldcg(block_mark(a, a.rank, before, a.rank, block)) != 2ull * before + 1ull) return;
    u64* values = block_values(a, a.rank, before, block) + at;
#pragma unroll
    for (u32 n = 0; n < N; ++n) values[n * stride] = 0ull;
}
