// The mesh on CUDA, equivalent to cpu.rs; correction.cuh comes before this text. device.rs defines ORDER, the numbers of
// grid points N0, N1, N2, their factors A0 x B0 = N0, ..., HALF = N0/2 + 1, and ELEMENTS, the numbers of a block's buffer.

struct Complex { real re, im; };

// Grid point and offset in cells along each axis.
struct MeshPosition { u32 point[3]; real offset[3]; };

__device__ __forceinline__ MeshPosition mesh_position(const PppmArgs& a, const PosType& p) {
    const u32 n[3] = {N0, N1, N2};
    MeshPosition m;
#ifdef GALAMOST_DOUBLE
    const double at[3] = {p.x, p.y, p.z};
#else
    const int at[3] = {p.x, p.y, p.z};
#endif
    for (int k = 0; k < 3; ++k) {
#ifdef GALAMOST_DOUBLE
        const double s = (at[k] / a.charges.state.globals->box_length[k] + 0.5) * double(n[k]);
        double below = floor(s);
        below = below < 0.0 ? 0.0 : below > double(n[k] - 1u) ? double(n[k] - 1u) : below;
        m.point[k] = u32(below);
        m.offset[k] = s - below;
#else
        // fixed-point distance from the lower face times the grid: the upper 32 bits are the cell, the lower the offset
        const u64 s = u64(u32(at[k]) ^ 0x80000000u) * n[k];
        m.point[k] = u32(s >> 32);
        m.offset[k] = real(u32(s)) * real(1.0 / 4294967296.0);
#endif
    }
    return m;
}

// Shares of ORDER consecutive points in a charge, and their derivatives, see assignment.rs.
__device__ __forceinline__ void shares(real d, real (&w)[ORDER], real (&slope)[ORDER]) {
    w[0] = real(1) - d;
    w[1] = d;
#pragma unroll
    for (int order = 3; order <= ORDER; ++order) {
        if (order == ORDER) {
            slope[0] = -w[0];
#pragma unroll
            for (int j = 1; j < ORDER; ++j) slope[j] = w[j - 1] - (j < ORDER - 1 ? w[j] : real(0));
        }
        const real inverse = real(1.0 / double(order - 1));
        w[order - 1] = inverse * d * w[order - 2];
#pragma unroll
        for (int j = 1; j < order - 1; ++j) {
            const int k = order - 1 - j;
            w[k] = inverse * ((d + real(j)) * w[k - 1] + (real(order - j) - d) * w[k]);
        }
        w[0] *= inverse * (real(1) - d);
    }
}

__device__ __forceinline__ u32 wrapped(u32 point, u32 n) {
    while (point >= n) point -= n;
    return point;
}

// Adds integer shares of each charge to the grid. Sums of integers do not depend on the summation order. ORDER threads
// share a particle, one for each plane.
extern "C" __global__ void __launch_bounds__(128) pppm_spread(PppmArgs a) {
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, i = thread / u32(ORDER), z = thread % u32(ORDER);
    if (i >= s.n_local) return;
    const real q = s.charge[i];
    if (q == real(0)) return;
    const MeshPosition m = mesh_position(a, load(&s.pos_type[i]));
    real w[3][ORDER], slope[ORDER];
    for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope);
    double share = 0.0;
#pragma unroll
    for (int k = 0; k < ORDER; ++k) share = u32(k) == z ? double(w[2][k]) : share;
    share *= double(q) * a.unit;
    const u32 plane = wrapped(m.point[2] + z, N2) * u32(N1);
#pragma unroll
    for (int y = 0; y < ORDER; ++y) {
        const u32 row = (plane + wrapped(m.point[1] + u32(y), N1)) * u32(N0);
        const double part = share * double(w[1][y]);
#pragma unroll
        for (int x = 0; x < ORDER; ++x) {
            atomicAdd(&a.sum[row + wrapped(m.point[0] + u32(x), N0)], u64((long long)rint(part * double(w[0][x]))));
        }
    }
}

// Transforms LINES lines of A x B numbers each from `x` through `y` back to `x`; number k of line l is at k LINES + l. The
// transform of j = j1 B + j2 to k = k1 + A k2 is one over j1 and one over j2.
template <u32 A, u32 B, u32 LINES, bool INVERSE>
__device__ __forceinline__ void transform(Complex* x, Complex* y, const real* __restrict__ roots) {
    constexpr u32 N = A * B;
    __syncthreads();
    for (u32 e = threadIdx.x; e < N * LINES; e += blockDim.x) {
        const u32 l = e % LINES, j2 = e / LINES % B, k1 = e / LINES / B;
        real re = real(0), im = real(0);
        u32 turn = 0u;
        for (u32 j1 = 0; j1 < A; ++j1) {
            const Complex v = x[(j1 * B + j2) * LINES + l];
            const real c = roots[2u * turn], s = INVERSE ? roots[2u * turn + 1u] : -roots[2u * turn + 1u];
            re += v.re * c - v.im * s;
            im += v.re * s + v.im * c;
            turn += k1 * B;
            if (turn >= N) turn -= N;
        }
        const u32 twiddle = j2 * k1;
        const real c = roots[2u * twiddle], s = INVERSE ? roots[2u * twiddle + 1u] : -roots[2u * twiddle + 1u];
        y[(k1 * B + j2) * LINES + l] = {re * c - im * s, re * s + im * c};
    }
    __syncthreads();
    for (u32 e = threadIdx.x; e < N * LINES; e += blockDim.x) {
        const u32 l = e % LINES, k1 = e / LINES % A, k2 = e / LINES / A;
        real re = real(0), im = real(0);
        u32 turn = 0u;
        for (u32 j2 = 0; j2 < B; ++j2) {
            const Complex v = y[(k1 * B + j2) * LINES + l];
            const real c = roots[2u * turn], s = INVERSE ? roots[2u * turn + 1u] : -roots[2u * turn + 1u];
            re += v.re * c - v.im * s;
            im += v.re * s + v.im * c;
            turn += k2 * A;
            if (turn >= N) turn -= N;
        }
        x[(k1 + A * k2) * LINES + l] = {re, im};
    }
    __syncthreads();
}

__device__ constexpr u32 lines_of(u32 n) { return ELEMENTS / n > 16u ? 16u : ELEMENTS / n > 0u ? ELEMENTS / n : 1u; }

// Transforms the integer sums along x and resets them.
extern "C" __global__ void __launch_bounds__(256) pppm_forward_x(PppmArgs a) {
    constexpr u32 LINES = lines_of(N0), ROWS = u32(N1) * u32(N2);
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[N0 * LINES], y[N0 * LINES];
    const u32 first = blockIdx.x * LINES;
    for (u32 e = threadIdx.x; e < N0 * LINES; e += blockDim.x) {
        const u32 l = e / u32(N0), k = e % u32(N0);
        Complex v = {real(0), real(0)};
        if (first + l < ROWS) {
            u64* sum = &a.sum[u64(first + l) * N0 + k];
            v.re = real(double((long long)*sum) * a.inverse_unit);
            *sum = 0ull;
        }
        x[k * LINES + l] = v;
    }
    transform<A0, B0, LINES, false>(x, y, a.roots[0]);
    for (u32 e = threadIdx.x; e < HALF * LINES; e += blockDim.x) {
        const u32 l = e / u32(HALF), k = e % u32(HALF);
        if (first + l < ROWS) static_cast<Complex*>(a.waves)[u64(first + l) * HALF + k] = x[k * LINES + l];
    }
}

// Transforms along y; `inverse` selects the direction.
template <bool INVERSE> __device__ __forceinline__ void along_y(const PppmArgs& a) {
    constexpr u32 LINES = lines_of(N1);
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[N1 * LINES], y[N1 * LINES];
    const u32 blocks = (u32(HALF) + LINES - 1u) / LINES, first = blockIdx.x % blocks * LINES, z = blockIdx.x / blocks;
    Complex* plane = static_cast<Complex*>(a.waves) + u64(z) * N1 * HALF;
    for (u32 e = threadIdx.x; e < N1 * LINES; e += blockDim.x) {
        const u32 l = e % LINES, k = e / LINES;
        x[e] = first + l < HALF ? plane[u64(k) * HALF + first + l] : Complex{real(0), real(0)};
    }
    transform<A1, B1, LINES, INVERSE>(x, y, a.roots[1]);
    for (u32 e = threadIdx.x; e < N1 * LINES; e += blockDim.x) {
        const u32 l = e % LINES, k = e / LINES;
        if (first + l < HALF) plane[u64(k) * HALF + first + l] = x[e];
    }
}
extern "C" __global__ void __launch_bounds__(256) pppm_forward_y(PppmArgs a) { along_y<false>(a); }
extern "C" __global__ void __launch_bounds__(256) pppm_inverse_y(PppmArgs a) { along_y<true>(a); }

// The influence function times C/V of wave (x, y, z), see influence.rs. `values` gets the virial of the wave per energy.
template <bool FULL>
__device__ __forceinline__ double influence(const PppmArgs& a, u32 x, u32 y, u32 z, double (&slopes)[6]) {
    const Globals* g = a.charges.state.globals;
    const u32 at[3] = {x, y, z};
    double k[3], first = 1.0, zeroth[3], linear[3], square[3], k2 = 0.0;
    for (int axis = 0; axis < 3; ++axis) {
        const double* row = a.tables[axis] + 5u * at[axis];
        const double unit = 6.283185307179586477 / g->box_length[axis];
        k[axis] = unit * row[0];
        k2 += k[axis] * k[axis];
        first *= row[1];
        zeroth[axis] = row[2];
        linear[axis] = unit * row[3];
        square[axis] = unit * unit * row[4];
    }
    const double second[6] = {square[0] * zeroth[1] * zeroth[2], linear[0] * linear[1] * zeroth[2],
                              linear[0] * linear[2] * zeroth[1], square[1] * zeroth[0] * zeroth[2],
                              linear[1] * linear[2] * zeroth[0], square[2] * zeroth[0] * zeroth[1]};
    const double d = second[0] + second[3] + second[5];
    if (d == 0.0) {
        for (int s = 0; s < 6; ++s) slopes[s] = 0.0;
        return 0.0;
    }
    const double width = 0.25 / (a.charges.alpha * a.charges.alpha);
    if (FULL) {
        int slot = 0;
        for (int i = 0; i < 3; ++i) {
            for (int j = i; j < 3; ++j) {
                slopes[slot] = 2.0 * (width * k[i] * k[j] + second[slot] / d);
                ++slot;
            }
        }
    }
    return 12.566370614359172954 * a.charges.coulomb / volume_of(g) * exp(-width * k2) * first /
           (zeroth[0] * zeroth[1] * zeroth[2] * d);
}

// Transforms along z, multiplies by the influence function, sums the virial if it is requested, and transforms back.
template <bool FULL> __device__ __forceinline__ void along_z(const PppmArgs& a) {
    constexpr u32 LINES = lines_of(N2), COLUMNS = u32(HALF) * u32(N1);
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[N2 * LINES], y[N2 * LINES];
    Complex* waves = static_cast<Complex*>(a.waves);
    const u32 first = blockIdx.x * LINES;
    for (u32 e = threadIdx.x; e < N2 * LINES; e += blockDim.x) {
        const u32 l = e % LINES, k = e / LINES;
        x[e] = first + l < COLUMNS ? waves[u64(k) * COLUMNS + first + l] : Complex{real(0), real(0)};
    }
    transform<A2, B2, LINES, false>(x, y, a.roots[2]);
    double values[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (u32 e = threadIdx.x; e < N2 * LINES; e += blockDim.x) {
        const u32 l = e % LINES, k = e / LINES, column = first + l;
        if (column >= COLUMNS) continue;
        const u32 kx = column % u32(HALF), ky = column / u32(HALF);
        double slopes[6];
        const double g = influence<FULL>(a, kx, ky, k, slopes);
        const Complex v = x[e];
        if (FULL) {
            // waves with x above n/2 are not stored
            const double twice = kx == 0u || 2u * kx == u32(N0) ? 0.5 : 1.0;
            const double energy = twice * g * (double(v.re) * double(v.re) + double(v.im) * double(v.im));
            for (int s = 0; s < 6; ++s) values[s] += energy * ((s == 0 || s == 3 || s == 5 ? 1.0 : 0.0) - slopes[s]);
        }
        x[e] = {v.re * real(g), v.im * real(g)};
    }
    transform<A2, B2, LINES, true>(x, y, a.roots[2]);
    for (u32 e = threadIdx.x; e < N2 * LINES; e += blockDim.x) {
        const u32 l = e % LINES, k = e / LINES;
        if (first + l < COLUMNS) waves[u64(k) * COLUMNS + first + l] = x[e];
    }
    if (FULL) {
        __shared__ double memory[6 * 8];
        __shared__ u32 flag;
        const ChargeArgs& c = a.charges;
        block_sum(values, memory);
        if (threadIdx.x == 0) {
            for (int s = 0; s < 6; ++s) c.partial[u64(blockIdx.x) * 6u + s] = values[s];
        }
        if (last_block(c.counter, &flag)) {
            sum_partials(c.partial, gridDim.x, values, memory);
            if (threadIdx.x == 0) {
                for (int s = 0; s < 6; ++s) c.virial[s] = values[s];
            }
        }
    }
}
extern "C" __global__ void __launch_bounds__(256) pppm_z(PppmArgs a) { along_z<false>(a); }
extern "C" __global__ void __launch_bounds__(256) pppm_z_full(PppmArgs a) { along_z<true>(a); }

// Transforms back along x: the potential of a unit charge at each point.
extern "C" __global__ void __launch_bounds__(256) pppm_inverse_x(PppmArgs a) {
    constexpr u32 LINES = lines_of(N0), ROWS = u32(N1) * u32(N2);
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[N0 * LINES], y[N0 * LINES];
    const Complex* waves = static_cast<const Complex*>(a.waves);
    const u32 first = blockIdx.x * LINES;
    for (u32 e = threadIdx.x; e < N0 * LINES; e += blockDim.x) {
        const u32 l = e / u32(N0), k = e % u32(N0);
        Complex v = {real(0), real(0)};
        if (first + l < ROWS) {
            const bool stored = k < u32(HALF);
            v = waves[u64(first + l) * HALF + (stored ? k : u32(N0) - k)];
            if (!stored) v.im = -v.im;
        }
        x[k * LINES + l] = v;
    }
    transform<A0, B0, LINES, true>(x, y, a.roots[0]);
    for (u32 e = threadIdx.x; e < N0 * LINES; e += blockDim.x) {
        const u32 l = e / u32(N0), k = e % u32(N0);
        if (first + l < ROWS) a.potential[u64(first + l) * N0 + k] = x[k * LINES + l].re;
    }
}

// Adds forces, and energies if they are requested.
extern "C" __global__ void __launch_bounds__(128) pppm_force(PppmArgs a) {
    const StateView& s = a.charges.state;
    const Globals* g = s.globals;
    if (g->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (i < s.n_local && s.charge[i] != real(0)) {
        const MeshPosition m = mesh_position(a, load(&s.pos_type[i]));
        real w[3][ORDER], slope[3][ORDER];
        for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope[k]);
        u32 column[ORDER];
#pragma unroll
        for (int x = 0; x < ORDER; ++x) column[x] = wrapped(m.point[0] + u32(x), N0);
        real out[4] = {real(0), real(0), real(0), real(0)};
#pragma unroll
        for (int z = 0; z < ORDER; ++z) {
            real plane[3] = {real(0), real(0), real(0)};
            const u32 first = wrapped(m.point[2] + u32(z), N2) * u32(N1);
#pragma unroll
            for (int y = 0; y < ORDER; ++y) {
                const real* row = a.potential + u64(first + wrapped(m.point[1] + u32(y), N1)) * N0;
                real value = real(0), change = real(0);
#pragma unroll
                for (int x = 0; x < ORDER; ++x) {
                    const real p = row[column[x]];
                    value += w[0][x] * p;
                    change += slope[0][x] * p;
                }
                plane[0] += w[1][y] * change;
                plane[1] += slope[1][y] * value;
                plane[2] += w[1][y] * value;
            }
            out[0] += w[2][z] * plane[0];
            out[1] += w[2][z] * plane[1];
            out[2] += slope[2][z] * plane[2];
            out[3] += w[2][z] * plane[2];
        }
        const real field[3] = {-out[0] * real(N0 / g->box_length[0]), -out[1] * real(N1 / g->box_length[1]),
                               -out[2] * real(N2 / g->box_length[2])};
        add_charge_forces(a.charges, i, field, out[3], values);
    }
    report_charges(a.charges, values);
}
