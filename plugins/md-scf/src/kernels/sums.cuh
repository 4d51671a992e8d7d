// Sums energy and virial of the field; `grids` are densities, in Fourier space if SPECTRAL is defined.
extern "C" __global__ void __launch_bounds__(256) md_scf_sums(MdScfArgs a, const real* grids) {
    await_launches();
    const Globals* g = a.state.globals;
    if (g->halt) return;
    const double volume = volume_of(g), cell = volume / double(a.vertices), per_cell = 1.0 / (a.rho0 * cell);
    double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (u32 m = blockIdx.x * blockDim.x + threadIdx.x; m < a.vertices; m += blockDim.x * gridDim.x) {
#ifdef SPECTRAL
        const u32 number[3] = {m % a.grid[0], m / a.grid[0] % a.grid[1], m / (a.grid[0] * a.grid[1])};
        const WaveMode f = mode_of(a, number);
        const double factors[2] = {0.5 * per_cell * f.filter, 0.5 / cell * f.green};
        double own[2];
        mode_products(a, grids, m, m, own);
        const int diagonal[3] = {1, 4, 6};
        for (int part = 0; part < 2; ++part) {
            const double e = factors[part] * own[part];
            values[0] += e;
            for (int k = 0; k < 3; ++k) values[diagonal[k]] += e * (1.0 - 2.0 * f.slopes[part] * f.k[k] * f.k[k]);
        }
        for (int p = 0; p < 3; ++p) {
            // derivatives along two axes flip the signs of both wave numbers; the shortest wave has no sign
            const int i = p == 2 ? 1 : 0, j = p == 0 ? 1 : 2, slot = p == 0 ? 2 : p == 1 ? 3 : 5;
            u32 mirror[3] = {number[0], number[1], number[2]};
            mirror[i] = number[i] == 0u ? 0u : a.grid[i] - number[i];
            mirror[j] = number[j] == 0u ? 0u : a.grid[j] - number[j];
            if (mirror[i] == number[i] || mirror[j] == number[j]) continue;
            double both[2];
            mode_products(a, grids, m, vertex_at(a, mirror[0], mirror[1], mirror[2]), both);
            for (int part = 0; part < 2; ++part) {
                values[slot] += 2.0 * f.slopes[part] * f.k[i] * f.k[j] * factors[part] * both[part];
            }
        }
#else
        double e = 0.0;
        for (int i = 0; i < TYPES; ++i) {
            double sum = 0.0;
            for (int j = 0; j < TYPES; ++j) sum += double(a.matrix[i * TYPES + j]) * double(grids[u64(j) * a.vertices + m]);
            e += sum * double(grids[u64(i) * a.vertices + m]);
        }
        e *= 0.5 * per_cell;
        values[0] += e;
        values[1] += e;
        values[4] += e;
        values[6] += e;
#endif
    }
    __shared__ double memory[7 * 8];
    __shared__ u32 flag;
    block_sum(values, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 7; ++k) a.partial[u64(blockIdx.x) * 7u + k] = values[k];
    }
    if (last_block(a.counter, &flag)) {
        double total[7];
        sum_partials(a.partial, gridDim.x, total, memory);
        if (threadIdx.x == 0) {
            const double uniform = 0.5 * a.inv_kappa * a.rho0 * volume;
            a.sums->energy = total[0] + uniform - a.inv_kappa * double(a.state.n_local);
            for (int k = 0; k < 6; ++k) {
                const double less = k == 0 || k == 3 || k == 5 ? uniform : 0.0;
                a.sums->virial[k] = a.virial ? total[k + 1] - less : 0.0;
            }
        }
    }
}
