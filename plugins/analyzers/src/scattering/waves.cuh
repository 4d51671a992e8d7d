// Density waves: sums over particles of e^(2 pi i n.s) for fractional coordinates s and integer vectors n.

__device__ __forceinline__ double fraction(const StateView& s, u32 i, u32 axis) {
    const PosType p = s.pos_type[i];
#ifdef GALAMOST_DOUBLE
    const double length = s.globals->box_length[axis];
    const double x = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
    return length > 0.0 ? x / length : 0.0;
#else
    const int high = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
#ifdef GALAMOST_MIXED
    const long long units = (long long)(u64(u32(high)) << 32 | s.pos_low[3u * i + axis]);
    return times(double(units), 1.0 / 18446744073709551616.0);
#else
    return times(double(high), 1.0 / 4294967296.0);
#endif
#endif
}

// Each thread sums one wave over the particles of a block of items, in order.
extern "C" __global__ void sum_waves(WaveArgs a) {
    __shared__ double tile[3][WAVES];
    __shared__ u32 used[WAVES];
    const u32 groups = (a.n + WAVES - 1u) / WAVES;
    const u32 block = blockIdx.x / groups, w = blockIdx.x % groups * WAVES + threadIdx.x;
    double n[3] = {0, 0, 0};
    if (w < a.n) {
        for (u32 k = 0; k < 3u; ++k) n[k] = a.vectors[3u * w + k];
    }
    double re = 0.0, im = 0.0;
    for (u32 base = 0; base < ITEMS; base += WAVES) {
        const u32 item = a.items[block * ITEMS + base + threadIdx.x];
        __syncthreads();
        used[threadIdx.x] = item != NONE ? 1u : 0u;
        if (item != NONE) {
            const u32 i = a.state.index_of_tag[item];
            for (u32 k = 0; k < 3u; ++k) tile[k][threadIdx.x] = fraction(a.state, i, k);
        }
        __syncthreads();
        // padding items are at the end of a block
        for (u32 j = 0; j < WAVES && used[j]; ++j) {
            const double turns = plus(plus(times(n[0], tile[0][j]), times(n[1], tile[1][j])), times(n[2], tile[2][j]));
            re = plus(re, cosine(turns));
            im = plus(im, cosine(minus(turns, 0.25)));
        }
    }
    if (w < a.n) {
        double* out = a.partial + 2u * (u64(block) * a.n + w);
        out[0] = re;
        out[1] = im;
    }
}

// Each thread adds the blocks of one species and wave in order.
extern "C" __global__ void add_blocks(WaveArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= a.species * a.n) return;
    const u32 species = k / a.n, w = k % a.n;
    double re = 0.0, im = 0.0;
    for (u32 b = a.first[species]; b < a.first[species + 1u]; ++b) {
        re = plus(re, a.partial[2u * (u64(b) * a.n + w)]);
        im = plus(im, a.partial[2u * (u64(b) * a.n + w) + 1u]);
    }
    a.waves[2u * k] = re;
    a.waves[2u * k + 1u] = im;
}

// Adds products of the waves of two species, for each column.
extern "C" __global__ void add_products(WaveArgs a, const u32* columns, u32 n_columns, double* sums) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n_columns * a.n) return;
    const u32 c = k / a.n, w = k % a.n;
    const double* x = a.waves + 2u * (columns[2u * c] * a.n + w);
    const double* y = a.waves + 2u * (columns[2u * c + 1u] * a.n + w);
    sums[k] = plus(sums[k], plus(times(x[0], y[0]), times(x[1], y[1])));
}

// Stores the waves summed over all species.
extern "C" __global__ void keep_waves(WaveArgs a, double* kept) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= 2u * a.n) return;
    double sum = 0.0;
    for (u32 s = 0; s < a.species; ++s) sum = plus(sum, a.waves[2u * u64(s) * a.n + k]);
    kept[k] = sum;
}

// Adds the correlation of the waves of two samples.
extern "C" __global__ void correlate_waves(const double* now, const double* then, double* sums, u32 n) {
    const u32 w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w >= n) return;
    sums[w] = plus(sums[w], plus(times(now[2u * w], then[2u * w]), times(now[2u * w + 1u], then[2u * w + 1u])));
}
