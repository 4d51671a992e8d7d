// Charges to the grid and forces from it on CUDA, equivalent to cpu.rs; correction.cuh comes before this text. device.rs defines
// ORDER, the numbers of grid points N0, N1, N2, of bricks BRICKS0, ..., those of waves.cuh, and MOST0 ..., the most points of a brick.
//
// The grid is divided into bricks. Particles are listed by the brick of the first point of their spline, and a block of threads adds
// up the points of a brick: its particles have splines that begin there or in one of the seven bricks before it.

static constexpr u32 THREADS = 256u;

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

// A polynomial in x and its derivative.
__device__ __forceinline__ void with_slope(const double* terms, real x, real& value, real& slope) {
    value = real(terms[TERMS - 1]);
    slope = real(0);
#pragma unroll
    for (int k = TERMS - 2; k >= 0; --k) {
        slope = slope * x + value;
        value = value * x + real(terms[k]);
    }
}

// Shares of ORDER consecutive points in a charge, and their derivatives, see assignment.rs.
__device__ __forceinline__ void shares(real d, real (&w)[ORDER], real (&slope)[ORDER]) {
    constexpr double pieces[MOST_PIECES][2][TERMS] = PIECES;
    const real u = d - real(0.5), square = u * u;
#pragma unroll
    for (int j = 0; 2 * j < ORDER; ++j) {
        real even, even_slope, odd, odd_slope;
        with_slope(pieces[j][0], square, even, even_slope);
        with_slope(pieces[j][1], square, odd, odd_slope);
        const real b = u * odd, da = real(2) * u * even_slope, db = odd + real(2) * square * odd_slope;
        if (2 * j == ORDER - 1) {
            w[j] = even;
            slope[j] = da;
        } else {
            w[j] = even + b;
            slope[j] = da + db;
            w[ORDER - 1 - j] = even - b;
            slope[ORDER - 1 - j] = da - db;
        }
    }
}

__device__ __forceinline__ u32 wrapped(u32 point, u32 n) {
    while (point >= n) point -= n;
    return point;
}

// A brick: its first point, its number of points along each axis.
struct Brick {
    u32 first[3], n[3];

    // Distance along an axis from the brick's first point to `point`, in the direction of the axis.
    __device__ __forceinline__ u32 ahead(u32 axis, u32 point) const {
        const u32 n_points = axis == 0u ? N0 : axis == 1u ? N1 : N2;
        return point >= first[axis] ? point - first[axis] : point + n_points - first[axis];
    }
};

// Brick `at` along an axis of n points in `bricks` bricks begins at point at n/bricks.
__device__ __forceinline__ u32 first_point(u32 at, u32 n, u32 bricks) { return at * n / bricks; }
__device__ __forceinline__ u32 brick_at(u32 point, u32 n, u32 bricks) { return ((point + 1u) * bricks - 1u) / n; }

__device__ __forceinline__ u32 brick_number(u32 x, u32 y, u32 z) { return (z * BRICKS1 + y) * BRICKS0 + x; }

__device__ __forceinline__ u32 brick_of(const MeshPosition& m) {
    return brick_number(brick_at(m.point[0], N0, BRICKS0), brick_at(m.point[1], N1, BRICKS1), brick_at(m.point[2], N2, BRICKS2));
}

// Counts the particles of each brick, and finds the largest charge.
extern "C" __global__ void __launch_bounds__(THREADS) pppm_count(PppmArgs a) {
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    const real q = i < s.n_local ? s.charge[i] : real(0);
    const u32 brick = q != real(0) ? brick_of(mesh_position(a, load(&s.pos_type[i]))) : 0xffffffffu;
    // particles of a warp are often in the same brick
    const u32 same = __match_any_sync(0xffffffffu, brick), lane = threadIdx.x & 31u, leader = u32(__ffs(int(same))) - 1u;
    u32 first = 0u;
    if (lane == leader && q != real(0)) first = atomicAdd(&a.count[brick], u32(__popc(same)));
    first = __shfl_sync(0xffffffffu, first, int(leader));
    if (q != real(0)) a.slot[i] = first + u32(__popc(same & ((1u << lane) - 1u)));
    // bits of positive numbers have the order of the numbers
    u32 largest = u32(__float_as_int(float(device_abs(q))));
    for (u32 d = 16u; d > 0u; d >>= 1) largest = device_max(largest, __shfl_xor_sync(0xffffffffu, largest, d));
    if (lane == 0u && largest > 0u) atomicMax(&a.totals[1], largest);
}

// Reserves a part of the list for each brick. The order of the parts does not matter.
extern "C" __global__ void __launch_bounds__(THREADS) pppm_reserve(PppmArgs a) {
    if (a.charges.state.globals->halt) return;
    __shared__ u32 all, first;
    const u32 brick = blockIdx.x * THREADS + threadIdx.x;
    const bool valid = brick < u32(BRICKS0 * BRICKS1 * BRICKS2);
    const u32 before = block_scan(valid ? a.count[brick] : 0u, &all);
    if (threadIdx.x == 0u) first = atomicAdd(&a.totals[0], all);
    __syncthreads();
    if (valid) a.start[brick] = first + before;
}

// Lists the particles of each brick, in any order.
extern "C" __global__ void __launch_bounds__(THREADS) pppm_list(PppmArgs a) {
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.n_local || s.charge[i] == real(0)) return;
    a.list[a.start[brick_of(mesh_position(a, load(&s.pos_type[i])))] + a.slot[i]] = i;
}

// Charges are added as integers, whose sum does not depend on the order. In double precision they have 64 bits. Otherwise they have
// 32, and the unit is 2^-24 (2^-23 for order 3) of a power of two that is not less than the largest charge: THREADS charges do not overflow, as
// a point has a share of less than 1, for higher orders of less than 1/2.
#ifdef GALAMOST_DOUBLE
typedef u64 Sum;
__device__ __forceinline__ double unit_of(const PppmArgs& a) { return a.unit; }
__device__ __forceinline__ void add_share(Sum* sum, double share) { atomicAdd(sum, u64((long long)rint(share))); }
#else
typedef int Sum;
__device__ __forceinline__ float unit_of(const PppmArgs& a) {
    const u32 bits = a.totals[1];
    const int exponent = int(bits >> 23) - 127 + ((bits & 0x7fffffu) != 0u ? 1 : 0);
    return __int_as_float(((ORDER == 3 ? 23 : 24) + 127 - (exponent > -100 ? exponent : -100)) << 23);
}
__device__ __forceinline__ void add_share(Sum* sum, float share) { atomicAdd(sum, __float2int_rn(share)); }
#endif

static constexpr u32 POINTS = u32(MOST0) * u32(MOST1) * u32(MOST2), POINTS_OF_THREAD = (POINTS + THREADS - 1u) / THREADS;
// Particles that a block adds in a round.
static constexpr u32 ROUND = sizeof(real) == 8u ? 128u : 256u;

// Splines of particles that reach a brick.
struct Splines {
    // an odd number for each, so that threads write to different banks
    real w[ROUND][3 * ORDER | 1];
    // the first point, seen from that of the brick; it may lie before it
    int first[ROUND][3];
    u32 n;
};

// Adds a particle to the splines if it reaches the brick.
__device__ __forceinline__ void add_spline(const PppmArgs& a, const Brick& brick, real unit, u32 i, Splines& splines) {
    const StateView& s = a.charges.state;
    const MeshPosition m = mesh_position(a, load(&s.pos_type[i]));
    int first[3];
    for (u32 k = 0; k < 3u; ++k) {
        const u32 n = k == 0u ? N0 : k == 1u ? N1 : N2, ahead = brick.ahead(k, m.point[k]);
        if (ahead >= brick.n[k] && ahead + u32(ORDER) <= n) return;
        first[k] = ahead < brick.n[k] ? int(ahead) : int(ahead) - int(n);
    }
    const u32 at = atomicAdd(&splines.n, 1u);
    const real charge = s.charge[i] * unit;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        real w[ORDER], slope[ORDER];
        shares(m.offset[k], w, slope);
#pragma unroll
        for (int e = 0; e < ORDER; ++e) splines.w[at][k * ORDER + e] = k == 2 ? charge * w[e] : w[e];
        splines.first[at][k] = first[k];
    }
}

// Point number e of a spline along an axis in a brick of n points; beyond it if it is not there. A single brick has all points.
template <bool SINGLE> __device__ __forceinline__ u32 point_in(int first, int e, u32 n) {
    const u32 point = u32(first + e);
    return SINGLE && point >= n ? point - n : point;
}

// Threads that add a spline.
static constexpr u32 ADDERS = 16u;

// Adds the shares of a spline that lie in the brick. ADDERS threads handle it: each takes columns of points along z, so they add to
// different points.
__device__ __forceinline__ void add_shares(const Brick& brick, const Splines& splines, u32 at, Sum* sums) {
    const real* w = splines.w[at];
    const int *first = splines.first[at], first_z = first[2];
#pragma unroll
    for (int base = 0; base < ORDER * ORDER; base += int(ADDERS)) {
        const int column = base + int(threadIdx.x % ADDERS), x = column % ORDER, y = column / ORDER;
        if (column >= ORDER * ORDER) break;
        const u32 in_x = point_in<BRICKS0 == 1>(first[0], x, brick.n[0]), in_y = point_in<BRICKS1 == 1>(first[1], y, brick.n[1]);
        if (in_x >= brick.n[0] || in_y >= brick.n[1]) continue;
        const real of_column = w[x] * w[ORDER + y];
        Sum* to = sums + in_y * u32(MOST0) + in_x;
#pragma unroll
        for (int z = 0; z < ORDER; ++z) {
            const u32 in_z = point_in<BRICKS2 == 1>(first_z, z, brick.n[2]);
            if (in_z < brick.n[2]) add_share(to + in_z * u32(MOST0 * MOST1), of_column * w[2 * ORDER + z]);
        }
    }
}

// The lists of the bricks whose particles may have shares in a brick, one after the other.
struct Candidates {
    u32 start[8], end[8];

    __device__ __forceinline__ u32 particle(const PppmArgs& a, u32 k) const {
        u32 of = 0u, before = 0u;
        while (k >= end[of]) before = end[of++];
        return a.list[start[of] + k - before];
    }
};

// Finds the lists in one thread.
__device__ __forceinline__ void find_candidates(const PppmArgs& a, u32 x, u32 y, u32 z, Candidates& c) {
    u32 n = 0u;
    for (u32 k = 0; k < 8u; ++k) {
        const u32 back_x = k & 1u, back_y = k >> 1 & 1u, back_z = k >> 2;
        // with one brick along an axis, it is before itself
        const bool once = back_x < u32(BRICKS0) && back_y < u32(BRICKS1) && back_z < u32(BRICKS2);
        const u32 brick = brick_number(x >= back_x ? x - back_x : BRICKS0 - 1u, y >= back_y ? y - back_y : BRICKS1 - 1u,
                                       z >= back_z ? z - back_z : BRICKS2 - 1u);
        c.start[k] = a.start[brick];
        n += once ? a.count[brick] : 0u;
        c.end[k] = n;
    }
}

// Sums the charge at the points of a brick.
extern "C" __global__ void __launch_bounds__(THREADS) pppm_spread(PppmArgs a) {
    __shared__ Sum sums[POINTS];
    __shared__ Splines splines;
    __shared__ Candidates candidates;
    if (a.charges.state.globals->halt) return;
    const u32 at[3] = {blockIdx.x % u32(BRICKS0), blockIdx.x / u32(BRICKS0) % u32(BRICKS1), blockIdx.x / u32(BRICKS0 * BRICKS1)};
    Brick brick;
    for (u32 k = 0; k < 3u; ++k) {
        const u32 n = k == 0u ? N0 : k == 1u ? N1 : N2, bricks = k == 0u ? BRICKS0 : k == 1u ? BRICKS1 : BRICKS2;
        brick.first[k] = first_point(at[k], n, bricks);
        brick.n[k] = first_point(at[k] + 1u, n, bricks) - brick.first[k];
    }
    if (threadIdx.x == 0u) {
        find_candidates(a, at[0], at[1], at[2], candidates);
        splines.n = 0u;
    }
    long long total[POINTS_OF_THREAD];
#pragma unroll
    for (u32 p = 0; p < POINTS_OF_THREAD; ++p) {
        const u32 k = p * THREADS + threadIdx.x;
        if (k < POINTS) sums[k] = 0;
        total[p] = 0;
    }
    __syncthreads();
    const real unit = unit_of(a);
    const u32 n = candidates.end[7];
    for (u32 base = 0; base < n; base += ROUND) {
        const u32 k = base + threadIdx.x;
        if (threadIdx.x < ROUND && k < n) add_spline(a, brick, unit, candidates.particle(a, k), splines);
        __syncthreads();
        for (u32 e = threadIdx.x / ADDERS; e < splines.n; e += THREADS / ADDERS) add_shares(brick, splines, e, sums);
        __syncthreads();
        if (threadIdx.x == 0u) splines.n = 0u;
#pragma unroll
        for (u32 p = 0; p < POINTS_OF_THREAD; ++p) {
            const u32 point = p * THREADS + threadIdx.x;
            if (point < POINTS) {
                total[p] += (long long)sums[point];
                sums[point] = 0;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 p = 0; p < POINTS_OF_THREAD; ++p) {
        const u32 k = p * THREADS + threadIdx.x, x = k % u32(MOST0), y = k / u32(MOST0) % u32(MOST1), z = k / u32(MOST0 * MOST1);
        if (x >= brick.n[0] || y >= brick.n[1] || z >= brick.n[2]) continue;
        a.grid[(u64(brick.first[2] + z) * N1 + brick.first[1] + y) * N0 + brick.first[0] + x] = real(double(total[p]) / double(unit));
    }
}

// Adds forces, and energies if they are requested. SHARED threads share a particle: each has some planes of its spline.
static constexpr u32 SHARED = 4u, PARTICLES = THREADS / SHARED;
extern "C" __global__ void __launch_bounds__(THREADS, 3) pppm_force(PppmArgs a) {
    __shared__ real others[4u * THREADS];
    const StateView& s = a.charges.state;
    const Globals* g = s.globals;
    if (g->halt) return;
    // for the next evaluation
    for (u32 k = blockIdx.x * THREADS + threadIdx.x; k < u32(BRICKS0 * BRICKS1 * BRICKS2); k += gridDim.x * THREADS) a.count[k] = 0u;
    if (blockIdx.x == 0u && threadIdx.x < 2u) a.totals[threadIdx.x] = 0u;
    const u32 part = threadIdx.x / PARTICLES, particle = threadIdx.x % PARTICLES, i = blockIdx.x * PARTICLES + particle;
    const bool used = i < s.n_local && s.charge[i] != real(0);
    real out[4] = {real(0), real(0), real(0), real(0)};
    if (used) {
        const MeshPosition m = mesh_position(a, load(&s.pos_type[i]));
        real w[3][ORDER], slope[3][ORDER];
        for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope[k]);
        u32 column[ORDER];
#pragma unroll
        for (u32 x = 0; x < u32(ORDER); ++x) column[x] = wrapped(m.point[0] + x, N0);
#pragma unroll
        for (u32 z = 0; z < u32(ORDER); ++z) {
            if (z % SHARED != part) continue;
            real plane[3] = {real(0), real(0), real(0)};
            const u32 first = wrapped(m.point[2] + z, N2) * u32(N1);
#pragma unroll
            for (u32 y = 0; y < u32(ORDER); ++y) {
                const real* row = a.grid + u64(first + wrapped(m.point[1] + y, N1)) * N0;
                real value = real(0), change = real(0);
#pragma unroll
                for (u32 x = 0; x < u32(ORDER); ++x) {
                    const real p = __ldg(row + column[x]);
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
    }
    for (u32 k = 0; k < 4u; ++k) others[k * THREADS + threadIdx.x] = out[k];
    __syncthreads();
    double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (used && part == 0u) {
        for (u32 k = 0; k < 4u; ++k) {
            for (u32 other = 1; other < SHARED; ++other) out[k] += others[k * THREADS + other * PARTICLES + particle];
        }
        const real field[3] = {-out[0] * real(N0 / g->box_length[0]), -out[1] * real(N1 / g->box_length[1]),
                               -out[2] * real(N2 / g->box_length[2])};
        add_charge_forces(a.charges, i, field, out[3], values);
    }
    report_charges(a.charges, values);
}
