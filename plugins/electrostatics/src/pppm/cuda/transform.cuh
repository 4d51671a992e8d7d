// Fourier transforms of A x B numbers in registers and shared memory on CUDA.

struct alignas(2 * sizeof(real)) Complex { real re, im; };

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
__device__ __forceinline__ Complex minus(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
__device__ __forceinline__ Complex times(const Complex& v, real c, real s) {
    return {device_mul_add(v.re, c, -(v.im * s)), device_mul_add(v.re, s, v.im * c)};
}
// v c + w
__device__ __forceinline__ Complex mul_add(const Complex& v, real c, const Complex& w) {
    return {device_mul_add(v.re, c, w.re), device_mul_add(v.im, c, w.im)};
}

// v times exp(-+2 pi i k/N); k is known to the compiler, and quarters of a turn need no products.
template <u32 N, bool INVERSE> __device__ __forceinline__ Complex turned(const Complex& v, u32 k) {
    constexpr Roots<N> roots;
    if (k == 0u) return v;
    if (2u * k == N) return {-v.re, -v.im};
    if (4u * k == N) return INVERSE ? Complex{-v.im, v.re} : Complex{v.im, -v.re};
    if (4u * k == 3u * N) return INVERSE ? Complex{v.im, -v.re} : Complex{-v.im, v.re};
    return times(v, roots.c[k], INVERSE ? roots.s[k] : -roots.s[k]);
}

// Transforms a prime number of numbers. Numbers j and N - j have roots of unity that are conjugate, so their sums and differences take
// real factors.
template <u32 N, bool INVERSE> __device__ __forceinline__ void prime_transform(Complex (&v)[N]) {
    if constexpr (N == 2u) {
        const Complex first = v[0];
        v[0] = plus(first, v[1]);
        v[1] = minus(first, v[1]);
    } else {
        constexpr u32 H = (N - 1u) / 2u;
        constexpr Roots<N> roots;
        Complex even[H], odd[H];
        const Complex first = v[0];
#pragma unroll
        for (u32 j = 0; j < H; ++j) {
            even[j] = plus(v[j + 1u], v[N - 1u - j]);
            odd[j] = minus(v[j + 1u], v[N - 1u - j]);
            v[0] = plus(v[0], even[j]);
        }
#pragma unroll
        for (u32 k = 1; k <= H; ++k) {
            Complex c = mul_add(even[0], roots.c[k], first), d = {odd[0].re * roots.s[k], odd[0].im * roots.s[k]};
#pragma unroll
            for (u32 j = 1; j < H; ++j) {
                c = mul_add(even[j], roots.c[(j + 1u) * k % N], c);
                d = mul_add(odd[j], roots.s[(j + 1u) * k % N], d);
            }
            const Complex low = {c.re + d.im, c.im - d.re}, high = {c.re - d.im, c.im + d.re};
            v[k] = INVERSE ? high : low;
            v[N - k] = INVERSE ? low : high;
        }
    }
}

// Largest power of the smallest prime factor of n that divides n.
__host__ __device__ constexpr u32 prime_power(u32 n) {
    u32 power = 1u;
    for (const u32 p = smallest_factor(n); n % p == 0u; n /= p) power *= p;
    return power;
}

// Transforms N numbers in registers. Parts of N without a common factor need no products between them: number (M n1 + Q n2) mod N
// contributes exp(-+2 pi i (n1 k/Q + n2 k/M)) to wave k. Of a power of a prime, N = P M, with P-point transforms over the first index,
// then M-point ones.
template <u32 N, bool INVERSE> __device__ __forceinline__ void small_transform(Complex (&v)[N]) {
    constexpr u32 P = smallest_factor(N), Q = N > 1u ? prime_power(N) : 1u;
    if constexpr (N == 1u) {
    } else if constexpr (N == P) {
        prime_transform<N, INVERSE>(v);
    } else if constexpr (Q < N) {
        constexpr u32 M = N / Q;
        Complex rows[Q][M];
#pragma unroll
        for (u32 n2 = 0; n2 < M; ++n2) {
            Complex u[Q];
#pragma unroll
            for (u32 n1 = 0; n1 < Q; ++n1) u[n1] = v[(M * n1 + Q * n2) % N];
            small_transform<Q, INVERSE>(u);
#pragma unroll
            for (u32 k1 = 0; k1 < Q; ++k1) rows[k1][n2] = u[k1];
        }
#pragma unroll
        for (u32 k1 = 0; k1 < Q; ++k1) small_transform<M, INVERSE>(rows[k1]);
#pragma unroll
        for (u32 k = 0; k < N; ++k) v[k] = rows[k % Q][k % M];
    } else {
        constexpr u32 M = N / P;
        Complex rows[P][M];
#pragma unroll
        for (u32 j2 = 0; j2 < M; ++j2) {
            Complex u[P];
#pragma unroll
            for (u32 j1 = 0; j1 < P; ++j1) u[j1] = v[j1 * M + j2];
            prime_transform<P, INVERSE>(u);
#pragma unroll
            for (u32 k1 = 0; k1 < P; ++k1) rows[k1][j2] = turned<N, INVERSE>(u[k1], j2 * k1);
        }
#pragma unroll
        for (u32 k1 = 0; k1 < P; ++k1) {
            small_transform<M, INVERSE>(rows[k1]);
#pragma unroll
            for (u32 k2 = 0; k2 < M; ++k2) v[k1 + P * k2] = rows[k1][k2];
        }
    }
}

// v times root number k of the table: exp(-+2 pi i k/N).
template <bool INVERSE> __device__ __forceinline__ Complex turned_by(const Complex& v, const Complex* __restrict__ roots, u32 k) {
    const Complex root = roots[k];
    return times(v, root.re, INVERSE ? root.im : -root.im);
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
    __device__ static __forceinline__ void stage(Complex* x, const Complex* __restrict__ roots) {
        auto turn = [&](const Complex& v, u32 product) { return turned_by<INVERSE>(v, roots, product); };
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
    __device__ static __forceinline__ void forward(Complex* x, const Complex* roots) {
        stage<A, B, B, 1u, false, true>(x, roots);
        stage<B, 1u, A, B, false, false>(x, roots);
    }
    __device__ static __forceinline__ void inverse(Complex* x, const Complex* roots) {
        stage<B, 1u, A, B, true, true>(x, roots);
        stage<A, B, B, 1u, true, false>(x, roots);
    }
};
