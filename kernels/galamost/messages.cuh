// Messages between ranks that cannot read each other's memory: a kernel packs the particles that another rank has requested,
// and another one unpacks the received ghosts. A record has all fields of a particle.
#pragma once
#include "galamost/args.cuh"

// Copies `words` words. Fields whose words are no multiple of 4 are the last ones of a record, so the others are aligned.
__device__ __forceinline__ void copy_field(u32* to, const u32* from, u32 words) {
    if (words & 3u) {
        for (u32 w = 0; w < words; ++w) to[w] = from[w];
        return;
    }
    for (u32 w = 0; w < words; w += 4u) *reinterpret_cast<uint4*>(to + w) = *reinterpret_cast<const uint4*>(from + w);
}

extern "C" __global__ void pack_particles(MessageArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= a.n) return;
    u32* record = a.records + u64(k) * a.record_words;
    for (u32 f = 0; f < a.n_fields; ++f) {
        const MessageField& field = a.fields[f];
        copy_field(record, field.data + u64(a.particles[k]) * field.words, field.words);
        record += field.words;
    }
}

extern "C" __global__ void unpack_particles(MessageArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= a.n) return;
    const u32* record = a.records + u64(k) * a.record_words;
    for (u32 f = 0; f < a.n_fields; ++f) {
        const MessageField& field = a.fields[f];
        copy_field(field.data + u64(a.particles[k]) * field.words, record, field.words);
        record += field.words;
    }
}
