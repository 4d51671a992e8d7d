// Fibers, blocks and launches of emulated kernels; see galamost_host.h.
#include "galamost_blocks.h"

#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace galamost_host {

__thread Current current;

static const size_t STACK = 256 * 1024;

// Lend memory for a stack and take it back. The engine's memory outlives this library and its threads: many libraries are loaded
// and many threads start, and the first use of each page costs more than a short kernel.
using Take = void* (*)(size_t size);
using Give = void (*)(void* stack);
static Take take_stack = nullptr;
static Give give_stack = nullptr;

extern "C" __attribute__((visibility("default"))) void galamost_use_stacks(Take take, Give give) {
    take_stack = take;
    give_stack = give;
}

// marks the lower end of each stack; if it is overwritten, the fiber needed a larger stack
static const uint64_t STACK_END = 0x57ac4e4d57ac4e4dull;

#if defined(__x86_64__)
// Saves the callee-saved registers, switches stacks, and restores the registers. No kernel changes the modes of rounding.
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
    movq %rsp, (%rdi)
    movq %rsi, %rsp
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

// A warp; masks have one bit for each lane.
struct WarpState {
    // the values of the lanes for the current and the previous warp function
    uint64_t slots[2][WARP];
    // their bits, likewise
    unsigned bits[2] = {0, 0};
    unsigned generation = 0;
    // lanes that have not ended, and those of them that can continue
    unsigned live = 0, ready = 0;
    // lanes that wait in a warp function, and the lanes that they wait for
    unsigned waiting = 0, awaited = 0;
    // lanes at a barrier of the block, and at a grid barrier
    unsigned at_barrier = 0, at_grid_barrier = 0;
};

struct Fiber {
    dim3 thread;
    unsigned index = 0;
    char* stack = nullptr;
#if defined(__x86_64__)
    void* context = nullptr;
#else
    ucontext_t context;
#endif
};

struct Turns;

// Memory of the launches of a system thread.
struct LaunchMemory {
    // as on an H200, and the page behind it
    static const size_t MOST = 228 * 1024;
    char* end = nullptr;
    size_t bytes = 0;

    static size_t page() { return size_t(sysconf(_SC_PAGESIZE)); }
    static size_t size() { return (MOST + page() - 1) / page() * page(); }
    void reserve(size_t n) {
        bytes = (n + 15) / 16 * 16;
        if (bytes == 0 || end) return;
        void* at = mmap(nullptr, size() + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED || mprotect(static_cast<char*>(at) + size(), page(), PROT_NONE) != 0) {
            fprintf(stderr, "emulated kernel: no memory for a launch\n");
            abort();
        }
        end = static_cast<char*>(at) + size();
    }
    ~LaunchMemory() {
        if (end) munmap(end - size(), size() + page());
    }
};

// The block that a system thread runs.
struct Block {
    LaunchMemory launch;
    std::vector<Fiber> fibers;
    std::vector<WarpState> warps;
    Fiber* running = nullptr;
    // how often a thread has run on in this turn
    unsigned resumed = 0;
    // the other blocks of a cooperative launch
    Turns* turns = nullptr;
    Body body = nullptr;
    void* data = nullptr;
#if defined(__x86_64__)
    void* scheduler = nullptr;
#else
    ucontext_t scheduler;
#endif
    WarpState& warp() { return warps[running->index / WARP]; }
    unsigned lane() const { return 1u << running->index % WARP; }
};

static Block& block() {
    static thread_local Block b;
    return b;
}

static void begin(Block& b, Fiber& f);

// Makes a fiber the running one.
static void select(Block& b, Fiber& f) {
    b.running = &f;
    b.resumed += 1;
    current.thread = f.thread;
    current.index = f.index;
    if (!f.stack) begin(b, f);
}

static void switch_context(Fiber& from, Fiber& to) {
#if defined(__x86_64__)
    galamost_switch(&from.context, to.context);
#else
    swapcontext(&from.context, &to.context);
#endif
}

static void to_scheduler(Block& b) {
#if defined(__x86_64__)
    galamost_switch(&b.running->context, b.scheduler);
#else
    swapcontext(&b.running->context, &b.scheduler);
#endif
}

static void fiber_main() {
    Block& b = *current.state;
    b.body(b.data);
    b.warp().live &= ~b.lane();
    to_scheduler(b);
    abort();
}

unsigned char* launch_memory() {
    const LaunchMemory& m = current.state->launch;
    return reinterpret_cast<unsigned char*>(m.end - m.bytes);
}

void barrier() {
    Block& b = *current.state;
    b.warp().at_barrier |= b.lane();
    to_scheduler(b);
}

// If a warp function has all lanes that it names and that have not ended, lets them continue.
static bool complete(WarpState& w) {
    if (w.waiting == 0 || (w.awaited & w.live & ~w.waiting) != 0) return false;
    w.ready = w.waiting;
    w.waiting = w.awaited = 0;
    w.generation ^= 1;
    w.bits[w.generation] = 0;
    return true;
}

// The running lane waits for the other lanes of the mask. The next lane runs, without a detour over the scheduler.
static void await_lanes(Block& b, WarpState& w, unsigned mask) {
    const unsigned lane = b.lane();
    w.waiting |= lane;
    w.awaited |= mask;
    if (w.ready == 0 && !complete(w)) return to_scheduler(b);
    const unsigned next = unsigned(__builtin_ctz(w.ready));
    w.ready &= w.ready - 1;
    Fiber& from = *b.running;
    Fiber& to = (&from - from.index % WARP)[next];
    if (&from == &to) {
        b.resumed += 1;
        return;
    }
    select(b, to);
    switch_context(from, to);
}

const uint64_t* exchange(unsigned mask, uint64_t value) {
    Block& b = *current.state;
    WarpState& w = b.warp();
    uint64_t* slots = w.slots[w.generation];
    slots[b.running->index % WARP] = value;
    await_lanes(b, w, mask);
    return slots;
}

unsigned exchange_bits(unsigned mask, bool bit) {
    Block& b = *current.state;
    WarpState& w = b.warp();
    unsigned& bits = w.bits[w.generation];
    if (bit) bits |= b.lane();
    await_lanes(b, w, mask);
    return bits & mask;
}

void await_blocks() {
    Block& b = *current.state;
    if (!b.turns) return;
    b.warp().at_grid_barrier |= b.lane();
    to_scheduler(b);
}

void require_below(unsigned index, unsigned size, const char* what) {
    if (index < size) return;
    fprintf(stderr, "emulated kernel: %s %u, but there are %u\n", what, index, size);
    abort();
}

unsigned removed_barrier() {
    static const unsigned number = [] {
        const char* fault = getenv("GALAMOST_EMULATED_FAULT");
        return fault && strncmp(fault, "barrier:", 8) == 0 ? unsigned(strtoul(fault + 8, nullptr, 10)) : 0u;
    }();
    return number;
}

// Gives a fiber a stack from which it starts.
static void begin(Block& b, Fiber& f) {
    f.stack = static_cast<char*>(take_stack(STACK));
    memcpy(f.stack, &STACK_END, sizeof(STACK_END));
    // stacks that begin at the same address modulo a power of two would displace each other from the cache
    const size_t size = STACK - f.index % 128 * 192;
#if defined(__x86_64__)
    // as if the entry of fiber_main had called galamost_switch
    uint64_t* top = reinterpret_cast<uint64_t*>(f.stack + size - 64);
    *--top = 0;
    *--top = reinterpret_cast<uint64_t>(&fiber_main);
    for (int k = 0; k < 6; ++k) *--top = 0;
    f.context = top;
#else
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = size;
    f.context.uc_link = nullptr;
    makecontext(&f.context, fiber_main, 0);
#endif
}

// Runs a fiber, and those that it passes the processor on to, until one returns to the scheduler.
static void resume(Block& b, WarpState& w, Fiber& f) {
    select(b, f);
#if defined(__x86_64__)
    galamost_switch(&b.scheduler, f.context);
#else
    swapcontext(&b.scheduler, &f.context);
#endif
    Fiber& last = *b.running;
    if (memcmp(last.stack, &STACK_END, sizeof(STACK_END)) != 0) {
        fprintf(stderr, "emulated kernel: a thread needs more than %zu bytes of stack\n", STACK);
        abort();
    }
    if ((w.live & b.lane()) == 0) {
        give_stack(last.stack);
        last.stack = nullptr;
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

// The thread-local variables of this library: `size` bytes, `current` lies `offset` bytes behind the first.
struct LocalVariables {
    ptrdiff_t offset = 0;
    size_t size = 0;

    static int find(dl_phdr_info* library, size_t, void* out) {
        const uintptr_t here = reinterpret_cast<uintptr_t>(&STACK_END);
        bool is_this = false;
        size_t size = 0;
        for (unsigned k = 0; k < library->dlpi_phnum; ++k) {
            const ElfW(Phdr)& part = library->dlpi_phdr[k];
            if (part.p_type == PT_LOAD) is_this |= here - (library->dlpi_addr + part.p_vaddr) < part.p_memsz;
            if (part.p_type == PT_TLS) size = part.p_memsz;
        }
        if (!is_this) return 0;
        LocalVariables& found = *static_cast<LocalVariables*>(out);
        found.offset = reinterpret_cast<char*>(&current) - static_cast<char*>(library->dlpi_tls_data);
        found.size = size;
        return 1;
    }
};

// Fills the shared variables of a block, as on a GPU, where they begin with any content: they are the thread-local variables of
// this library, except for `current` and the state of the block.
static void fill_shared(Block& b) {
    static const LocalVariables all = [] {
        LocalVariables found;
        dl_iterate_phdr(&LocalVariables::find, &found);
        return found;
    }();
    struct Kept {
        char* begin;
        size_t size;
    } kept[] = {{reinterpret_cast<char*>(&current), sizeof(current)}, {reinterpret_cast<char*>(&b), sizeof(b)}};
    if (kept[0].begin > kept[1].begin) std::swap(kept[0], kept[1]);
    char* from = reinterpret_cast<char*>(&current) - all.offset;
    char* const end = from + all.size;
    for (const Kept& k : kept) {
        memset(from, 0xff, size_t(k.begin - from));
        from = k.begin + k.size;
    }
    memset(from, 0xff, size_t(end - from));
    if (b.launch.bytes > 0) memset(b.launch.end - b.launch.bytes, 0xff, b.launch.bytes);
}

// Runs a warp until no lane can continue. A warp function continues when all lanes have reached it that it names and that
// have not ended.
static void run_warp(Block& b, unsigned number) {
    WarpState& w = b.warps[number];
    do {
        while (w.ready != 0) {
            const unsigned lane = unsigned(__builtin_ctz(w.ready));
            w.ready &= w.ready - 1;
            resume(b, w, b.fibers[number * WARP + lane]);
        }
    } while (complete(w));
}

static void run_block(Block& b) {
    fill_shared(b);
    current.state = &b;
    current.any = false;
    const dim3 size = current.block;
    const unsigned n = size.x * size.y * size.z;
    b.fibers.assign(n, Fiber());
    b.warps.assign((n + WARP - 1) / WARP, WarpState());
    for (unsigned t = 0; t < n; ++t) {
        b.fibers[t].index = t;
        b.fibers[t].thread = {t % size.x, t / size.x % size.y, t / size.x / size.y};
        b.warps[t / WARP].live |= 1u << t % WARP;
    }
    for (WarpState& w : b.warps) w.ready = w.live;
    // threads that waited for other blocks before this turn
    unsigned waited = 0;
    b.resumed = 0;
    for (;;) {
        unsigned live = 0, at_barrier = 0, at_grid_barrier = 0;
        for (unsigned k = 0; k < b.warps.size(); ++k) {
            run_warp(b, k);
            live += unsigned(__builtin_popcount(b.warps[k].live));
            at_barrier += unsigned(__builtin_popcount(b.warps[k].at_barrier));
            at_grid_barrier += unsigned(__builtin_popcount(b.warps[k].at_grid_barrier));
        }
        if (live == 0) return;
        if (at_barrier == live) {
            for (WarpState& w : b.warps) {
                w.ready = w.at_barrier;
                w.at_barrier = 0;
            }
        } else if (at_grid_barrier > 0) {
            b.turns->pass(current.id.x, b.resumed == waited && at_grid_barrier == waited);
            waited = at_grid_barrier;
            b.resumed = 0;
            for (WarpState& w : b.warps) {
                w.ready = w.at_grid_barrier;
                w.at_grid_barrier = 0;
            }
        } else {
            fprintf(stderr, "emulated kernel: deadlock: %u threads at a barrier, %u ended, of %u\n",
                    at_barrier, n - live, n);
            abort();
        }
    }
}

void launch(Body body, void* data, const unsigned* grid, const unsigned* block_size) {
    Block& b = block();
    b.body = body;
    b.data = data;
    current.grid = {grid[0], grid[1], grid[2]};
    current.block = {block_size[0], block_size[1], block_size[2]};
    if (block_size[3] > LaunchMemory::MOST) {
        fprintf(stderr, "emulated kernel: a launch asks for %u bytes of shared memory\n", block_size[3]);
        abort();
    }
    b.launch.reserve(block_size[3]);
    for (unsigned z = 0; z < grid[2]; ++z) {
        for (unsigned y = 0; y < grid[1]; ++y) {
            for (unsigned x = 0; x < grid[0]; ++x) {
                current.id = {x, y, z};
                run_block(b);
            }
        }
    }
}

// A block of a cooperative launch.
struct Cooperative {
    Body body;
    void* data;
    dim3 grid, block, id;
    Turns* turns;

    static void* run(void* self) {
        const Cooperative& c = *static_cast<Cooperative*>(self);
        c.turns->await(c.id.x);
        Block& b = galamost_host::block();
        b.body = c.body;
        b.data = c.data;
        b.turns = c.turns;
        current.grid = c.grid;
        current.block = c.block;
        current.id = c.id;
        run_block(b);
        c.turns->end(c.id.x);
        return nullptr;
    }
};

void launch_cooperative(Body body, void* data, const unsigned* grid, const unsigned* block_size) {
    const unsigned blocks = grid[0];
    for (unsigned z = 0; z < grid[2]; ++z) {
        Turns turns(blocks);
        std::vector<Cooperative> all(blocks);
        std::vector<pthread_t> threads(blocks);
        for (unsigned k = 0; k < blocks; ++k) {
            all[k] = {body, data, {blocks, 1, grid[2]}, {block_size[0], block_size[1], block_size[2]},
                      {k, 0, z}, &turns};
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
