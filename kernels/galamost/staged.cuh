// The staged list: blocks of consecutive particles with their halo. The force kernel copies the positions of a block
// and its halo to shared memory; rows of neighbors are 16-bit offsets into this copy.
//
// Everything about a block (halo, rows, order within rows) depends only on the order of the particles and their
// positions at the rebuild, never on other blocks or earlier lists.
#pragma once
#include "galamost/state.cuh"

typedef unsigned short u16;

// Particles of a block. One thread handles one row.
static constexpr u32 BLOCK = 256u, BLOCK_WARPS = BLOCK / 32u;

// Particles of a tile, a group of tiles, and a group of groups.
static constexpr u32 TILE_PARTICLES = 32u, LEVEL = 32u;

// Bounding boxes of consecutive particles: centers in units of the box, and half lengths.
struct Bounds {
    int4* center;
    float4* half;
    u32 count, reserved;
};

// Halo of a block that is wider than half the box, so that differences need the nearest image.
static constexpr u32 WIDE = 0x80000000u;

struct StagedView {
    // x, y, z: center of each block. w: number of slots in use (own particles included), and WIDE
    int4* blocks;
    // particle of each slot from BLOCK on, in ascending order: `slots` - BLOCK entries for each block
    u32* halo;
    // particle of the block and length << 16 for each row, in descending order of length
    u32* rows;
    // first chunk of each warp of rows
    u32* first_chunk;
    // 8 entries of 32 rows: entry = 16 * slot
    uint4* chunks;
    // [0] chunks in use, [1] tiles of a block, [2] slots of a block, [3] longest row (maxima of the last rebuild),
    // [4, 5] number of entries
    u32* statistics;
    u32 n_blocks;
    // slots of a block, a multiple of 256
    u32 slots;
    u32 chunk_capacity, tile_capacity;
    // unit of staged coordinates, and its inverse
    double quantum, per_length;
    Bounds tiles, groups, tops;
    // bit 8 * (slot / 8 % 32) of word (slot / 256 * 8 + slot % 8): the slot is a neighbor of the row. Four words of a
    // row are adjacent; the rows of a block follow each other
    uint4* masks;
};

__device__ __forceinline__ int difference_of(int a, int b) { return int(u32(a) - u32(b)); }

// Memory that a launch reserves in addition to static shared memory.
#ifdef GALAMOST_HOST
#define GALAMOST_LAUNCH_SHARED(name) static thread_local __attribute__((aligned(16))) unsigned char name[228 * 1024]
#else
#define GALAMOST_LAUNCH_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif
