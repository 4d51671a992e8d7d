// The loop over bonds: each particle gathers the forces of its own bonds.
#pragma once
#include "galamost/state.cuh"
#include "galamost/args.cuh"
#include "galamost/reduce.cuh"
#include "galamost/virial.cuh"

template <class real> struct BondInput {
    real r2, angle, cos, sin;
    Step<real> step;
    // the component's data in device memory: its rows, followed by additional data
    const void* numbers;
};

// Raises a fault for a bond that is longer than its potential allows. Of several faults, the one with the smallest tags
// is kept, independent of the order of the threads. Both tags change in one atomic operation, so they always belong to
// one bond.
__device__ __forceinline__ void raise_bond_fault(Globals* g, u32 component, u32 tag_i, u32 tag_j) {
    const u64 low = tag_i < tag_j ? tag_i : tag_j, high = tag_i < tag_j ? tag_j : tag_i;
    // tag and detail in their memory layout; comparisons put the smaller tag first
    u64* pair = reinterpret_cast<u64*>(&g->fault.tag);
    u64 seen = *pair;
    while (((low << 32) | high) < ((seen << 32) | (seen >> 32))) {
        const u64 old = atomicCAS(pair, seen, (high << 32) | low);
        if (old == seen) {
            atomicExch(&g->fault.component, component);
            break;
        }
        seen = old;
    }
    atomicExch(&g->fault.code, FaultKind::BondTooLong);
    __threadfence();
    atomicExch(&g->halt, 1u);
}

// Adds energy and virial of all blocks of `threads` threads. Runs in one block of at least as many.
__device__ __forceinline__ void total_bonded_sums(const BondArgs& a, u32 blocks, u32 threads) {
    __shared__ double memory[7 * 32];
    double total[7];
    sum_partials(a.partial, blocks, total, memory, threads);
    if (threadIdx.x == 0) {
        a.sums->energy = total[0];
        for (int k = 0; k < 6; ++k) a.sums->virial[k] = total[k + 1];
    }
}

// Returns the number of this block among those of all ranks.
__device__ __forceinline__ u32 bonded_block(const BondArgs& a) { return own_begin(a.state) / blockDim.x + blockIdx.x; }

// Adds energy and virial over the block; the last block adds the sums of all blocks, unless other ranks have further
// blocks.
__device__ __forceinline__ void finish_bonded_sums(const BondArgs& a, double (&sums)[7]) {
    __shared__ double memory[7 * 32];
    block_sum(sums, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 7; ++k) a.partial[bonded_block(a) * 7u + k] = sums[k];
    }
#ifndef GALAMOST_RANKS
    __shared__ u32 flag;
    if (last_block(a.counter, &flag)) total_bonded_sums(a, gridDim.x, blockDim.x);
#endif
}

// Adds the virial of the links of particle i to the thread's sum for barostats. Returns the requested stop flag: a halt if the virial is too
// large.
__device__ __forceinline__ u32 add_bonded_virial(const BondArgs& a, u32 i, const double (&sums)[7], VirialSum<1>& virial) {
    real w[BAROSTAT_VIRIALS];
    // twice, as that of pairs
#pragma unroll
    for (int k = 0; k < BAROSTAT_VIRIALS; ++k) w[k] = real(2.0 * sums[1 + barostat_virial(k)]);
    if (virial.add(a.virial, w)) return 0u;
    raise_virial_fault(a.state, i);
    return STOP_HALT;
}

// Adds the sums of a block of threads, each of which has the links of particle i.
template <u32 SUMS> __device__ __forceinline__ void finish_links(const BondArgs& a, u32 i, double (&sums)[7]) {
    if (SUMS == DIAGONAL || (SUMS == ALL_SUMS && a.virial.words)) {
        VirialSum<1> virial;
        add_bonded_virial(a, i, sums, virial);
        virial.finish(a.virial);
    }
    if (SUMS == ALL_SUMS) finish_bonded_sums(a, sums);
}

// Adds to the virial of a particle, if an analyzer needs it.
__device__ __forceinline__ void add_particle_virial(const StateView& s, u32 i, const double* virial) {
    if (!s.virial) return;
    for (u32 k = 0; k < 6u; ++k) s.virial[6u * i + k] += real(virial[k]);
}

// Adds the forces of the bonds of particle i. Returns the requested stop flag: a halt if a bond is too long.
// `Potential` has Row and eval(BondInput, Row).
template <class Potential, bool FULL>
__device__ __forceinline__ u32 bond_rows(const BondArgs& a, u32 i, double (&sums)[7]) {
    const StateView& s = a.state;
    u32 requested = 0u;
    if (i < own_end(s)) {
        const u32 n = __ldg(&a.links.count[i]);
        if (n > 0u) {
            const BoxScale b = make_scale(s.globals);
            const PosType pi = load(&s.pos_type[i]);
            const typename Potential::Row* rows = static_cast<const typename Potential::Row*>(a.rows);
            BondInput<real> input;
            input.step = make_step<real>(s.globals, a.first_varying);
            input.numbers = a.rows;
            Vec4 f = s.force[i];
            for (u32 e = 0; e < n; ++e) {
                const u32 j = __ldg(&a.links.words[(2u * e) * a.links.stride + i]);
                const u32 type = __ldg(&a.links.words[(2u * e + 1u) * a.links.stride + i]) >> 2;
                const Vec3<real> d = difference(pi, load(&s.pos_type[j]), b);
                input.r2 = device_norm2(d);
                const Tuple2<real, real> fu = Potential::eval(input, rows[type]);
                // −∞: the bond is longer than its potential allows
                if (fu.v0 < real(-3.4e38)) {
                    raise_bond_fault(s.globals, a.component, s.tag[i], s.tag[j]);
                    requested = STOP_HALT;
                }
                const Vec3<real> fd = d * fu.v0;
                f.x += fd.x;
                f.y += fd.y;
                f.z += fd.z;
                if (FULL) {
                    // every bond is visited twice, once from each end
                    const double half_u = 0.5 * double(fu.v1);
                    f.w += real(half_u);
                    sums[0] += half_u;
                    sums[1] += 0.5 * double(d.x) * double(fd.x);
                    sums[2] += 0.5 * double(d.x) * double(fd.y);
                    sums[3] += 0.5 * double(d.x) * double(fd.z);
                    sums[4] += 0.5 * double(d.y) * double(fd.y);
                    sums[5] += 0.5 * double(d.y) * double(fd.z);
                    sums[6] += 0.5 * double(d.z) * double(fd.z);
                }
            }
            s.force[i] = f;
            // the thread handles one particle, so its sums are those of the particle
            if (FULL) add_particle_virial(s, i, &sums[1]);
        }
    }
    return requested;
}

template <class Potential, u32 SUMS> __device__ __forceinline__ void bond_loop(const BondArgs& a) {
    if (a.state.globals->halt) return;
    double sums[7] = {0, 0, 0, 0, 0, 0, 0};
    const u32 i = bonded_block(a) * blockDim.x + threadIdx.x;
    bond_rows<Potential, SUMS != FORCES>(a, i, sums);
    finish_links<SUMS>(a, i, sums);
}
