// Ewald sums on CUDA, equivalent to cpu.rs; correction.cuh comes before this text.

// The phase k r of a wave in turns, between -1/2 and 1/2.
__device__ __forceinline__ real turns_of(const EwaldArgs& a, const PosType& p, int x, int y, int z) {
#ifdef GALAMOST_DOUBLE
    const double* l = a.charges.state.globals->box_length;
    const double turns = x * (p.x / l[0]) + y * (p.y / l[1]) + z * (p.z / l[2]);
    return turns - rint(turns);
#else
    // whole turns overflow
    const u32 turns = u32(x) * u32(p.x) + u32(y) * u32(p.y) + u32(z) * u32(p.z);
    return real(int(turns)) * real(1.0 / 4294967296.0);
#endif
}

struct WaveVector { double k[3], factor, slope; };

// 2 pi x/L, and the factors of cpu.rs.
__device__ __forceinline__ WaveVector wave_vector(const EwaldArgs& a, u32 w) {
    const Globals* g = a.charges.state.globals;
    WaveVector v;
    double k2 = 0.0;
    for (int k = 0; k < 3; ++k) {
        v.k[k] = 6.283185307179586477 * double(a.waves[3u * w + k]) / g->box_length[k];
        k2 += v.k[k] * v.k[k];
    }
    const double* window = a.charges.window;
    const Tuple2<double, double> chi = window_transform<double>(k2, window[0], window[1], window[2]);
    const double one = 12.566370614359172954 * a.charges.coulomb / (k2 * volume_of(g));
    v.factor = one * chi.v0;
    v.slope = 2.0 * one * (chi.v0 / k2 + chi.v1);
    return v;
}

// One block sums q exp(ikr) of one wave.
extern "C" __global__ void __launch_bounds__(128) ewald_structure(EwaldArgs a) {
    await_launches();
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    const u32 w = blockIdx.x;
    const int x = a.waves[3u * w], y = a.waves[3u * w + 1u], z = a.waves[3u * w + 2u];
    double values[2] = {0.0, 0.0};
    for (u32 i = threadIdx.x; i < s.n_local; i += blockDim.x) {
        const real angle = real(6.283185307179586477) * turns_of(a, load(&s.pos_type[i]), x, y, z), q = s.charge[i];
        values[0] += double(q * device_cos(angle));
        values[1] += double(q * device_sin(angle));
    }
    __shared__ double memory[2 * 4];
    block_sum(values, memory);
    if (threadIdx.x == 0) {
        const WaveVector v = wave_vector(a, w);
        a.structure[2u * w] = values[0];
        a.structure[2u * w + 1u] = values[1];
        // what particles read: k, and twice the factor times the structure factor
        real* row = a.rows + 5u * w;
        for (int k = 0; k < 3; ++k) row[k] = real(v.k[k]);
        row[3] = real(2.0 * v.factor * values[0]);
        row[4] = real(2.0 * v.factor * values[1]);
    }
}

// Sums the virial of all waves in one block.
extern "C" __global__ void __launch_bounds__(256) ewald_virial(EwaldArgs a) {
    await_launches();
    if (a.charges.state.globals->halt) return;
    double values[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (u32 w = threadIdx.x; w < a.n_waves; w += blockDim.x) {
        const WaveVector v = wave_vector(a, w);
        const double re = a.structure[2u * w], im = a.structure[2u * w + 1u], square = re * re + im * im;
        int slot = 0;
        for (int i = 0; i < 3; ++i) {
            for (int j = i; j < 3; ++j) values[slot++] += square * ((i == j ? v.factor : 0.0) - v.slope * v.k[i] * v.k[j]);
        }
    }
    __shared__ double memory[6 * 8];
    block_sum(values, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 6; ++k) a.charges.virial[k] = values[k];
    }
}

// Adds forces, and energies if they are requested.
extern "C" __global__ void __launch_bounds__(128) ewald_force(EwaldArgs a) {
    await_launches();
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (i < s.n_local) {
        const PosType p = load(&s.pos_type[i]);
        real field[3] = {real(0), real(0), real(0)}, potential = real(0);
        for (u32 w = 0; w < a.n_waves; ++w) {
            const real angle = real(6.283185307179586477) * turns_of(a, p, a.waves[3u * w], a.waves[3u * w + 1u], a.waves[3u * w + 2u]);
            const real c = device_cos(angle), d = device_sin(angle);
            const real* row = a.rows + 5u * w;
            const real wave = row[3] * d - row[4] * c;
            for (int k = 0; k < 3; ++k) field[k] += row[k] * wave;
            potential += row[3] * c + row[4] * d;
        }
        add_charge_forces<true>(a.charges, charged_particle(s, i), field, potential, values);
    }
    report_charges(a.charges, values);
}
