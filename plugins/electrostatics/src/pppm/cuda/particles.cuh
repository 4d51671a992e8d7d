// Charges to the grid and forces from it on CUDA, equivalent to cpu.rs; correction.cuh comes before this text. device.rs defines
// ORDER, the numbers of grid points N0, N1, N2, of bricks BRICKS0, ..., those of waves.cuh, and MOST0 ..., the most points of a brick.
//
// The grid is divided into bricks. Particles are listed by the brick of the first point of their window, and a block of threads has the
// particles of a brick and, in shared memory, all points that they reach.

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

// A brick: its first point along each axis.
struct Brick { u32 first[3]; };

// Brick `at` along an axis of n points in `bricks` bricks begins at point at n/bricks.
__device__ __forceinline__ u32 first_point(u32 at, u32 n, u32 bricks) { return at * n / bricks; }
__device__ __forceinline__ u32 brick_at(u32 point, u32 n, u32 bricks) { return ((point + 1u) * bricks - 1u) / n; }

__device__ __forceinline__ Brick brick_of_block() {
    return {{first_point(blockIdx.x % u32(BRICKS0), N0, BRICKS0), first_point(blockIdx.x / u32(BRICKS0) % u32(BRICKS1), N1, BRICKS1),
             first_point(blockIdx.x / u32(BRICKS0 * BRICKS1), N2, BRICKS2)}};
}

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

// Charges are added as integers, whose sum does not depend on the order. The unit is 2^-bits of a power of two that is not less than
// the largest charge. In double precision they have 64 bits, see `Model::charge_bits`. Otherwise those of a round have 32, and `bits` is 24:
// ROUND charges do not overflow, as a point has a share of less than 1.
static constexpr u32 ROUND = sizeof(real) == 8u ? 64u : 96u;
__device__ __forceinline__ int largest_exponent(const PppmArgs& a) {
    const u32 bits = a.totals[1];
    const int exponent = int(bits >> 23) - 127 + ((bits & 0x7fffffu) != 0u ? 1 : 0);
    return exponent > -100 ? exponent : -100;
}
#ifdef GALAMOST_DOUBLE
typedef u64 Sum;
__device__ __forceinline__ double unit_of(const PppmArgs& a) {
    return __longlong_as_double((long long)(int(a.bits) + 1023 - largest_exponent(a)) << 52);
}
__device__ __forceinline__ void add_share(Sum* sum, double share) { atomicAdd(sum, u64((long long)rint(share))); }
#else
typedef int Sum;
__device__ __forceinline__ float unit_of(const PppmArgs& a) { return __int_as_float((24 + 127 - largest_exponent(a)) << 23); }
__device__ __forceinline__ void add_share(Sum* sum, float share) { atomicAdd(sum, __float2int_rn(share)); }
#endif

// Threads of a block that has a brick.
static constexpr u32 BRICK_THREADS = 96u;

// The points that the windows of a brick's particles reach: those of the brick and ORDER - 1 behind them. A single brick has all points.
static constexpr u32 TILE0 = BRICKS0 == 1 ? N0 : MOST0 + ORDER - 1, TILE1 = BRICKS1 == 1 ? N1 : MOST1 + ORDER - 1,
                     TILE2 = BRICKS2 == 1 ? N2 : MOST2 + ORDER - 1, TILE = TILE0 * TILE1 * TILE2;

static_assert(TILE0 <= 32u, "a warp has a row of the tile");

// Finds where the tile's rows along x begin in the grid.
__device__ __forceinline__ void find_rows(const Brick& brick, u32 (&rows)[TILE1 * TILE2]) {
    for (u32 row = threadIdx.x; row < TILE1 * TILE2; row += BRICK_THREADS) {
        rows[row] = (wrapped(brick.first[2] + row / TILE1, N2) * u32(N1) + wrapped(brick.first[1] + row % TILE1, N1)) * u32(N0);
    }
}

// Calls f(point of the tile, number of that point in the grid) for all points of the tile. A warp has a row at a time.
template <typename F> __device__ __forceinline__ void for_points_of_tile(const Brick& brick, const u32 (&rows)[TILE1 * TILE2], F f) {
    const u32 lane = threadIdx.x & 31u, x = wrapped(brick.first[0] + lane, N0);
    if (lane >= TILE0) return;
#pragma unroll 4
    for (u32 row = threadIdx.x / 32u; row < TILE1 * TILE2; row += BRICK_THREADS / 32u) f(row * TILE0 + lane, rows[row] + x);
}

// Numbers in the tile of the points of a window along each axis.
__device__ __forceinline__ void points_of_tile(const Brick& brick, const MeshPosition& m, u32 (&axis)[3][ORDER]) {
#pragma unroll
    for (u32 e = 0; e < u32(ORDER); ++e) {
        const u32 x = m.point[0] - brick.first[0] + e, y = m.point[1] - brick.first[1] + e, z = m.point[2] - brick.first[2] + e;
        axis[0][e] = BRICKS0 == 1 ? wrapped(x, N0) : x;
        axis[1][e] = BRICKS1 == 1 ? wrapped(y, N1) : y;
        axis[2][e] = BRICKS2 == 1 ? wrapped(z, N2) : z;
    }
}

// Windows of the particles of a round.
struct Windows {
    // an odd number for each, so that threads write to different banks
    real w[ROUND][3 * ORDER | 1];
    unsigned char axis[ROUND][3 * ORDER | 1];
};

__device__ __forceinline__ void set_window(const PppmArgs& a, const Brick& brick, real unit, u32 i, u32 at, Windows& windows) {
    const StateView& s = a.charges.state;
    const MeshPosition m = mesh_position(a, load(&s.pos_type[i]));
    const real charge = s.charge[i] * unit;
    u32 axis[3][ORDER];
    points_of_tile(brick, m, axis);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        real w[ORDER], slope[ORDER];
        shares(m.offset[k], w, slope);
#pragma unroll
        for (int e = 0; e < ORDER; ++e) {
            windows.w[at][k * ORDER + e] = k == 2 ? charge * w[e] : w[e];
            windows.axis[at][k * ORDER + e] = (unsigned char)(axis[k][e]);
        }
    }
}

// Threads that add a window: each takes columns of points along z, so they add to different points.
static constexpr u32 ADDERS = 4u;

__device__ __forceinline__ void add_shares(const Windows& windows, u32 at, Sum* tile) {
    const real* w = windows.w[at];
    const unsigned char* axis = windows.axis[at];
    real of_z[ORDER];
    Sum* plane[ORDER];
#pragma unroll
    for (int e = 0; e < ORDER; ++e) {
        of_z[e] = w[2 * ORDER + e];
        plane[e] = tile + axis[2 * ORDER + e] * (TILE0 * TILE1);
    }
#pragma unroll 2
    for (u32 column = threadIdx.x % ADDERS; column < u32(ORDER * ORDER); column += ADDERS) {
        const u32 x = column % u32(ORDER), y = column / u32(ORDER);
        const real of_column = w[x] * w[ORDER + y];
        const u32 place = axis[ORDER + y] * TILE0 + axis[x];
#pragma unroll
        for (int e = 0; e < ORDER; ++e) add_share(plane[e] + place, of_column * of_z[e]);
    }
}

// Sums the charge at the points that the particles of a brick reach, and adds it to that of others.
extern "C" __global__ void __launch_bounds__(BRICK_THREADS) pppm_spread(PppmArgs a) {
    __shared__ Sum tile[TILE];
    __shared__ Windows windows;
    __shared__ u32 rows[TILE1 * TILE2];
    if (a.charges.state.globals->halt) return;
    const Brick brick = brick_of_block();
    const u32 n = a.count[blockIdx.x], start = a.start[blockIdx.x];
    find_rows(brick, rows);
    for (u32 k = threadIdx.x; k < TILE; k += BRICK_THREADS) tile[k] = 0;
    const real unit = unit_of(a);
    for (u32 base = 0; base < n; base += ROUND) {
        const u32 here = n - base < ROUND ? n - base : ROUND;
        if (threadIdx.x < here) set_window(a, brick, unit, a.list[start + base + threadIdx.x], threadIdx.x, windows);
        __syncthreads();
        for (u32 e = threadIdx.x / ADDERS; e < here; e += BRICK_THREADS / ADDERS) add_shares(windows, e, tile);
        __syncthreads();
        for_points_of_tile(brick, rows, [&](u32 k, u32 point) {
            const long long sum = (long long)tile[k];
            if (sum != 0) atomicAdd(a.sums + point, u64(sum));
            tile[k] = 0;
        });
        __syncthreads();
    }
}

// Returns the derivatives of the potential by the offsets in cells, and the potential. `axis` has the numbers of the window's points along each
// axis, at x + row (y + rows z) of `grid`. Index: u64 takes fewer registers for a tile in shared memory, u32 for the grid.
template <typename Index>
__device__ __forceinline__ void potential_at(const real* __restrict__ grid, const u32 (&axis)[3][ORDER], u32 row, u32 rows, const MeshPosition& m,
                                             real (&out)[4]) {
    real w[3][ORDER], slope[3][ORDER];
    for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope[k]);
    for (int k = 0; k < 4; ++k) out[k] = real(0);
#pragma unroll
    for (u32 z = 0; z < u32(ORDER); ++z) {
        real plane[3] = {real(0), real(0), real(0)};
#pragma unroll
        for (u32 y = 0; y < u32(ORDER); ++y) {
            const Index line = Index(axis[2][z] * rows + axis[1][y]) * row;
            real value = real(0), change = real(0);
#pragma unroll
            for (u32 x = 0; x < u32(ORDER); ++x) {
                const real p = grid[line + axis[0][x]];
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

// Adds the force on a particle, and its energy and virial to `values`.
__device__ __forceinline__ void add_mesh_force(const PppmArgs& a, u32 i, const real (&out)[4], double (&values)[7]) {
    const Globals* g = a.charges.state.globals;
    const real field[3] = {-out[0] * real(N0 / g->box_length[0]), -out[1] * real(N1 / g->box_length[1]),
                           -out[2] * real(N2 / g->box_length[2])};
    add_charge_forces(a.charges, i, field, out[3], values);
}

__device__ __forceinline__ void points_of_grid(const MeshPosition& m, u32 (&axis)[3][ORDER]) {
#pragma unroll
    for (u32 e = 0; e < u32(ORDER); ++e) {
        axis[0][e] = wrapped(m.point[0] + e, N0);
        axis[1][e] = wrapped(m.point[1] + e, N1);
        axis[2][e] = wrapped(m.point[2] + e, N2);
    }
}

// Adds forces and energies. Sums over particles are taken in their order.
extern "C" __global__ void __launch_bounds__(THREADS, 2) pppm_force_full(PppmArgs a) {
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    // for the next evaluation
    for (u32 k = blockIdx.x * THREADS + threadIdx.x; k < u32(BRICKS0 * BRICKS1 * BRICKS2); k += gridDim.x * THREADS) a.count[k] = 0u;
    if (blockIdx.x == 0u && threadIdx.x < 2u) a.totals[threadIdx.x] = 0u;
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (i < s.n_local && s.charge[i] != real(0)) {
        const MeshPosition m = mesh_position(a, load(&s.pos_type[i]));
        u32 axis[3][ORDER];
        points_of_grid(m, axis);
        real out[4];
        potential_at<u32>(a.grid, axis, N0, N1, m, out);
        add_mesh_force(a, i, out, values);
    }
    report_charges(a.charges, values);
}

// Blocks of `pppm_force` that a multiprocessor should hold: numbers of two words take twice as many registers.
static constexpr u32 FORCE_BLOCKS = sizeof(real) == 8u ? 4u : 8u;

// Adds forces. A block has the particles of a brick.
extern "C" __global__ void __launch_bounds__(BRICK_THREADS, FORCE_BLOCKS) pppm_force(PppmArgs a) {
    __shared__ real tile[TILE];
    __shared__ u32 rows[TILE1 * TILE2];
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    const Brick brick = brick_of_block();
    const u32 n = a.count[blockIdx.x], start = a.start[blockIdx.x];
    if (n > 0u) {
        find_rows(brick, rows);
        __syncthreads();
        for_points_of_tile(brick, rows, [&](u32 k, u32 point) { tile[k] = __ldg(a.grid + point); });
    }
    __syncthreads();
    // for the next evaluation
    if (threadIdx.x == 0u) a.count[blockIdx.x] = 0u;
    if (blockIdx.x == 0u && threadIdx.x < 2u) a.totals[threadIdx.x] = 0u;
    for (u32 k = threadIdx.x; k < n; k += BRICK_THREADS) {
        const u32 i = a.list[start + k];
        const MeshPosition m = mesh_position(a, load(&s.pos_type[i]));
        u32 axis[3][ORDER];
        points_of_tile(brick, m, axis);
        real out[4];
        potential_at<u64>(tile, axis, TILE0, TILE1, m, out);
        double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
        add_mesh_force(a, i, out, values);
    }
}
