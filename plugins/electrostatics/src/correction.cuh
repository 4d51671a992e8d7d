// Forces of the Fourier part with all corrections on CUDA, equivalent to correction.rs.
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

__device__ __forceinline__ double volume_of(const Globals* g) {
    return g->box_length[0] * g->box_length[1] * g->box_length[2];
}

// Returns the coordinate along the normal of the slab, from the plane opposite of the middle of the gap; as `slab_coordinate` of params.rs.
__device__ __forceinline__ double along(const ChargeArgs& c, const PosType& p) {
    const double length = c.state.globals->box_length[c.slab];
#ifdef GALAMOST_DOUBLE
    const double fraction = (c.slab == 0u ? p.x : c.slab == 1u ? p.y : p.z) / length + 0.5 - c.slab_face;
    return length * (fraction - floor(fraction) - 0.5);
#else
    const int at = c.slab == 0u ? p.x : c.slab == 1u ? p.y : p.z;
    return double(int(u32(at) - u32(c.slab_face * 4294967296.0))) * (length / 4294967296.0);
#endif
}

// Sums charges, and q r along the normal of the slab if there is one. A slab with a net charge, or with a charge in its gap, is a fault.
extern "C" __global__ void __launch_bounds__(256) charge_totals(ChargeArgs c) {
    await_launches();
    if (c.state.globals->halt) return;
    double values[4] = {0.0, 0.0, 0.0, 0.0};
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < c.state.n_local; i += blockDim.x * gridDim.x) {
        const double q = double(c.state.charge[i]);
        values[0] += q;
        values[1] += q * q;
        values[2] += q != 0.0 ? 1.0 : 0.0;
        if (c.slab < 3u && q != 0.0) {
            const double at = along(c, load(&c.state.pos_type[i]));
            values[3] += q * at;
            const bool is_in_gap = device_abs(at) > c.slab_limit * c.state.globals->box_length[c.slab];
            if (is_in_gap) raise_fault(c.state.globals, FaultKind::Component, c.component, c.state.tag[i], 1u);
        }
    }
    __shared__ double memory[4 * 8];
    __shared__ u32 flag;
    block_sum(values, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k) c.partial[u64(blockIdx.x) * 4u + k] = values[k];
    }
    if (last_block(c.counter, &flag)) {
        sum_partials(c.partial, gridDim.x, values, memory);
        if (threadIdx.x == 0) {
            // as `remaining` of params.rs
            const bool neutral = device_abs(values[0]) <= 1e-6 * device_sqrt(values[1] * values[2]);
            c.totals[0] = neutral ? 0.0 : values[0];
            c.totals[1] = values[3];
            if (!neutral && c.slab < 3u) raise_fault(c.state.globals, FaultKind::Component, c.component, 0xffffffffu, 0u);
        }
    }
}

// Adds force, energy and virial of the Fourier part of a pair, times `factor` and the charge of j.
__device__ __forceinline__ void add_fourier_pair(const ChargeArgs& c, const PosType& at, u32 j, const BoxScale& box,
                                                 real factor, real (&force)[3], double& energy, double (&values)[7]) {
    const StateView& s = c.state;
    const Vec3<real> d = difference(at, load(&s.pos_type[j]), box);
    const Tuple2<double, double> pair = fourier_pair<double>(double(d.x * d.x + d.y * d.y + d.z * d.z), c.split);
    const real qq = factor * s.charge[j], f = qq * real(pair.v0);
    force[0] += f * d.x;
    force[1] += f * d.y;
    force[2] += f * d.z;
    energy += 0.5 * double(qq) * pair.v1;
    const double half = 0.5 * double(f), x = d.x, y = d.y, z = d.z;
    values[1] += half * x * x;
    values[2] += half * x * y;
    values[3] += half * x * z;
    values[4] += half * y * y;
    values[5] += half * y * z;
    values[6] += half * z * z;
}

// A particle with its charge and the force on it until now.
struct ChargedParticle { u32 i; PosType at; real charge; Vec4 force; };

__device__ __forceinline__ ChargedParticle charged_particle(const StateView& s, u32 i) {
    return {i, load(&s.pos_type[i]), s.charge[i], s.force[i]};
}

// Adds the force on a particle in this field and potential of a unit charge, and all corrections. With FULL, adds energy and virial
// to `values`.
template <bool FULL> __device__ __forceinline__ void add_charge_forces(const ChargeArgs& c, const ChargedParticle& p, const real (&field)[3],
                                                                       real potential, double (&values)[7]) {
    const StateView& s = c.state;
    const Globals* g = s.globals;
    const double volume = volume_of(g);
    const u32 i = p.i;
    const real q = p.charge;
    const PosType at = p.at;
    real force[3] = {q * field[0], q * field[1], q * field[2]};
    double energy = 0.5 * double(q) * double(potential) - c.own * double(q) * double(q);
    if (c.slab < 3u) {
        const double slope = 2.0 * c.slab_constant / volume * c.totals[1];
        const real less = real(slope * double(q));
        for (u32 k = 0; k < 3u; ++k) force[k] -= k == c.slab ? less : real(0);
        energy += 0.5 * slope * double(q) * along(c, at);
    }
    const BoxScale box = make_scale(g);
    // subtracts excluded pairs, and adds the part of special ones that remains
    if (c.excluded_count) {
        const u32 tag = s.tag[i], n = c.excluded_count[tag];
        for (u32 e = 0; e < n; ++e) {
            const u32 j = s.index_of_tag[c.excluded[u64(tag) * c.excluded_capacity + e]];
            add_fourier_pair(c, at, j, box, -real(c.coulomb) * q, force, energy, values);
        }
    }
    if (c.special.count) {
        const u32 n = c.special.count[i];
        for (u32 e = 0; e < n; ++e) {
            const u32* entry = c.special.words + u64(2u * e) * c.special.stride + i;
            const real weight = real(c.special_weight[entry[c.special.stride] >> 2]);
            add_fourier_pair(c, at, entry[0], box, weight * real(c.coulomb) * q, force, energy, values);
        }
    }
    Vec4 total = p.force;
    total.x += force[0];
    total.y += force[1];
    total.z += force[2];
    if (!FULL) {
        s.force[i] = total;
        return;
    }
    // the background is proportional to 1/V
    const double uniform = c.background[at.kind] * c.totals[0] / volume * double(q);
    energy -= uniform;
    values[1] -= uniform;
    values[4] -= uniform;
    values[6] -= uniform;
    values[0] += energy;
    if (c.full) total.w += real(energy);
    s.force[i] = total;
}

// Sums the values of all particles and adds the virial of the waves and of the corrections in the last block. All threads
// of all blocks call it.
__device__ __forceinline__ void report_charges(const ChargeArgs& c, double (&values)[7]) {
    if (!c.full) return;
    __shared__ double memory[7 * 8];
    __shared__ u32 flag;
    block_sum(values, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 7; ++k) c.partial[u64(blockIdx.x) * 7u + k] = values[k];
    }
    if (last_block(c.counter, &flag)) {
        sum_partials(c.partial, gridDim.x, values, memory);
        if (threadIdx.x == 0) {
            const double volume = volume_of(c.state.globals);
            const double slab = c.slab < 3u ? c.slab_constant / volume * c.totals[1] * c.totals[1] : 0.0;
            c.sums->energy = values[0];
            if (c.quantities) c.quantities[0] = values[0];
            for (int k = 0; k < 6; ++k) {
                const u32 axis = k == 0 ? 0u : k == 3 ? 1u : k == 5 ? 2u : 3u;
                const double diagonal = axis == 3u ? 0.0 : (axis == c.slab ? -slab : slab);
                c.sums->virial[k] = values[k + 1] + c.virial[k] + diagonal;
            }
        }
    }
}
