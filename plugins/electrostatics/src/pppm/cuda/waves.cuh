// Fourier transforms of the grid and the influence function on CUDA. device.rs defines the numbers of grid points N0, N1, N2, their
// factors A0 x B0 = N0, ..., the lines LINES0, ... that a block transforms, and HALF = N0/2 + 1.

struct Complex { real re, im; };

__host__ __device__ constexpr double taylor(double x, double term, int n) {
    double sum = term;
    for (int k = 0; k < 12; ++k) {
        term *= -x * x / double((n + 1) * (n + 2));
        n += 2;
        sum += term;
    }
    return sum;
}

// cos and sin of 2 pi k/N. Angles are reduced to an eighth of a turn around a multiple of a quarter.
template <u32 N> struct Roots {
    real c[N], s[N];
    __host__ __device__ constexpr Roots() : c(), s() {
        for (u32 k = 0; k < N; ++k) {
            const u32 quarter = (8u * k + N) / (2u * N);
            const double x = 1.5707963267948966192 * (4.0 * double(k) - double(quarter) * double(N)) / double(N);
            const double cosine = taylor(x, 1.0, 0), sine = taylor(x, x, 1);
            c[k] = real(quarter % 4u == 0u ? cosine : quarter % 4u == 1u ? -sine : quarter % 4u == 2u ? -cosine : sine);
            s[k] = real(quarter % 4u == 0u ? sine : quarter % 4u == 1u ? cosine : quarter % 4u == 2u ? -sine : -cosine);
        }
    }
};

__host__ __device__ constexpr u32 smallest_factor(u32 n) {
    for (u32 p = 2u; p * p <= n; ++p) {
        if (n % p == 0u) return p;
    }
    return n;
}

__device__ __forceinline__ Complex plus(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
__device__ __forceinline__ Complex times(const Complex& v, real c, real s) { return {v.re * c - v.im * s, v.re * s + v.im * c}; }

// v times exp(-+2 pi i k/N); k is known to the compiler, and quarters of a turn need no products.
template <u32 N, bool INVERSE> __device__ __forceinline__ Complex turned(const Complex& v, u32 k) {
    constexpr Roots<N> roots;
    if (k == 0u) return v;
    if (2u * k == N) return {-v.re, -v.im};
    if (4u * k == N) return INVERSE ? Complex{-v.im, v.re} : Complex{v.im, -v.re};
    if (4u * k == 3u * N) return INVERSE ? Complex{v.im, -v.re} : Complex{-v.im, v.re};
    return times(v, roots.c[k], INVERSE ? roots.s[k] : -roots.s[k]);
}

// Transforms N numbers in registers: N = P M, with P-point transforms over the first index, then M-point ones.
template <u32 N, bool INVERSE> __device__ __forceinline__ void small_transform(Complex (&v)[N]) {
    if constexpr (N > 1u) {
        constexpr u32 P = smallest_factor(N), M = N / P;
        Complex u[P][M];
#pragma unroll
        for (u32 j2 = 0; j2 < M; ++j2) {
#pragma unroll
            for (u32 k1 = 0; k1 < P; ++k1) {
                Complex sum = v[j2];
#pragma unroll
                for (u32 j1 = 1; j1 < P; ++j1) sum = plus(sum, turned<N, INVERSE>(v[j1 * M + j2], j1 * k1 % P * M));
                u[k1][j2] = turned<N, INVERSE>(sum, j2 * k1);
            }
        }
#pragma unroll
        for (u32 k1 = 0; k1 < P; ++k1) {
            small_transform<M, INVERSE>(u[k1]);
#pragma unroll
            for (u32 k2 = 0; k2 < M; ++k2) v[k1 + P * k2] = u[k1][k2];
        }
    }
}

// More numbers than a thread has registers for are transformed one by one.
static constexpr u32 MOST_IN_REGISTERS = 40u;

// Lines of A x B numbers that a block transforms in shared memory: number j of line l is at j PITCH + l. The transform of
// j = j1 B + j2 to k = k1 + A k2 is one over j1, a product with exp(-+2 pi i j2 k1/N), and one over j2, in place: wave k is at
// k1 B + k2. The inverse takes this order back.
template <u32 A, u32 B, u32 LINES> struct Lines {
    static constexpr u32 N = A * B, PITCH = LINES > 1u ? LINES + 1u : 1u;
    static constexpr bool IN_REGISTERS = A <= MOST_IN_REGISTERS && B <= MOST_IN_REGISTERS;
    // the numbers, and as many for the result of a transform that is not in registers
    static constexpr u32 SIZE = N * PITCH * (IN_REGISTERS ? 1u : 2u);

    __device__ static __forceinline__ u32 place(u32 k) { return (k % A * B + k / A) * PITCH; }

    // GROUPS transforms of COUNT numbers each that are STEP apart, the first ones BASE apart; with TURN, times
    // exp(-+2 pi i (group) (number)/N).
    template <u32 COUNT, u32 STEP, u32 GROUPS, u32 BASE, bool INVERSE, bool TURN>
    __device__ static __forceinline__ void stage(Complex* x, const real* __restrict__ roots) {
        auto turn = [&](const Complex& v, u32 product) {
            const real c = __ldg(roots + 2u * product), s = __ldg(roots + 2u * product + 1u);
            return times(v, c, INVERSE ? s : -s);
        };
        if constexpr (IN_REGISTERS) {
            for (u32 e = threadIdx.x; e < GROUPS * LINES; e += blockDim.x) {
                const u32 group = e / LINES;
                Complex* at = x + group * BASE * PITCH + e % LINES;
                Complex v[COUNT];
#pragma unroll
                for (u32 k = 0; k < COUNT; ++k) v[k] = at[k * STEP * PITCH];
                small_transform<COUNT, INVERSE>(v);
#pragma unroll
                for (u32 k = 0; k < COUNT; ++k) at[k * STEP * PITCH] = TURN && k > 0u ? turn(v[k], group * k) : v[k];
            }
        } else {
            Complex* y = x + N * PITCH;
            for (u32 e = threadIdx.x; e < N * LINES; e += blockDim.x) {
                const u32 l = e % LINES, group = e / LINES % GROUPS, k = e / LINES / GROUPS;
                const Complex* at = x + group * BASE * PITCH + l;
                Complex sum = {real(0), real(0)};
                for (u32 j = 0; j < COUNT; ++j) sum = plus(sum, turn(at[j * STEP * PITCH], j * k % COUNT * (N / COUNT)));
                y[(group * BASE + k * STEP) * PITCH + l] = TURN ? turn(sum, group * k) : sum;
            }
            __syncthreads();
            for (u32 e = threadIdx.x; e < N * PITCH; e += blockDim.x) x[e] = y[e];
        }
        __syncthreads();
    }
    __device__ static __forceinline__ void forward(Complex* x, const real* roots) {
        stage<A, B, B, 1u, false, true>(x, roots);
        stage<B, 1u, A, B, false, false>(x, roots);
    }
    __device__ static __forceinline__ void inverse(Complex* x, const real* roots) {
        stage<B, 1u, A, B, true, true>(x, roots);
        stage<A, B, B, 1u, true, false>(x, roots);
    }
};

typedef Lines<A0, B0, LINES0> LinesX;
typedef Lines<A1, B1, LINES1> LinesY;
typedef Lines<A2, B2, LINES2> LinesZ;
static constexpr u32 ROWS = u32(N1) * u32(N2), COLUMNS = u32(HALF) * u32(N1);

// Transforms the charges along x. Two real rows are one complex line.
extern "C" __global__ void __launch_bounds__(256) pppm_forward_x(PppmArgs a) {
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[LinesX::SIZE];
    const u32 first = blockIdx.x * LINES0;
    // powers of two
    const real inverse = real(1) / unit_of(a);
    for (u32 e = threadIdx.x; e < u32(N0) * LINES0; e += blockDim.x) {
        const u32 l = e / u32(N0), k = e % u32(N0), row = 2u * (first + l);
        const u64* from = a.sums + u64(row) * N0 + k;
        x[k * LinesX::PITCH + l] = {row < ROWS ? real((long long)from[0]) * inverse : real(0),
                                    row + 1u < ROWS ? real((long long)from[N0]) * inverse : real(0)};
    }
    __syncthreads();
    LinesX::forward(x, a.roots[0]);
    for (u32 e = threadIdx.x; e < HALF * LINES0; e += blockDim.x) {
        const u32 l = e / u32(HALF), k = e % u32(HALF), row = 2u * (first + l);
        const Complex p = x[LinesX::place(k) + l], m = x[LinesX::place(k == 0u ? 0u : N0 - k) + l];
        Complex* to = static_cast<Complex*>(a.waves) + u64(row) * HALF + k;
        if (row < ROWS) to[0] = {real(0.5) * (p.re + m.re), real(0.5) * (p.im - m.im)};
        if (row + 1u < ROWS) to[HALF] = {real(0.5) * (p.im + m.im), real(0.5) * (m.re - p.re)};
    }
}

// Transforms along y; INVERSE selects the direction.
template <bool INVERSE> __device__ __forceinline__ void along_y(const PppmArgs& a) {
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[LinesY::SIZE];
    constexpr u32 BLOCKS = (u32(HALF) + LINES1 - 1u) / LINES1;
    const u32 first = blockIdx.x % BLOCKS * LINES1, z = blockIdx.x / BLOCKS;
    Complex* plane = static_cast<Complex*>(a.waves) + u64(z) * COLUMNS;
    for (u32 e = threadIdx.x; e < u32(N1) * LINES1; e += blockDim.x) {
        const u32 l = e % LINES1, k = e / LINES1;
        x[(INVERSE ? LinesY::place(k) : k * LinesY::PITCH) + l] =
            first + l < HALF ? plane[u64(k) * HALF + first + l] : Complex{real(0), real(0)};
    }
    __syncthreads();
    if (INVERSE) LinesY::inverse(x, a.roots[1]);
    else LinesY::forward(x, a.roots[1]);
    for (u32 e = threadIdx.x; e < u32(N1) * LINES1; e += blockDim.x) {
        const u32 l = e % LINES1, k = e / LINES1;
        if (first + l < HALF) plane[u64(k) * HALF + first + l] = x[(INVERSE ? k * LinesY::PITCH : LinesY::place(k)) + l];
    }
}
extern "C" __global__ void __launch_bounds__(256) pppm_forward_y(PppmArgs a) { along_y<false>(a); }
extern "C" __global__ void __launch_bounds__(256) pppm_inverse_y(PppmArgs a) { along_y<true>(a); }

// The influence function times C/V of wave (x, y, z), see influence.rs. With FULL, `strain` gets its derivatives by strains of the box.
template <bool FULL>
__device__ __forceinline__ real influence(const PppmArgs& a, const u32 (&at)[3], double (&strain)[6]) {
    const Globals* g = a.charges.state.globals;
    real k[3], first = real(1), zeroth[3], linear[3], square[3], k2 = real(0);
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        const real* row = a.tables[axis] + 5u * at[axis];
        const real unit = real(6.283185307179586477 / g->box_length[axis]);
        k[axis] = unit * row[0];
        k2 += k[axis] * k[axis];
        first *= row[1];
        zeroth[axis] = row[2];
        linear[axis] = unit * row[3];
        square[axis] = unit * unit * row[4];
    }
    const real second[6] = {square[0] * zeroth[1] * zeroth[2], linear[0] * linear[1] * zeroth[2],
                            linear[0] * linear[2] * zeroth[1], square[1] * zeroth[0] * zeroth[2],
                            linear[1] * linear[2] * zeroth[0], square[2] * zeroth[0] * zeroth[1]};
    const real d = second[0] + second[3] + second[5];
    if (d == real(0)) {
        for (int s = 0; s < 6; ++s) strain[s] = 0.0;
        return real(0);
    }
    const double* window = a.charges.window;
    const Tuple2<real, real> chi = window_transform<real>(k2, real(window[0]), real(window[1]), real(window[2]));
    const real factor =
        real(12.566370614359172954 * a.charges.coulomb / volume_of(g)) * first / (zeroth[0] * zeroth[1] * zeroth[2] * d);
    if (FULL) {
        int slot = 0;
#pragma unroll
        for (int i = 0; i < 3; ++i) {
#pragma unroll
            for (int j = i; j < 3; ++j) {
                strain[slot] = 2.0 * double(factor) * (double(chi.v1) * double(k[i]) * double(k[j]) + double(chi.v0) * double(second[slot]) / double(d));
                ++slot;
            }
        }
    }
    return factor * chi.v0;
}

// Transforms along z, multiplies by the influence function, sums the virial if it is requested, and transforms back.
template <bool FULL> __device__ __forceinline__ void along_z(const PppmArgs& a) {
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[LinesZ::SIZE];
    Complex* waves = static_cast<Complex*>(a.waves);
    const u32 first = blockIdx.x * LINES2;
    for (u32 e = threadIdx.x; e < u32(N2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, k = e / LINES2;
        x[k * LinesZ::PITCH + l] = first + l < COLUMNS ? waves[u64(k) * COLUMNS + first + l] : Complex{real(0), real(0)};
    }
    __syncthreads();
    LinesZ::forward(x, a.roots[2]);
    double values[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (u32 e = threadIdx.x; e < u32(N2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, k = e / LINES2, column = first + l;
        if (column >= COLUMNS) continue;
        const u32 at[3] = {column % u32(HALF), column / u32(HALF), k};
        double strain[6];
        const real g = influence<FULL>(a, at, strain);
        Complex& v = x[LinesZ::place(k) + l];
        if (FULL) {
            // waves with x above n/2 are not stored
            const double twice = at[0] == 0u || 2u * at[0] == u32(N0) ? 0.5 : 1.0;
            const double square = twice * (double(v.re) * double(v.re) + double(v.im) * double(v.im));
            for (int s = 0; s < 6; ++s) values[s] += square * ((s == 0 || s == 3 || s == 5 ? double(g) : 0.0) - strain[s]);
        }
        v = {v.re * g, v.im * g};
    }
    __syncthreads();
    LinesZ::inverse(x, a.roots[2]);
    for (u32 e = threadIdx.x; e < u32(N2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, k = e / LINES2;
        if (first + l < COLUMNS) waves[u64(k) * COLUMNS + first + l] = x[k * LinesZ::PITCH + l];
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

// Transforms back along x: the potential of a unit charge at each point. Two real rows are one complex line.
extern "C" __global__ void __launch_bounds__(256) pppm_inverse_x(PppmArgs a) {
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[LinesX::SIZE];
    const u32 first = blockIdx.x * LINES0;
    for (u32 e = threadIdx.x; e < HALF * LINES0; e += blockDim.x) {
        const u32 l = e / u32(HALF), k = e % u32(HALF), row = 2u * (first + l);
        const Complex *from = static_cast<const Complex*>(a.waves) + u64(row) * HALF + k, none = {real(0), real(0)};
        const Complex p = row < ROWS ? from[0] : none, q = row + 1u < ROWS ? from[HALF] : none;
        x[LinesX::place(k) + l] = {p.re - q.im, p.im + q.re};
        if (k > 0u && 2u * k < u32(N0)) x[LinesX::place(N0 - k) + l] = {p.re + q.im, q.re - p.im};
    }
    __syncthreads();
    LinesX::inverse(x, a.roots[0]);
    for (u32 e = threadIdx.x; e < u32(N0) * LINES0; e += blockDim.x) {
        const u32 l = e / u32(N0), k = e % u32(N0), row = 2u * (first + l);
        const Complex v = x[k * LinesX::PITCH + l];
        const u64 at = u64(row) * N0 + k;
        // the sums are 0 for the next evaluation
        if (row < ROWS) {
            a.grid[at] = v.re;
            a.sums[at] = 0u;
        }
        if (row + 1u < ROWS) {
            a.grid[at + N0] = v.im;
            a.sums[at + N0] = 0u;
        }
    }
}
