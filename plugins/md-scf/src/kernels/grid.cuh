// Positions in the grid and fields of its vertices. device.rs defines TYPES, FIELDS and, if they apply, PACKED, PAPER, CHARGES and SPECTRAL
// before this text, and appends whole.cuh or bricks.cuh, md_scf.cuh, spectral.cuh (if needed) and sums.cuh.
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

// Fields that were not used in the step before (or in this one) are of any age, so they are computed anew.
__device__ __forceinline__ bool is_due(const MdScfArgs& a, u64 every) {
    const u64 step = a.state.globals->step, evaluated = *a.evaluated;
    return every == 1ull || step % every == 0ull || evaluated == 0ull || (evaluated != step && evaluated != step + 1ull);
}

__device__ __forceinline__ double volume_of(const Globals* g) {
    return g->box_length[0] * g->box_length[1] * g->box_length[2];
}

// Position in the grid: the enclosing vertices and the offset from the lower one in cells.
struct GridPosition { u32 low[3], high[3]; double offset[3]; };

__device__ __forceinline__ GridPosition position_of(const MdScfArgs& a, const PosType& p) {
    GridPosition g;
#ifdef GALAMOST_DOUBLE
    const double at[3] = {p.x, p.y, p.z};
#else
    const int at[3] = {p.x, p.y, p.z};
#endif
    for (int k = 0; k < 3; ++k) {
#ifdef GALAMOST_DOUBLE
        const double s = (at[k] / a.state.globals->box_length[k] + 0.5) * double(a.grid[k]);
        double below = floor(s);
        below = below < 0.0 ? 0.0 : below > double(a.grid[k] - 1u) ? double(a.grid[k] - 1u) : below;
        g.low[k] = u32(below);
        g.offset[k] = s - below;
#else
        // fixed-point distance from the lower face times the grid: the upper 32 bits are the cell, the lower the offset
        const u64 s = u64(u32(at[k]) ^ 0x80000000u) * a.grid[k];
        g.low[k] = u32(s >> 32);
        g.offset[k] = double(u32(s)) / 4294967296.0;
#endif
        g.high[k] = g.low[k] + 1u == a.grid[k] ? 0u : g.low[k] + 1u;
    }
    return g;
}

__device__ __forceinline__ u32 vertex_at(const MdScfArgs& a, u32 x, u32 y, u32 z) {
    return (z * a.grid[1] + y) * a.grid[0] + x;
}

#ifndef SPECTRAL
// Computes the fields of a vertex from its numbers of particles.
__device__ __forceinline__ void set_fields(const MdScfArgs& a, u32 v, const real (&n)[FIELDS], double volume) {
    const real scale = real(double(a.vertices) / (a.rho0 * volume)), less = real(a.inv_kappa);
#pragma unroll
    for (int i = 0; i < TYPES; ++i) {
        real sum = real(0);
#pragma unroll
        for (int j = 0; j < TYPES; ++j) sum = device_mul_add(__ldg(&a.matrix[i * TYPES + j]), n[j], sum);
        a.field[u64(i) * a.vertices + v] = sum * scale - less;
    }
}
#endif

// The part of an integer weight that belongs to the upper vertex.
__device__ __forceinline__ u64 upper_weight(u64 weight, double offset) { return u64(rint(double(weight) * offset)); }

#ifdef PACKED
// Sums of a vertex from this one on are refused, as on the CPU; see model.rs. The second word of `check` is a flag for them.
static constexpr u64 SUM_LIMIT = 1ull << 31;

__device__ __forceinline__ void note_too_large(const MdScfArgs& a) { a.check[1] = 1ull; }

// A word of a type holds two sums of weights, of vertices next to each other along x; see whole.cuh and bricks.cuh.
__device__ __forceinline__ u64 lower_sum(u64 word) { return word & 0xffffffffull; }
__device__ __forceinline__ u64 upper_sum(u64 word) { return word >> 32; }

// Any overflow of a half is found, also by several times its range: it lowers the sum of all halves, which otherwise is the unit weight times
// the number of particles. Proof: let a word get L in its low half and H in its high half. It then holds L - 2^32 c and H + c - 2^32 d, whose
// sum is less than L + H unless c and d are 0.
//
// Blocks add the halves to several numbers, 128 bytes apart, so that few of them wait for each other.
static constexpr u32 CHECKS = 16u, CHECK_STRIDE = 16u;

// Notes the sum of the halves of the words of a thread, at most 2^40. Called by all threads of a block.
__device__ __forceinline__ void note_sums(const MdScfArgs& a, u64 halves) {
    __shared__ double memory[8];
    // exact: sums of integers below 2^53
    double values[1] = {double(halves)};
    block_sum(values, memory);
    if (threadIdx.x == 0u && values[0] > 0.0) atomicAdd(&a.check[blockIdx.x % CHECKS * CHECK_STRIDE], u64(values[0]));
}

// Begins the check of an update. Called by the first block of a kernel before that of the sums.
__device__ __forceinline__ void begin_check(const MdScfArgs& a) {
    if (threadIdx.x == 0u) a.check[1] = 0ull;
    if (threadIdx.x < CHECKS) a.check[threadIdx.x * CHECK_STRIDE] = 0ull;
}

// Raises a fault if a sum is too large; the noted sums are those of `n` particles. Called by one thread of a kernel after that of the sums.
__device__ __forceinline__ void end_check(const MdScfArgs& a, u32 n) {
    u64 sum = 0ull;
#pragma unroll
    for (u32 k = 0; k < CHECKS; ++k) sum += a.check[k * CHECK_STRIDE];
    const bool wrong = a.check[1] != 0ull || sum != u64(a.unit_weight) * n;
    if (wrong) raise_fault(a.state.globals, FaultKind::Component, a.component, 0xffffffffu, 1u);
}
#endif
