// The staged list: blocks of consecutive particles with their halo. The force kernel copies the positions of a block
// and its halo to shared memory; rows of neighbors are 16-bit offsets into this copy.
//
// Everything about a block (halo, rows, order within rows) depends only on the order of the particles and their
// positions at the rebuild, never on other blocks or earlier lists.
#pragma once
#include "galamost/args.cuh"
#include "galamost/list.cuh"

typedef unsigned short u16;

static constexpr u32 BLOCK_WARPS = BLOCK / 32u;

static constexpr u32 TILE_PARTICLES = 32u;

// Halo of a block that is wider than half the box, so that differences need the nearest image.
static constexpr u32 WIDE = 0x80000000u;

// Halo of a block with particles of other ranks.
static constexpr u32 BOUNDARY = 0x40000000u;

// The number of slots of a block, without these flags.
__device__ __forceinline__ u32 slot_count(const int4& block) { return u32(block.w) & ~(WIDE | BOUNDARY); }

__device__ __forceinline__ int difference_of(int a, int b) { return int(u32(a) - u32(b)); }

#ifndef GALAMOST_DOUBLE
// Squared distance between two boxes, the nearest image; x, y, z is the difference of their centers.
__device__ __forceinline__ float gap2(int x, int y, int z, float hx, float hy, float hz, const BoxScale& s) {
    const float dx = fmaxf(fabsf(float(x) * s.unit[0]) - hx, 0.0f), dy = fmaxf(fabsf(float(y) * s.unit[1]) - hy, 0.0f),
                dz = fmaxf(fabsf(float(z) * s.unit[2]) - hz, 0.0f);
    return dx * dx + dy * dy + dz * dz;
}
#endif

// Returns whether a run has halted, the same in all threads of a block: while this one begins, another may raise a fault, and a
// block with only some of its warps would use shared memory that nobody has written.
__device__ __forceinline__ bool has_halted(const Globals* g) { return __syncthreads_or(g->halt != 0u) != 0; }

// Memory that a launch reserves in addition to static shared memory.
#ifdef GALAMOST_HOST
#define GALAMOST_LAUNCH_SHARED(name) unsigned char* const name = galamost_host::launch_memory()
#else
#define GALAMOST_LAUNCH_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif
