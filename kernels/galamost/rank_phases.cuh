// What a phase of an integrator does with other ranks (GPUs): sums over the particles of all ranks, and new values of their ghosts.
#pragma once
#include "galamost/args.cuh"
#include "galamost/ranks_barrier.cuh"

// Sums of blocks: those of the own blocks from memory, those of other ranks as they arrive. A sum travels as two words of
// 64 bits, each with half of its bits and the number of the epoch. Who reads a word with the present epoch has its half
// of the sum, so no rank needs a fence. Words of odd and even epochs are apart.
struct RankRows {
    struct Raw {
        u64 low, high;
    };
    const double* partial;
    const u64* words;
    u32 sums, epoch, own_begin, own_end;

    __device__ __forceinline__ Raw load(u32 row, u32 k) const {
        const u64 at = u64(row) * sums + k, tag = u64(epoch) << 32;
        if (row >= own_begin && row < own_end) {
            const u64 bits = u64(__double_as_longlong(__ldcg(partial + at)));
            return {(bits & 0xffffffffull) | tag, (bits >> 32) | tag};
        }
        return {load_system(words + 2ull * at), load_system(words + 2ull * at + 1ull)};
    }

    // Waits for the sum if it has not arrived. Its rank has arrived at the epoch, so it is on its way.
    __device__ __forceinline__ double value(Raw x, u32 row, u32 k) const {
        const u64* from = words + 2ull * (u64(row) * sums + k);
        while (u32(x.low >> 32) != epoch) x.low = load_system(from);
        while (u32(x.high >> 32) != epoch) x.high = load_system(from + 1);
        return __longlong_as_double((long long)((x.high << 32) | (x.low & 0xffffffffull)));
    }
};

// As sum_partials for `n` rows, those of all ranks.
template <int N>
__device__ __forceinline__ void sum_rank_rows(const RankRows& rows, u32 n, double (&values)[N], double* memory, u32 threads) {
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = 0.0;
    constexpr u32 ROUND = 4u;
    for (u32 row = threadIdx.x; threadIdx.x < threads && row < n; row += ROUND * threads) {
        RankRows::Raw loaded[ROUND][N];
#pragma unroll
        for (u32 r = 0; r < ROUND; ++r) {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (row + r * threads < n) loaded[r][k] = rows.load(row + r * threads, u32(k));
            }
        }
#pragma unroll
        for (u32 r = 0; r < ROUND; ++r) {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (row + r * threads < n) values[k] += rows.value(loaded[r][k], row + r * threads, u32(k));
            }
        }
    }
    group_sum(values, memory, threads);
}

// First word of the sums of an epoch; `rows` rows of `sums` sums.
__device__ __forceinline__ u64 sums_of_epoch(u64 epoch, u32 rows, u32 sums) {
    return (epoch & 1ull) * 2ull * u64(rows) * u64(sums);
}

// Sends the sums of a block, which its thread 0 has stored in `partial`, to the other ranks. Called by all threads of the block.
__device__ __forceinline__ void send_sums(const RankPhaseArgs& r, const double* partial, u32 row, u32 rows, u32 sums, u64 epoch) {
    __syncthreads();
    for (u32 t = threadIdx.x; t < 2u * sums * r.barrier.ranks; t += blockDim.x) {
        const u32 to = t / (2u * sums), word = t % (2u * sums);
        if (to == r.barrier.rank) continue;
        const u64 at = u64(row) * sums + word / 2u, bits = u64(__double_as_longlong(partial[at]));
        const u64 half = (word & 1u) != 0u ? bits >> 32 : bits & 0xffffffffull;
        u64* words = pointer<u64>(r.sums[to]) + sums_of_epoch(epoch, rows, sums);
        store_system(words + 2ull * u64(row) * sums + word, half | u64(u32(epoch)) << 32);
    }
}

// Writes the values of particle i into the memory of the ranks of which it is a ghost, if it is one of `mine`. All threads of all
// blocks call it; `requests` says that this thread requests a rebuild or a halt. The last block waits until all ranks have
// done so; then its thread 0 returns true.
__device__ __forceinline__ bool push_particle(const RankPhaseArgs& r, u32 i, bool mine, bool requests) {
    const RankBarrierArgs& b = r.barrier;
    const u32 begin = r.ranges.begin[b.rank], n = r.ranges.begin[b.rank + 1u] - begin;
    u32 ranks = 0u;
    for (u32 other = 0; mine && other < b.ranks; ++other) ranks |= u32(r.wanted[u64(other) * n + i - begin]) << other;
    const bool publishes = __syncthreads_or(int(ranks != 0u || requests)) != 0;
    if (publishes && r.released && b.waits) await_release(b);
    for (u32 f = 0; ranks != 0u && f < r.n_fields; ++f) {
        const GhostField& field = r.fields[f];
        const u64 at = u64(i) * field.words;
        for (u32 w = 0; w < field.words; w += 4u) {
            const uint4 x = *reinterpret_cast<const uint4*>(pointer<const u32>(field.data[b.rank]) + at + w);
            for (u32 left = ranks; left; left &= left - 1u) {
                *reinterpret_cast<uint4*>(pointer<u32>(field.data[__ffs(int(left)) - 1]) + at + w) = x;
            }
        }
    }
    return barrier_at_end(b, publishes);
}
