// Fourier transforms along z and the influence function on CUDA; transform.cuh comes before this text. device.rs defines the numbers of
// grid points N0, N1, N2, their factors A0 x B0 = N0, ..., the lines LINES0, ... that a block transforms, and HALF = N0/2 + 1.

static constexpr u32 ROWS = u32(N1) * u32(N2), COLUMNS = u32(HALF) * u32(N1);

__device__ __forceinline__ Complex* waves_of(const PppmArgs& a) { return static_cast<Complex*>(a.waves); }
__device__ __forceinline__ const Complex* roots_of(const PppmArgs& a, int axis) { return static_cast<const Complex*>(a.roots[axis]); }

typedef Lines<A2, B2, LINES2> LinesZ;

// The table of the influence function is that of the present box, for the kernel after the one that reads it.
__device__ __forceinline__ void set_box_of_table(const PppmArgs& a) {
    if (blockIdx.x == 0u && threadIdx.x < 3u) a.table_box[threadIdx.x] = a.charges.state.globals->box_length[threadIdx.x];
}

// The influence function has a table if transforms along z are in registers.
static constexpr bool IN_TABLE = LinesZ::IN_REGISTERS;

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
    __shared__ Complex x[LinesZ::SIZE];
    Complex* waves = waves_of(a);
    const u32 first = blockIdx.x * LINES2;
    for (u32 e = threadIdx.x; e < u32(N2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, k = e / LINES2;
        x[k * LinesZ::PITCH + l] = first + l < COLUMNS ? waves[u64(k) * COLUMNS + first + l] : Complex{real(0), real(0)};
    }
    __syncthreads();
    LinesZ::forward(x, roots_of(a, 2));
    double values[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (u32 e = threadIdx.x; e < u32(N2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, k = e / LINES2, column = first + l;
        if (column >= COLUMNS) continue;
        const u32 at[3] = {column % u32(HALF), column / u32(HALF), k};
        double strain[6];
        const real g = influence<FULL>(a, at, strain);
        if (IN_TABLE) a.influence[u64(k) * COLUMNS + column] = g;
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
    LinesZ::inverse(x, roots_of(a, 2));
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

// Computes the influence function of a block's waves for the present box, unless the table is that of this box. The box of the table is
// set by the kernel after this one.
__device__ __forceinline__ void update_influence(const PppmArgs& a) {
    const Globals* g = a.charges.state.globals;
    const double* of = a.table_box;
    if (of[0] == g->box_length[0] && of[1] == g->box_length[1] && of[2] == g->box_length[2]) return;
#pragma unroll 1
    for (u32 e = threadIdx.x; e < u32(N2) * LINES2; e += blockDim.x) {
        const u32 column = blockIdx.x * LINES2 + e % LINES2, k = e / LINES2;
        if (column >= COLUMNS) continue;
        const u32 at[3] = {column % u32(HALF), column / u32(HALF), k};
        double strain[6];
        a.influence[u64(k) * COLUMNS + column] = influence<false>(a, at, strain);
    }
}

// The same as along_z<false> with a table of the influence function. Threads take the numbers of the first transform from memory and
// write those of the last one there, and keep the waves of the second one for the way back.
__device__ __forceinline__ void along_z_in_registers(const PppmArgs& a) {
    __shared__ Complex x[u32(N2) * LINES2];
    const Complex* roots = roots_of(a, 2);
    const u32 first = blockIdx.x * LINES2, halted = a.charges.state.globals->halt;
    for (u32 e = threadIdx.x; e < u32(B2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, j2 = e / LINES2;
        const bool valid = first + l < COLUMNS;
        const Complex* from = waves_of(a) + u64(j2) * COLUMNS + (valid ? first + l : 0u);
        Complex v[A2];
#pragma unroll
        for (u32 j1 = 0; j1 < u32(A2); ++j1) v[j1] = from[u64(j1 * B2) * COLUMNS];
        small_transform<A2, false>(v);
#pragma unroll
        for (u32 k1 = 0; k1 < u32(A2); ++k1) x[(k1 * B2 + j2) * LINES2 + l] = k1 > 0u ? turned_by<false>(v[k1], roots, j2 * k1) : v[k1];
    }
    if (halted) return;
    update_influence(a);
    __syncthreads();
    for (u32 e = threadIdx.x; e < u32(A2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, k1 = e / LINES2;
        const bool valid = first + l < COLUMNS;
        const real* influence = a.influence + u64(k1) * COLUMNS + (valid ? first + l : 0u);
        Complex v[B2], *at = x + k1 * B2 * LINES2 + l;
        real g[B2];
#pragma unroll
        for (u32 k2 = 0; k2 < u32(B2); ++k2) g[k2] = influence[u64(k2 * A2) * COLUMNS];
#pragma unroll
        for (u32 j2 = 0; j2 < u32(B2); ++j2) v[j2] = at[j2 * LINES2];
        small_transform<B2, false>(v);
#pragma unroll
        for (u32 k2 = 0; k2 < u32(B2); ++k2) v[k2] = {v[k2].re * g[k2], v[k2].im * g[k2]};
        small_transform<B2, true>(v);
#pragma unroll
        for (u32 j2 = 0; j2 < u32(B2); ++j2) at[j2 * LINES2] = j2 > 0u ? turned_by<true>(v[j2], roots, j2 * k1) : v[j2];
    }
    __syncthreads();
    for (u32 e = threadIdx.x; e < u32(B2) * LINES2; e += blockDim.x) {
        const u32 l = e % LINES2, j2 = e / LINES2;
        Complex v[A2];
#pragma unroll
        for (u32 k1 = 0; k1 < u32(A2); ++k1) v[k1] = x[(k1 * B2 + j2) * LINES2 + l];
        small_transform<A2, true>(v);
        Complex* to = waves_of(a) + u64(j2) * COLUMNS + first + l;
        if (first + l < COLUMNS) {
#pragma unroll
            for (u32 j1 = 0; j1 < u32(A2); ++j1) to[u64(j1 * B2) * COLUMNS] = v[j1];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) pppm_z(PppmArgs a) {
    await_launches();
    if constexpr (IN_TABLE) along_z_in_registers(a);
    else if (!a.charges.state.globals->halt) along_z<false>(a);
}
extern "C" __global__ void __launch_bounds__(256) pppm_z_full(PppmArgs a) {
    await_launches();
    if (a.charges.state.globals->halt) return;
    along_z<true>(a);
}
