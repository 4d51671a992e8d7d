// The pair loop over the staged list. A block of threads copies the positions of a block of particles and its halo to
// shared memory; each thread handles one row, or in small systems, whose rows are too few to fill the device, every second chunk of a row.
#pragma once
#include "galamost/pair.cuh"
#include "galamost/staged.cuh"
#include "galamost/ranks_gate.cuh"

// Position relative to the center of the block in units of the quantum: an integer that a float represents exactly, as
// long as the block is not much wider than usual. w: the particle's type; if the pair functions read charges alone, the bits of its
// charge; if they read other arrays, its index.
struct alignas(16) StagedPosition { float x, y, z; u32 w; };

// Staged coordinates along an axis: the box has a whole number of quanta. Positions are rounded down to quanta of the
// box, not of the block, so both blocks of a pair see the same distance.
struct Quanta {
    int center, count;
    u32 low;

    __device__ __forceinline__ Quanta(int c, double length, double per_length) : center(c), count(int(length * per_length + 0.5)) {
        low = u32(center) * u32(count);
    }
    __device__ __forceinline__ float stage(int x) const {
        const long long product = (long long)difference_of(x, center) * count + (long long)(u64(low));
        return float(int(product >> 32));
    }
};

// The blocks of the list that a pair loop handles: all; all, with the barrier after the move (ranks_gate.cuh); interior blocks, whose halo this
// rank owns, during the transfer of ghosts; boundary blocks, after it.
static constexpr u32 ALL_BLOCKS = 0u, GATED_BLOCKS = 1u, INTERIOR_BLOCKS = 2u, BOUNDARY_BLOCKS = 3u;

// Blocks that a multiprocessor should hold, which limits the registers of the pair loop. With a team of 2, there are at most two.
template <class PairTerms, int TERMS, u32 TEAM> struct Resident {
    static constexpr u32 inputs = PairTerms::inputs;
    static constexpr u32 of_one = inputs & INPUT_ORIENTATION                                     ? 2u
                                  : TERMS > 1 || (inputs & (INPUT_CHARGE | INPUT_DIAMETER)) != 0u ? 3u
                                  : inputs != 0u                                                 ? 4u
                                                                                                 : 5u;
    static constexpr u32 blocks = TEAM == 1u ? of_one : of_one > 2u ? 2u : 1u;
    // three more sums need registers
    static constexpr u32 with_diagonal = TEAM == 1u ? of_one - 1u : of_one > 3u ? 2u : 1u;
};

// Entries of the queue of a thread; a chunk has 8.
static constexpr u32 QUEUE = 32u;

// No particle is close to this coordinate.
static constexpr float FAR = 1e18f;

// Returns whether the charges of pair functions with these inputs are staged.
__host__ __device__ constexpr bool stages_charges(u32 inputs) { return inputs == INPUT_CHARGE && sizeof(real) == sizeof(float); }

#ifdef GALAMOST_RANKS
// Reads a number of a particle, so that it is in the L1 cache when pairs need it. Returns its bits.
template <class T> __device__ __forceinline__ u32 touch(const T* of_particle) { return __ldg(reinterpret_cast<const u32*>(of_particle)); }

// Reads what pair functions read of a particle, if another rank stores it: each of its pairs would wait for the other device. Returns
// 0xffff, and above it any bits, because the compiler would omit loads whose results nothing uses.
template <u32 INPUTS> __device__ __forceinline__ u32 touch_other(const StateView& s, u32 j) {
    u32 bits = 0xffffu;
    if (j >= own_begin(s) && j < own_end(s)) return bits;
    if (INPUTS & INPUT_VELOCITY) bits |= touch(&s.velocity_mass[j]);
    if (INPUTS & INPUT_RANDOM) bits |= touch(&s.tag[j]);
    if (INPUTS & INPUT_CHARGE) bits |= touch(&s.charge[j]);
    if (INPUTS & INPUT_DIAMETER) bits |= touch(&s.diameter[j]);
    if (INPUTS & INPUT_ORIENTATION) bits |= touch(&s.quaternion[j]);
    return bits;
}
#endif

// Copies the positions of a block and its halo, if `begins` returns true for its center. Returns whether it did.
template <u32 INPUTS, bool TYPES, u32 TEAM, class Begins>
__device__ __forceinline__ bool stage_positions(const StateView& s, const StagedView& list, u32 block, StagedPosition* staged,
                                                unsigned char* types, const Begins& begins) {
    constexpr bool INDEX = INPUTS != 0u, CHARGES = stages_charges(INPUTS);
    constexpr u32 ROUND = 4u, THREADS = TEAM * BLOCK;
    const u32* halo = list.halo + u64(block) * (list.slots - BLOCK);
    const u32 last = s.n_local - 1u, first = block * BLOCK, thread = threadIdx.x;
    const auto in_halo = [&](u32 slot) { return __ldg(halo + device_min(slot - BLOCK, list.slots - BLOCK - 1u)); };
    u32 j[ROUND];
    // the first indices do not wait for the number of slots
    j[0] = TEAM == 1u || thread < BLOCK ? device_min(first + thread, last) : in_halo(thread);
#pragma unroll
    for (u32 u = 1; u < ROUND; ++u) j[u] = in_halo(u * THREADS + thread);
    const int4 center = list.blocks[block];
    const double* length = s.globals->box_length;
    if (!begins(center)) return false;
    const u32 n = slot_count(center);
    const Quanta x(center.x, length[0], list.per_length), y(center.y, length[1], list.per_length),
        z(center.z, length[2], list.per_length);
    for (u32 base = 0;; base += ROUND * THREADS) {
        int4 p[ROUND];
        u32 w[ROUND];
#pragma unroll
        for (u32 u = 0; u < ROUND; ++u) {
            if (base + u * THREADS + thread >= n) j[u] = first;
#if defined(GALAMOST_HOST) && defined(GALAMOST_RANKS)
            // blocks without this flag do not wait for others
            if (!(u32(center.w) & BOUNDARY)) galamost_host::require_below(j[u] - own_begin(s), own_end(s) - own_begin(s), "own particle");
#endif
            p[u] = __ldg(reinterpret_cast<const int4*>(s.pos_type) + j[u]);
#ifdef GALAMOST_RANKS
            // types are below 0xffff
            if (INDEX && !CHARGES) p[u].w &= int(touch_other<INPUTS>(s, j[u]));
#endif
            w[u] = CHARGES ? u32(__float_as_int(float(__ldg(&s.charge[j[u]])))) : j[u];
        }
#pragma unroll
        for (u32 u = 0; u < ROUND; ++u) {
            const u32 slot = base + u * THREADS + thread;
            if (slot < n) {
                staged[slot] = {x.stage(p[u].x), y.stage(p[u].y), z.stage(p[u].z), INDEX ? w[u] : u32(p[u].w)};
                if (INDEX && TYPES) types[slot] = (unsigned char)p[u].w;
            }
        }
        if (base + ROUND * THREADS >= n) break;
#pragma unroll
        for (u32 u = 0; u < ROUND; ++u) j[u] = in_halo(base + (ROUND + u) * THREADS + thread);
    }
    // the slot after the last one, for entries without a particle
    if (thread == 0u) {
        staged[n] = {FAR, FAR, FAR, 0u};
        if (INDEX && TYPES) types[n] = 0u;
    }
    return true;
}

// What a thread needs to evaluate its row.
template <class PairTerms, int TERMS, bool TYPES, u32 SUMS> struct StagedRow {
    static constexpr u32 INPUTS = PairTerms::inputs;
    static constexpr bool INDEX = INPUTS != 0u, CHARGES = stages_charges(INPUTS);
    // central forces without further inputs: vectors stay in quanta, and the sums are scaled at the end; one cheap
    // function is evaluated without a branch
    static constexpr bool QUANTA = !INDEX, SELECT = !INDEX && TERMS == 1 && SUMS != ALL_SUMS;
    const PairArgs& args;
    PairTerms& terms;
    const StagedView& list;
    const StagedPosition* staged;
    const unsigned char* types;
    StagedPosition own;
    float quantum, quantum2;
    u32 own_type, block;
    Neighbor n;
    Accumulator<TERMS, SUMS> sum;

    __device__ __forceinline__ const StagedPosition& at(u32 entry) const {
        return *reinterpret_cast<const StagedPosition*>(reinterpret_cast<const char*>(staged) + entry);
    }
    __device__ __forceinline__ u32 particle(u32 entry) const {
        const u32 slot = entry >> 4;
        return slot < BLOCK ? block * BLOCK + slot : list.halo[u64(block) * (list.slots - BLOCK) + slot - BLOCK];
    }
    __device__ __forceinline__ Vec3<real> vector_to(const StagedPosition& q) const {
        return {own.x - q.x, own.y - q.y, own.z - q.z};
    }
    // Returns what the pair functions read of a staged particle.
    __device__ __forceinline__ Partner partner(const StagedPosition& q) const {
        if constexpr (!CHARGES) return load_partner<INPUTS>(args.state, q.w);
        Partner p;
        p.charge = real(__int_as_float(int(q.w)));
        return p;
    }
    // Evaluates the pair with a staged particle.
    __device__ __forceinline__ void evaluate(const StagedPosition& q, u32 entry, const Partner& partner) {
        n.partner = &partner;
        n.d = vector_to(q);
        n.r2 = device_norm2(n.d) * quantum2;
        if (!QUANTA) n.d = n.d * quantum;
        n.j = q.w;
        n.type = !TYPES ? 0u : INDEX ? types[entry >> 4] : q.w;
        terms.template evaluate<SELECT>(args.state, args, own_type, n, sum);
    }
    // The same for a wide block, with the nearest image.
    __device__ __forceinline__ void evaluate_wide(u32 entry) {
        n.partner = nullptr;
        n.j = particle(entry);
        const PosType p = load(&args.state.pos_type[n.j]);
        n.d = difference(load(&args.state.pos_type[n.i]), p, make_scale(args.state.globals));
        n.r2 = device_norm2(n.d);
        if (QUANTA) n.d = n.d * (1.0f / quantum);
        n.type = p.kind;
        terms.template evaluate<SELECT>(args.state, args, own_type, n, sum);
    }
};

__device__ __forceinline__ u32 entry_of(const uint4& c, u32 e) {
    const u32 word = e < 2u ? c.x : e < 4u ? c.y : e < 6u ? c.z : c.w;
    return e & 1u ? word >> 16 : word & 0xffffu;
}

// Sums the forces of a row, of which this thread has the chunks `part`, `part + TEAM`, ...; `next` is the first one. With QUEUED, entries
// within the largest cutoff are collected first and then evaluated together, so expensive functions run with full warps.
template <class Row, bool QUEUED, u32 TEAM>
__device__ __forceinline__ void sum_row(Row& row, const StagedPairArgs& a, const uint4* chunks, u32 n_entries, u32 part, u32 slots,
                                        uint4 next, u16* queue) {
    if (slots & WIDE) {
        const u16* entries = reinterpret_cast<const u16*>(chunks);
#pragma unroll 1
        for (u32 e = part; e < n_entries; e += TEAM) row.evaluate_wide(entries[e / 8u * 256u + e % 8u]);
        return;
    }
    const u32 n_chunks = (n_entries + 7u) / 8u, end = slots << 4;
    if constexpr (QUEUED) {
        // rows of 255 and more entries are not sorted by length, so the first lane need not have the longest
        const u32 most = __reduce_max_sync(0xffffffffu, n_chunks);
        const float limit = a.cutoff2 / row.quantum2;
        u32 queued = 0u;
        for (u32 k = part;; k += TEAM) {
            if (k < n_chunks) {
                const uint4 c = next;
                if (k + TEAM < n_chunks) next = __ldcs(chunks + (k + TEAM) * 32u);
                // all loads before the first store, which the compiler cannot move them across
                bool within[8];
#pragma unroll
                for (u32 e = 0; e < 8u; ++e) within[e] = device_norm2(row.vector_to(row.at(entry_of(c, e)))) < limit;
#pragma unroll
                for (u32 e = 0; e < 8u; ++e) {
                    if (within[e]) {
                        queue[queued * (TEAM * BLOCK)] = u16(entry_of(c, e));
                        ++queued;
                    }
                }
            }
            const bool last = k - part + TEAM >= most;
            if (last || __any_sync(0xffffffffu, queued > QUEUE - 8u)) {
                // two at a time, with all loads first; the second one may be far away
                for (u32 q = 0; q < queued; q += 2u) {
                    const u32 first = queue[q * (TEAM * BLOCK)], second = q + 1u < queued ? queue[(q + 1u) * (TEAM * BLOCK)] : end;
                    const StagedPosition a0 = row.at(first), a1 = row.at(second);
                    const Partner p0 = row.partner(a0), p1 = row.partner(a1);
                    row.evaluate(a0, first, p0);
                    row.evaluate(a1, second, p1);
                }
                queued = 0u;
            }
            if (last) break;
        }
    } else {
        for (u32 k = part; k < n_chunks; k += TEAM) {
            const uint4 c = next;
            if (k + TEAM < n_chunks) next = __ldcs(chunks + (k + TEAM) * 32u);
#pragma unroll
            for (u32 half = 0; half < 8u; half += 4u) {
                StagedPosition q[4];
#pragma unroll
                for (u32 e = 0; e < 4u; ++e) q[e] = row.at(entry_of(c, half + e));
#pragma unroll
                for (u32 e = 0; e < 4u; ++e) row.evaluate(q[e], entry_of(c, half + e), row.partner(q[e]));
            }
        }
    }
}

// Shared memory of the launch: the slots in use; with several types a byte for each; with QUEUED the queue. TEAM is 1 or 2. Of two threads
// with one row, one is in the lower half of a warp and one in the upper, because entries of consecutive rows are ordered for different banks.
template <class PairTerms, int TERMS, bool TYPES, bool QUEUED, u32 TEAM, u32 SUMS, u32 PART>
__device__ __forceinline__ void staged_pair_loop(const StagedPairArgs& a) {
    const StateView& s = a.pair.state;
    constexpr bool GATED = PART == GATED_BLOCKS, INTERIOR = PART == INTERIOR_BLOCKS;
    const u32 own = GATED ? own_requests(s.globals) : INTERIOR ? *a.requests : s.globals->halt;
    if (own && !(GATED && blockIdx.x == 0u)) return;
    if (PART == BOUNDARY_BLOCKS && blockIdx.x >= a.boundary[0]) return;
    GALAMOST_LAUNCH_SHARED(memory);
    typedef StagedRow<PairTerms, TERMS, TYPES, SUMS> Row;
    constexpr u32 ROWS = 32u / TEAM;
    StagedPosition* staged = reinterpret_cast<StagedPosition*>(memory);
    unsigned char* types = memory + a.list.slots * sizeof(StagedPosition);
    u16* queue = reinterpret_cast<u16*>(types + (TYPES ? a.list.slots : 0u)) + threadIdx.x;
    const u32 block = PART == BOUNDARY_BLOCKS ? a.boundary[1u + blockIdx.x] : own_begin(s) / BLOCK + blockIdx.x;
    const u32 part = (threadIdx.x & 31u) / ROWS;
    const u32 number = (threadIdx.x >> 5) * ROWS + threadIdx.x % ROWS, t = block * BLOCK + number;
    PairTerms terms(a.pair);
    // after a list that did not fit, rows have no memory; the first block then only waits
    const u32 info = __ldcs(&a.list.rows[t]), local = info & 0xffffu, n_entries = own ? 0u : info >> 16;
    const uint4* chunks = a.list.chunks + a.list.first_chunk[t >> 5] + (number & 31u);
    uint4 next = {0u, 0u, 0u, 0u};
#ifdef GALAMOST_HOST
    if (n_entries > 0u) galamost_host::require_below(a.list.first_chunk[t >> 5], a.list.chunk_capacity, "first chunk");
#endif
    if (n_entries > part * 8u) next = __ldcs(chunks + part * 32u);
    u32 slots;
    bool stops = false;
    const auto begins = [&](const int4& center) {
        slots = u32(center.w);
        if (GATED && threadIdx.x == 0u) stops = others_request(s.globals);
        if (INTERIOR && threadIdx.x == 0u) stops = *static_cast<const volatile u32*>(&s.globals->halt) != 0u;
        const bool boundary = (slots & BOUNDARY) != 0u;
        return GATED ? begin_pairs(a.gate, own, boundary) : !(INTERIOR && boundary);
    };
    if (!stage_positions<PairTerms::inputs, TYPES, TEAM>(s, a.list, block, staged, types, begins)) return;
    if (!GATED && !INTERIOR) __syncthreads();
    else if (__syncthreads_or(stops)) return;
    const u32 i = block * BLOCK + local;
    const bool valid = i < s.n_local;
    Row row = {a.pair, terms, a.list, staged, types};
    row.block = block;
    row.quantum = float(a.list.quantum);
    row.quantum2 = float(a.list.quantum * a.list.quantum);
    row.own = staged[local];
    row.own_type = !TYPES ? 0u : Row::INDEX ? types[local] : row.own.w;
    Accumulator<TERMS, SUMS>& sum = row.sum;
    sum.clear();
    row.n.i = i;
    row.n.tag_i = 0u;
    if (valid) load_particle<PairTerms::inputs>(s, i, row.n);
    sum_row<Row, QUEUED, TEAM>(row, a, chunks, n_entries, part, slots & ~BOUNDARY, next, queue);
    if (Row::QUANTA) {
        sum.f = sum.f * row.quantum;
        for (int k = 0; k < sum.VIRIALS; ++k) sum.w[k] *= row.quantum2;
    }
    sum_team<PairTerms, TERMS, TEAM, SUMS, ROWS>(sum);
    const bool first = valid && part == 0u;
    if (first) store_pair_force(s, i, sum);
    // until the last block has ended, this rank does not wait for others
    if (INTERIOR && threadIdx.x == 0u) a.gate.epochs[6] = nanoseconds();
    if constexpr (SUMS != FORCES) finish_rows<TERMS, SUMS, 1u>(a.pair, sum, first ? i : 0xffffffffu, first, block);
}
