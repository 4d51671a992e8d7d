// Updates changed rows of links and exclusions in place.
#pragma once
#include "galamost/list.cuh"
#include "galamost/args.cuh"

// Updates the rows by tag and by index. No other thread writes the row of a tag.
extern "C" __global__ void patch_links(PatchArgs a) {
    const u32 r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= a.rows) return;
    const u32 tag = a.patch[r], n = a.patch[a.rows + r], i = a.state.index_of_tag[tag];
    const u32 width = a.links.width, room = a.links.capacity * width;
    const u32* row = a.patch + 2u * a.rows + u64(r) * room;
    a.count[tag] = n;
    a.links.count[i] = n;
    for (u32 k = 0; k < n * width; ++k) {
        a.words[u64(tag) * room + k] = row[k];
        const bool last = k % width + 1u == width;
        a.links.words[u64(k) * a.links.stride + i] = last ? row[k] : a.state.index_of_tag[row[k]];
    }
}

// Updates rows of exclusions and removes newly excluded pairs from the neighbor list; the other entries keep their
// order.
extern "C" __global__ void patch_exclusions(PatchExclusionsArgs a) {
    const u32 r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= a.rows) return;
    const u32 tag = a.patch[r], n = a.patch[a.rows + r], i = a.state.index_of_tag[tag];
    const u32* row = a.patch + 2u * u64(a.rows) + u64(r) * a.capacity;
    a.count[tag] = n;
    for (u32 k = 0; k < n; ++k) a.words[u64(tag) * a.capacity + k] = row[k];
    if (!a.list.index || i < own_begin(a.state) || i >= own_end(a.state)) return;
    const u32 before = a.list.count[i];
    u32 kept = 0u;
    for (u32 k = 0; k < before; ++k) {
        const u32 j = neighbor(a.list, i, k), other = a.state.tag[j];
        bool stays = true;
        for (u32 e = 0; e < n; ++e) stays &= row[e] != other;
        if (stays) a.list.index[list_offset(a.list, i, kept++)] = j;
    }
    a.list.count[i] = kept;
}
