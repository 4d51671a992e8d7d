// Counts pairs by distance. Points are sorted into cells, contiguous along x; each point is paired with the later ones
// of its cell and with half of the surrounding cells. HISTOGRAM is the number of counters in a block's own histogram
// (0: none), TYPES the number of types.

// Centers of mass of molecules; members are unwrapped along bonds, starting from the first member.
extern "C" __global__ void molecule_centers(CenterArgs a) {
    const StateView& s = a.state;
    const u32 m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= a.molecules) return;
    double sum[3] = {0, 0, 0}, total = 0;
    for (u32 at = a.first[m]; at < a.first[m + 1u]; ++at) {
        const u32 up = a.parent[at], i = s.index_of_tag[a.members[at]], j = s.index_of_tag[a.members[up]];
        const PosType p = s.pos_type[i], q = s.pos_type[j];
        const double w = s.velocity_mass[i].w;
        total = plus(total, w);
#ifdef GALAMOST_DOUBLE
        double* offset = reinterpret_cast<double*>(a.offset);
        const double d[3] = {minus(p.x, q.x), minus(p.y, q.y), minus(p.z, q.z)};
        for (u32 k = 0; k < 3u; ++k) {
            const double l = s.globals->box_length[k];
            const double near = l > 0.0 ? minus(d[k], times(l, rint(d[k] / l))) : d[k];
            const double o = plus(offset[3u * up + k], near);
            offset[3u * at + k] = up == at ? 0.0 : o;
            sum[k] = plus(sum[k], times(w, up == at ? 0.0 : o));
        }
#else
        const u32 d[3] = {u32(p.x) - u32(q.x), u32(p.y) - u32(q.y), u32(p.z) - u32(q.z)};
        for (u32 k = 0; k < 3u; ++k) {
            const long long o = up == at ? 0ll : a.offset[3u * up + k] + (long long)int(d[k]);
            a.offset[3u * at + k] = o;
            sum[k] = plus(sum[k], times(w, double(o)));
        }
#endif
    }
    PosType c = s.pos_type[s.index_of_tag[a.members[a.first[m]]]];
#ifdef GALAMOST_DOUBLE
    double x[3] = {c.x, c.y, c.z};
    for (u32 k = 0; k < 3u; ++k) {
        const double l = s.globals->box_length[k], moved = plus(x[k], sum[k] / total);
        x[k] = l > 0.0 ? minus(moved, times(l, rint(moved / l))) : moved;
    }
    c.x = x[0];
    c.y = x[1];
    c.z = x[2];
#else
    c.x = int(u32(c.x) + u32((long long)rint(sum[0] / total)));
    c.y = int(u32(c.y) + u32((long long)rint(sum[1] / total)));
    c.z = int(u32(c.z) + u32((long long)rint(sum[2] / total)));
#endif
    c.kind = 0u;
    a.centers[m] = c;
}

extern "C" __global__ void rdf_clear(RdfArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k <= a.cells) a.start[k] = 0u;
    if (k < a.types) a.numbers[k] = 0u;
}

__device__ __forceinline__ u32 cell_along(const RdfArgs& a, u32 axis, const PosType& p) {
    const u32 n = a.n[axis];
    if (n == 1u) return 0u;
#ifdef GALAMOST_DOUBLE
    const double x = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
    const double at = (x / a.length[axis] + 0.5) * double(n);
    const u32 c = at > 0.0 ? u32(at) : 0u;
#else
    const int x = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
    const u32 c = u32((u64(u32(x) ^ 0x80000000u) * n) >> 32);
#endif
    return c < n ? c : n - 1u;
}

// Computes the cell of each point, and the number of points in each cell and of each type.
extern "C" __global__ void rdf_cells(RdfArgs a) {
    __shared__ u32 mine[64];
    if (threadIdx.x < 64u) mine[threadIdx.x] = 0u;
    __syncthreads();
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.points_n) {
        const PosType p = a.points[i];
        atomicAdd(p.kind < 64u ? &mine[p.kind] : &a.numbers[p.kind], 1u);
        const u32 c = (cell_along(a, 2u, p) * a.n[1] + cell_along(a, 1u, p)) * a.n[0] + cell_along(a, 0u, p);
        a.cell_of[i] = c;
        a.arrival[i] = atomicAdd(&a.start[c], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 64u && threadIdx.x < a.types && mine[threadIdx.x]) {
        atomicAdd(&a.numbers[threadIdx.x], mine[threadIdx.x]);
    }
}

static constexpr u32 CELLS_PER_THREAD = 8u;

// Sums the points of each block of 2048 cells.
extern "C" __global__ void rdf_sum_cells(RdfArgs a) {
    __shared__ u32 total;
    const u32 from = (blockIdx.x * blockDim.x + threadIdx.x) * CELLS_PER_THREAD;
    u32 sum = 0u;
    for (u32 k = from; k < from + CELLS_PER_THREAD && k < a.cells; ++k) sum += a.start[k];
    block_scan(sum, &total);
    if (threadIdx.x == 0u) a.block_sums[blockIdx.x] = total;
}

// Converts numbers of points into indices of first points (exclusive scan).
extern "C" __global__ void rdf_start_cells(RdfArgs a) {
    __shared__ u32 total, before;
    u32 part = 0u;
    for (u32 b = threadIdx.x; b < blockIdx.x; b += blockDim.x) part += a.block_sums[b];
    block_scan(part, &total);
    if (threadIdx.x == 0u) before = total;
    __syncthreads();
    const u32 from = (blockIdx.x * blockDim.x + threadIdx.x) * CELLS_PER_THREAD;
    u32 items[CELLS_PER_THREAD], sum = 0u;
    for (u32 k = 0; k < CELLS_PER_THREAD; ++k) {
        items[k] = from + k < a.cells ? a.start[from + k] : 0u;
        sum += items[k];
    }
    u32 index = before + block_scan(sum, &total);
    for (u32 k = 0; k < CELLS_PER_THREAD; ++k) {
        if (from + k < a.cells) a.start[from + k] = index;
        index += items[k];
    }
    if (blockIdx.x == 0u && threadIdx.x == 0u) a.start[a.cells] = a.points_n;
}

// Sorts points by cell. The order within a cell is that of arrival; counts do not depend on it.
extern "C" __global__ void rdf_fill(RdfArgs a) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.points_n) return;
    const u32 index = a.start[a.cell_of[i]] + a.arrival[i];
    const PosType p = a.points[i];
    a.sorted[index] = p;
#ifndef GALAMOST_DOUBLE
    if (a.quick) a.quick[index] = {float(p.x) * a.unit[0], float(p.y) * a.unit[1], float(p.z) * a.unit[2], 0.0f};
#endif
    if (a.sorted_tag) a.sorted_tag[index] = a.state.tag[i];
}

// Squared distance, with the arithmetic of space.rs.
__device__ __forceinline__ double exact_r2(const RdfArgs& a, const PosType& p, const PosType& q) {
#ifdef GALAMOST_DOUBLE
    double d[3] = {minus(p.x, q.x), minus(p.y, q.y), minus(p.z, q.z)};
    for (int k = 0; k < 3; ++k) {
        const double l = a.length[k];
        if (l > 0.0) d[k] = d[k] > 0.5 * l ? minus(d[k], l) : d[k] < -0.5 * l ? plus(d[k], l) : d[k];
    }
#else
    const double d[3] = {times(double(int(u32(p.x) - u32(q.x))), a.length[0] / 4294967296.0),
                         times(double(int(u32(p.y) - u32(q.y))), a.length[1] / 4294967296.0),
                         times(double(int(u32(p.z) - u32(q.z))), a.length[2] / 4294967296.0)};
#endif
#ifdef GALAMOST_TRICLINIC
    const double x = plus(plus(d[0], times(a.tilt[0], d[1])), times(a.tilt[1], d[2])), y = plus(d[1], times(a.tilt[2], d[2]));
    return plus(plus(times(x, x), times(y, y)), times(d[2], d[2]));
#else
    return plus(plus(times(d[0], d[0]), times(d[1], d[1])), times(d[2], d[2]));
#endif
}

__device__ __forceinline__ u32 exact_bin(const RdfArgs& a, const PosType& p, const PosType& q) {
    const double r2 = exact_r2(a, p, q);
    if (!(r2 < times(a.r_max, a.r_max))) return NONE;
    const u32 k = u32(times(sqrt(r2), a.per_unit));
    return k < a.bins ? k : a.bins - 1u;
}

// Square root with an error of at most one unit in the last place.
__device__ __forceinline__ float quick_root(float x) {
#ifdef GALAMOST_HOST
    return sqrtf(x);
#else
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#endif
}

__device__ __forceinline__ bool counts_pair(const RdfArgs& a, u32 i, u32 j) {
    const u32 tag_i = a.sorted_tag[i], tag_j = a.sorted_tag[j];
    if (a.molecule && (a.molecule[tag_i] == a.molecule[tag_j] ? 1u : 0u) != a.same) return false;
    if (!a.first) return true;
    for (u32 k = a.first[tag_i]; k < a.first[tag_i + 1u]; ++k) {
        if (a.partner[k] == tag_j) return false;
    }
    return true;
}

// Counts a pair whose bin is known.
__device__ __forceinline__ void count_pair(const RdfArgs& a, u32 i, u32 j, u32 bin, u32* histogram) {
    const int column = TYPES == 1u ? 0 : a.column_of[a.sorted[i].kind * a.types + a.sorted[j].kind];
    if (column < 0 || (a.sorted_tag && !counts_pair(a, i, j))) return;
    const u32 slot = u32(column) * a.bins + bin;
    if (HISTOGRAM > 0u) atomicAdd(&histogram[slot], 1u);
    else atomicAdd(&a.counts[slot], 1ull);
}

// Candidate partners of a point: a range of points in a row of cells, and the image shift in box lengths.
struct PartnerRange {
    u32 from, to;
    float box[3];
};

// Calls `count(i, p, range)` for every point and each range of candidate partners. Every pair of points occurs once.
template <class Point, class F>
__device__ __forceinline__ void for_all_partner_ranges(const RdfArgs& a, const Point* points, const F& count) {
    const int nx = int(a.n[0]), ny = int(a.n[1]), nz = int(a.n[2]);
    const int rx = int(a.reach[0]), ry = int(a.reach[1]), rz = int(a.reach[2]);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < a.points_n; i += gridDim.x * blockDim.x) {
        const Point point = points[i];
        const PosType p = a.sorted[i];
        const int cx = int(cell_along(a, 0u, p)), cy = int(cell_along(a, 1u, p)), cz = int(cell_along(a, 2u, p));
        for (int dz = 0; dz <= rz; ++dz) {
            for (int dy = dz == 0 ? 0 : -ry; dy <= ry; ++dy) {
                const int y = cy + dy, z = cz + dz;
                PartnerRange range;
                range.box[0] = 0.0f;
                range.box[1] = y < 0 ? -1.0f : y >= ny ? 1.0f : 0.0f;
                range.box[2] = z >= nz ? 1.0f : 0.0f;
                const u32 row = u32((z >= nz ? z - nz : z) * ny + (y < 0 ? y + ny : y >= ny ? y - ny : y)) * u32(nx);
                const bool own = dz == 0 && dy == 0;
                // cells lo ... hi of the row; parts 1 and 2 are the periodic images beyond its ends
                const int lo = nx == 1 ? 0 : own ? cx : cx - rx, hi = nx == 1 ? 0 : cx + rx;
                range.from = own ? i + 1u : a.start[row + u32(lo < 0 ? 0 : lo)];
                range.to = a.start[row + u32(hi >= nx ? nx - 1 : hi) + 1u];
                // one call site for the loop: three inlined copies would not fit the instruction cache
                for (int part = 0; part < 3; ++part) {
                    if (part == 1) {
                        if (lo >= 0) continue;
                        range = {a.start[row + u32(lo + nx)], a.start[row + u32(nx)], {-1.0f, range.box[1], range.box[2]}};
                    }
                    if (part == 2) {
                        if (hi < nx) continue;
                        range = {a.start[row], a.start[row + u32(hi - nx) + 1u], {1.0f, range.box[1], range.box[2]}};
                    }
                    count(i, point, range);
                }
            }
        }
    }
}

__device__ __forceinline__ void clear_histogram(u32* histogram) {
    if (HISTOGRAM > 0u) {
        for (u32 k = threadIdx.x; k < HISTOGRAM; k += blockDim.x) histogram[k] = 0u;
        __syncthreads();
    }
}

__device__ __forceinline__ void add_histogram(const RdfArgs& a, const u32* histogram) {
    if (HISTOGRAM > 0u) {
        __syncthreads();
        for (u32 k = threadIdx.x; k < a.columns * a.bins; k += blockDim.x) {
            if (histogram[k]) atomicAdd(&a.counts[k], u64(histogram[k]));
        }
    }
}

extern "C" __global__ void rdf_count(RdfArgs a) {
    __shared__ u32 histogram[HISTOGRAM > 0u ? HISTOGRAM : 1u];
    clear_histogram(histogram);
    for_all_partner_ranges(a, a.sorted, [&](u32 i, const PosType& p, const PartnerRange& range) {
        for (u32 j = range.from; j < range.to; ++j) {
            const u32 bin = exact_bin(a, p, load(&a.sorted[j]));
            if (bin != NONE) count_pair(a, i, j, bin, histogram);
        }
    });
    add_histogram(a, histogram);
}

// Same as rdf_count if there are cells along every axis. Single precision decides the bin unless the distance is within
// the error bound of a bin limit. Conversions between integers and floats limit the throughput, so the loop has none.
extern "C" __global__ void __launch_bounds__(128, 8) rdf_count_quick(RdfArgs a) {
#ifndef GALAMOST_DOUBLE
    __shared__ u32 histogram[HISTOGRAM > 0u ? HISTOGRAM : 1u];
    clear_histogram(histogram);
    for_all_partner_ranges(a, a.quick, [&](u32 i, const float4& point, const PartnerRange& range) {
        const float px = point.x - range.box[0] * a.box_length[0], py = point.y - range.box[1] * a.box_length[1],
                    pz = point.z - range.box[2] * a.box_length[2];
        for (u32 j = range.from; j < range.to; ++j) {
            const float4 q = __ldg(&a.quick[j]);
            const float x = px - q.x, y = py - q.y, z = pz - q.z;
            const float at = quick_root(device_norm2(Vec3<float>{x, y, z})) * a.bins_per_length;
            if (!(at < a.end)) continue;
            // rounded to an integer by adding 1.5·2²³, whose last bits then hold it
            const float shifted = at + 12582912.0f, rounded = shifted - 12582912.0f;
            u32 bin = u32(__float_as_int(shifted)) - 0x4b400000u - (rounded > at ? 1u : 0u);
            if (fabsf(at - rounded) < a.margin) {
                bin = exact_bin(a, a.sorted[i], a.sorted[j]);
                if (bin == NONE) continue;
            }
            count_pair(a, i, j, bin, histogram);
        }
    });
    add_histogram(a, histogram);
#endif
}

// Adds the expected number of pairs of each column for this sample; `pair` holds the types of the columns.
extern "C" __global__ void rdf_close(RdfArgs a, const u32* pair) {
    const u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= a.columns) return;
    const u32 x = pair[2u * c], y = pair[2u * c + 1u];
    const double nx = a.numbers[x], ny = a.numbers[y];
    const double pairs = x == y ? times(times(0.5, nx), minus(nx, 1.0)) : times(nx, ny);
    a.density[c] = plus(a.density[c], pairs / a.volume);
}
