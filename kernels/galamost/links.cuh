// The kernel that looks up links of particles, which are stored by tag.
#pragma once
#include "galamost/sort.cuh"

extern "C" __global__ void index_links(LinkArgs a) {
    await_launches();
    const u32 i = own_begin(a.state) + blockIdx.x * blockDim.x + threadIdx.x;
    const Globals* g = a.state.globals;
    if (!g->halt && g->rebuilds % a.sort_every == 0ull && i < own_end(a.state)) index_links_of(a.state, a.table, i);
}
