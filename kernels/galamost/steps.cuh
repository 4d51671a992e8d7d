// Many steps in one kernel, for systems so small that a launch takes as long as what it launches. Its blocks are all on the device
// together; between parts of a step that need each other's results they meet. The engine writes the kernel itself, which calls the same
// functions on the same particles, in blocks of the same size, as the kernels of single steps do, so that every bit is the same.
#pragma once
#include "galamost/pair.cuh"
#include "galamost/angles.cuh"
#include "galamost/integrate.cuh"

// A number of arrivals and a sum of what blocks asked for; both only grow, so that no block has to wait for another to set them back.
// They are read at once.
union Tally {
    struct {
        u32 arrivals, asked;
    } part;
    u64 both;
};

// What the kernel goes by, kept from one launch to the next.
struct StepsControl {
    // steps that are still to be done
    u32 left;
    // the step under way has moved its particles
    u32 begun;
    // blocks that came to meetings; meetings whose actions are done, and what they decided; what the first one was at the last launch's end
    u64 came, done, before;
};

// A word that other blocks change, and what they wrote before they changed it.
__device__ __forceinline__ u64 acquire(const u64* word) {
#ifdef GALAMOST_HOST
    return *word;
#else
    u64 x;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(word) : "memory");
    return x;
#endif
}

// Changes it; what was written before is there for those who see the change.
__device__ __forceinline__ void release(u64* word, u64 x) {
#ifdef GALAMOST_HOST
    *word = x;
#else
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory");
#endif
}

// Adds 1 to a word, with both; how much it was before.
__device__ __forceinline__ u32 count_up(u64* word) {
    u32* low = reinterpret_cast<u32*>(word);
#ifdef GALAMOST_HOST
    return (*low)++;
#else
    u32 x;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(x) : "l"(low) : "memory");
    return x;
#endif
}

// A block's view of the meetings of a launch.
struct Meetings {
    StepsControl* control;
    const Globals* globals;
    Tally before;
    u32 arrivals;

    __device__ __forceinline__ Meetings(StepsControl* c, const Globals* g) : control(c), globals(g) {
        // nobody changes it while blocks begin
        before.both = c->before;
        arrivals = before.part.arrivals;
    }

    // What has been asked for in this launch, by a tally that all have come to.
    __device__ __forceinline__ u32 answer(Tally t) const {
        const u32 asked = t.part.asked - before.part.asked;
        return ((asked & 0xffffu) != 0u ? STOP_HALT : 0u) | ((asked >> 16) != 0u ? STOP_REBUILD : 0u);
    }

    // Waits for all blocks; what they wrote before is visible to all of them then. `asked` is what this thread asks for. Every block gets
    // the same answer.
    __device__ __forceinline__ u32 meet(u32& asked) {
        __shared__ u32 shared[2];
        arrive(asked, shared);
        if (threadIdx.x == 0u) {
            count_up(&control->came);
            Tally t;
            do t.both = acquire(&control->came);
            while (int(t.part.arrivals - arrivals) < 0);
            shared[1] = answer(t);
        }
        __syncthreads();
        return shared[1];
    }

    // The same; the block that comes last calls `action` with all its threads before the others go on.
    template <class Action> __device__ __forceinline__ u32 meet(u32& asked, const Action& action) {
        // who waits may have the answer before others of the block have seen that they are not the last
        __shared__ u32 shared[2], last;
        arrive(asked, shared);
        if (threadIdx.x == 0u) last = count_up(&control->came) + 1u == arrivals ? 1u : 0u;
        __syncthreads();
        Tally t;
        if (last) {
            if (threadIdx.x == 0u) t.both = acquire(&control->came);
            action();
            __syncthreads();
            if (threadIdx.x == 0u) {
#ifdef GALAMOST_SHEAR
                // images that are displaced may need a list at once
                if (globals->rebuild) {
                    atomicAdd(reinterpret_cast<u32*>(&control->came) + 1, STOP_REBUILD);
                    t.part.asked += STOP_REBUILD;
                }
#endif
                release(&control->done, t.both);
                shared[1] = answer(t);
            }
        } else if (threadIdx.x == 0u) {
            do t.both = acquire(&control->done);
            while (t.part.arrivals != arrivals);
            shared[1] = answer(t);
        }
        __syncthreads();
        return shared[1];
    }

    // At the end of a launch, by one thread.
    __device__ __forceinline__ void leave() { control->before = acquire(&control->came); }

  private:
    // Brings what the block asks for.
    __device__ __forceinline__ void arrive(u32& asked, u32 (&shared)[2]) {
        arrivals += gridDim.x;
        if (threadIdx.x == 0u) shared[0] = 0u;
        const int any = __syncthreads_or(int(asked));
        if (any) {
            if (asked) atomicOr(&shared[0], asked);
            __syncthreads();
            if (threadIdx.x == 0u) atomicAdd(reinterpret_cast<u32*>(&control->came) + 1, shared[0]);
        }
        asked = 0u;
    }
};

// The pair loop, by blocks that go over all particles.
template <class Parts, int PARTS, u32 TEAM> __device__ __forceinline__ void pair_all(const PairArgs& a) {
    Parts parts(a);
    const u32 threads = a.state.n_local * TEAM;
    for (u32 first = blockIdx.x * blockDim.x; first < threads; first += gridDim.x * blockDim.x) {
        Accumulator<PARTS, false> sum;
        pair_rows<Parts, PARTS, TEAM, false>(a, parts, first + threadIdx.x, sum);
    }
}

// Does a function of a group's number for all groups of SUM_THREADS particles, each particle always by the same thread. A few groups
// are spread over as many multiprocessors; where a block has nothing left to do, its threads still take part with particles that there
// are not.
template <class F> __device__ __forceinline__ void for_groups(const StateView& s, const F& f) {
    const u32 groups = (s.n_local + SUM_THREADS - 1u) / SUM_THREADS, held = blockDim.x / SUM_THREADS;
    for (u32 first = blockIdx.x; first < groups; first += held * gridDim.x) f(first + threadIdx.x / SUM_THREADS * gridDim.x);
}
