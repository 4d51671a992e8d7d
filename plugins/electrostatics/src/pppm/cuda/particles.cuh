// Charges to the grid and forces from it on CUDA, equivalent to cpu.rs; correction.cuh comes before this text. device.rs defines
// ORDER, the numbers of grid points N0, N1, N2, of bricks BRICKS0, ..., those of waves.cuh, and MOST0 ..., the most points of a brick.
//
// The grid is divided into bricks. Particles are listed by the brick of the first point of their window, and a block of threads has the
// particles of a brick and, in shared memory, all points that they reach. A thread has a particle.

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
        slope = device_mul_add(slope, x, value);
        value = device_mul_add(value, x, real(terms[k]));
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
        const real b = u * odd, da = real(2) * u * even_slope, db = device_mul_add(real(2) * square, odd_slope, odd);
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

// Lists the particles of each brick, in any order, and finds the largest charge. A brick has room for CAPACITY particles; slots of others
// are larger.
extern "C" __global__ void __launch_bounds__(THREADS) pppm_list(PppmArgs a) {
    await_launches();
    const StateView& s = a.charges.state;
    const u32 i = blockIdx.x * THREADS + threadIdx.x, halted = s.globals->halt;
    const real q = i < s.n_local ? s.charge[i] : real(0);
    const PosType at = load(&s.pos_type[i < s.n_local ? i : 0u]);
    if (halted) return;
    const u32 brick = q != real(0) ? brick_of(mesh_position(a, at)) : 0xffffffffu;
    // particles of a warp are often in the same brick
    const u32 same = __match_any_sync(0xffffffffu, brick), lane = threadIdx.x & 31u, leader = u32(__ffs(int(same))) - 1u;
    u32 first = 0u;
    if (lane == leader && q != real(0)) first = atomicAdd(&a.count[brick], u32(__popc(same)));
    first = __shfl_sync(0xffffffffu, first, int(leader));
    if (i < s.n_local) {
        const u32 slot = first + u32(__popc(same & ((1u << lane) - 1u)));
        if (q != real(0) && slot < CAPACITY) a.list[u64(brick) * CAPACITY + slot] = i;
        a.slot[i] = q != real(0) ? slot : 0u;
    }
    // bits of positive numbers have the order of the numbers
    u32 largest = u32(__float_as_int(float(device_abs(q))));
    for (u32 d = 16u; d > 0u; d >>= 1) largest = device_max(largest, __shfl_xor_sync(0xffffffffu, largest, d));
    if (lane == 0u && largest > 0u) atomicMax(a.largest, largest);
}

// Charges are added as integers, whose sum does not depend on the order. The unit is 2^-bits of a power of two that is not less than
// the largest charge. In double precision they have 64 bits, see `Model::charge_bits`. Otherwise those of a block have 32, and `bits` is 24:
// MOST_CHARGES charges do not overflow, as a point has a share of at most PEAK.
__device__ __forceinline__ int largest_exponent(const PppmArgs& a) {
    const u32 bits = *a.largest;
    const int exponent = int(bits >> 23) - 127 + ((bits & 0x7fffffu) != 0u ? 1 : 0);
    return exponent > -100 ? exponent : -100;
}
#ifdef GALAMOST_DOUBLE
typedef u64 Sum;
static constexpr u32 MOST_CHARGES = 0x7fffffffu;
__device__ __forceinline__ double unit_of(const PppmArgs& a) {
    return __longlong_as_double((long long)(int(a.bits) + 1023 - largest_exponent(a)) << 52);
}
__device__ __forceinline__ Sum rounded(double x, double y) { return u64((long long)rint(x * y)); }
#else
typedef int Sum;
static constexpr u32 MOST_CHARGES = u32(2147483000.0 / (PEAK * 16777216.0 + 1.0));
__device__ __forceinline__ float unit_of(const PppmArgs& a) { return __int_as_float((24 + 127 - largest_exponent(a)) << 23); }
// The product as the nearest integer. Below 2^22 the last bit of a sum with 3 x 2^22 is 1.
__device__ __forceinline__ Sum rounded(float x, float y) {
    if (PEAK * 16777216.0 < 4194000.0) return __float_as_int(device_mul_add(x, y, 12582912.0f)) - 0x4b400000;
    return __float2int_rn(x * y);
}
#endif

// The points that the windows of a brick's particles reach: those of the brick and ORDER - 1 behind them.
static constexpr u32 TILE0 = MOST0 + ORDER - 1, TILE1 = MOST1 + ORDER - 1, TILE2 = MOST2 + ORDER - 1, TILE = TILE0 * TILE1 * TILE2;

static_assert(TILE0 <= 32u, "a warp has a row of the tile");
static_assert(MOST_CHARGES >= BRICK_THREADS, "the charges of a round do not overflow");

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
#pragma unroll 8
    for (u32 row = threadIdx.x / 32u; row < TILE1 * TILE2; row += BRICK_THREADS / 32u) f(row * TILE0 + lane, rows[row] + x);
}

// Number in the tile of the first point of a window.
__device__ __forceinline__ u32 point_of_tile(const Brick& brick, const MeshPosition& m) {
    return ((m.point[2] - brick.first[2]) * TILE1 + m.point[1] - brick.first[1]) * TILE0 + m.point[0] - brick.first[0];
}

static_assert(CAPACITY % BRICK_THREADS == 0, "a list ends with a round");

// Numbers of a brick's particles, which its threads take in rounds: those of the list, then all particles if some had no room there.
__device__ __forceinline__ u32 end_of_rounds(const PppmArgs& a, u32 n) { return n <= CAPACITY ? n : CAPACITY + a.charges.state.n_local; }

static constexpr u32 IDLE = 0xffffffffu;

// Returns this thread's particle of the round that begins at number `base`, or IDLE. To find particles without room is slow.
__device__ __forceinline__ u32 particle_of_round(const PppmArgs& a, u32 base, u32 end) {
    const StateView& s = a.charges.state;
    const u32 number = base + threadIdx.x;
    if (number >= end) return IDLE;
    if (base < CAPACITY) return a.list[u64(blockIdx.x) * CAPACITY + number];
    const u32 i = number - CAPACITY;
    return a.slot[i] >= CAPACITY && brick_of(mesh_position(a, load(&s.pos_type[i]))) == blockIdx.x ? i : IDLE;
}

// Memory for the order of a round's particles.
struct Round {
    u32 count[32], start[BRICK_THREADS], classes[BRICK_THREADS], order[BRICK_THREADS];
    real charge[BRICK_THREADS];
};

// A particle's number, or IDLE, and its charge.
struct Numbered { u32 i; real charge; };

// Returns this thread's particle of a round in another order. Windows that begin in the same bank of shared memory, those of a class, meet
// in the same bank at each of their points, so the first particles of all classes come first, then the second ones, and so on.
__device__ __forceinline__ Numbered reordered(const PppmArgs& a, const Brick& brick, const Numbered& p, const PosType& at, u32 n, Round& round) {
    if (threadIdx.x < 32u) round.count[threadIdx.x] = 0u;
    __syncthreads();
    u32 bank = 0u, rank = 0u;
    if (threadIdx.x < n) {
        bank = point_of_tile(brick, mesh_position(a, at)) % 32u;
        rank = atomicAdd(&round.count[bank], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 32u) {
        const u32 count = round.count[threadIdx.x];
        u32 start = 0u;
        for (u32 r = 0u; start < n; ++r) {
            const u32 classes = __ballot_sync(0xffffffffu, count > r);
            if (threadIdx.x == 0u) {
                round.start[r] = start;
                round.classes[r] = classes;
            }
            start += u32(__popc(classes));
        }
    }
    __syncthreads();
    if (threadIdx.x < n) {
        const u32 place = round.start[rank] + u32(__popc(round.classes[rank] & ((1u << bank) - 1u)));
        round.order[place] = p.i;
        round.charge[place] = p.charge;
    }
    __syncthreads();
    if (threadIdx.x >= n) return {IDLE, real(0)};
    return {round.order[threadIdx.x], round.charge[threadIdx.x]};
}

// Number k of a window. Loops over planes are not unrolled, as their instructions would not fit the cache, and registers have no index.
__device__ __forceinline__ real chosen(const real (&w)[ORDER], u32 k) {
    real value = w[0];
#pragma unroll
    for (u32 e = 1; e < u32(ORDER); ++e) value = k == e ? w[e] : value;
    return value;
}

// Adds the shares of a particle's charge.
__device__ __forceinline__ void add_shares(const PppmArgs& a, const Brick& brick, real unit, const Numbered& p, Sum* tile) {
    const MeshPosition m = mesh_position(a, load(&a.charges.state.pos_type[p.i]));
    const real charge = p.charge * unit;
    real w[3][ORDER], slope[ORDER];
#pragma unroll
    for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope);
    Sum* first = tile + point_of_tile(brick, m);
#pragma unroll 1
    for (u32 z = 0; z < u32(ORDER); ++z, first += TILE0 * TILE1) {
        const real of_z = charge * chosen(w[2], z);
#pragma unroll
        for (u32 y = 0; y < u32(ORDER); ++y) {
            const real of_row = w[1][y] * of_z;
#pragma unroll
            for (u32 x = 0; x < u32(ORDER); ++x) atomicAdd(first + y * TILE0 + x, rounded(w[0][x], of_row));
        }
    }
}

// Sums the charge at the points that the particles of a brick reach, and adds it to that of others.
extern "C" __global__ void __launch_bounds__(BRICK_THREADS) pppm_spread(PppmArgs a) {
    await_launches();
    __shared__ Sum tile[TILE];
    __shared__ u32 rows[TILE1 * TILE2], charges;
    __shared__ Round round;
    const StateView& s = a.charges.state;
    const u32 halted = s.globals->halt, n = a.count[blockIdx.x];
    Numbered p = {a.list[u64(blockIdx.x) * CAPACITY + threadIdx.x], real(0)};
    const real unit = unit_of(a);
    const Brick brick = brick_of_block();
    if (halted || n == 0u) return;
    const u32 end = end_of_rounds(a, n);
    if (threadIdx.x >= end) p.i = IDLE;
    PosType at = load(&s.pos_type[p.i == IDLE ? 0u : p.i]);
    p.charge = s.charge[p.i == IDLE ? 0u : p.i];
    find_rows(brick, rows);
    for (u32 k = threadIdx.x; k < TILE; k += BRICK_THREADS) tile[k] = 0;
    if (threadIdx.x == 0u) charges = 0u;
    for (u32 base = 0; base < end; base += BRICK_THREADS) {
        if (base > 0u) {
            p.i = particle_of_round(a, base, end);
            if (p.i != IDLE) {
                at = load(&s.pos_type[p.i]);
                p.charge = s.charge[p.i];
            }
        }
        if (base < CAPACITY) {
            p = reordered(a, brick, p, at, device_min(end - base, u32(BRICK_THREADS)), round);
            // forces have the same conflicts
            if (p.i != IDLE) a.list[u64(blockIdx.x) * CAPACITY + base + threadIdx.x] = p.i;
        }
        __syncthreads();
        if (p.i != IDLE) {
            atomicAdd(&charges, 1u);
            add_shares(a, brick, unit, p, tile);
        }
        __syncthreads();
        if (base + BRICK_THREADS < end && charges <= MOST_CHARGES - BRICK_THREADS) continue;
        for_points_of_tile(brick, rows, [&](u32 k, u32 point) {
            const long long sum = (long long)tile[k];
            if (sum != 0) atomicAdd(a.sums + point, u64(sum));
            tile[k] = 0;
        });
        // all threads have seen the number of charges
        __syncthreads();
        if (threadIdx.x == 0u) charges = 0u;
    }
}

// Returns the derivatives of the potential by the offsets in cells, and the potential. `at(x, y, z)` is that of a point of the window.
template <typename At> __device__ __forceinline__ void potential_at(const MeshPosition& m, real (&out)[4], At at) {
    real w[3][ORDER], slope[3][ORDER];
#pragma unroll
    for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope[k]);
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k] = real(0);
#pragma unroll 1
    for (u32 z = 0; z < u32(ORDER); ++z) {
        const real of_z = chosen(w[2], z), slope_of_z = chosen(slope[2], z);
        real plane[3] = {real(0), real(0), real(0)};
#pragma unroll
        for (u32 y = 0; y < u32(ORDER); ++y) {
            real value = real(0), change = real(0);
#pragma unroll
            for (u32 x = 0; x < u32(ORDER); ++x) {
                const real p = at(x, y, z);
                value = device_mul_add(w[0][x], p, value);
                change = device_mul_add(slope[0][x], p, change);
            }
            plane[0] = device_mul_add(w[1][y], change, plane[0]);
            plane[1] = device_mul_add(slope[1][y], value, plane[1]);
            plane[2] = device_mul_add(w[1][y], value, plane[2]);
        }
        out[0] = device_mul_add(of_z, plane[0], out[0]);
        out[1] = device_mul_add(of_z, plane[1], out[1]);
        out[2] = device_mul_add(slope_of_z, plane[2], out[2]);
        out[3] = device_mul_add(of_z, plane[2], out[3]);
    }
}

// Grid points per length along each axis.
struct PointsPerLength { real of[3]; };

__device__ __forceinline__ PointsPerLength points_per_length(const PppmArgs& a) {
    const double* length = a.charges.state.globals->box_length;
    return {{real(N0) / real(length[0]), real(N1) / real(length[1]), real(N2) / real(length[2])}};
}

// Adds the force on a particle, and with FULL its energy and virial to `values`.
template <bool FULL>
__device__ __forceinline__ void add_mesh_force(const PppmArgs& a, const ChargedParticle& p, const PointsPerLength& points, const real (&out)[4],
                                               double (&values)[7]) {
    const real field[3] = {-out[0] * points.of[0], -out[1] * points.of[1], -out[2] * points.of[2]};
    add_charge_forces<FULL>(a.charges, p, field, out[3], values);
}

// Blocks of `pppm_force_full` that a multiprocessor should hold: numbers of two words take twice as many registers.
static constexpr u32 FULL_BLOCKS = sizeof(real) == 8u ? 1u : 2u;

// Adds forces and energies. Sums over particles are taken in their order.
extern "C" __global__ void __launch_bounds__(THREADS, FULL_BLOCKS) pppm_force_full(PppmArgs a) {
    await_launches();
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    // for the next evaluation
    for (u32 k = blockIdx.x * THREADS + threadIdx.x; k < u32(BRICKS0 * BRICKS1 * BRICKS2); k += gridDim.x * THREADS) a.count[k] = 0u;
    if (blockIdx.x == 0u && threadIdx.x == 0u) *a.largest = 0u;
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (i < s.n_local && s.charge[i] != real(0)) {
        const ChargedParticle p = charged_particle(s, i);
        const MeshPosition m = mesh_position(a, p.at);
        u32 column[ORDER], row[ORDER];
#pragma unroll
        for (u32 e = 0; e < u32(ORDER); ++e) {
            column[e] = wrapped(m.point[0] + e, N0);
            row[e] = wrapped(m.point[1] + e, N1) * u32(N0);
        }
        real out[4];
        potential_at(m, out, [&](u32 x, u32 y, u32 z) {
            return a.grid[wrapped(m.point[2] + z, N2) * u32(N0 * N1) + row[y] + column[x]];
        });
        add_mesh_force<true>(a, p, points_per_length(a), out, values);
    }
    report_charges(a.charges, values);
}

// Begins to copy a number to shared memory; `await_copies` waits for all copies of this thread.
__device__ __forceinline__ void begin_copy(real* to, const real* from) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 800
    *to = *from;
#else
    const u32 address = u32(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(sizeof(real)) : "memory");
#endif
}
__device__ __forceinline__ void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Adds forces. A block has the particles of a brick. All that the first round needs is read at the same time.
extern "C" __global__ void __launch_bounds__(BRICK_THREADS) pppm_force(PppmArgs a) {
    await_launches();
    __shared__ real tile[TILE];
    __shared__ u32 rows[TILE1 * TILE2];
    const StateView& s = a.charges.state;
    const u32 halted = s.globals->halt, n = a.count[blockIdx.x];
    u32 i = a.list[u64(blockIdx.x) * CAPACITY + threadIdx.x];
    const PointsPerLength points = points_per_length(a);
    const Brick brick = brick_of_block();
    find_rows(brick, rows);
    __syncthreads();
    for_points_of_tile(brick, rows, [&](u32 k, u32 point) { begin_copy(tile + k, a.grid + point); });
    const u32 end = end_of_rounds(a, n);
    if (threadIdx.x >= end) i = IDLE;
    ChargedParticle p = charged_particle(s, i == IDLE ? 0u : i);
    await_copies();
    __syncthreads();
    if (halted) return;
    // for the next evaluation
    if (threadIdx.x == 0u) a.count[blockIdx.x] = 0u;
    if (blockIdx.x == 0u && threadIdx.x == 0u) *a.largest = 0u;
    for (u32 base = 0u;;) {
        if (i != IDLE) {
            const MeshPosition m = mesh_position(a, p.at);
            const real* first = tile + point_of_tile(brick, m);
            real out[4];
            potential_at(m, out, [&](u32 x, u32 y, u32 z) { return first[(z * TILE1 + y) * TILE0 + x]; });
            double values[7];
            add_mesh_force<false>(a, p, points, out, values);
        }
        base += BRICK_THREADS;
        if (base >= end) break;
        i = particle_of_round(a, base, end);
        if (i != IDLE) p = charged_particle(s, i);
    }
}
