// Runs unchanged CUDA kernels on the CPU, for tests: g++ compiles a kernel with this header included first.
//
// The threads of a block are fibers of one system thread. A fiber runs until it reaches a barrier or a warp function,
// or ends. Barriers, shuffles, ballots and atomics behave as on the device. A barrier that some threads never reach is
// reported instead of hanging. Blocks run one after the other. A kernel is called with the same array of argument
// pointers as cuLaunchKernel.
//
// Compile with -fvisibility=hidden -fno-gnu-unique. Shared memory is static here; without these options, statics of
// inline functions and templates would be shared by all libraries of a process, with the size from the first library.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

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
struct dim3 { unsigned x, y, z; };

namespace galamost_host {

static const unsigned WARP = 32;
static const size_t STACK = 256 * 1024;
// marks the lower end of each stack; if it is overwritten, the fiber needed a larger stack
static const uint64_t STACK_END = 0x57ac4e4d57ac4e4dull;

enum class Wait { None, Block, Warp, Done };

struct Fiber;

#if defined(__x86_64__)
// Saves the callee-saved registers, switches stacks, and restores the registers.
extern "C" void galamost_switch(void** from, void* to);
asm(R"(
    .text
    .weak galamost_switch
    .hidden galamost_switch
    .type galamost_switch, @function
galamost_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    ldmxcsr (%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size galamost_switch, .-galamost_switch
)");
#endif

struct WarpState {
    // the values of the lanes for the current and the previous warp function
    uint64_t slots[2][WARP];
    unsigned arrived = 0, generation = 0;
};

struct Fiber {
    dim3 thread;
    unsigned index = 0;
    Wait wait = Wait::None;
    unsigned mask = 0;
    char* stack = nullptr;
#if defined(__x86_64__)
    void* context = nullptr;
#else
    ucontext_t context;
#endif
};

struct Block {
    dim3 grid, block, id;
    std::vector<Fiber> fibers;
    std::vector<WarpState> warps;
    Fiber* current = nullptr;
    std::vector<char*> free_stacks;
    void (*body)(void*) = nullptr;
    void* data = nullptr;
#if defined(__x86_64__)
    void* scheduler = nullptr;
#else
    ucontext_t scheduler;
#endif
    ~Block() {
        for (char* stack : free_stacks) free(stack);
    }
};

inline Block& block() {
    static thread_local Block b;
    return b;
}

inline void to_scheduler() {
    Block& b = block();
#if defined(__x86_64__)
    galamost_switch(&b.current->context, b.scheduler);
#else
    swapcontext(&b.current->context, &b.scheduler);
#endif
}

inline void fiber_main() {
    Block& b = block();
    b.body(b.data);
    b.current->wait = Wait::Done;
    to_scheduler();
    abort();
}

inline void resume(Fiber& f) {
    Block& b = block();
    b.current = &f;
    if (!f.stack) {
        if (b.free_stacks.empty()) {
            f.stack = static_cast<char*>(aligned_alloc(64, STACK));
            memcpy(f.stack, &STACK_END, sizeof(STACK_END));
        } else {
            f.stack = b.free_stacks.back();
            b.free_stacks.pop_back();
        }
#if defined(__x86_64__)
        // as if the entry of fiber_main had called galamost_switch
        uint64_t* top = reinterpret_cast<uint64_t*>(f.stack + STACK - 64);
        *--top = 0;
        *--top = reinterpret_cast<uint64_t>(&fiber_main);
        for (int k = 0; k < 6; ++k) *--top = 0;
        --top;
        unsigned mxcsr;
        asm volatile("stmxcsr %0" : "=m"(mxcsr));
        *top = mxcsr;
        f.context = top;
#else
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack;
        f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = nullptr;
        makecontext(&f.context, fiber_main, 0);
#endif
    }
#if defined(__x86_64__)
    galamost_switch(&b.scheduler, f.context);
#else
    swapcontext(&b.scheduler, &f.context);
#endif
    if (memcmp(f.stack, &STACK_END, sizeof(STACK_END)) != 0) {
        fprintf(stderr, "emulated kernel: a thread needs more than %zu bytes of stack\n", STACK);
        abort();
    }
    if (f.wait == Wait::Done) {
        b.free_stacks.push_back(f.stack);
        f.stack = nullptr;
    }
}

// Resumes warp functions that all their lanes have reached; a finished lane counts as arrived.
inline bool release_warps(Block& b) {
    bool any = false;
    for (size_t w = 0; w < b.warps.size(); ++w) {
        unsigned waiting = 0, mask = 0, live = 0;
        for (unsigned l = 0; l < WARP && w * WARP + l < b.fibers.size(); ++l) {
            const Fiber& f = b.fibers[w * WARP + l];
            if (f.wait != Wait::Done) live |= 1u << l;
            if (f.wait == Wait::Warp) {
                waiting |= 1u << l;
                mask |= f.mask;
            }
        }
        if (waiting == 0 || (mask & live & ~waiting) != 0) continue;
        b.warps[w].arrived = waiting;
        b.warps[w].generation ^= 1;
        for (unsigned l = 0; l < WARP; ++l) {
            if (waiting >> l & 1) b.fibers[w * WARP + l].wait = Wait::None;
        }
        any = true;
    }
    return any;
}

inline void run_block() {
    Block& b = block();
    const unsigned n = b.block.x * b.block.y * b.block.z;
    b.fibers.assign(n, Fiber());
    b.warps.assign((n + WARP - 1) / WARP, WarpState());
    for (unsigned t = 0; t < n; ++t) {
        b.fibers[t].index = t;
        b.fibers[t].thread = {t % b.block.x, t / b.block.x % b.block.y, t / b.block.x / b.block.y};
    }
    for (;;) {
        bool ran = false;
        unsigned done = 0, at_barrier = 0;
        for (unsigned t = 0; t < n; ++t) {
            Fiber& f = b.fibers[t];
            if (f.wait == Wait::None) {
                resume(f);
                ran = true;
            }
            done += f.wait == Wait::Done;
            at_barrier += f.wait == Wait::Block;
        }
        if (done == n) return;
        const bool released = release_warps(b);
        if (at_barrier > 0 && at_barrier + done == n) {
            for (Fiber& f : b.fibers) {
                if (f.wait == Wait::Block) f.wait = Wait::None;
            }
        } else if (!ran && !released) {
            fprintf(stderr, "emulated kernel: deadlock: %u threads at a barrier, %u ended, of %u\n",
                    at_barrier, done, n);
            abort();
        }
    }
}

template <class... A> struct Call {
    void (*kernel)(A...);
    void** args;
    template <size_t... I> void with(std::index_sequence<I...>) {
        kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<A>>*>(args[I])...);
    }
    static void body(void* self) { static_cast<Call*>(self)->with(std::index_sequence_for<A...>()); }
};

template <class... A> void launch(void (*kernel)(A...), void** args, const unsigned* grid, const unsigned* block_size) {
    Call<A...> call{kernel, args};
    Block& b = block();
    b.body = &Call<A...>::body;
    b.data = &call;
    b.grid = {grid[0], grid[1], grid[2]};
    b.block = {block_size[0], block_size[1], block_size[2]};
    for (unsigned z = 0; z < grid[2]; ++z) {
        for (unsigned y = 0; y < grid[1]; ++y) {
            for (unsigned x = 0; x < grid[0]; ++x) {
                b.id = {x, y, z};
                run_block();
            }
        }
    }
}

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

// The instruction prmt with the selector 0xFDB9: bytes of the signs of both halves of a and b.
inline unsigned byte_signs(unsigned a, unsigned b) {
    return (a & 0x8000u ? 0xffu : 0u) | (a & 0x80000000u ? 0xff00u : 0u) | (b & 0x8000u ? 0xff0000u : 0u) |
           (b & 0x80000000u ? 0xff000000u : 0u);
}

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
inline int __float_as_int(float x) {
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> void __stcs(T* p, T x) { *p = x; }
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

// Defines the host entry of a kernel; its arguments are those of cuLaunchKernel, with grid and block as three numbers
// each.
#define GALAMOST_HOST_ENTRY(kernel)                                                                    \
    extern "C" __attribute__((visibility("default"))) void kernel##__host(                             \
        void** args, const unsigned* grid, const unsigned* block) {                                    \
        galamost_host::launch(&kernel, args, grid, block);                                             \
    }
