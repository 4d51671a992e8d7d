// Fields by Fourier transform; see spectrum.rs.

// Transforms all fields along one axis. `needed`: 1 if only fields need the result, 2 if energies do as well.
extern "C" __global__ void __launch_bounds__(256) md_scf_axis(MdScfArgs a, const real* from, real* to, u32 axis, u32 needed) {
    await_launches();
    if (a.state.globals->halt || !(is_due(a, a.field_every) || (needed == 2u && a.full))) return;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= u32(FIELDS) * a.vertices) return;
    const u32 n = a.grid[axis], stride = axis == 0u ? 1u : axis == 1u ? a.grid[0] : a.grid[0] * a.grid[1];
    const u32 k = thread / stride % n;
    const real* line = from + (thread - k * stride);
    // the matrix is symmetric: threads along the axis read consecutive elements of a row
    const real* c = a.cas[axis] + k;
    real sum = real(0);
    for (u32 j = 0; j < n; ++j) sum = device_mul_add(__ldg(&c[j * n]), line[j * stride], sum);
    to[thread] = sum;
}

// Factors of a mode, see `Mode` in spectrum.rs.
struct WaveMode { double k[3], filter, green, slopes[2]; };

__device__ __forceinline__ WaveMode mode_of(const MdScfArgs& a, const u32 (&number)[3]) {
    WaveMode m;
    double k2 = 0.0;
    for (int axis = 0; axis < 3; ++axis) {
        const u32 n = a.grid[axis], x = number[axis];
        m.k[axis] = 6.283185307179586477 * (2u * x > n ? double(x) - double(n) : double(x)) / a.state.globals->box_length[axis];
        k2 += m.k[axis] * m.k[axis];
    }
    const double sigma2 = a.sigma * a.sigma;
    m.filter = exp(-sigma2 * k2);
    m.green = 0.0;
    m.slopes[0] = sigma2;
    m.slopes[1] = 0.0;
#ifdef CHARGES
    if (k2 > 0.0) {
        const double width = 0.25 / (a.alpha * a.alpha);
        m.green = 12.566370614359172954 * a.coulomb / k2 * exp(-width * k2);
        m.slopes[1] = 1.0 / k2 + width;
    }
#endif
    return m;
}

// Computes the fields from the densities, mode by mode.
extern "C" __global__ void __launch_bounds__(128) md_scf_modes(MdScfArgs a, const real* waves, real* to) {
    await_launches();
    const Globals* g = a.state.globals;
    if (g->halt || !is_due(a, a.field_every)) return;
    const u32 m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= a.vertices) return;
    const u32 number[3] = {m % a.grid[0], m / a.grid[0] % a.grid[1], m / (a.grid[0] * a.grid[1])};
    const WaveMode f = mode_of(a, number);
    const double cell = volume_of(g) / double(a.vertices);
    const real scale = real(f.filter / (a.rho0 * cell));
    // the constant -1/kappa is the mode 0
    const real less = m == 0u ? real(a.inv_kappa * sqrt(double(a.vertices))) : real(0);
#pragma unroll
    for (int i = 0; i < TYPES; ++i) {
        real sum = real(0);
#pragma unroll
        for (int j = 0; j < TYPES; ++j) sum += __ldg(&a.matrix[i * TYPES + j]) * waves[u64(j) * a.vertices + m];
        to[u64(i) * a.vertices + m] = sum * scale - less;
    }
#ifdef CHARGES
    to[u64(TYPES) * a.vertices + m] = real(f.green / cell) * waves[u64(TYPES) * a.vertices + m];
#endif
}

// Products of two modes: of types (with chi + 1/kappa) and of charges.
__device__ __forceinline__ void mode_products(const MdScfArgs& a, const real* waves, u32 m, u32 l, double (&e)[2]) {
    e[0] = e[1] = 0.0;
    for (int i = 0; i < TYPES; ++i) {
        for (int j = 0; j < TYPES; ++j) {
            e[0] += double(a.matrix[i * TYPES + j]) * double(waves[u64(i) * a.vertices + m]) * double(waves[u64(j) * a.vertices + l]);
        }
    }
#ifdef CHARGES
    e[1] = double(waves[u64(TYPES) * a.vertices + m]) * double(waves[u64(TYPES) * a.vertices + l]);
#endif
}
