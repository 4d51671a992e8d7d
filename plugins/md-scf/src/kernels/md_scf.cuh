// Densities, fields and forces on CUDA, equivalent to cpu.rs; see grid.cuh.

// Distributes each particle over the eight enclosing vertices. Sums of integers do not depend on the summation order.
extern "C" __global__ void __launch_bounds__(128) md_scf_collect(MdScfArgs a) {
    await_launches();
    const StateView& s = a.state;
    const bool due = is_due(a, a.density_every);
    // also after a fault on this GPU, because others add their sums then
    if (blockIdx.x == 0u && threadIdx.x == 0u) *a.collected = due ? 1u : 0u;
#ifdef PACKED
    if (due && blockIdx.x == 0u) begin_check(a);
#endif
    if (s.globals->halt || !due) return;
    const u32 i = particle_block(s) * blockDim.x + threadIdx.x;
    if (i >= own_end(s)) return;
    const PosType p = load(&s.pos_type[i]);
    const GridPosition g = position_of(a, p);
    u64* sum = first_sum(a, p.kind);
    mark_bricks(a, g);
#ifdef CHARGES
    u64* charges = first_sum(a, TYPES);
    const double q = double(s.charge[i]) / 256.0;
    if (!(fabs(q) <= 1.0)) {
        raise_fault(s.globals, FaultKind::Component, a.component, s.tag[i], 0u);
        return;
    }
#endif
    u64 w[2][2][2];
    const u64 unit = u64(a.unit_weight), upper_x = upper_weight(unit, g.offset[0]);
#pragma unroll
    for (int x = 0; x < 2; ++x) {
        const u64 wx = x ? upper_x : unit - upper_x, upper_y = upper_weight(wx, g.offset[1]);
#pragma unroll
        for (int y = 0; y < 2; ++y) {
            const u64 wy = y ? upper_y : wx - upper_y;
            w[x][y][1] = upper_weight(wy, g.offset[2]);
            w[x][y][0] = wy - w[x][y][1];
        }
    }
#pragma unroll
    for (int y = 0; y < 2; ++y) {
#pragma unroll
        for (int z = 0; z < 2; ++z) {
            const u32 vy = y ? g.high[1] : g.low[1], vz = z ? g.high[2] : g.low[2];
            add_weights(a, sum, g, vy, vz, w[0][y][z], w[1][y][z]);
#ifdef CHARGES
            const auto charge = [&](u64 weight) { return u64((long long)rint(double(weight) * q)); };
            add_weights(a, charges, g, vy, vz, charge(w[0][y][z]), charge(w[1][y][z]));
#endif
        }
    }
}

// The slope of a field in units of 1/cell, by the scheme. Returns its value, interpolated from the eight vertices, if
// energies are requested or the scheme is Variational.
__device__ __forceinline__ real field_at(const MdScfArgs& a, const real* field, const GridPosition& g, real (&slope)[3]) {
    real value = real(0);
#ifdef PAPER
    const bool eight = a.full;
#else
    const bool eight = true;
#endif
    if (eight) {
        real w[3][2], u[2][2][2];
        for (int k = 0; k < 3; ++k) {
            w[k][1] = real(g.offset[k]);
            w[k][0] = real(1.0 - g.offset[k]);
        }
#pragma unroll
        for (int z = 0; z < 2; ++z) {
#pragma unroll
            for (int y = 0; y < 2; ++y) {
                const real* row = field + vertex_at(a, 0u, y ? g.high[1] : g.low[1], z ? g.high[2] : g.low[2]);
                u[z][y][0] = row[g.low[0]];
                u[z][y][1] = row[g.high[0]];
            }
        }
        real x[2][2], dx[2][2];
        for (int z = 0; z < 2; ++z) {
            for (int y = 0; y < 2; ++y) {
                x[z][y] = w[0][0] * u[z][y][0] + w[0][1] * u[z][y][1];
                dx[z][y] = u[z][y][1] - u[z][y][0];
            }
        }
        slope[0] = w[2][0] * (w[1][0] * dx[0][0] + w[1][1] * dx[0][1]) + w[2][1] * (w[1][0] * dx[1][0] + w[1][1] * dx[1][1]);
        slope[1] = w[2][0] * (x[0][1] - x[0][0]) + w[2][1] * (x[1][1] - x[1][0]);
        const real below = w[1][0] * x[0][0] + w[1][1] * x[0][1], above = w[1][0] * x[1][0] + w[1][1] * x[1][1];
        slope[2] = above - below;
        value = w[2][0] * below + w[2][1] * above;
    }
#ifdef PAPER
    u32 n[3];
    real d[3];
    for (int k = 0; k < 3; ++k) {
        const bool upper = g.offset[k] > 0.5;
        n[k] = upper ? g.high[k] : g.low[k];
        d[k] = real(upper ? g.offset[k] - 1.0 : g.offset[k]);
    }
    const u32 center = vertex_at(a, n[0], n[1], n[2]), stride[3] = {1u, a.grid[0], a.grid[0] * a.grid[1]};
    const real here = field[center];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const u32 turn = (a.grid[k] - 1u) * stride[k];
        const real below = field[n[k] == 0u ? center + turn : center - stride[k]];
        const real above = field[n[k] + 1u == a.grid[k] ? center - turn : center + stride[k]];
        slope[k] = (real(0.5) - d[k]) * (here - below) + (real(0.5) + d[k]) * (above - here);
    }
#endif
    return value;
}

// Adds forces, and energies if they are requested.
extern "C" __global__ void __launch_bounds__(128) md_scf_force(MdScfArgs a) {
    await_launches();
    const StateView& s = a.state;
    const Globals* g = s.globals;
#ifdef PACKED
    // a thread of another block may raise a fault now, and all threads of a block or none take part in block_sum
    if (a.full ? __syncthreads_or(g->halt != 0u) : g->halt != 0u) return;
#else
    if (g->halt) return;
#endif
    const u32 block = particle_block(s), i = block * blockDim.x + threadIdx.x;
    if (blockIdx.x == 0u && threadIdx.x == 0u) *a.evaluated = g->step + 1ull;
#ifdef PACKED
    const u32 collected = *a.collected;
#endif
    double values[1] = {0.0};
    if (i < own_end(s)) {
        const PosType p = load(&s.pos_type[i]);
        const GridPosition at = position_of(a, p);
        real slope[3];
        real value = field_at(a, a.field + u64(p.kind) * a.vertices, at, slope);
#ifdef CHARGES
        const real q = s.charge[i];
        real of_charge[3];
        value += q * field_at(a, a.field + u64(TYPES) * a.vertices, at, of_charge);
        for (int k = 0; k < 3; ++k) slope[k] += q * of_charge[k];
#endif
        Vec4 total = s.force[i];
        total.x -= slope[0] * real(double(a.grid[0]) / g->box_length[0]);
        total.y -= slope[1] * real(double(a.grid[1]) / g->box_length[1]);
        total.z -= slope[2] * real(double(a.grid[2]) / g->box_length[2]);
        if (a.full) {
            const double uniform = 0.5 * a.inv_kappa * (a.rho0 * volume_of(g) / double(s.n_local) - 1.0);
            total.w += real(0.5 * double(value) + uniform);
            values[0] = double(value);
        }
        s.force[i] = total;
    }
    if (a.full) {
        __shared__ double memory[8];
        block_sum(values, memory);
        if (threadIdx.x == 0) a.potentials[block] = values[0];
    }
#ifdef PACKED
    if (!collected) return;
    if (blockIdx.x == 0u && threadIdx.x == 0u) end_check(a, checked_particles(s));
    reset_sums(a);
#endif
}

// Adds the potentials of the blocks of all GPUs. One block.
extern "C" __global__ void __launch_bounds__(128) md_scf_potential(MdScfArgs a) {
    await_launches();
    if (a.state.globals->halt) return;
    __shared__ double memory[8];
    double total[1];
    sum_partials(a.potentials, particle_blocks(a.state), total, memory);
    if (threadIdx.x == 0 && a.quantities) *a.quantities = total[0];
}
