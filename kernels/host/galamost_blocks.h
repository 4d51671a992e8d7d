// What units need of fibers, blocks and launches; see galamost_host.h. The rest is in galamost_blocks.cpp, which is compiled
// once: units are many and small.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>
#include <utility>

struct dim3 { unsigned x, y, z; };

// a unit and galamost_blocks.cpp are linked to one library, which shows only the entries of its kernels
#pragma GCC visibility push(hidden)

namespace galamost_host {

static const unsigned WARP = 32;

struct Block;

// The thread that runs, and its block.
struct Current {
    dim3 grid, block, id, thread;
    // number in the block
    unsigned index;
    // the flag of __syncthreads_or
    bool any;
    Block* state;
};
extern __thread Current current;

// Waits for the other threads of the block.
void barrier();

// Passes a value to the warp and waits for the other lanes of the mask. Returns the values of all lanes.
const uint64_t* exchange(unsigned mask, uint64_t value);

// Passes a bit to the warp and waits for the other lanes of the mask. Returns the bits of all lanes.
unsigned exchange_bits(unsigned mask, bool bit);

// A thread calls it before it looks whether other blocks have arrived at a grid barrier.
void await_blocks();

// Returns the number of the grid barrier that a test removes; GALAMOST_EMULATED_FAULT is `barrier:N`.
unsigned removed_barrier();

// The memory that the launch reserves in addition to static shared memory. A page that nobody may touch follows it, up to the next
// multiple of 16 bytes.
unsigned char* launch_memory();

// Ends the program with a message if an index is outside of an array.
void require_below(unsigned index, unsigned size, const char* what);

using Body = void (*)(void*);

// Calls the body in each thread of each block, one block after the other. The fourth number of `block_size` is that of the bytes of
// launch_memory().
void launch(Body body, void* data, const unsigned* grid, const unsigned* block_size);

// The same for a kernel with a grid barrier. Blocks of the same z wait for each other; all others run one after the other.
void launch_cooperative(Body body, void* data, const unsigned* grid, const unsigned* block_size);

// A kernel with its arguments, which are those of cuLaunchKernel.
template <class... A> struct Call {
    void (*kernel)(A...);
    void** args;
    template <size_t... I> void with(std::index_sequence<I...>) {
        kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<A>>*>(args[I])...);
    }
    static void body(void* self) { static_cast<Call*>(self)->with(std::index_sequence_for<A...>()); }
};

using Launch = void (*)(Body, void*, const unsigned*, const unsigned*);
template <class... A>
void call(Launch how, void (*kernel)(A...), void** args, const unsigned* grid, const unsigned* block_size) {
    Call<A...> it{kernel, args};
    how(&Call<A...>::body, &it, grid, block_size);
}

}  // namespace galamost_host

#pragma GCC visibility pop
