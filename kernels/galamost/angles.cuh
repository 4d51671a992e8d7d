// The loops over angles, and over dihedrals and impropers: each particle gathers the forces of the links that it is a member of. Every
// member computes the whole link from the same differences; its second member adds energy and virial.
#pragma once
#include "galamost/bonded.cuh"

// Returns the inverse of the length of a vector; 0 for a vector of length 0.
__device__ __forceinline__ real inverse_length(const Vec3<real>& d) {
    const real length2 = device_norm2(d);
    return length2 > real(0) ? real(1) / device_sqrt(length2) : real(0);
}

// Computes the forces on i, j, k and the energy of an angle i-j-k with a = r_i - r_j, b = r_k - r_j.
template <class Potential>
__device__ __forceinline__ real angle_forces(const Vec3<real>& a, const Vec3<real>& b, BondInput<real>& input,
                                             const typename Potential::Row& row, Vec3<real>* f) {
    const real inv_a = inverse_length(a), inv_b = inverse_length(b);
    const Vec3<real> ea = a * inv_a, eb = b * inv_b;
    input.cos = device_dot(ea, eb);
    // the sine comes from the cross product: near 180 degrees, the cosine alone loses half of its digits. An arm of
    // length 0 has no direction: theta counts as 90 degrees, and the zeros in the inverse length and the direction make
    // both forces 0
    input.sin = device_min(inv_a, inv_b) > real(0) ? device_norm(device_cross(ea, eb)) : real(1);
    input.angle = device_atan2(input.sin, input.cos);
    const Tuple2<real, real> du = Potential::eval(input, row);
    f[0] = (eb - ea * input.cos) * (-du.v0 * inv_a);
    f[2] = (ea - eb * input.cos) * (-du.v0 * inv_b);
    f[1] = -(f[0] + f[2]);
    return du.v1;
}

// Computes the forces and the energy of a dihedral i-j-k-l with p = r_i - r_j, g = r_j - r_k, h = r_l - r_k (Blondel
// and Karplus 1996).
template <class Potential>
__device__ __forceinline__ real dihedral_forces(const Vec3<real>& p, const Vec3<real>& g, const Vec3<real>& h,
                                                BondInput<real>& input, const typename Potential::Row& row,
                                                Vec3<real>* f) {
    // unit vectors: products of four to eight lengths leave the range of single precision even for moderate lengths
    const real inv_p = inverse_length(p), inv_g = inverse_length(g), inv_h = inverse_length(h);
    const Vec3<real> ep = p * inv_p, eg = g * inv_g, eh = h * inv_h;
    Vec3<real> a = device_cross(ep, eg), b = device_cross(eh, eg);
    // sines of the angles between bonds below 1e-4 count as 1e-4: forces on straight chains would have no bound
    const real least = real(1e-8);
    const real inv_a2 = real(1) / device_max(device_norm2(a), least);
    const real inv_b2 = real(1) / device_max(device_norm2(b), least);
    const real inv = device_sqrt(inv_a2 * inv_b2);
    input.cos = device_dot(a, b) * inv;
    input.sin = device_dot(device_cross(b, a), eg) * inv;
    input.angle = device_atan2(input.sin, input.cos);
    const Tuple2<real, real> du = Potential::eval(input, row);
    a = a * (du.v0 * inv_a2);
    b = b * (du.v0 * inv_b2);
    f[0] = a * inv_p;
    f[3] = b * -inv_h;
    const Vec3<real> along = (a * device_dot(ep, eg) - b * device_dot(eh, eg)) * inv_g;
    f[1] = -f[0] - along;
    f[2] = along - f[3];
    return du.v1;
}

__device__ __forceinline__ void add_arm(double* sums, const Vec3<real>& d, const Vec3<real>& f) {
    sums[1] += double(d.x) * double(f.x);
    sums[2] += double(d.x) * double(f.y);
    sums[3] += double(d.x) * double(f.z);
    sums[4] += double(d.y) * double(f.y);
    sums[5] += double(d.y) * double(f.z);
    sums[6] += double(d.z) * double(f.z);
}

// Adds the forces of the links of W members (3 or 4) that particle i belongs to. These links raise no faults, so the
// returned stop flag is always 0.
template <class Potential, u32 W, bool FULL>
__device__ __forceinline__ u32 link_rows(const BondArgs& a, u32 i, double (&sums)[7]) {
    const StateView& s = a.state;
    const u32 n = i < own_end(s) ? __ldg(&a.links.count[i]) : 0u;
    if (n > 0u) {
        const BoxScale scale = make_scale(s.globals);
        const typename Potential::Row* rows = static_cast<const typename Potential::Row*>(a.rows);
        BondInput<real> input;
        input.r2 = real(0);
        input.step = make_step<real>(s.globals, a.first_varying);
        input.numbers = a.rows;
        Vec4 out = s.force[i];
        for (u32 e = 0; e < n; ++e) {
            const u32 last = __ldg(&a.links.words[(W * e + W - 1u) * a.links.stride + i]);
            const u32 type = last >> 2, member = last & 3u;
            PosType at[W];
#pragma unroll
            for (u32 k = 0; k < W; ++k) {
                const u32 row = W * e + (k < member ? k : k - 1u);
                at[k] = load(&s.pos_type[k == member ? i : __ldg(&a.links.words[row * a.links.stride + i])]);
            }
            Vec3<real> f[W], arm[3];
            real energy;
            if (W == 3u) {
                arm[0] = difference(at[0], at[1], scale);
                arm[1] = difference(at[2], at[1], scale);
                energy = angle_forces<Potential>(arm[0], arm[1], input, rows[type], f);
            } else {
                const Vec3<real> g = difference(at[1], at[2], scale), h = difference(at[W - 1u], at[2], scale);
                arm[0] = difference(at[0], at[1], scale);
                arm[1] = -g;
                arm[2] = h - g;
                energy = dihedral_forces<Potential>(arm[0], g, h, input, rows[type], f);
            }
            Vec3<real> mine = f[0];
#pragma unroll
            for (u32 k = 1; k < W; ++k) {
                if (k == member) mine = f[k];
            }
            out.x += mine.x;
            out.y += mine.y;
            out.z += mine.z;
            if (FULL) {
                out.w += energy / real(W);
                if (member == 1u) {
                    sums[0] += double(energy);
                    add_arm(sums, arm[0], f[0]);
                    add_arm(sums, arm[1], f[2]);
                    if (W == 4u) add_arm(sums, arm[2], f[W - 1u]);
                }
                if (s.virial) {
                    double share[7] = {0, 0, 0, 0, 0, 0, 0};
                    add_arm(share, arm[0], f[0]);
                    add_arm(share, arm[1], f[2]);
                    if (W == 4u) add_arm(share, arm[2], f[W - 1u]);
                    for (double& w : share) w /= double(W);
                    add_particle_virial(s, i, &share[1]);
                }
            }
        }
        s.force[i] = out;
    }
    return 0u;
}

template <class Potential, u32 W, u32 SUMS> __device__ __forceinline__ void link_loop(const BondArgs& a) {
    if (a.state.globals->halt) return;
    double sums[7] = {0, 0, 0, 0, 0, 0, 0};
    const u32 i = bonded_block(a) * blockDim.x + threadIdx.x;
    link_rows<Potential, W, SUMS != FORCES>(a, i, sums);
    finish_links<SUMS>(a, i, sums);
}

template <class Potential, bool FULL>
__device__ __forceinline__ u32 angle_rows(const BondArgs& a, u32 i, double (&sums)[7]) {
    return link_rows<Potential, 3u, FULL>(a, i, sums);
}

template <class Potential, bool FULL>
__device__ __forceinline__ u32 dihedral_rows(const BondArgs& a, u32 i, double (&sums)[7]) {
    return link_rows<Potential, 4u, FULL>(a, i, sums);
}

template <class Potential, u32 SUMS> __device__ __forceinline__ void angle_loop(const BondArgs& a) {
    link_loop<Potential, 3u, SUMS>(a);
}

template <class Potential, u32 SUMS> __device__ __forceinline__ void dihedral_loop(const BondArgs& a) {
    link_loop<Potential, 4u, SUMS>(a);
}
