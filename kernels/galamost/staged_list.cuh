// Builds the staged list: a bit mask of neighbors for each particle, and rows made of these masks.
#pragma once
#include "galamost/reduce.cuh"
#include "galamost/staged_halo.cuh"

#ifdef GALAMOST_HOST
__device__ __forceinline__ void multiply(u32& d0, u32& d1, u32 a0, u32 a1, u32 b) {
    galamost_host::multiply_m16n8k8(d0, d1, a0, a1, b);
}
__device__ __forceinline__ u32 byte_signs(u32 a, u32 b) { return galamost_host::byte_signs(a, b); }
#else
// D = A B in half precision on tensor cores: A has 16 x 8 elements, B 8 x 8.
__device__ __forceinline__ void multiply(u32& d0, u32& d1, u32 a0, u32 a1, u32 b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %5};"
        : "=r"(d0), "=r"(d1)
        : "r"(a0), "r"(a1), "r"(b), "r"(0));
}
// Four bytes, 0xff where a half of a (low, high) and of b is negative.
__device__ __forceinline__ u32 byte_signs(u32 a, u32 b) {
    u32 r;
    asm("prmt.b32 %0, %1, %2, 0xFDB9;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
#endif

__device__ __forceinline__ u32 select_bits(u32 p, u32 q, u32 t) {
    return ((p & 0x0f0f0f0fu) | (q & 0xf0f0f0f0u)) & (0x11111111u << t);
}

// Tests all slots against the block's particles on tensor cores: r^2 - R^2 = |a|^2 - R^2 - 2 a b + |b|^2, whose sign is
// the result. a is the half-precision position of this thread's particle.
__device__ __forceinline__ void masks_by_products(const Search& s, const SearchMemory& memory, const unsigned char* slots,
                                                  u32 n_words, const HalfPosition& a, bool valid, uint4* masks) {
    constexpr u32 ALL = 0xffffffffu, ONES = 0x3c003c00u;
    const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3u;
    const float x = from_half(a.x), y = from_half(a.y), z = from_half(a.z);
    const u32 v0 = a.x | a.y << 16, v1 = a.z, v2 = split(valid ? x * x + y * y + z * z - s.limit2 : 60000.0f);
    // rows g and g + 8 of matrix m are particles 16 m + 2 g and 16 m + 2 g + 1 of the warp
    u32 rows[2][2];
#pragma unroll
    for (u32 m = 0; m < 2u; ++m) {
#pragma unroll
        for (u32 h = 0; h < 2u; ++h) {
            const int source = int(16u * m + 2u * g + h);
            const u32 a0 = __shfl_sync(ALL, v0, source), a1 = __shfl_sync(ALL, v1, source), a2 = __shfl_sync(ALL, v2, source);
            rows[m][h] = t == 0u ? a0 : t == 1u ? a1 : t == 2u ? a2 : ONES;
        }
    }
    // after the exchange below, this lane holds the mask of this row
    const u32 row = warp * 32u + 16u * (t >> 1) + 2u * g + (t & 1u);
    const u32 own_word = ((row >> 8) << 3) | (row & 7u), own_bit = (row >> 3) & 31u;
    const unsigned char* from = slots + (g * 3u + (t == 3u ? 2u : t == 1u ? 1u : 0u)) * 16u;
    for (u32 first = 0; first < n_words; first += 4u) {
        if (!(memory.near[first >> 3] >> warp & 1u)) {
            masks[(first >> 2) * BLOCK + row] = {0u, 0u, 0u, 0u};
            continue;
        }
        u32 kept[4];
#pragma unroll
        for (u32 k = 0; k < 4u; ++k) {
            const uint4 b = *reinterpret_cast<const uint4*>(from + (first + k) * SLOT_BYTES);
            u32 columns[4] = {b.x, b.y, b.z, b.w}, v[4];
#pragma unroll
            for (u32 n = 0; n < 4u; ++n) columns[n] = t == 2u ? ONES : columns[n];
#pragma unroll
            for (u32 m = 0; m < 2u; ++m) {
                u32 d0[4], d1[4];
#pragma unroll
                for (u32 n = 0; n < 4u; ++n) multiply(d0[n], d1[n], rows[m][0], rows[m][1], columns[n]);
                v[2u * m] = select_bits(byte_signs(d0[0], d0[1]), byte_signs(d0[2], d0[3]), t);
                v[2u * m + 1u] = select_bits(byte_signs(d1[0], d1[1]), byte_signs(d1[2], d1[3]), t);
            }
            // the four lanes of a row's columns exchange their bits
            const bool odd = t & 1u, upper = t & 2u;
            u32 k0 = odd ? v[1] : v[0], k1 = odd ? v[3] : v[2];
            k0 |= __shfl_xor_sync(ALL, odd ? v[0] : v[1], 1);
            k1 |= __shfl_xor_sync(ALL, odd ? v[2] : v[3], 1);
            u32 mask = upper ? k1 : k0;
            mask |= __shfl_xor_sync(ALL, upper ? k0 : k1, 2);
            if (first + k == own_word) mask &= ~(1u << own_bit);
            kept[k] = mask;
        }
        masks[(first >> 2) * BLOCK + row] = {kept[0], kept[1], kept[2], kept[3]};
    }
}

// The same with distances to the nearest images.
__device__ __forceinline__ void masks_by_distances(const StagedListArgs& a, const Search& s, u32 n_words, u32 n_slots,
                                                   const int4& p, bool valid, u32 block, uint4* masks) {
    const u32* halo = a.list.halo + u64(block) * (a.list.slots - BLOCK);
    for (u32 first = 0; first < n_words; first += 4u) {
        u32 kept[4] = {0u, 0u, 0u, 0u};
        for (u32 k = 0; k < 4u; ++k) {
            for (u32 bit = 0; bit < 32u; ++bit) {
                const u32 word = first + k, slot = (word >> 3 << 8) | bit << 3 | (word & 7u);
                if (slot >= n_slots) break;
                const u32 j = slot < BLOCK ? block * BLOCK + slot : halo[slot - BLOCK];
                if (j >= a.state.n_local) continue;
                const int4 q = load_position(a, j);
                const float r2 = gap2(difference_of(p.x, q.x), difference_of(p.y, q.y), difference_of(p.z, q.z), 0.0f,
                                      0.0f, 0.0f, s.box);
                if (valid && slot != threadIdx.x && r2 <= s.reach2) kept[k] |= 1u << bit;
            }
        }
        masks[(first >> 2) * BLOCK + threadIdx.x] = {kept[0], kept[1], kept[2], kept[3]};
    }
}

// Returns whether a block has tiles of other ranks around it. Tiles are in ascending order.
__device__ __forceinline__ bool reaches_others(const StateView& s, const u32* tiles, u32 n_tiles) {
#ifdef GALAMOST_RANKS
    const auto particle = [&](u32 k) { return (tiles[k] & 0xffffffu) * TILE_PARTICLES; };
    return n_tiles > 0u && (particle(0u) < own_begin(s) || particle(n_tiles - 1u) >= own_end(s));
#else
    return false;
#endif
}

// Finds the halo of each block and the masks of its particles. Shared memory of the launch: SLOT_BYTES for 32 slots,
// TOPS + GROUPS + tile_capacity words.
extern "C" __global__ void __launch_bounds__(256, 4) find_neighbors(StagedListArgs a) {
    await_launches();
    Globals* g = a.state.globals;
    if (has_halted(g)) return;
    GALAMOST_LAUNCH_SHARED(slots);
    __shared__ SearchMemory memory;
    const StagedView& list = a.list;
    u32 *tops = reinterpret_cast<u32*>(slots + list.slots / 32u * SLOT_BYTES), *groups = tops + TOPS, *tiles = groups + GROUPS;
    const u32 block = a.first_block + blockIdx.x, i = block * BLOCK + threadIdx.x, last = a.state.n_local - 1u;
    const bool valid = i <= last;
    const int4 p = load_position(a, valid ? i : last);
    const Search s = begin_search(a, memory, p);
    u32 round = 0u;
    const u32 n_tops = close_boxes(s, memory, round, list.tops, nullptr, 0u, tops, TOPS);
    const u32 n_groups = close_boxes(s, memory, round, list.groups, tops, device_min(n_tops, TOPS), groups, GROUPS);
    const u32 n_tiles = close_tiles(a, s, memory, round, groups, device_min(n_groups, GROUPS), tiles, block);
    const HalfPosition own = half_position(s, relative(s, p));
    store_slot(slots, threadIdx.x, own.x, own.y, own.z);
    if (!valid) slot_address(slots, threadIdx.x)[8] = NOBODY;
    u32 n_slots = find_halo(a, s, memory, round, tiles, device_min(n_tiles, list.tile_capacity), slots, block);
    if (threadIdx.x == 0u) {
        // one more slot is the end of rows
        atomicMax(&list.statistics[1], n_tiles);
        atomicMax(&list.statistics[2], n_slots + 1u);
        if (n_tops > TOPS || n_groups > GROUPS || n_tiles > list.tile_capacity || n_slots + 1u > list.slots) {
            raise_fault(g, 2u, 0xffffffffu, a.state.tag[block * BLOCK], n_slots);
        }
    }
    n_slots = device_min(n_slots, list.slots - 1u);
    if (threadIdx.x == 0u) {
        const u32 flags = (s.wide ? WIDE : 0u) | (reaches_others(a.state, tiles, device_min(n_tiles, list.tile_capacity)) ? BOUNDARY : 0u);
        list.blocks[block] = {s.center.x, s.center.y, s.center.z, int(n_slots | flags)};
    }
    const u32 n_words = (n_slots + 255u) / 256u * 8u;
    uint4* masks = list.masks + u64(blockIdx.x) * (list.slots / 128u) * BLOCK;
    __syncthreads();
    if (s.wide) {
        masks_by_distances(a, s, n_words, n_slots, p, valid, block, masks);
        return;
    }
    for (u32 h = n_slots + threadIdx.x; h < n_words * 32u; h += BLOCK) {
        u32* slot = slot_address(slots, h);
        slot[0] = slot[4] = 0u;
        slot[8] = NOBODY;
    }
    __syncthreads();
    masks_by_products(s, memory, slots, n_words, own, valid, masks);
}

// Word `word` of the mask of a row; `masks` are those of its block.
__device__ __forceinline__ u32* mask_word(uint4* masks, u32 row, u32 word) {
    return reinterpret_cast<u32*>(masks + (word >> 2) * BLOCK + row) + (word & 3u);
}

// Clears the bits of excluded pairs in the mask of this thread's particle.
__device__ __forceinline__ void clear_excluded(const StagedListArgs& a, u32 block, u32 n_slots, uint4* masks) {
    const u32 i = block * BLOCK + threadIdx.x;
    if (i >= a.state.n_local) return;
    const u32 tag = a.state.tag[i], n = a.excluded.excluded_count[tag];
    const u32* excluded = a.excluded.excluded + u64(tag) * a.excluded.excluded_capacity;
    const u32* halo = a.list.halo + u64(block) * (a.list.slots - BLOCK);
    for (u32 e = 0; e < n; ++e) {
        const u32 j = a.state.index_of_tag[excluded[e]];
        u32 slot = j - block * BLOCK;
        if (slot >= BLOCK) {
            // the halo is sorted
            u32 from = 0u, to = n_slots - BLOCK;
            while (from < to) {
                const u32 middle = (from + to) / 2u;
                if (halo[middle] < j) from = middle + 1u;
                else to = middle;
            }
            if (from >= n_slots - BLOCK || halo[from] != j) continue;
            slot = BLOCK + from;
        }
        *mask_word(masks, threadIdx.x, (slot >> 8 << 3) | (slot & 7u)) &= ~(1u << ((slot >> 3) & 31u));
    }
}

// Lengths up to this many entries are sorted exactly.
static constexpr u32 LENGTHS = 256u;

struct ExpandMemory {
    // number of rows of each length in each warp, then the number in the warps before it
    unsigned char of_warp[LENGTHS][BLOCK_WARPS];
    // number of longer rows in the block
    u16 longer[LENGTHS];
    u16 order[BLOCK], length[BLOCK];
    // mask words that are not 0: bit 8 * (class % 4) + quarter % 8 of word 4 * (quarter / 8) + class / 4
    u32 filled[4][BLOCK];
};

// One bit for each word that is not 0, 8 bits apart.
__device__ __forceinline__ u32 filled_words(const uint4& v) {
    return (v.x ? 1u : 0u) | (v.y ? 1u << 8 : 0u) | (v.z ? 1u << 16 : 0u) | (v.w ? 1u << 24 : 0u);
}

// Copies the masks of the block to shared memory. Returns the length of this thread's row.
__device__ __forceinline__ u32 load_masks(const uint4* masks, ExpandMemory& m, u32* copy, u32 n_slots) {
    const u32 thread = threadIdx.x, quarters = (n_slots + 255u) / 256u;
    u32 length = 0u, filled[4] = {0u, 0u, 0u, 0u};
#pragma unroll
    for (u32 half = 0; half < 2u; ++half) {
#pragma unroll 4
        for (u32 q = 0; q < device_min(quarters - device_min(quarters, 8u * half), 8u); ++q) {
#pragma unroll
            for (u32 upper = 0; upper < 2u; ++upper) {
                const u32 w = 2u * (8u * half + q) + upper;
                const uint4 v = __ldcs(masks + w * BLOCK + thread);
                if (half == 0u) {
                    u32* to = copy + w * 4u * BLOCK + thread;
                    to[0] = v.x;
                    to[BLOCK] = v.y;
                    to[2u * BLOCK] = v.z;
                    to[3u * BLOCK] = v.w;
                }
                length += u32(__popc(v.x) + __popc(v.y)) + u32(__popc(v.z) + __popc(v.w));
                filled[2u * half + upper] |= filled_words(v) << q;
            }
        }
    }
#pragma unroll
    for (u32 k = 0; k < 4u; ++k) m.filled[k][thread] = filled[k];
    return length;
}

// Sorts the rows of the block by length, the longest first, and rows of equal length by particle. All rows of 255 and more
// entries have one key, so they come first, in the order of the particles.
__device__ __forceinline__ void sort_rows(ExpandMemory& m, u32 length) {
    const u32 thread = threadIdx.x, lane = thread & 31u, warp = thread >> 5;
    // the longest get the first key
    const u32 key = LENGTHS - 1u - device_min(length, LENGTHS - 1u);
    m.length[thread] = u16(length);
    *reinterpret_cast<u64*>(m.of_warp[thread]) = 0ull;
    __syncthreads();
    const u32 same = __match_any_sync(0xffffffffu, key), before = same & ((1u << lane) - 1u);
    if (before == 0u) m.of_warp[key][warp] = (unsigned char)__popc(same);
    __syncthreads();
    u32 total = 0u;
    for (u32 w = 0; w < BLOCK_WARPS; ++w) {
        const u32 count = m.of_warp[thread][w];
        m.of_warp[thread][w] = (unsigned char)total;
        total += count;
    }
    __shared__ u32 all;
    m.longer[thread] = u16(block_scan(total, &all));
    __syncthreads();
    m.order[m.longer[key] + m.of_warp[key][warp] + __popc(before)] = u16(thread);
    __syncthreads();
}

// The set bits of a row, in the order of its entries: classes of banks (slot % 8) in descending order, beginning at
// that of the lane, so neighboring lanes read different banks of shared memory. Without LONG the block has at most COPIED_SLOTS. Threads of
// a warp come to the end of a mask word at different entries, so nothing is branched over, and the next word is loaded in advance.
template <bool LONG> struct RowBits {
    const u32* column;
    uint4* masks;
    u32 row, mask, base, next_mask, next_base, words, shift;
    // words that follow `words`
    u32 more[LONG ? 3 : 1], part;

    __device__ __forceinline__ RowBits(const ExpandMemory& m, const u32* copy, uint4* of_block, u32 of_row, u32 rotation)
        : column(copy + of_row), masks(of_block), row(of_row), mask(0u), base(0u), next_mask(0u), next_base(0u), shift(32u + 8u * rotation), part(0u) {
#pragma unroll
        for (u32 half = 0; half < (LONG ? 2u : 1u); ++half) {
            const u64 all = u64(m.filled[2u * half][row]) | u64(m.filled[2u * half + 1u][row]) << 32;
            const u64 turned = rotation ? all >> (8u * rotation) | all << (64u - 8u * rotation) : all;
            if (half == 0u) {
                words = u32(turned >> 32);
                more[0] = u32(turned);
            } else {
                more[1] = u32(turned >> 32);
                more[2] = u32(turned);
            }
        }
        advance(true);
    }
    // Loads the next word that is not 0, if `due`. After the last one, words are 0.
    __device__ __forceinline__ void advance(bool due) {
#pragma unroll
        for (u32 k = 0; k < (LONG ? 3u : 1u); ++k) {
            // upper and lower classes of the slots up to 2047, then of those from 2048 on
            const bool empty = due && words == 0u;
            words = empty ? more[0] : words;
            shift = empty ? shift ^ 32u : shift;
            if (LONG) {
                part = empty ? part + 1u : part;
                more[0] = empty ? more[1] : more[0];
                more[1] = empty ? more[2] : more[1];
                more[2] = empty ? 0u : more[2];
            } else {
                more[0] = empty ? 0u : more[0];
            }
        }
        const bool found = due && words != 0u;
        const u32 top = (31u - u32(__clz(int(words)))) & 31u;
        words = due ? words & ~(1u << top) : words;
        // 8 * bank + quarter
        const u32 place = (top + shift) & 63u, word = (place & 7u) * 8u + (place >> 3);
        const bool far = LONG && part > 1u;
        next_mask = due ? 0u : next_mask;
        if (found) next_mask = far ? *mask_word(masks, row, 64u + word) : column[word * BLOCK];
        // slot 8 * bit + 256 * quarter + bank, in units of an entry
        next_base = due ? ((place * 4098u) & 0x7070u) + (far ? 0x8000u : 0u) : next_base;
    }
    // Returns the next entry, and any number after the last one.
    __device__ __forceinline__ u32 next() {
        const bool due = mask == 0u;
        mask = due ? next_mask : mask;
        base = due ? next_base : base;
        advance(due);
        const u32 top = (31u - u32(__clz(int(mask)))) & 31u;
        mask &= ~(1u << top);
        return base + (top << 7);
    }
};

// Writes the entries of a row.
template <bool LONG>
__device__ __forceinline__ void write_row(RowBits<LONG> bits, u32 entries, u32 end, uint4* to) {
    for (u32 done = 0u; done < entries; done += 8u, to += 32) {
        u32 e[8];
#pragma unroll
        for (u32 n = 0; n < 8u; ++n) {
            const u32 entry = bits.next();
            e[n] = done + n < entries ? entry : end;
        }
        __stcs(to, uint4{e[0] | e[1] << 16, e[2] | e[3] << 16, e[4] | e[5] << 16, e[6] | e[7] << 16});
    }
}

// Rows are sorted by length within a block, so threads of a warp have about as many entries. Shared memory of the
// launch: a word for each mask word of COPIED_SLOTS, or of all if there are fewer, and row.
template <bool EXCLUDES> __device__ __forceinline__ void expand_masks(const StagedListArgs& a) {
    Globals* g = a.state.globals;
    if (has_halted(g)) return;
    GALAMOST_LAUNCH_SHARED(memory);
    __shared__ ExpandMemory m;
    const StagedView& list = a.list;
    u32* copy = reinterpret_cast<u32*>(memory);
    uint4* masks = list.masks + u64(blockIdx.x) * (list.slots / 128u) * BLOCK;
    const u32 thread = threadIdx.x, lane = thread & 31u, block = a.first_block + blockIdx.x;
    const u32 n_slots = slot_count(list.blocks[block]);
    if (EXCLUDES) clear_excluded(a, block, n_slots, masks);
    sort_rows(m, load_masks(masks, m, copy, n_slots));
    const u32 row = m.order[thread], entries = m.length[row];
    const u32 longest = __reduce_max_sync(0xffffffffu, entries), most = (longest + 7u) / 8u;
    u32 first = 0u;
    if (lane == 0u) {
        first = atomicAdd(&list.statistics[0], most * 32u);
        list.first_chunk[(block * BLOCK + thread) >> 5] = first;
        if (longest > list.statistics[3]) atomicMax(&list.statistics[3], longest);
    }
    first = __shfl_sync(0xffffffffu, first, 0);
    list.rows[block * BLOCK + thread] = row | entries << 16;
    const u32 sum = __reduce_add_sync(0xffffffffu, entries);
    if (lane == 0u) atomicAdd(reinterpret_cast<u64*>(list.statistics + 4), u64(sum));
    if (first + most * 32u > list.chunk_capacity) {
        if (lane == 0u) raise_fault(g, 2u, 0xffffffffu, a.state.tag[block * BLOCK], entries);
        return;
    }
    const u32 end = n_slots << 4;
    uint4* to = list.chunks + first + lane;
    if (n_slots > COPIED_SLOTS) write_row(RowBits<true>(m, copy, masks, row, lane & 7u), entries, end, to);
    else write_row(RowBits<false>(m, copy, masks, row, lane & 7u), entries, end, to);
}

extern "C" __global__ void __launch_bounds__(256) expand_rows(StagedListArgs a) { await_launches(); expand_masks<false>(a); }

extern "C" __global__ void __launch_bounds__(256) expand_rows_excluding(StagedListArgs a) { await_launches(); expand_masks<true>(a); }
