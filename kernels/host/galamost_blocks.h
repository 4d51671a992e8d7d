// Fibers, blocks and launches of emulated kernels; see galamost_host.h.
#pragma once

#include <pthread.h>
#include <semaphore.h>
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

struct dim3 { unsigned x, y, z; };

namespace galamost_host {

static const unsigned WARP = 32;
static const size_t STACK = 256 * 1024;
// marks the lower end of each stack; if it is overwritten, the fiber needed a larger stack
static const uint64_t STACK_END = 0x57ac4e4d57ac4e4dull;

enum class Wait { None, Block, Warp, Grid, Done };

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

struct Turns;

struct Block {
    dim3 grid, block, id;
    // the other blocks of a cooperative launch
    Turns* turns = nullptr;
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

// The turns of the blocks of a cooperative launch.
struct Turns {
    std::vector<sem_t> begin;
    std::vector<bool> ended;
    unsigned live;
    // turns in a row in which a block found that it must still wait
    unsigned idle = 0;

    explicit Turns(unsigned blocks) : begin(blocks), ended(blocks), live(blocks) {
        for (sem_t& s : begin) sem_init(&s, 0, 0);
    }
    ~Turns() {
        for (sem_t& s : begin) sem_destroy(&s);
    }
    void await(unsigned block) {
        while (sem_wait(&begin[block]) != 0) {}
    }
    // Lets the next block run that has not ended.
    void next(unsigned block) {
        if (live == 0) return;
        do block = (block + 1) % unsigned(begin.size());
        while (ended[block]);
        sem_post(&begin[block]);
    }
    // Called by a block that waits for the others.
    void pass(unsigned block, bool is_idle) {
        idle = is_idle ? idle + 1 : 0;
        if (idle > live) {
            fprintf(stderr, "emulated kernel: deadlock: %u blocks at a grid barrier, %zu ended\n", live,
                    begin.size() - live);
            abort();
        }
        next(block);
        await(block);
    }
    void end(unsigned block) {
        ended[block] = true;
        live -= 1;
        idle = 0;
        next(block);
    }
};

// A thread calls it before it looks whether other blocks have arrived at a grid barrier.
inline void await_blocks() {
    Block& b = block();
    if (!b.turns) return;
    b.current->wait = Wait::Grid;
    to_scheduler();
}

// Returns the number of the grid barrier that a test removes; GALAMOST_EMULATED_FAULT is `barrier:N`.
inline unsigned removed_barrier() {
    static const unsigned number = [] {
        const char* fault = getenv("GALAMOST_EMULATED_FAULT");
        return fault && strncmp(fault, "barrier:", 8) == 0 ? unsigned(strtoul(fault + 8, nullptr, 10)) : 0u;
    }();
    return number;
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
    // threads that waited for other blocks before this turn, and resumed threads in this turn
    unsigned waited = 0, resumed = 0;
    for (;;) {
        bool ran = false;
        unsigned done = 0, at_barrier = 0, at_grid_barrier = 0;
        for (unsigned t = 0; t < n; ++t) {
            Fiber& f = b.fibers[t];
            if (f.wait == Wait::None) {
                resume(f);
                ran = true;
                resumed += 1;
            }
            done += f.wait == Wait::Done;
            at_barrier += f.wait == Wait::Block;
            at_grid_barrier += f.wait == Wait::Grid;
        }
        if (done == n) return;
        const bool released = release_warps(b);
        if (at_barrier > 0 && at_barrier + done == n) {
            for (Fiber& f : b.fibers) {
                if (f.wait == Wait::Block) f.wait = Wait::None;
            }
        } else if (!ran && !released && at_grid_barrier > 0) {
            b.turns->pass(b.id.x, resumed == waited && at_grid_barrier == waited);
            waited = at_grid_barrier;
            resumed = 0;
            for (Fiber& f : b.fibers) {
                if (f.wait == Wait::Grid) f.wait = Wait::None;
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

// A block of a cooperative launch.
struct Cooperative {
    void (*body)(void*);
    void* data;
    dim3 grid, block, id;
    Turns* turns;
    // stacks from earlier launches
    std::vector<char*>* stacks;

    static void* run(void* self) {
        const Cooperative& c = *static_cast<Cooperative*>(self);
        c.turns->await(c.id.x);
        Block& b = galamost_host::block();
        b.body = c.body;
        b.data = c.data;
        b.grid = c.grid;
        b.block = c.block;
        b.id = c.id;
        b.turns = c.turns;
        b.free_stacks.swap(*c.stacks);
        run_block();
        b.free_stacks.swap(*c.stacks);
        c.turns->end(c.id.x);
        return nullptr;
    }
};

// Launches a kernel with a grid barrier. Blocks of the same z wait for each other; all others run one after the other.
template <class... A>
void launch_cooperative(void (*kernel)(A...), void** args, const unsigned* grid, const unsigned* block_size) {
    static std::vector<std::vector<char*>> stacks;
    const unsigned blocks = grid[0];
    if (stacks.size() < blocks) stacks.resize(blocks);
    Call<A...> call{kernel, args};
    for (unsigned z = 0; z < grid[2]; ++z) {
        Turns turns(blocks);
        std::vector<Cooperative> all(blocks);
        std::vector<pthread_t> threads(blocks);
        for (unsigned k = 0; k < blocks; ++k) {
            all[k] = {&Call<A...>::body, &call, {blocks, 1, grid[2]}, {block_size[0], block_size[1], block_size[2]},
                      {k, 0, z}, &turns, &stacks[k]};
            if (pthread_create(&threads[k], nullptr, &Cooperative::run, &all[k]) != 0) {
                fprintf(stderr, "emulated kernel: no system thread for block %u\n", k);
                abort();
            }
        }
        sem_post(&turns.begin[0]);
        for (pthread_t& t : threads) pthread_join(t, nullptr);
    }
}

}  // namespace galamost_host
