// Charges to the grid and forces from it on CUDA, equivalent to cpu.rs; correction.cuh comes before this text. device.rs defines
// ORDER, the numbers of grid points N0, N1, N2, and those of waves.cuh.

struct Complex { real re, im; };

// Particles of a block, in memory neighbors also in space. Two threads share a particle: those of the upper half of the block take
// the odd planes of its spline.
static constexpr u32 PARTICLES = 128u;

// The grid points that the splines of a block reach are a box, kept in shared memory if it is not larger than this. In double
// precision shared memory has neither room nor fast sums for it.
static constexpr bool BOXES = sizeof(real) == 4u;
static constexpr u32 BOX_POINTS = BOXES ? 11264u : 1u;

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

// The grid points that a block's splines reach: the first one, which is on the grid, and the number along each axis.
struct PointBox {
    u32 first[3], n[3];
    bool fits;

    // The point `at` along axis k of the grid.
    __device__ __forceinline__ u32 on_grid(u32 k, u32 at) const { return wrapped(first[k] + at, k == 0u ? N0 : k == 1u ? N1 : N2); }
};

// Finds the box. `at` is the first point of this thread's particle, in the box; particles with `used` false need not be in it.
__device__ __forceinline__ PointBox find_box(const MeshPosition& m, bool used, u32 (&at)[3]) {
    constexpr u32 ALL = 0xffffffffu, WARPS = 2u * PARTICLES / 32u;
    __shared__ u32 origin[3];
    __shared__ int low[3][WARPS], high[3][WARPS];
    if (threadIdx.x == 0u) {
        for (int k = 0; k < 3; ++k) origin[k] = m.point[k];
    }
    __syncthreads();
    int d[3];
    for (u32 k = 0; k < 3u; ++k) {
        const int n = int(k == 0u ? N0 : k == 1u ? N1 : N2);
        d[k] = int(m.point[k]) - int(origin[k]);
        d[k] += 2 * d[k] > n ? -n : 2 * d[k] < -n ? n : 0;
        const int least = __reduce_min_sync(ALL, used ? d[k] : 0), most = __reduce_max_sync(ALL, used ? d[k] : 0);
        if ((threadIdx.x & 31u) == 0u) {
            low[k][threadIdx.x >> 5] = least;
            high[k][threadIdx.x >> 5] = most;
        }
    }
    __syncthreads();
    PointBox box;
    u32 points = 1u;
    for (u32 k = 0; k < 3u; ++k) {
        int least = low[k][0], most = high[k][0];
        for (u32 w = 1; w < WARPS; ++w) {
            least = device_min(least, low[k][w]);
            most = device_max(most, high[k][w]);
        }
        const u32 n = k == 0u ? N0 : k == 1u ? N1 : N2;
        box.first[k] = wrapped(u32(int(origin[k] + n) + least), n);
        box.n[k] = u32(most - least) + u32(ORDER);
        at[k] = u32(d[k] - least);
        points *= box.n[k];
    }
    box.fits = BOXES && points <= BOX_POINTS;
    return box;
}

// Calls visit(point of the box, point of the grid) for all points of a box; a warp takes a row along x at a time.
template <class Visit> __device__ __forceinline__ void for_points(const PointBox& box, const Visit& visit) {
    const u32 lane = threadIdx.x & 31u, rows = box.n[1] * box.n[2];
    for (u32 row = threadIdx.x >> 5; row < rows; row += 2u * PARTICLES / 32u) {
        const u32 z = row / box.n[1], y = row - z * box.n[1];
        const u32 on_grid = (box.on_grid(2u, z) * u32(N1) + box.on_grid(1u, y)) * u32(N0);
        for (u32 x = lane; x < box.n[0]; x += 32u) visit(row * box.n[0] + x, on_grid + box.on_grid(0u, x));
    }
}

// Calls visit(x, y, z, point of the box, point of the grid) for this thread's planes of the spline of a particle at `at`.
template <bool IN_BOX, class Visit>
__device__ __forceinline__ void for_spline(const PointBox& box, const MeshPosition& m, const u32 (&at)[3], const Visit& visit) {
    const u32 odd = threadIdx.x / PARTICLES;
#pragma unroll
    for (u32 z = 0; z < u32(ORDER); ++z) {
        if ((z & 1u) != odd) continue;
        const u32 plane = wrapped(m.point[2] + z, N2) * u32(N1), plane_of_box = (at[2] + z) * box.n[1];
#pragma unroll
        for (u32 y = 0; y < u32(ORDER); ++y) {
            const u32 row = (plane + wrapped(m.point[1] + y, N1)) * u32(N0), row_of_box = (plane_of_box + at[1] + y) * box.n[0] + at[0];
#pragma unroll
            for (u32 x = 0; x < u32(ORDER); ++x) visit(x, y, z, IN_BOX ? row_of_box + x : row + wrapped(m.point[0] + x, N0));
        }
    }
}

__device__ __forceinline__ void add_to_grid(const PppmArgs& a, u32 point, long long share) {
    atomicAdd(&a.sum[point], u64(share));
}

// Adds integer shares of each charge to the grid: sums of integers do not depend on the order. A block sums its shares in shared
// memory first; charges that could overflow its 32 bits go to the grid.
extern "C" __global__ void __launch_bounds__(2u * PARTICLES) pppm_spread(PppmArgs a) {
    __shared__ int sums[BOX_POINTS];
    const StateView& s = a.charges.state;
    if (s.globals->halt) return;
    const u32 i = blockIdx.x * PARTICLES + threadIdx.x % PARTICLES;
    const real q = i < s.n_local ? s.charge[i] : real(0);
    const MeshPosition m = mesh_position(a, load(&s.pos_type[device_min(i, s.n_local - 1u)]));
    u32 at[3];
    const PointBox box = find_box(m, q != real(0), at);
    if (box.fits) {
        for (u32 k = threadIdx.x; k < box.n[0] * box.n[1] * box.n[2]; k += blockDim.x) sums[k] = 0;
    }
    __syncthreads();
    if (q != real(0)) {
        real w[3][ORDER], slope[ORDER];
        for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope);
        const real charge = q * real(a.unit);
        auto share = [&](u32 x, u32 y, u32 z) { return charge * w[2][z] * w[1][y] * w[0][x]; };
        if (box.fits && device_abs(q) <= real(a.largest)) {
            for_spline<true>(box, m, at, [&](u32 x, u32 y, u32 z, u32 k) { atomicAdd(&sums[k], __float2int_rn(float(share(x, y, z)))); });
        } else {
            for_spline<false>(box, m, at, [&](u32 x, u32 y, u32 z, u32 k) { add_to_grid(a, k, (long long)rint(share(x, y, z))); });
        }
    }
    if (!box.fits) return;
    __syncthreads();
    for_points(box, [&](u32 k, u32 on_grid) {
        if (sums[k]) add_to_grid(a, on_grid, sums[k]);
    });
}

// Adds forces, and energies if they are requested.
extern "C" __global__ void __launch_bounds__(2u * PARTICLES) pppm_force(PppmArgs a) {
    __shared__ real potential[BOXES ? BOX_POINTS : 4u * PARTICLES];
    const StateView& s = a.charges.state;
    const Globals* g = s.globals;
    if (g->halt) return;
    const u32 particle = threadIdx.x % PARTICLES, i = blockIdx.x * PARTICLES + particle;
    const bool used = i < s.n_local && s.charge[device_min(i, s.n_local - 1u)] != real(0);
    const MeshPosition m = mesh_position(a, load(&s.pos_type[device_min(i, s.n_local - 1u)]));
    u32 at[3];
    const PointBox box = find_box(m, used, at);
    if (box.fits) for_points(box, [&](u32 k, u32 on_grid) { potential[k] = a.potential[on_grid]; });
    __syncthreads();
    real out[4] = {real(0), real(0), real(0), real(0)};
    if (used) {
        real w[3][ORDER], slope[3][ORDER];
        for (int k = 0; k < 3; ++k) shares(m.offset[k], w[k], slope[k]);
        real value, change, plane[3];
        auto add = [&](u32 x, u32 y, u32 z, real p) {
            if (x == 0u) value = change = real(0);
            if (x == 0u && y == 0u) plane[0] = plane[1] = plane[2] = real(0);
            value += w[0][x] * p;
            change += slope[0][x] * p;
            if (x + 1u < u32(ORDER)) return;
            plane[0] += w[1][y] * change;
            plane[1] += slope[1][y] * value;
            plane[2] += w[1][y] * value;
            if (y + 1u < u32(ORDER)) return;
            out[0] += w[2][z] * plane[0];
            out[1] += w[2][z] * plane[1];
            out[2] += slope[2][z] * plane[2];
            out[3] += w[2][z] * plane[2];
        };
        if (box.fits) {
            for_spline<true>(box, m, at, [&](u32 x, u32 y, u32 z, u32 k) { add(x, y, z, potential[k]); });
        } else {
            for_spline<false>(box, m, at, [&](u32 x, u32 y, u32 z, u32 k) { add(x, y, z, a.potential[k]); });
        }
    }
    // the lower half of the block adds the sums of the upper one
    __syncthreads();
    if (threadIdx.x >= PARTICLES) {
        for (u32 k = 0; k < 4u; ++k) potential[k * PARTICLES + particle] = out[k];
    }
    __syncthreads();
    double values[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (used && threadIdx.x < PARTICLES) {
        for (u32 k = 0; k < 4u; ++k) out[k] += potential[k * PARTICLES + particle];
        const real field[3] = {-out[0] * real(N0 / g->box_length[0]), -out[1] * real(N1 / g->box_length[1]),
                               -out[2] * real(N2 / g->box_length[2])};
        add_charge_forces(a.charges, i, field, out[3], values);
    }
    report_charges(a.charges, values);
}
