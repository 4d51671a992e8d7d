// Runs unchanged CUDA kernels on the CPU, for tests: g++ compiles a kernel with this header included first.
//
// The threads of a block are fibers of one system thread. A fiber runs until it reaches a barrier or a warp function,
// or ends. Barriers, shuffles, ballots and atomics behave as on the device. A barrier that some threads never reach is
// reported instead of hanging. Blocks run one after the other. A kernel is called with the same array of argument
// pointers as cuLaunchKernel.
//
// The blocks of a cooperative launch may wait for each other at a grid barrier. Each has a system thread, so shared
// memory of its own, but only one runs at a time: a block passes the turn on when it cannot continue without the others.
// So each block gets ahead of the others as far as the barriers permit, and a missing barrier shows in the result.
//
// Compile with -fvisibility=hidden -fno-gnu-unique. Shared memory is static here; without these options, statics of
// inline functions and templates would be shared by all libraries of a process, with the size from the first library.
#pragma once

#include "galamost_blocks.h"

#include <math.h>

#define GALAMOST_HOST 1
#define __device__
#define __host__
#define __global__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
// all fibers of a block run in one system thread, so thread-local statics are shared by the block
#define __shared__ static thread_local

struct int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };

namespace galamost_host {

// Passes a value to the warp and waits for the other lanes of the mask. Returns the values of all lanes.
inline const uint64_t* exchange(unsigned mask, uint64_t value) {
    Block& b = block();
    Fiber& f = *b.current;
    WarpState& w = b.warps[f.index / WARP];
    const unsigned generation = w.generation;
    w.slots[generation][f.index % WARP] = value;
    f.wait = Wait::Warp;
    f.mask = mask;
    to_scheduler();
    return w.slots[generation];
}

template <class T> uint64_t pack(T x) {
    uint64_t w = 0;
    memcpy(&w, &x, sizeof(T));
    return w;
}
template <class T> T unpack(uint64_t w) {
    T x;
    memcpy(&x, &w, sizeof(T));
    return x;
}
inline unsigned lane() { return block().current->index % WARP; }

}  // namespace galamost_host

#define threadIdx (galamost_host::block().current->thread)
#define blockIdx (galamost_host::block().id)
#define blockDim (galamost_host::block().block)
#define gridDim (galamost_host::block().grid)

inline void __syncthreads() {
    galamost_host::block().current->wait = galamost_host::Wait::Block;
    galamost_host::to_scheduler();
}
inline int __syncthreads_or(int predicate) {
    // the barriers separate setting, reading and resetting the flag
    static thread_local int any;
    if (predicate) any = 1;
    __syncthreads();
    const int answer = any;
    __syncthreads();
    any = 0;
    __syncthreads();
    return answer;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { galamost_host::exchange(mask, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T> T __shfl_sync(unsigned mask, T x, int source) {
    const uint64_t* slots = galamost_host::exchange(mask, galamost_host::pack(x));
    return galamost_host::unpack<T>(slots[unsigned(source) & 31u]);
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, unsigned d) {
    const unsigned lane = galamost_host::lane();
    const uint64_t* slots = galamost_host::exchange(mask, galamost_host::pack(x));
    return galamost_host::unpack<T>(slots[(lane ^ d) & 31u]);
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned d) {
    const unsigned lane = galamost_host::lane();
    const uint64_t* slots = galamost_host::exchange(mask, galamost_host::pack(x));
    return lane + d < 32u ? galamost_host::unpack<T>(slots[lane + d]) : x;
}
template <class T> T __shfl_up_sync(unsigned mask, T x, unsigned d) {
    const unsigned lane = galamost_host::lane();
    const uint64_t* slots = galamost_host::exchange(mask, galamost_host::pack(x));
    return lane >= d ? galamost_host::unpack<T>(slots[lane - d]) : x;
}
inline unsigned __ballot_sync(unsigned mask, bool predicate) {
    const uint64_t* slots = galamost_host::exchange(mask, predicate ? 1 : 0);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; ++l) {
        if ((mask >> l & 1u) && slots[l]) bits |= 1u << l;
    }
    return bits;
}
inline bool __any_sync(unsigned mask, bool p) { return __ballot_sync(mask, p) != 0; }
inline bool __all_sync(unsigned mask, bool p) { return __ballot_sync(mask, p) == mask; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }

template <class T> T __ldg(const T* p) { return *p; }
inline int __float_as_int(float x) {
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
template <class T> T __ldcg(const T* p) { return *p; }
inline double __longlong_as_double(long long x) { return galamost_host::unpack<double>(uint64_t(x)); }
inline long long __double_as_longlong(double x) { return (long long)galamost_host::pack(x); }
inline int __double2loint(double x) { return int(uint32_t(galamost_host::pack(x))); }

template <class T> T atomicAdd(T* p, T x) { T old = *p; *p = old + x; return old; }
template <class T> T atomicMin(T* p, T x) { T old = *p; *p = x < old ? x : old; return old; }
template <class T> T atomicMax(T* p, T x) { T old = *p; *p = x > old ? x : old; return old; }
template <class T> T atomicOr(T* p, T x) { T old = *p; *p = old | x; return old; }
template <class T> T atomicExch(T* p, T x) { T old = *p; *p = x; return old; }
template <class T> T atomicCAS(T* p, T expected, T x) { T old = *p; if (old == expected) *p = x; return old; }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }

// Defines the host entries of a kernel, for a launch and a cooperative launch; their arguments are those of
// cuLaunchKernel, with grid and block as three numbers each.
#define GALAMOST_HOST_ENTRY(kernel)                                                                    \
    extern "C" __attribute__((visibility("default"))) void kernel##__host(                             \
        void** args, const unsigned* grid, const unsigned* block) {                                    \
        galamost_host::launch(&kernel, args, grid, block);                                             \
    }                                                                                                  \
    extern "C" __attribute__((visibility("default"))) void kernel##__host_cooperative(                 \
        void** args, const unsigned* grid, const unsigned* block) {                                    \
        galamost_host::launch_cooperative(&kernel, args, grid, block);                                 \
    }
