// Forces of scaled special pairs, which are not in the neighbor list. One thread handles a particle.
#pragma once
#include "galamost/pair.cuh"

// Evaluates one component for a special pair and adds it times its weight.
template <class Potential, int INDEX, int TERMS, u32 SUMS>
__device__ __forceinline__ void add_scaled_term(const SpecialArgs& a, const typename Potential::Row* rows,
                                                const CutoffRow<real>* cutoff, const Step<real>& step, u32 row,
                                                u32 kind, const Neighbor& n, Accumulator<TERMS, SUMS>& sum) {
    const real weight = real(a.weights[3 * INDEX + kind]);
    if (weight == real(0)) return;
    Accumulator<1, SUMS> one;
    one.clear();
    evaluate_term<Potential, 0, 1, SUMS, false>(a.pair.state, a.pair.terms[INDEX], rows, cutoff, step, row, n, one);
    device_set_mul_add(sum.f, one.f, weight);
    device_set_mul_add(sum.t, one.t, weight);
    if constexpr (SUMS == ALL_SUMS) device_set_mul_add(sum.u[INDEX], one.u[0], weight);
    for (int k = 0; k < sum.VIRIALS; ++k) device_set_mul_add(sum.w[k], one.w[k], weight);
}

// Adds forces, torque, energy and virial to those of a particle.
template <int TERMS, u32 SUMS>
__device__ __forceinline__ void add_pair_force(const StateView& s, u32 i, const Accumulator<TERMS, SUMS>& sum) {
    real u = real(0);
    for (int k = 0; k < sum.ENERGIES; ++k) u += sum.u[k];
    Vec4 f = s.force[i];
    // every pair is visited twice, once from each side
    f = {f.x + sum.f.x, f.y + sum.f.y, f.z + sum.f.z, f.w + real(0.5) * u};
    s.force[i] = f;
    if (s.torque) {
        s.torque[3u * i] += sum.t.x;
        s.torque[3u * i + 1u] += sum.t.y;
        s.torque[3u * i + 2u] += sum.t.z;
    }
    if constexpr (SUMS == ALL_SUMS) {
        if (s.virial) {
            for (u32 k = 0; k < 6u; ++k) s.virial[6u * i + k] += real(0.5) * sum.w[k];
        }
    }
}

template <class PairTerms, int TERMS, u32 SUMS> __device__ __forceinline__ void special_loop(const SpecialArgs& a) {
    const StateView& s = a.pair.state;
    if (s.globals->halt) return;
    PairTerms terms(a.pair);
    Accumulator<TERMS, SUMS> sum;
    sum.clear();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 count = i < s.n_local ? __ldg(&a.links.count[i]) : 0u;
    if (count > 0u) {
        const BoxScale scale = make_scale(s.globals);
        const PosType pi = load(&s.pos_type[i]);
        Neighbor n;
        load_particle<PairTerms::inputs>(s, i, n);
        for (u32 e = 0; e < count; ++e) {
            const u32* entry = a.links.words + u64(2u * e) * a.links.stride + i;
            const u32 j = __ldg(entry), kind = __ldg(entry + a.links.stride) >> 2;
            n.set(j, pi, load(&s.pos_type[j]), scale);
            terms.evaluate_scaled(a, pi.kind, kind, n, sum);
        }
        add_pair_force(s, i, sum);
    }
    if constexpr (SUMS != FORCES) finish_rows<TERMS, SUMS, 1u>(a.pair, sum, i, i < s.n_local, blockIdx.x);
}
