// Sums and prefix sums over a block in a fixed order, and detection of the last block.
#pragma once
#include "galamost/types.cuh"

// Waits for all threads of this thread's group of `threads` threads: a multiple of 32 that divides the block into at most 15 groups.
__device__ __forceinline__ void sync_group(u32 threads) {
#ifdef GALAMOST_HOST
    __syncthreads();
#else
    if (threads >= blockDim.x) {
        __syncthreads();
    } else {
        // barrier 0 is that of the block
        asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.x / threads + 1u), "r"(threads) : "memory");
    }
#endif
}

// Adds a number over the threads of a warp. The result is valid in the first one.
__device__ __forceinline__ double warp_total(double x) {
    for (u32 d = 16u; d > 0u; d >>= 1) x += __shfl_down_sync(0xffffffffu, x, d);
    return x;
}

// Adds N values over each group of `threads` threads of the block (32 or more). The result is valid in the first thread
// of the group. The order of the additions only depends on the group size. `memory` holds N x (block size / 32)
// doubles.
template <int N> __device__ __forceinline__ void group_sum(double (&values)[N], double* memory, u32 threads) {
    const u32 lane = threadIdx.x & 31u, thread = threadIdx.x % threads, warp = thread >> 5, warps = (threads + 31u) >> 5;
    memory += threadIdx.x / threads * (N * warps);
#pragma unroll
    for (int n = 0; n < N; ++n) {
        values[n] = warp_total(values[n]);
        if (lane == 0) memory[n * warps + warp] = values[n];
    }
    sync_group(threads);
    if (thread == 0) {
        for (int n = 0; n < N; ++n) {
            double sum = 0.0;
            for (u32 w = 0; w < warps; ++w) sum += memory[n * warps + w];
            values[n] = sum;
        }
    }
    sync_group(threads);
}

// Adds N values over all threads of the block; the result is valid in thread 0.
template <int N> __device__ __forceinline__ void block_sum(double (&values)[N], double* memory) {
    group_sum(values, memory, blockDim.x);
}

// Returns true in every thread of the last block that calls it; earlier writes of the other blocks are then visible.
// `counter` must be 0 before the first call and is 0 again after the last one.
__device__ __forceinline__ bool last_block(u32* counter, u32* shared_flag) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const u32 ticket = atomicAdd(counter, 1u);
        *shared_flag = ticket == gridDim.x - 1u ? 1u : 0u;
        if (*shared_flag) *counter = 0u;
    }
    __syncthreads();
    const bool last = *shared_flag != 0u;
    if (last) __threadfence();
    return last;
}

// As last_block, but what other blocks have written is not visible to the last one: fences take time.
__device__ __forceinline__ bool last_block_to_end(u32* counter, u32* shared_flag) {
    __syncthreads();
    if (threadIdx.x == 0) {
        const u32 ticket = atomicAdd(counter, 1u);
        *shared_flag = ticket == gridDim.x - 1u ? 1u : 0u;
        if (*shared_flag) *counter = 0u;
    }
    __syncthreads();
    return *shared_flag != 0u;
}

// As last_block, with a fence of thread 0 of each block only.
__device__ __forceinline__ bool last_block_after_thread_0(u32* counter, u32* shared_flag) {
    // after this barrier, the fence also covers what the other threads have written
    __syncthreads();
    if (threadIdx.x == 0) __threadfence();
    const bool last = last_block_to_end(counter, shared_flag);
    if (last) __threadfence();
    return last;
}

// Adds rows `begin` ... `end` - 1 of `partial` (N values each) to `values`: thread t < `threads` adds rows t, t + threads, ....
template <int N> __device__ __forceinline__ void add_rows(const double* partial, u32 begin, u32 end, double (&values)[N], u32 threads) {
    const u32 first = begin == 0u ? threadIdx.x : begin + (threadIdx.x + threads - begin % threads) % threads;
    // several rows are loaded at once, and added in order: with millions of particles there are many for a thread
    constexpr u32 ROUND = N == 1 ? 32u : N == 2 ? 16u : 4u;
    for (u32 row = first; threadIdx.x < threads && row < end; row += ROUND * threads) {
        double loaded[ROUND][N];
#pragma unroll
        for (u32 r = 0; r < ROUND; ++r) {
#pragma unroll
            for (int k = 0; k < N; ++k) loaded[r][k] = row + r * threads < end ? __ldcg(&partial[(row + r * threads) * N + k]) : 0.0;
        }
#pragma unroll
        for (u32 r = 0; r < ROUND; ++r) {
#pragma unroll
            for (int k = 0; k < N; ++k) values[k] += loaded[r][k];
        }
    }
}

// Adds rows 0 ... n-1 of `partial` (N values each) in the last block: thread t < `threads` adds rows t, t + threads,
// ..., and group_sum adds the threads' sums. The result is valid in thread 0.
template <int N>
__device__ __forceinline__ void sum_partials(const double* partial, u32 n, double (&values)[N], double* memory, u32 threads) {
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = 0.0;
    add_rows(partial, 0u, n, values, threads);
    group_sum(values, memory, threads);
}

// Where number k of a warp's sums is, for `n` threads in groups of THREADS: what sum_parts loads together are neighbors.
template <u32 THREADS> __device__ __forceinline__ u32 place_of_warp(u32 n, u32 warp, u32 k) {
    constexpr u32 WARPS = THREADS / 32u;
    return (k * WARPS + warp % WARPS) * ((n + THREADS - 1u) / THREADS) + warp / WARPS;
}

// Adds what sum_partials adds, with the same bits: N values of `n` threads in groups of THREADS. `partial` holds the sums of groups, or with
// WARPS those of warps. Groups of so many threads add different values. The result is valid after the block's next barrier.
template <u32 THREADS, bool WARPS, int N>
__device__ __forceinline__ void sum_parts(const double* partial, u32 n, double (&result)[N], double* memory) {
    // group_sum begins with 0 and adds the warps of a group in order; several parts are loaded at once
    constexpr u32 PARTS = WARPS ? THREADS / 32u : 1u, ROUND = WARPS ? 1u : 4u;
    const u32 parts = WARPS ? (n + 31u) / 32u : (n + THREADS - 1u) / THREADS, thread = threadIdx.x % THREADS;
    for (u32 first = 0u; first < u32(N); first += blockDim.x / THREADS) {
        const u32 k = first + threadIdx.x / THREADS;
        double sum[1] = {0.0};
        for (u32 group = thread; k < u32(N) && PARTS * group < parts; group += ROUND * THREADS) {
            double loaded[ROUND][PARTS];
#pragma unroll
            for (u32 r = 0; r < ROUND; ++r) {
#pragma unroll
                for (u32 p = 0; p < PARTS; ++p) {
                    const u32 part = PARTS * (group + r * THREADS) + p, place = WARPS ? place_of_warp<THREADS>(n, part, k) : part * N + k;
                    loaded[r][p] = part < parts ? __ldcg(&partial[place]) : 0.0;
                }
            }
#pragma unroll
            for (u32 r = 0; r < ROUND; ++r) {
                double total = 0.0;
#pragma unroll
                for (u32 p = 0; p < PARTS; ++p) total += loaded[r][p];
                sum[0] += total;
            }
        }
        group_sum(sum, memory, THREADS);
        if (thread == 0u && k < u32(N)) result[k] = sum[0];
    }
}

// Adds the rows with all threads of the block.
template <int N>
__device__ __forceinline__ void sum_partials(const double* partial, u32 n, double (&values)[N], double* memory) {
    sum_partials(partial, n, values, memory, blockDim.x);
}

// Inclusive prefix sum over a warp.
__device__ __forceinline__ u32 warp_scan(u32 x) {
    const u32 lane = threadIdx.x & 31u;
    for (u32 d = 1; d < 32u; d <<= 1) {
        const u32 y = __shfl_up_sync(0xffffffffu, x, d);
        if (lane >= d) x += y;
    }
    return x;
}

// Exclusive prefix sum over a block; `total` is the sum of all.
__device__ __forceinline__ u32 block_scan(u32 x, u32* total) {
    __shared__ u32 warps[32];
    const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, n = (blockDim.x + 31u) >> 5;
    const u32 inclusive = warp_scan(x);
    if (lane == 31u) warps[warp] = inclusive;
    __syncthreads();
    if (warp == 0u) {
        const u32 w = lane < n ? warps[lane] : 0u;
        const u32 s = warp_scan(w);
        warps[lane] = s - w;
        if (lane == 31u) *total = s;
    }
    __syncthreads();
    return inclusive - x + warps[warp];
}
