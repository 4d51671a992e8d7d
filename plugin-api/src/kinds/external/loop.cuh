extern "C" __global__ void __launch_bounds__(128) external_force(ExternalArgs a) {
    const StateView& s = a.state;
    Globals* g = s.globals;
    if (g->halt) return;
    const u32 block = particle_block(s), i = block * blockDim.x + threadIdx.x;
    // energy, and the virial as xx, xy, xz, yy, yz, zz
    double sums[7] = {0, 0, 0, 0, 0, 0, 0};
    if (i < own_end(s) && in_group(s, i, a.group)) {
        const PosType pos = s.pos_type[i];
        const Vec4 v = s.velocity_mass[i];
        const double* l = g->box_length;
        const int* image = s.image + 3u * i;
#ifdef GALAMOST_DOUBLE
        const double x = pos.x, y = pos.y, z = pos.z;
#else
        const double x = pos.x * (l[0] / 4294967296.0), y = pos.y * (l[1] / 4294967296.0), z = pos.z * (l[2] / 4294967296.0);
#endif
        ExternalInput<real> input;
        input.position = {real(x), real(y), real(z)};
        input.unwrapped = {real(x + l[0] * image[0]), real(y + l[1] * image[1]), real(z + l[2] * image[2])};
        input.length = {real(l[0]), real(l[1]), real(l[2])};
        input.velocity = {v.x, v.y, v.z};
        input.mass = v.w;
        input.charge = EXTERNAL_CHARGE ? s.charge[i] : real(0);
        input.kind = pos.kind;
        input.tag = s.tag[i];
        input.step = make_step<real>(g, a.first_varying);
        const Tuple2<Vec3<real>, real> found = external_eval<real>(input, a.rows[a.by_type ? pos.kind : 0u]);
        const Vec3<real> force = found.v0;
        const real energy = found.v1;
        // infinite in f32 or f64
        if (double(energy) > 3.4e38) raise_fault(g, FaultKind::Component, a.component, input.tag, 0u);
        Vec4 f = s.force[i];
        f.x += force.x;
        f.y += force.y;
        f.z += force.z;
        if (a.full) {
            f.w += energy;
            sums[0] = double(energy);
            if (a.virial) {
                // the symmetric part of r F
                const double fx = force.x, fy = force.y, fz = force.z;
                sums[1] = x * fx;
                sums[2] = 0.5 * (x * fy + y * fx);
                sums[3] = 0.5 * (x * fz + z * fx);
                sums[4] = y * fy;
                sums[5] = 0.5 * (y * fz + z * fy);
                sums[6] = z * fz;
                if (s.virial) {
                    for (u32 k = 0; k < 6u; ++k) s.virial[6u * i + k] += real(sums[1u + k]);
                }
            }
        }
        s.force[i] = f;
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
extern "C" __global__ void __launch_bounds__(128) external_sums(ExternalArgs a) {
    if (a.state.globals->halt) return;
    __shared__ double memory[7 * 32];
    double total[7];
    sum_partials(a.partial, particle_blocks(a.state), total, memory);
    if (threadIdx.x == 0) {
        a.sums->energy += total[0];
        for (int k = 0; k < 6; ++k) a.sums->virial[k] += total[k + 1];
    }
}
