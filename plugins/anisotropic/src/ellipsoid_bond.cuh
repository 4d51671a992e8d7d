// Adds the forces and torques of the bonds of each particle, equivalent to add_bonds in ellipsoid_bond.rs.
extern "C" __global__ void __launch_bounds__(128) ellipsoid_bond_force(EllipsoidBondArgs a) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 block = particle_block(s), i = block * blockDim.x + threadIdx.x;
    // energy, and the virial as xx, xy, xz, yy, yz, zz
    double sums[7] = {0, 0, 0, 0, 0, 0, 0};
    const u32 n = i < own_end(s) && a.bonds.count ? a.bonds.count[i] : 0u;
    if (n > 0u) {
        const BoxScale scale = make_scale(s.globals);
        const PosType at = s.pos_type[i];
        const Vec4 q = s.quaternion[i];
        const Vec3<real> axis = device_axis(Quaternion<real>{q.x, q.y, q.z, q.w});
        Vec4 force = s.force[i];
        Vec3<real> torque = {s.torque[3u * i], s.torque[3u * i + 1u], s.torque[3u * i + 2u]};
        for (u32 e = 0; e < n; ++e) {
            const u32 j = a.bonds.words[(2u * e) * a.bonds.stride + i];
            const u32 last = a.bonds.words[(2u * e + 1u) * a.bonds.stride + i];
            const Vec4 p = s.quaternion[j];
            const Vec3<real> other = device_axis(Quaternion<real>{p.x, p.y, p.z, p.w});
            const Vec3<real> r = difference(at, s.pos_type[j], scale);
            const real side = (last & 3u) == 0u ? real(1) : real(-1);
            const Tuple3<Vec3<real>, Vec3<real>, real> found = ellipsoid_bond<real>(r, axis, other, side, a.rows[last >> 2]);
            const Vec3<real> f = found.v0;
            force.x += f.x;
            force.y += f.y;
            force.z += f.z;
            torque += found.v1;
            if (a.full) {
                // each bond is visited twice, once from each particle
                const double half_u = 0.5 * double(found.v2);
                const double d[3] = {r.x, r.y, r.z}, g[3] = {f.x, f.y, f.z};
                force.w += real(half_u);
                sums[0] += half_u;
                u32 slot = 1u;
                for (u32 x = 0; x < 3u; ++x) {
                    for (u32 y = x; y < 3u; ++y) sums[slot++] += 0.25 * (d[x] * g[y] + d[y] * g[x]);
                }
            }
        }
        s.force[i] = force;
        s.torque[3u * i] = torque.x;
        s.torque[3u * i + 1u] = torque.y;
        s.torque[3u * i + 2u] = torque.z;
        if (a.full && s.virial) {
            for (u32 k = 0; k < 6u; ++k) s.virial[6u * i + k] += real(sums[1u + k]);
        }
    }
    if (a.full) {
        __shared__ double memory[7 * 32];
        block_sum(sums, memory);
        if (threadIdx.x == 0) {
            for (u32 k = 0; k < 7u; ++k) a.partial[block * 7u + k] = sums[k];
        }
    }
}

// Adds the sums of the blocks of all GPUs. One block.
extern "C" __global__ void __launch_bounds__(128) ellipsoid_bond_sums(EllipsoidBondArgs a) {
    if (a.state.globals->halt) return;
    __shared__ double memory[7 * 32];
    double total[7];
    sum_partials(a.partial, particle_blocks(a.state), total, memory);
    if (threadIdx.x == 0) {
        a.sums->energy += total[0];
        for (int k = 0; k < 6; ++k) a.sums->virial[k] += total[k + 1];
    }
}
