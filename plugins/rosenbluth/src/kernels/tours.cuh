// Returns how many copies should continue, and updates their weight.
__device__ __forceinline__ u32 controlled(const ChainArgs& a, Weight& weight, const MeanWeight& mean, u32 word) {
    if (mean.m == 0.0) return 1;
    const double ratio = scaled(weight, -mean.e) / mean.m;
    const double chance = mul(double(word), 1.0 / 4294967296.0);
#ifdef FLAT
    if (ratio >= 2.0) {
        const u32 k = ratio < 8.0 ? u32(ratio) : 8u;
        weight = times(weight, 1.0 / double(k));
        return k;
    }
    if (ratio < 1.0) {
        weight = {mean.m, mean.e};
        return chance < ratio;
    }
#else
    if (ratio > a.high) {
        weight = times(weight, 0.5);
        return 2;
    }
    if (ratio < a.low) {
        weight = times(weight, 2.0);
        return chance < 0.5;
    }
#endif
    return 1;
}

static constexpr u32 ALL = 0xffffffffu, WARPS = LANES / 32;

// The numbers of a chain that is copied.
struct Chain {
    Weight weight;
    double sx, sy, sz, square;
    int x, y, z;
    u32 contacts;
};

// What the lanes of a tour tell each other: the numbers of survivors and copies by warp, the parent and the place of each copy.
struct Control {
    u32 survivors[WARPS], wanted[WARPS], copies, parent[LANES], place[LANES];
    Chain chains[LANES];
};

// Clears the sites of the first chain of a tour.
__device__ __forceinline__ void clear_table(const ChainArgs& a) {
#ifndef BEADS
    int4* all = reinterpret_cast<int4*>(static_cast<Key*>(a.table) + (u64(blockIdx.x * LANES) << BITS));
    for (u32 k = threadIdx.x; k < u32(sizeof(Key) << BITS) / sizeof(int4); k += LANES) all[k] = {0, 0, 0, 0};
#endif
}

// Copies sites and positions of the chain in the lane `from` to the lane `to`; all threads of a warp take part.
__device__ __forceinline__ void copy_chain(const ChainArgs& a, u32 n, u32 from, u32 to) {
    const u32 first = blockIdx.x * LANES, thread = threadIdx.x & 31u;
#ifndef BEADS
    Key* tables = static_cast<Key*>(a.table);
    const int4* source = reinterpret_cast<const int4*>(tables + (u64(first + from) << BITS));
    int4* target = reinterpret_cast<int4*>(tables + (u64(first + to) << BITS));
    const u32 parts = u32(sizeof(Key) << BITS) / sizeof(int4);
    // several loads at a time, because each waits for memory
    constexpr u32 TOGETHER = (sizeof(Key) << BITS) >= 16384u ? 16u : 8u;
    for (u32 begin = thread; begin < parts; begin += TOGETHER * 32u) {
        int4 part[TOGETHER];
#pragma unroll
        for (u32 k = 0; k < TOGETHER; ++k) {
            if (begin + 32u * k < parts) part[k] = source[begin + 32u * k];
        }
#pragma unroll
        for (u32 k = 0; k < TOGETHER; ++k) {
            if (begin + 32u * k < parts) target[begin + 32u * k] = part[k];
        }
    }
#endif
#ifdef PLACES
    for (u32 k = thread; k < n; k += 32u) {
        int4* row = a.places + u64(k) * a.threads + first;
        row[to] = row[from];
    }
#endif
}

// Adds the chains of a tour, which all have n monomers, to the sums of their block.
__device__ __forceinline__ void add_chains(
    const ChainArgs& a, const Walk& w, bool live, Weight weight, u32 contacts, u32 n, u64 tour
) {
    i64 v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    const u32 row = row_of(n, contacts);
    const bool counts = live && numbers(a, w, weight, contacts, row, v);
    if (counts) histogram(a, w, tour, v[1]);
    u64* rows = a.rows + u64(block_of(tour)) * MONOMERS * WIDTH * 6;
#if WIDTH == 1
    add_over_warp(rows + row_of(n, 0u) * 6u, v);
#else
    if (counts) {
#pragma unroll
        for (int q = 0; q < 6; ++q) atomicAdd(&rows[u64(row) * 6 + q], u64(v[q]));
    }
#endif
}

// Prunes chains of a tour and makes copies of others in free lanes; all threads of the block take part.
__device__ __forceinline__ void control(
    const ChainArgs& a, const Draws& draws, u32 draw, u32 n, Control& shared, Walk& w, bool& live, Weight& weight, u32& contacts
) {
    const u32 lane = threadIdx.x, thread = lane & 31u, warp = lane / 32u;
    Weight after = weight;
    const u32 copies = live ? controlled(a, after, a.means[row_of(n, contacts)], draws.words(draw, 0x30000u).v[0]) : 0u;
    live = copies > 0u;
    const u32 survivors = __ballot_sync(ALL, live), wanted = copies > 1u ? copies - 1u : 0u;
    u32 end = warp_scan(wanted);
    if (thread == 31u) {
        shared.wanted[warp] = end;
        shared.survivors[warp] = u32(__popc(survivors));
    }
    if (lane == 0u) shared.copies = 0u;
    __syncthreads();
    // copies in the order of lanes go to free lanes in their order
    u32 room = LANES, place = u32(__popc(~survivors & ((1u << thread) - 1u)));
    for (u32 k = 0; k < WARPS; ++k) {
        room -= shared.survivors[k];
        if (k < warp) {
            place += 32u - shared.survivors[k];
            end += shared.wanted[k];
        }
    }
    if (wanted == 0u || end <= room) weight = after;
    if (wanted > 0u && end <= room) {
        for (u32 k = end - wanted; k < end; ++k) shared.parent[k] = lane;
        shared.chains[lane] = {weight, w.sx, w.sy, w.sz, w.square, w.x, w.y, w.z, contacts};
        atomicMax(&shared.copies, end);
    }
    __syncthreads();
    const u32 total = shared.copies;
    if (!live && place < total) {
        const Chain c = shared.chains[shared.parent[place]];
        shared.place[place] = lane;
        weight = c.weight;
        contacts = c.contacts;
        w.n = n;
        w.x = c.x;
        w.y = c.y;
        w.z = c.z;
        w.sx = c.sx;
        w.sy = c.sy;
        w.sz = c.sz;
        w.square = c.square;
        live = true;
    }
    __syncthreads();
    for (u32 k = warp; k < total; k += WARPS) copy_chain(a, n, shared.parent[k], shared.place[k]);
    __syncthreads();
}

// PERM. Blocks take tours from a queue; each thread grows a chain of the tour.
extern "C" __global__ void __launch_bounds__(LANES) rosenbluth_tours(ChainArgs a) {
    __shared__ Control shared;
    __shared__ u64 next;
    const u32 lane = threadIdx.x;
    Walk w = walk_of(a, blockIdx.x * LANES + lane);
    for (;;) {
        if (lane == 0u) next = atomicAdd(a.queue, u64(1));
        __syncthreads();
        const u64 k = next;
        if (k >= a.count) return;
        const Draws draws = {a.key, a.first + k};
        clear_table(a);
        __syncthreads();
        bool live = lane == 0u;
        w.n = 0u;
        w.sx = w.sy = w.sz = w.square = 0.0;
        if (live) w.push(0, 0, 0);
        Weight weight = {1.0, 0};
        u32 contacts = 0;
        for (u32 n = 2; n <= MONOMERS; ++n) {
            const u32 draw = lane * MONOMERS + n - 1u;
            Grown g;
            if (live) live = grow(w, a, draws, draw, g);
            if (live) {
                w.push(g.x, g.y, g.z);
                weight = times(weight, g.factor);
                contacts += g.contacts;
            }
            if (__syncthreads_or(live) == 0) break;
            add_chains(a, w, live, weight, contacts, n, draws.chain);
            if (n < MONOMERS) control(a, draws, draw, n, shared, w, live, weight, contacts);
        }
        __syncthreads();
    }
}
