// Barriers for all blocks of a persistent kernel.
#pragma once
#include "galamost/state.cuh"

// The number of blocks that arrived at barriers and the sum of the stop flags they requested. Both counters only grow,
// so no block has to wait for another one to reset them. One 64-bit access reads both.
union BarrierWord {
    struct {
        u32 arrivals, requested;
    } fields;
    u64 both;
};

// Loads a word that other blocks change, with acquire semantics.
__device__ __forceinline__ u64 acquire(const u64* word) {
#ifdef GALAMOST_HOST
    galamost_host::await_blocks();
    return *word;
#else
    u64 x;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(word) : "memory");
    return x;
#endif
}

// Stores a word with release semantics: a thread that acquires the new value also sees all earlier writes.
__device__ __forceinline__ void release(u64* word, u64 x) {
#ifdef GALAMOST_HOST
    *word = x;
#else
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory");
#endif
}

// Adds 1 to the low half of a word with release semantics.
__device__ __forceinline__ void increment(u64* word) {
    u32* low = reinterpret_cast<u32*>(word);
#ifdef GALAMOST_HOST
    ++*low;
#else
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(low) : "memory");
#endif
}

// One block's view of the grid barriers of a launch. A barrier is a single atomic counter.
struct GridBarrier {
    BarrierArgs* control;
    const Globals* globals;
    BarrierWord start;
    u32 arrivals;

    __device__ __forceinline__ GridBarrier(BarrierArgs* c, const Globals* g) : control(c), globals(g) {
        // no block changes this word before the end of the launch
        start.both = c->previous;
        arrivals = start.fields.arrivals;
    }

    // Returns the stop flags requested so far in this launch. `t` is a word read after all blocks have arrived.
    __device__ __forceinline__ u32 answer(BarrierWord t) const {
        const u32 requested = t.fields.requested - start.fields.requested;
        return ((requested & 0xffffu) != 0u ? STOP_HALT : 0u) | ((requested >> 16) != 0u ? STOP_REBUILD : 0u);
    }

    // Waits for all blocks; afterwards their earlier writes are visible to every block. `requested` holds the stop
    // flags of this thread. Every block gets the same answer. NEXT: a new step begins, unless
    // the run halts.
    template <bool NEXT = false> __device__ __forceinline__ u32 wait(u32& requested) {
        __shared__ u32 shared[2];
        arrive(requested, shared);
        if (threadIdx.x == 0u) {
            increment(&control->arrived);
            shared[1] = count<NEXT>(answer(await_arrivals()));
        }
        __syncthreads();
        return shared[1];
    }

    // Waits for all blocks. Block 0 calls `action` with all its threads before it releases the others. It is always the same block, because
    // another multiprocessor would first have to fetch the instructions of the action. NEXT: the action begins the next step, which the other
    // blocks count.
    template <bool NEXT = false, class Action> __device__ __forceinline__ u32 wait(u32& requested, const Action& action) {
        __shared__ u32 shared[2];
        arrive(requested, shared);
        BarrierWord t;
        if (threadIdx.x == 0u) increment(&control->arrived);
        if (blockIdx.x == 0u) {
            if (threadIdx.x == 0u) t = await_arrivals();
            __syncthreads();
            action();
            __syncthreads();
            if (threadIdx.x == 0u) {
#if defined(GALAMOST_SHEAR) || defined(GALAMOST_BAROSTAT)
                // a change of the box or of the shear offset may be a fault or require a neighbor list at once
                const u32 more = (globals->rebuild ? STOP_REBUILD : 0u) | (globals->halt ? STOP_HALT : 0u);
                if (more) {
                    atomicAdd(reinterpret_cast<u32*>(&control->arrived) + 1, more);
                    t.fields.requested += more;
                }
#endif
                release(&control->released, t.both);
                shared[1] = answer(t);
            }
        } else if (threadIdx.x == 0u) {
            if (is_removed()) t.both = control->arrived;
            else do t.both = acquire(&control->released);
            while (t.fields.arrivals != arrivals);
            shared[1] = count<NEXT>(answer(t));
        }
        __syncthreads();
        return shared[1];
    }

    // Stores the counters for the next launch. One thread calls it at the end of a launch.
    __device__ __forceinline__ void finish() { control->previous = acquire(&control->arrived); }

  private:
    // Counts a new step in this block, unless the run halts. Returns the stop flags.
    template <bool NEXT> static __device__ __forceinline__ u32 count(u32 stop) {
#ifdef GALAMOST_STEPS
        if (NEXT && !(stop & STOP_HALT)) ++counted_step;
#endif
        return stop;
    }

    // Waits until all blocks have arrived, and returns the word.
    __device__ __forceinline__ BarrierWord await_arrivals() const {
        BarrierWord t;
        if (is_removed()) t.both = control->arrived;
        else do t.both = acquire(&control->arrived);
        while (int(t.fields.arrivals - arrivals) < 0);
        return t;
    }

    // Returns whether a test has removed this barrier: blocks arrive at it, but do not wait.
    __device__ __forceinline__ bool is_removed() const {
#ifdef GALAMOST_HOST
        return galamost_host::removed_barrier() == arrivals / gridDim.x;
#else
        return false;
#endif
    }

    // Adds the stop flags of the block to the barrier word.
    __device__ __forceinline__ void arrive(u32& requested, u32 (&shared)[2]) {
        arrivals += gridDim.x;
        if (threadIdx.x == 0u) shared[0] = 0u;
        const int any = __syncthreads_or(int(requested));
        if (any) {
            if (requested) atomicOr(&shared[0], requested);
            __syncthreads();
            if (threadIdx.x == 0u) atomicAdd(reinterpret_cast<u32*>(&control->arrived) + 1, shared[0]);
        }
        requested = 0u;
    }
};
