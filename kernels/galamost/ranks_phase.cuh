// The kernel that adds the sums of a phase, with several ranks.
#pragma once
#include "galamost/integrate.cuh"
#include "galamost/ranks_barrier.cuh"

// The sums of groups of particles, each in the memory of the rank that has computed it.
struct RankRows {
    const RankPhaseArgs& ranks;
    template <int N> __device__ __forceinline__ void add(double (&sums)[N], u32 threads) const {
        const RankRanges& r = ranks.ranges;
        for (u32 k = 0; k < r.count; ++k) {
            const u32 begin = r.begin[k] / SUM_THREADS, end = (r.begin[k + 1u] + SUM_THREADS - 1u) / SUM_THREADS;
            add_rows(pointer<const double>(ranks.partial[k]), begin, end, sums, threads);
        }
    }
};

// As phase_end, after all ranks have arrived. One block.
template <class Phase> __device__ __forceinline__ void phase_end_of_ranks(const PhaseArgs& a, const RankPhaseArgs& r) {
    barrier_of_ranks(r.barrier);
    // now all threads see the sums of the other ranks, and whether one of them has halted
    __syncthreads();
    phase_end_of<Phase, false>(a, RankRows{r});
}
