// Places particles whose position follows from that of others.
#pragma once
#include "galamost/integrate.cuh"

// Puts particle i at this displacement from particle c, which may be i, with this velocity. Requests a rebuild of the neighbor
// list if it is far from where it was at the last one; raises a fault if d is not a number or half a box long.
__device__ __forceinline__ void move_particle(const StateView& s, u32 component, u32 i, u32 c, const Vec3<double>& by,
                                              const Vec3<real>& velocity) {
    Globals* g = s.globals;
    const Vec3<double> d = to_reduced(by, g);
    PosType pos = s.pos_type[c];
    pos.kind = s.pos_type[i].kind;
    const double length[3] = {g->box_length[0], g->box_length[1], g->box_length[2]}, shift[3] = {d.x, d.y, d.z};
    int image[3] = {s.image[3u * c], s.image[3u * c + 1u], s.image[3u * c + 2u]};
    bool valid = true;
#ifdef GALAMOST_DOUBLE
    valid &= move_axis(pos.x, image[0], shift[0], length[0]);
    valid &= move_axis(pos.y, image[1], shift[1], length[1]);
    if (g->dimensions == 3u) valid &= move_axis(pos.z, image[2], shift[2], length[2]);
#else
    u32 low[3] = {0u, 0u, 0u};
#ifdef GALAMOST_MIXED
    for (int k = 0; k < 3; ++k) low[k] = s.pos_low[3u * c + k];
#endif
    valid &= move_axis(pos.x, low[0], image[0], shift[0], length[0]);
    valid &= move_axis(pos.y, low[1], image[1], shift[1], length[1]);
    if (g->dimensions == 3u) valid &= move_axis(pos.z, low[2], image[2], shift[2], length[2]);
#endif
    PosType built = s.pos_at_build[i];
    if (check_displacement(g, component, s.tag[i], valid, pos, built, g->slack2, make_scale(g)) & STOP_HALT) return;
#ifdef GALAMOST_MIXED
    for (int k = 0; k < 3; ++k) s.pos_low[3u * i + k] = low[k];
#endif
    s.pos_type[i] = pos;
    for (int k = 0; k < 3; ++k) s.image[3u * i + k] = image[k];
    s.velocity_mass[i] = {velocity.x, velocity.y, velocity.z, s.velocity_mass[i].w};
}

// The same for a displacement that is rounded to real.
__device__ __forceinline__ void place_particle(const StateView& s, u32 component, u32 i, u32 c, const Vec3<real>& d,
                                               const Vec3<real>& velocity) {
    move_particle(s, component, i, c, {double(d.x), double(d.y), double(d.z)}, velocity);
}

// Stores the virial of a block of threads as that of block number `block` of all GPUs. All threads of the block call it. Args is PlaceArgs
// of the plugin API.
template <class Args> __device__ __forceinline__ void store_virial(const Args& a, u32 block, double (&virial)[6]) {
    __shared__ double memory[6 * 4];
    block_sum(virial, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 6; ++k) a.partial[6u * block + k] = virial[k];
    }
}

// Stores the virial of the item of this thread, or 0 if another GPU counts it.
template <class Args> __device__ __forceinline__ void store_virial_of_item(const Args& a, double (&virial)[6]) {
    const u32 item = blockIdx.x * blockDim.x + threadIdx.x;
    if (!a.virials) return store_virial(a, blockIdx.x, virial);
    for (u32 k = 0; item < a.items && k < 6u; ++k) a.virials[6u * item + k] = virial[k];
}

// Adds the virials of the items of a block.
template <class Args> __device__ __forceinline__ void sum_items_of_block(const Args& a) {
    if (a.state.globals->halt) return;
    const u32 item = blockIdx.x * blockDim.x + threadIdx.x;
    double virial[6];
    for (u32 k = 0; k < 6u; ++k) virial[k] = item < a.items ? a.virials[6u * item + k] : 0.0;
    store_virial(a, blockIdx.x, virial);
}

// Adds the virials of all blocks to the sums of the component, in a fixed order. Called by one block.
template <class Args> __device__ __forceinline__ void sum_blocks(const Args& a) {
    __shared__ double memory[6 * 4];
    if (a.state.globals->halt) return;
    double virial[6];
    const u32 blocks = a.items ? (a.items + blockDim.x - 1u) / blockDim.x : particle_blocks(a.state);
    sum_partials(a.partial, blocks, virial, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 6; ++k) a.sums->virial[k] += virial[k];
    }
}
