// Fourier transforms along x, and along y, of grids that planes.cuh does not transform; waves.cuh comes before this text.

typedef Lines<A0, B0, LINES0> LinesX;
typedef Lines<A1, B1, LINES1> LinesY;

// Transforms the charges along x. Two real rows are one complex line.
extern "C" __global__ void __launch_bounds__(256) pppm_forward_x(PppmArgs a) {
    await_launches();
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
    LinesX::forward(x, roots_of(a, 0));
    for (u32 e = threadIdx.x; e < HALF * LINES0; e += blockDim.x) {
        const u32 l = e / u32(HALF), k = e % u32(HALF), row = 2u * (first + l);
        const Complex p = x[LinesX::place(k) + l], m = x[LinesX::place(k == 0u ? 0u : N0 - k) + l];
        Complex* to = waves_of(a) + u64(row) * HALF + k;
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
    Complex* plane = waves_of(a) + u64(z) * COLUMNS;
    for (u32 e = threadIdx.x; e < u32(N1) * LINES1; e += blockDim.x) {
        const u32 l = e % LINES1, k = e / LINES1;
        x[(INVERSE ? LinesY::place(k) : k * LinesY::PITCH) + l] =
            first + l < HALF ? plane[u64(k) * HALF + first + l] : Complex{real(0), real(0)};
    }
    __syncthreads();
    if (INVERSE) LinesY::inverse(x, roots_of(a, 1));
    else LinesY::forward(x, roots_of(a, 1));
    for (u32 e = threadIdx.x; e < u32(N1) * LINES1; e += blockDim.x) {
        const u32 l = e % LINES1, k = e / LINES1;
        if (first + l < HALF) plane[u64(k) * HALF + first + l] = x[(INVERSE ? k * LinesY::PITCH : LinesY::place(k)) + l];
    }
}
extern "C" __global__ void __launch_bounds__(256) pppm_forward_y(PppmArgs a) { await_launches(); along_y<false>(a); }
extern "C" __global__ void __launch_bounds__(256) pppm_inverse_y(PppmArgs a) {
    await_launches();
    along_y<true>(a);
    if (!a.charges.state.globals->halt) set_box_of_table(a);
}

// Transforms back along x: the potential of a unit charge at each point. Two real rows are one complex line.
extern "C" __global__ void __launch_bounds__(256) pppm_inverse_x(PppmArgs a) {
    await_launches();
    if (a.charges.state.globals->halt) return;
    __shared__ Complex x[LinesX::SIZE];
    const u32 first = blockIdx.x * LINES0;
    for (u32 e = threadIdx.x; e < HALF * LINES0; e += blockDim.x) {
        const u32 l = e / u32(HALF), k = e % u32(HALF), row = 2u * (first + l);
        const Complex *from = waves_of(a) + u64(row) * HALF + k, none = {real(0), real(0)};
        const Complex p = row < ROWS ? from[0] : none, q = row + 1u < ROWS ? from[HALF] : none;
        x[LinesX::place(k) + l] = {p.re - q.im, p.im + q.re};
        if (k > 0u && 2u * k < u32(N0)) x[LinesX::place(N0 - k) + l] = {p.re + q.im, q.re - p.im};
    }
    __syncthreads();
    LinesX::inverse(x, roots_of(a, 0));
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
