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

// the special functions of C++17 take longer to read than most units take to compile
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <math.h>
#include <unistd.h>
#include <time.h>

#define GALAMOST_HOST 1
#define __device__
#define __host__
#define __global__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
// all fibers of a block run in one system thread, so thread-local statics are shared by the block; they begin with any content
// (0xff in each byte: NaN, the largest integers), as on a GPU
#define __shared__ static thread_local

struct int2 { int x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };

namespace galamost_host {

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
inline unsigned lane() { return current.index % WARP; }

// Bits of the nearest half-precision number (ties to even), and its value.
inline unsigned to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const float magnitude = fabsf(x);
    if (!(magnitude < 65520.0f)) return sign | (x != x ? 0x7fffu : 0x7c00u);
    // multiples of 2^-24 below 2^-14, else eleven digits
    if (magnitude == 0.0f) return sign;
    int exponent;
    frexpf(magnitude, &exponent);
    const int shift = exponent - 11 > -24 ? exponent - 11 : -24;
    const uint32_t digits = uint32_t(rintf(ldexpf(magnitude, -shift)));
    // a carry out of the digits increases the exponent
    return sign | (digits + (uint32_t(shift + 24) << 10));
}
inline float from_half(unsigned bits) {
    const unsigned exponent = bits >> 10 & 31u, digits = bits & 0x3ffu;
    const float magnitude =
        exponent == 0u ? ldexpf(float(digits), -24) : ldexpf(float(digits | 0x400u), int(exponent) - 25);
    return bits & 0x8000u ? -magnitude : magnitude;
}

// The instruction mma.m16n8k8 in half precision: D = A B. Every lane passes its elements of A and B.
inline void multiply_m16n8k8(unsigned& d0, unsigned& d1, unsigned a0, unsigned a1, unsigned b) {
    uint64_t a[WARP], columns[WARP];
    memcpy(a, exchange(0xffffffffu, uint64_t(a0) | uint64_t(a1) << 32), sizeof a);
    memcpy(columns, exchange(0xffffffffu, b), sizeof columns);
    const unsigned group = lane() >> 2, t = lane() & 3u;
    auto element = [&](unsigned row_half, unsigned column) {
        float sum = 0.0f;
        for (unsigned k = 0; k < 8; ++k) {
            const unsigned row = unsigned(a[group * 4 + k / 2] >> (32 * row_half)) >> (16 * (k & 1)) & 0xffffu;
            const unsigned col = unsigned(columns[column * 4 + k / 2]) >> (16 * (k & 1)) & 0xffffu;
            sum += from_half(row) * from_half(col);
        }
        return to_half(sum);
    };
    d0 = element(0, 2 * t) | element(0, 2 * t + 1) << 16;
    d1 = element(1, 2 * t) | element(1, 2 * t + 1) << 16;
}

// An operation on the low and the high halves of words.
template <class F> inline unsigned on_halves(unsigned a, unsigned b, F f) {
    return to_half(f(from_half(a & 0xffffu), from_half(b & 0xffffu))) | to_half(f(from_half(a >> 16), from_half(b >> 16))) << 16;
}
// The instruction fma.rn.f16x2: a^2 + b; rounded twice.
inline unsigned half2_square_add(unsigned a, unsigned b) {
    return on_halves(a, b, [](float x, float y) { return fmaf(x, x, y); });
}
// max(|a - b| - c, 0).
inline unsigned half2_gap(unsigned a, unsigned b, unsigned c) {
    const unsigned d = on_halves(a, b, [](float x, float y) { return fabsf(x - y); });
    return on_halves(on_halves(d, c, [](float x, float y) { return x - y; }), 0u, [](float x, float) { return x > 0.0f ? x : 0.0f; });
}

// The instruction prmt with the selector 0xFDB9: bytes of the signs of both halves of a and b.
inline unsigned byte_signs(unsigned a, unsigned b) {
    return (a & 0x8000u ? 0xffu : 0u) | (a & 0x80000000u ? 0xff00u : 0u) | (b & 0x8000u ? 0xff0000u : 0u) |
           (b & 0x80000000u ? 0xff000000u : 0u);
}

// Words that other devices change: other threads of this process.
inline uint64_t acquire(const unsigned long long* word) {
    // a thread that waits for a word leaves the processor to the thread that will change it
    static thread_local const unsigned long long* last = nullptr;
    static thread_local unsigned long long before = 0;
    unsigned long long x = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (word == last && x == before) {
        usleep(20);
        x = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    last = word;
    before = x;
    return x;
}
inline void release(unsigned long long* word, unsigned long long x) { __atomic_store_n(word, x, __ATOMIC_RELEASE); }
inline void add_release(unsigned long long* word, unsigned long long x) { __atomic_fetch_add(word, x, __ATOMIC_RELEASE); }
inline unsigned long long nanoseconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec;
}

}  // namespace galamost_host

#define threadIdx (galamost_host::current.thread)
#define blockIdx (galamost_host::current.id)
#define blockDim (galamost_host::current.block)
#define gridDim (galamost_host::current.grid)

inline void __syncthreads() { galamost_host::barrier(); }
inline int __syncthreads_or(int predicate) {
    // the barriers separate setting, reading and resetting the flag
    if (predicate) galamost_host::current.any = true;
    __syncthreads();
    const int answer = galamost_host::current.any;
    __syncthreads();
    galamost_host::current.any = false;
    __syncthreads();
    return answer;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { galamost_host::exchange(mask, 0); }
inline void __threadfence() {}
inline void __threadfence_system() {}
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
    return galamost_host::exchange_bits(mask, predicate);
}
inline bool __any_sync(unsigned mask, bool p) { return __ballot_sync(mask, p) != 0; }
inline bool __all_sync(unsigned mask, bool p) { return __ballot_sync(mask, p) == mask; }
template <class T, class F> T reduce_warp(unsigned mask, T x, const F& f) {
    const uint64_t* slots = galamost_host::exchange(mask, galamost_host::pack(x));
    for (unsigned l = 0; l < 32; ++l) {
        if (mask >> l & 1u) x = f(x, galamost_host::unpack<T>(slots[l]));
    }
    return x;
}
inline unsigned __match_any_sync(unsigned mask, unsigned x) {
    const uint64_t* slots = galamost_host::exchange(mask, x);
    unsigned same = 0;
    for (unsigned l = 0; l < 32; ++l) same |= (mask >> l & 1u) && unsigned(slots[l]) == x ? 1u << l : 0u;
    return same;
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned x) {
    return reduce_warp(mask, x, [](unsigned a, unsigned b) { return a > b ? a : b; });
}
inline int __reduce_min_sync(unsigned mask, int x) { return reduce_warp(mask, x, [](int a, int b) { return a < b ? a : b; }); }
inline int __reduce_max_sync(unsigned mask, int x) { return reduce_warp(mask, x, [](int a, int b) { return a > b ? a : b; }); }
inline unsigned __reduce_add_sync(unsigned mask, unsigned x) {
    const uint64_t* slots = galamost_host::exchange(mask, x);
    unsigned sum = 0;
    for (unsigned l = 0; l < 32; ++l) sum += mask >> l & 1u ? unsigned(slots[l]) : 0u;
    return sum;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (unsigned k = 0; k < 32; k += 8) sum += (a >> k & 255u) * (b >> k & 255u);
    return sum;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }

template <class T> T __ldg(const T* p) { return *p; }
inline int __float2int_rn(float x) { return int(std::rint(x)); }
inline int __float_as_int(float x) {
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float __int_as_float(int bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> void __stcs(T* p, T x) { *p = x; }
inline double __longlong_as_double(long long x) { return galamost_host::unpack<double>(uint64_t(x)); }
inline long long __double_as_longlong(double x) { return (long long)galamost_host::pack(x); }
inline int __double2loint(double x) { return int(uint32_t(galamost_host::pack(x))); }

template <class T> T atomicAdd(T* p, T x) { T old = *p; *p = old + x; return old; }
// of words that other devices change, too: other threads of this process
template <class T> T atomicAdd_system(T* p, T x) { return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST); }
template <class T> T atomicMin(T* p, T x) { T old = *p; *p = x < old ? x : old; return old; }
template <class T> T atomicMax(T* p, T x) { T old = *p; *p = x > old ? x : old; return old; }
template <class T> T atomicOr(T* p, T x) { T old = *p; *p = old | x; return old; }
template <class T> T atomicExch(T* p, T x) { T old = *p; *p = x; return old; }
template <class T> T atomicCAS(T* p, T expected, T x) { T old = *p; if (old == expected) *p = x; return old; }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }

namespace galamost_host {
// Writes the sizes of the first n arguments of a kernel, and returns the number of all.
template <class... A> unsigned sizes(void (*)(A...), unsigned* to, unsigned n) {
    const unsigned all[] = {unsigned(sizeof(A))..., 0u};
    for (unsigned k = 0; k < n && k < sizeof...(A); ++k) to[k] = all[k];
    return sizeof...(A);
}
}  // namespace galamost_host

// Defines the host entries of a kernel, for a launch and a cooperative launch, whose arguments are those of
// cuLaunchKernel, with three numbers for the grid, four for the block and its dynamic shared memory, and for the sizes of its arguments.
#define GALAMOST_HOST_ENTRY(kernel)                                                                    \
    extern "C" __attribute__((visibility("default"))) void kernel##__host(                             \
        void** args, const unsigned* grid, const unsigned* block) {                                    \
        galamost_host::call(&galamost_host::launch, &kernel, args, grid, block);                       \
    }                                                                                                  \
    extern "C" __attribute__((visibility("default"))) void kernel##__host_cooperative(                 \
        void** args, const unsigned* grid, const unsigned* block) {                                    \
        galamost_host::call(&galamost_host::launch_cooperative, &kernel, args, grid, block);           \
    }                                                                                                  \
    extern "C" __attribute__((visibility("default"))) unsigned kernel##__sizes(unsigned* to, unsigned n) { \
        return galamost_host::sizes(&kernel, to, n);                                                   \
    }
