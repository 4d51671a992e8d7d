// Messages between ranks that cannot read each other's memory: a kernel packs the particles that another rank has requested,
// and another one unpacks the received ghosts. A record has all fields of a particle.
//
// With each message a rank says whether it requests a rebuild or has halted, as ranks that share memory do at a barrier. If one requests a
// rebuild, all of them pause at the message that follows the move: kernels of this step return at once, until the host launches the rebuild
// and the rest of the step. The host reads what the message says in its memory, while the device computes forces, before it launches the next step.
#pragma once
#include "galamost/args.cuh"
#include "galamost/ranks_barrier.cuh"

static constexpr u32 REQUESTS_REBUILD = 1u, HAS_HALTED = 2u, HAS_PAUSED = 4u;

// Notes what this rank requests, and when. Called by one thread.
__device__ __forceinline__ u32 note_request(const MessageHead& h) {
    const Globals* g = h.globals;
    const u32 halt = g->halt, stopped = halt == PAUSED ? HAS_PAUSED : HAS_HALTED;
    const u32 own = (g->rebuild ? REQUESTS_REBUILD : 0u) | (halt ? stopped : 0u);
    h.requests[h.rank] = own;
    h.epochs[5] = h.epochs[6] = nanoseconds();
    return own;
}

// Applies what any rank requests to this one, and counts the time since it sent its message, or since the last interior block of
// the pair loop ended. Called by one thread.
__device__ __forceinline__ void take_request(const MessageHead& h, u32 all) {
    Globals* g = h.globals;
    h.epochs[2] += nanoseconds() - *static_cast<const volatile u64*>(h.epochs + 6);
    if (all & REQUESTS_REBUILD) g->rebuild = 1u;
    u64 answer = 0ull;
    if (all & HAS_HALTED) {
        g->halt = 1u;
        answer = ANSWER_HALTED;
    } else if (h.pauses && all & REQUESTS_REBUILD) {
        // a kernel in another stream may have halted the run
        if (!g->halt) g->halt = PAUSED;
        answer = ANSWER_PAUSED;
    }
    if (h.pauses) *static_cast<volatile u64*>(h.answer) = h.number * ANSWERS + answer;
}

// Ends a pause, unless the run has halted since it began.
extern "C" __global__ void end_pause(MessageHead h) {
    if (h.globals->halt == PAUSED) h.globals->halt = 0u;
}

extern "C" __global__ void note_requests(MessageHead h) { note_request(h); }

extern "C" __global__ void take_requests(MessageHead h) {
    u32 all = 0u;
    for (u32 r = 0; r < h.ranks; ++r) all |= h.requests[r];
    take_request(h, all);
}

// Copies `words` words. Fields whose words are no multiple of 4 are the last ones of a record, so the others are aligned.
__device__ __forceinline__ void copy_field(u32* to, const u32* from, u32 words) {
    if (words & 3u) {
        for (u32 w = 0; w < words; ++w) to[w] = from[w];
        return;
    }
    for (u32 w = 0; w < words; w += 4u) *reinterpret_cast<uint4*>(to + w) = *reinterpret_cast<const uint4*>(from + w);
}

// The words before the records of a rank.
__device__ __forceinline__ u32* head_of(const MessageArgs& a, u32 rank) {
    return a.records + u64(rank) * HEAD_WORDS + u64(a.begin[rank]) * a.record_words;
}

// The words of record k, or null if it is not used.
__device__ __forceinline__ u32* record_of(const MessageArgs& a, u32 k) {
    u32 rank = 0u;
    while (rank + 1u < a.head.ranks && k >= a.begin[rank + 1u]) ++rank;
    return k - a.begin[rank] < a.counts[rank] ? a.records + u64(rank + 1u) * HEAD_WORDS + u64(k) * a.record_words : nullptr;
}

extern "C" __global__ void pack_particles(MessageArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x, ranks = a.head.ranks;
    if (k == 0u) {
        const u32 own = note_request(a.head);
        for (u32 r = 0; r < ranks; ++r) *head_of(a, r) = own;
    }
    if (k >= a.begin[ranks]) return;
    u32* record = record_of(a, k);
    if (!record) return;
    for (u32 f = 0; f < a.n_fields; ++f) {
        const MessageField& field = a.fields[f];
        copy_field(record, field.data + u64(a.particles[k]) * field.words, field.words);
        record += field.words;
    }
}

extern "C" __global__ void unpack_particles(MessageArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x, ranks = a.head.ranks;
    // the same in all blocks, of which the first one changes the globals
    u32 all = a.head.requests[a.head.rank];
    for (u32 r = 0; r < ranks; ++r) all |= r == a.head.rank ? 0u : *head_of(a, r);
    if (k == 0u) take_request(a.head, all);
    if (k >= a.begin[ranks] || all & (HAS_HALTED | HAS_PAUSED)) return;
    u32* record = record_of(a, k);
    if (!record) return;
    for (u32 f = 0; f < a.n_fields; ++f) {
        const MessageField& field = a.fields[f];
        copy_field(field.data + u64(a.particles[k]) * field.words, record, field.words);
        record += field.words;
    }
}

// Lists an element for a rank, or counts it. If there is no room, the run halts, and the rebuild begins again with larger messages.
__device__ __forceinline__ void list_element(const ElementLists& a, Globals* g, u32 rank, u32 element) {
    const u32 at = a.first[rank] + atomicAdd(&a.counts[rank], 1u);
    if (!a.list) return;
    if (at < a.first[rank + 1u]) {
        a.list[at] = element;
    } else {
        g->halt = 1u;
    }
}

// Lists the marked particles by the rank that owns them, or counts them. A thread handles the bits of a word, which are of one rank. Halts as
// `list_element` does, also if there are more boundary blocks than expected.
extern "C" __global__ void list_marked(MarkedArgs a) {
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word == 0u && a.boundary) {
        a.lists.counts[MAX_RANKS] = *a.boundary;
        if (*a.boundary > a.boundary_room) a.globals->halt = 1u;
    }
    u32 bits = word < a.n_words ? a.marks[word] : 0u;
    if (bits == 0u) return;
    const u32 rank = rank_of(a.ranges, 32u * word), n = u32(__popc(bits));
    u32 at = a.lists.first[rank] + atomicAdd(&a.lists.counts[rank], n);
    if (!a.lists.list) return;
    const u32 end = a.lists.first[rank + 1u];
    if (at + n > end) a.globals->halt = 1u;
    for (; bits && at < end; bits &= bits - 1u) a.lists.list[at++] = 32u * word + u32(__ffs(int(bits)) - 1);
}
