// Density waves: sums over particles of e^(2 pi i n.s) for fractional coordinates s and integer vectors n.

static constexpr double TURN = 4294967296.0;

// Fractional coordinate along an axis, as a number of 2^-32 turns.
__device__ __forceinline__ u32 turn(const StateView& s, u32 i, u32 axis) {
    const PosType p = s.pos_type[i];
#ifdef GALAMOST_DOUBLE
    const double length = s.globals->box_length[axis];
    const double x = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
    return length > 0.0 ? fixed(times(x / length, TURN)) : 0u;
#else
    return u32(axis == 0u ? p.x : axis == 1u ? p.y : p.z);
#endif
}

// Index of particle j in shared memory, where each part of SINGLE particles begins in other banks.
__device__ __forceinline__ u32 padded(u32 j) { return j + j / SINGLE; }

// Sums WAVES waves over the particles of a block of items. The particles of a tile are in parts of SINGLE; as many threads as possible
// share the parts of a wave, and its first thread adds them in order.
extern "C" __global__ void sum_waves(WaveArgs a) {
    __shared__ uint4 tile[TILE + TILE / SINGLE];
    __shared__ float2 sums[TILE / SINGLE][WAVES];
    __shared__ u32 used;
    const u32 groups = (a.n + WAVES - 1u) / WAVES, block = blockIdx.x / groups, first_wave = blockIdx.x % groups * WAVES;
    const u32 waves = device_min(WAVES, a.n - first_wave), threads = WAVES / waves;
    const u32 own = threadIdx.x % waves, thread = threadIdx.x / waves;
    u32 n[3];
    for (u32 k = 0; k < 3u; ++k) n[k] = u32(a.vectors[3u * (first_wave + own) + k]);
    double re = 0.0, im = 0.0;
    for (u32 base = 0; base < ITEMS; base += TILE) {
        for (u32 j = threadIdx.x; j < TILE; j += WAVES) {
            const u32* items = a.items + block * ITEMS + base + j;
            const u32 item = items[0];
            // padding items are at the end of a block
            if (item == NONE) {
                if (j == 0u) used = 0u;
            } else {
                if (j + 1u == TILE || items[1] == NONE) used = j + 1u;
                const u32 i = a.state.index_of_tag[item];
                tile[padded(j)] = {turn(a.state, i, 0u), turn(a.state, i, 1u), turn(a.state, i, 2u), 0u};
            }
        }
        __syncthreads();
        const u32 parts = (used + SINGLE - 1u) / SINGLE;
        for (u32 part = thread; part < parts && thread < threads; part += threads) {
            const u32 first = part * SINGLE, end = device_min(first + SINGLE, used);
            float c = 0.0f, s = 0.0f;
#pragma unroll 8
            for (u32 j = first; j < end; ++j) {
                const uint4 p = tile[padded(first) + j - first];
                const u32 x = n[0] * p.x + n[1] * p.y + n[2] * p.z;
                c = plus(c, cosine(x));
                s = plus(s, sine(x));
            }
            sums[part][own] = {c, s};
        }
        __syncthreads();
        for (u32 part = 0; part < parts && thread == 0u; ++part) {
            re = plus(re, double(sums[part][own].x));
            im = plus(im, double(sums[part][own].y));
        }
    }
    if (thread == 0u) {
        double* out = a.partial + 2u * (u64(block) * a.n + first_wave + own);
        out[0] = re;
        out[1] = im;
    }
}

// Threads for each wave in add_blocks.
static constexpr u32 PARTS = WAVES / ADDED;

// Adds the blocks of each species and wave: a thread adds RUN of them in order, and one of PARTS threads adds these sums in order.
extern "C" __global__ void add_blocks(WaveArgs a) {
    __shared__ double2 runs[PARTS][ADDED];
    const u32 own = threadIdx.x % ADDED, part = threadIdx.x / ADDED, k = blockIdx.x * ADDED + own;
    const u32 species = device_min(k / a.n, a.species - 1u), w = k % a.n, end = k < a.species * a.n ? a.first[species + 1u] : 0u;
    double re = 0.0, im = 0.0;
    // as many passes for every species, because all threads take part in barriers
    for (u32 pass = 0; pass < a.blocks; pass += PARTS * RUN) {
        const u32 b = a.first[species] + pass + part * RUN;
        // all at once, because one after another they would take longer than all sums of cosines
        double2 sums[RUN], sum = {0.0, 0.0};
#pragma unroll
        for (u32 j = 0; j < RUN; ++j) {
            sums[j] = b + j < end ? reinterpret_cast<const double2*>(a.partial)[u64(b + j) * a.n + w] : double2{0.0, 0.0};
        }
#pragma unroll
        for (u32 j = 0; j < RUN; ++j) {
            sum.x = plus(sum.x, sums[j].x);
            sum.y = plus(sum.y, sums[j].y);
        }
        runs[part][own] = sum;
        __syncthreads();
        for (u32 p = 0; part == 0u && p < PARTS; ++p) {
            re = plus(re, runs[p][own].x);
            im = plus(im, runs[p][own].y);
        }
        __syncthreads();
    }
    if (part > 0u || k >= a.species * a.n) return;
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

// Adds the correlations of the waves of a sample and of earlier ones, which differ in their lags.
extern "C" __global__ void correlate_waves(CorrelateArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= a.n_pairs * a.n) return;
    const u32 pair = k / a.n, w = k % a.n;
    const double *x = a.kept + 2u * (u64(a.now) * a.n + w), *y = a.kept + 2u * (u64(a.slot[pair]) * a.n + w);
    double* sum = a.sums + u64(a.lag[pair]) * a.n + w;
    *sum = plus(*sum, plus(times(x[0], y[0]), times(x[1], y[1])));
}
