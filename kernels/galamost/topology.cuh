// Changes of topology. An updater's kernels only queue edits; the engine sorts and applies them after the updater has
// finished.
#pragma once
#include "galamost/state.cuh"

// Queues an edit. Edits beyond the capacity are only counted; the engine then enlarges the queue and calls the updater
// again.
__device__ __forceinline__ void request(const EditQueue& q, u32 remove, u32 width, u32 type, u32 a, u32 b, u32 c = 0u,
                                        u32 d = 0u, u32 improper = 0u) {
    const u32 n = atomicAdd(q.count, 1u);
    if (n < q.capacity) {
        Edit e;
        e.remove = remove;
        e.width = width;
        e.kind = type;
        e.tags[0] = a;
        e.tags[1] = b;
        e.tags[2] = c;
        e.tags[3] = d;
        e.improper = improper;
        q.edits[n] = e;
    }
}
__device__ __forceinline__ void request_bond(const EditQueue& q, u32 type, u32 a, u32 b) {
    request(q, EditKind::Add, 2u, type, a, b);
}
__device__ __forceinline__ void request_no_bond(const EditQueue& q, u32 type, u32 a, u32 b) {
    request(q, EditKind::Remove, 2u, type, a, b);
}
// Removes a bond together with the angles, dihedrals and impropers along it.
__device__ __forceinline__ void request_cut(const EditQueue& q, u32 type, u32 a, u32 b) {
    request(q, EditKind::Cut, 2u, type, a, b);
}
