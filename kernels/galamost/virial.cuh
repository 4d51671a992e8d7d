// The virial for barostats as a sum of integers. The order of the additions does not matter, so the result does not depend on the number
// of threads, blocks and GPUs.
//
// The virial of each row, times a scale, is a number below 2^22. It is rounded to four digits of 22 bits, and the digits of all rows are
// added in 64 bits, which cannot overflow. The scale is a power of two, constant in a stage: about 2^10 dt^2/(m r_cut^2) for the mean mass m and
// the largest cutoff. A row that is too large is a fault: its force would move a particle by more than a thousand cutoffs in a step. The last
// digit is 2^-76 m r_cut^2/dt^2; kT is about 2^-18 of this energy with common time steps, and 2^-60 with one that is 10^6 times shorter.
#pragma once
#include "galamost/state.cuh"
#include "galamost/args.cuh"

// What a loop over pairs or links computes beside forces: nothing, energies and the virial, or what barostats need: the diagonal of the
// virial, and in a triclinic box all of it.
static constexpr u32 FORCES = 0u, ALL_SUMS = 1u, DIAGONAL = 2u;
#ifdef GALAMOST_TRICLINIC
static constexpr int BAROSTAT_VIRIALS = 6;
#else
static constexpr int BAROSTAT_VIRIALS = 3;
#endif

static constexpr u32 VIRIAL_DIGITS = 4u, VIRIAL_WORDS = VIRIAL_DIGITS * u32(BAROSTAT_VIRIALS);

// Largest number of warps of a block.
#ifdef GALAMOST_STEPS
static constexpr u32 VIRIAL_WARPS = 32u;
#else
static constexpr u32 VIRIAL_WARPS = 8u;
#endif

// Returns the number with this place in a full virial (xx, xy, xz, yy, yz, zz).
__device__ __forceinline__ constexpr int barostat_virial(int k) {
    return BAROSTAT_VIRIALS == 6 || k == 0 ? k : 2 * k + 1;
}

// Adds an integer of all threads of a warp, modulo 2^32.
__device__ __forceinline__ u32 warp_sum(u32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    for (u32 d = 16u; d > 0u; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
#else
    return __reduce_add_sync(0xffffffffu, x);
#endif
}

// Adds the digits of x: multiples of 1, 2^-22, 2^-44 and 2^-66. Adding 1.5 times a large power of two rounds to such a multiple, which is then in the
// last bits of the sum.
__device__ __forceinline__ void add_digits(real x, int (&digits)[VIRIAL_DIGITS]) {
#ifdef GALAMOST_DOUBLE
    constexpr real LARGE[VIRIAL_DIGITS] = {0x1.8p52, 0x1.8p30, 0x1.8p8, 0x1.8p-14};
#else
    constexpr real LARGE[VIRIAL_DIGITS] = {0x1.8p23f, 0x1.8p1f, 0x1.8p-21f, 0x1.8p-43f};
#endif
#pragma unroll
    for (u32 d = 0; d < VIRIAL_DIGITS; ++d) {
        const real rounded = x + LARGE[d];
#ifdef GALAMOST_DOUBLE
        digits[d] += __double2loint(rounded);
#else
        digits[d] += __float_as_int(rounded) - __float_as_int(LARGE[d]);
#endif
        x -= rounded - LARGE[d];
    }
}

// The virials of the rows of a thread. The threads of a team share the numbers of a row: thread t has numbers t, t + TEAM, ...
template <u32 TEAM> struct VirialSum {
    static constexpr int OWN = (BAROSTAT_VIRIALS + int(TEAM) - 1) / int(TEAM);
    // digits of so many rows of all threads of a warp fit into 32 bits
    static constexpr u32 MAX_ROWS = 15u;
    int digits[OWN][VIRIAL_DIGITS];
    u32 rows;
    // the memory of the warp holds earlier rows
    bool begun;

    __device__ __forceinline__ VirialSum() : digits{}, rows(0u), begun(false) {}

    // The digits of each warp of a block.
    static __device__ __forceinline__ u64* memory() {
        __shared__ u64 words[VIRIAL_WARPS * VIRIAL_WORDS];
        return words;
    }

    // Adds a row, whose virial w (xx, yy, zz or xx, xy, xz, yy, yz, zz) each thread of the team has. All threads of a block call it. Returns
    // false if a number is too large.
    __device__ __forceinline__ bool add(const VirialArgs& a, const real (&w)[BAROSTAT_VIRIALS]) {
        if (rows == MAX_ROWS) flush();
        ++rows;
        bool valid = true;
#pragma unroll
        for (int o = 0; o < OWN; ++o) {
            const u32 number = o * TEAM + threadIdx.x % TEAM;
            real x = real(0);
#pragma unroll
            for (int k = 0; k < BAROSTAT_VIRIALS; ++k) x = u32(k) == number ? w[k] : x;
            x *= real(a.scale);
            // also false for NaN
            const bool fits = device_abs(x) < real(1u << 22);
            valid &= fits;
            add_digits(fits ? x : real(0), digits[o]);
        }
        return valid;
    }

    // Moves the digits of a warp to its memory.
    __device__ __forceinline__ void flush() {
        const u32 lane = threadIdx.x & 31u;
        // each of the first lanes keeps one sum
        u32 kept = 0u;
#pragma unroll
        for (u32 word = 0; word < VIRIAL_WORDS; ++word) {
            const u32 number = word / VIRIAL_DIGITS;
            const bool own = lane % TEAM == number % TEAM;
            const u32 sum = warp_sum(own ? u32(digits[number / TEAM][word % VIRIAL_DIGITS]) : 0u);
            if (lane == word) kept = sum;
        }
        if (lane < VIRIAL_WORDS) {
            u64& word = memory()[(threadIdx.x >> 5) * VIRIAL_WORDS + lane];
            word = (begun ? word : 0ull) + u64((long long)int(kept));
        }
        for (auto& own : digits) {
            for (int& digit : own) digit = 0;
        }
        rows = 0u;
        begun = true;
    }

    // Adds the rows of a block to the sums of the device. All threads of the block call it, and it is not called again before they have met.
    __device__ __forceinline__ void finish(const VirialArgs& a) {
        flush();
        __syncthreads();
        if (threadIdx.x < VIRIAL_WORDS) {
            u64 sum = 0ull;
#pragma unroll 8
            for (u32 warp = 0; warp < (blockDim.x + 31u) >> 5; ++warp) sum += memory()[warp * VIRIAL_WORDS + threadIdx.x];
            atomicAdd(a.words + threadIdx.x, sum);
        }
    }
};

// Raises a fault for a particle whose virial is too large.
__device__ __forceinline__ void raise_virial_fault(const StateView& s, u32 i) {
    raise_fault(s.globals, FaultKind::NotFinite, NO_TAG, s.tag[i], 0u);
}

// Takes the sums of all ranks, and those of `n` other components, as the virial for barostats. Begins new sums of this rank. All threads of a
// block of 32 or more call it; the last ones do the work.
__device__ __forceinline__ void take_virial(Globals* g, const VirialArgs& a, const u64* words, u32 ranks, const Sums* others, u32 n) {
    const u32 k = blockDim.x - 1u - threadIdx.x;
    if (k >= u32(BAROSTAT_VIRIALS)) return;
    double total = 0.0;
    if (a.words) {
#pragma unroll
        for (u32 d = VIRIAL_DIGITS; d-- > 0u;) {
            u64 sum = 0ull;
            for (u32 r = 0; r < ranks; ++r) sum += __ldcg(words + r * RANK_VIRIAL_WORDS + VIRIAL_DIGITS * k + d);
            total = total * 0x1p-22 + double((long long)sum);
            a.words[VIRIAL_DIGITS * k + d] = 0ull;
        }
        // every pair is visited twice, once from each side
        total *= 0.5 / double(a.scale);
    }
    const int place = barostat_virial(int(k));
    for (u32 c = 0; c < n; ++c) total += others[c].virial[place];
    if (place == 0 || place == 3 || place == 5) g->virial[place / 2] = total;
    else g->shear_virial[place / 2] = total;
}
