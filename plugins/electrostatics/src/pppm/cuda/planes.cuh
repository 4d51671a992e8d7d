// Fourier transforms of planes of constant z, along x and y in one kernel in shared memory; waves.cuh comes before this text. device.rs
// takes this text if the transforms are in registers, N1 is even, and a block has the memory. It defines PLANE_A x PLANE_B = N0,
// PLANE_THREADS, and PLANE_BYTES.

// Rows p and p + N1/2 of a plane are one complex line. Wave k of a line is at `place_of_wave(k)`, and PLANE_PAD avoids strides of a multiple
// of 64 bytes. The transforms along y separate the waves of both rows: waves k and N0 - k of the pair become wave k of both rows, which are
// at these two places; waves 0 and N0/2 have places behind the line. N1 = COLUMN_A x COLUMN_B, and COLUMN_A is even, so that a thread of
// the transforms over COLUMN_A rows has both rows of its pairs.
static constexpr u32 PLANE_PAIRS = u32(N1) / 2u, PLANE_PAD = PLANE_A % 8u == 0u ? 1u : 0u, COLUMN_A = A1 % 2u == 0u ? A1 : B1,
                     COLUMN_B = u32(N1) / COLUMN_A, PAIR_ROWS = COLUMN_A / 2u;
__host__ __device__ constexpr u32 place_of_wave(u32 k) { return k + k / PLANE_A * PLANE_PAD; }
static constexpr u32 PLANE_END = place_of_wave(N0 - 1u) + 1u, PLANE_PITCH = (PLANE_END + 2u) | 1u, PLANE_SIZE = PLANE_PAIRS * PLANE_PITCH;
static_assert(N1 % 2u == 0u && PLANE_A * PLANE_B == N0 && sizeof(Complex) * PLANE_SIZE <= PLANE_BYTES, "the plane has its memory");

#ifdef GALAMOST_HOST
#define PLANE_MEMORY(name) __shared__ Complex name[PLANE_SIZE]
#else
#define PLANE_MEMORY(name) extern __shared__ Complex name[]
#endif

// The place of wave N0 - k of a pair, or the one behind the line.
__device__ __forceinline__ u32 partner_place(u32 k) { return k == 0u ? PLANE_END : 2u * k == u32(N0) ? PLANE_END + 1u : place_of_wave(N0 - k); }

// Number in the memory of a column's number k1 COLUMN_B + j2, for wave k along x.
__device__ __forceinline__ u32 place_in_plane(u32 k1, u32 j2, u32 place, u32 partner) {
    return k1 < PAIR_ROWS ? (k1 * COLUMN_B + j2) * PLANE_PITCH + place : ((k1 - PAIR_ROWS) * COLUMN_B + j2) * PLANE_PITCH + partner;
}

// Transforms the charges along x and y.
extern "C" __global__ void __launch_bounds__(PLANE_THREADS, 1) pppm_forward_plane(PppmArgs a) {
    await_launches();
    PLANE_MEMORY(x);
    const u32 halted = a.charges.state.globals->halt;
    const Complex *roots_x = roots_of(a, 0), *roots_y = roots_of(a, 1);
    // powers of two; half of the sum and difference of waves k and N0 - k are those of both rows
    const real factor = real(0.5) / unit_of(a);
    const u64* sums = a.sums + u64(blockIdx.x) * (N0 * N1);
    for (u32 e = threadIdx.x; e < PLANE_PAIRS * PLANE_B; e += PLANE_THREADS) {
        const u32 j2 = e % PLANE_B, p = e / PLANE_B;
        const u64* from = sums + p * N0 + j2;
        u64 first[PLANE_A], second[PLANE_A];
#pragma unroll
        for (u32 j1 = 0; j1 < PLANE_A; ++j1) {
            first[j1] = from[j1 * PLANE_B];
            second[j1] = from[j1 * PLANE_B + PLANE_PAIRS * N0];
        }
        Complex v[PLANE_A];
#pragma unroll
        for (u32 j1 = 0; j1 < PLANE_A; ++j1) v[j1] = {real((long long)first[j1]) * factor, real((long long)second[j1]) * factor};
        small_transform<PLANE_A, false>(v);
        Complex* to = x + p * PLANE_PITCH + j2 * (PLANE_A + PLANE_PAD);
#pragma unroll
        for (u32 k1 = 0; k1 < PLANE_A; ++k1) to[k1] = k1 > 0u ? turned_by<false>(v[k1], roots_x, j2 * k1) : v[k1];
    }
    if (halted) return;
    __syncthreads();
    for (u32 e = threadIdx.x; e < PLANE_PAIRS * PLANE_A; e += PLANE_THREADS) {
        Complex v[PLANE_B], *at = x + e % PLANE_PAIRS * PLANE_PITCH + e / PLANE_PAIRS;
#pragma unroll
        for (u32 j2 = 0; j2 < PLANE_B; ++j2) v[j2] = at[j2 * (PLANE_A + PLANE_PAD)];
        small_transform<PLANE_B, false>(v);
#pragma unroll
        for (u32 k2 = 0; k2 < PLANE_B; ++k2) at[k2 * (PLANE_A + PLANE_PAD)] = v[k2];
    }
    __syncthreads();
    for (u32 e = threadIdx.x; e < HALF * COLUMN_B; e += PLANE_THREADS) {
        const u32 k = e % HALF, j2 = e / HALF, place = place_of_wave(k), other = k == 0u ? 0u : place_of_wave(N0 - k);
        Complex v[COLUMN_A];
#pragma unroll
        for (u32 j1 = 0; j1 < PAIR_ROWS; ++j1) {
            const Complex* line = x + (j1 * COLUMN_B + j2) * PLANE_PITCH;
            const Complex p = line[place], m = line[other];
            v[j1] = {p.re + m.re, p.im - m.im};
            v[j1 + PAIR_ROWS] = {p.im + m.im, m.re - p.re};
        }
        small_transform<COLUMN_A, false>(v);
        const u32 partner = partner_place(k);
#pragma unroll
        for (u32 k1 = 0; k1 < COLUMN_A; ++k1) {
            x[place_in_plane(k1, j2, place, partner)] = k1 > 0u ? turned_by<false>(v[k1], roots_y, j2 * k1) : v[k1];
        }
    }
    __syncthreads();
    Complex* waves = waves_of(a) + u64(blockIdx.x) * COLUMNS;
    for (u32 e = threadIdx.x; e < HALF * COLUMN_A; e += PLANE_THREADS) {
        const u32 k = e % HALF, k1 = e / HALF, first = place_in_plane(k1, 0u, place_of_wave(k), partner_place(k));
        Complex v[COLUMN_B];
#pragma unroll
        for (u32 j2 = 0; j2 < COLUMN_B; ++j2) v[j2] = x[first + j2 * PLANE_PITCH];
        small_transform<COLUMN_B, false>(v);
#pragma unroll
        for (u32 k2 = 0; k2 < COLUMN_B; ++k2) waves[(k1 + k2 * COLUMN_A) * HALF + k] = v[k2];
    }
}

// Transforms back along y and x: the potential of a unit charge at each point.
extern "C" __global__ void __launch_bounds__(PLANE_THREADS, 1) pppm_inverse_plane(PppmArgs a) {
    await_launches();
    PLANE_MEMORY(x);
    const u32 halted = a.charges.state.globals->halt;
    const Complex *roots_x = roots_of(a, 0), *roots_y = roots_of(a, 1), *waves = waves_of(a) + u64(blockIdx.x) * COLUMNS;
    for (u32 e = threadIdx.x; e < HALF * COLUMN_A; e += PLANE_THREADS) {
        const u32 k = e % HALF, k1 = e / HALF, first = place_in_plane(k1, 0u, place_of_wave(k), partner_place(k));
        Complex v[COLUMN_B];
#pragma unroll
        for (u32 k2 = 0; k2 < COLUMN_B; ++k2) v[k2] = waves[(k1 + k2 * COLUMN_A) * HALF + k];
        small_transform<COLUMN_B, true>(v);
#pragma unroll
        for (u32 j2 = 0; j2 < COLUMN_B; ++j2) x[first + j2 * PLANE_PITCH] = j2 > 0u ? turned_by<true>(v[j2], roots_y, j2 * k1) : v[j2];
    }
    if (halted) return;
    set_box_of_table(a);
    // the sums are 0 for the next evaluation
    u64* sums = a.sums + u64(blockIdx.x) * (N0 * N1);
    for (u32 e = threadIdx.x; e < u32(N0 * N1); e += PLANE_THREADS) sums[e] = 0u;
    __syncthreads();
    for (u32 e = threadIdx.x; e < HALF * COLUMN_B; e += PLANE_THREADS) {
        const u32 k = e % HALF, j2 = e / HALF, place = place_of_wave(k), partner = partner_place(k);
        Complex v[COLUMN_A];
#pragma unroll
        for (u32 k1 = 0; k1 < COLUMN_A; ++k1) v[k1] = x[place_in_plane(k1, j2, place, partner)];
        small_transform<COLUMN_A, true>(v);
#pragma unroll
        for (u32 j1 = 0; j1 < PAIR_ROWS; ++j1) {
            Complex* line = x + (j1 * COLUMN_B + j2) * PLANE_PITCH;
            const Complex p = v[j1], q = v[j1 + PAIR_ROWS];
            line[place] = {p.re - q.im, p.im + q.re};
            if (k > 0u && 2u * k < u32(N0)) line[partner] = {p.re + q.im, q.re - p.im};
        }
    }
    __syncthreads();
    for (u32 e = threadIdx.x; e < PLANE_PAIRS * PLANE_A; e += PLANE_THREADS) {
        const u32 k1 = e / PLANE_PAIRS;
        Complex v[PLANE_B], *at = x + e % PLANE_PAIRS * PLANE_PITCH + k1;
#pragma unroll
        for (u32 k2 = 0; k2 < PLANE_B; ++k2) v[k2] = at[k2 * (PLANE_A + PLANE_PAD)];
        small_transform<PLANE_B, true>(v);
#pragma unroll
        for (u32 j2 = 0; j2 < PLANE_B; ++j2) at[j2 * (PLANE_A + PLANE_PAD)] = j2 > 0u ? turned_by<true>(v[j2], roots_x, j2 * k1) : v[j2];
    }
    __syncthreads();
    real* grid = a.grid + u64(blockIdx.x) * (N0 * N1);
    for (u32 e = threadIdx.x; e < PLANE_PAIRS * PLANE_B; e += PLANE_THREADS) {
        const u32 j2 = e % PLANE_B, p = e / PLANE_B;
        const Complex* from = x + p * PLANE_PITCH + j2 * (PLANE_A + PLANE_PAD);
        Complex v[PLANE_A];
#pragma unroll
        for (u32 k1 = 0; k1 < PLANE_A; ++k1) v[k1] = from[k1];
        small_transform<PLANE_A, true>(v);
        real* to = grid + p * N0 + j2;
#pragma unroll
        for (u32 j1 = 0; j1 < PLANE_A; ++j1) {
            to[j1 * PLANE_B] = v[j1].re;
            to[j1 * PLANE_B + PLANE_PAIRS * N0] = v[j1].im;
        }
    }
}
