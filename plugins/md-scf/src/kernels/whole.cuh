// Densities and fields of the whole grid: on one GPU, or on several if each needs all fields. Sums are kept grid by grid.

// Index of the sum of a vertex among those of a field, whose first one is at `first_sum`.
__device__ __forceinline__ u32 sum_index(const MdScfArgs& a, u32 x, u32 y, u32 z) { return vertex_at(a, x, y, z); }
__device__ __forceinline__ u64* first_sum(const MdScfArgs& a, u32 field) { return a.sum + u64(field) * a.vertices; }

__device__ __forceinline__ void mark_bricks(const MdScfArgs&, const GridPosition&) {}

// Adds weights to the sums of the two vertices of a particle along x, in one row of the grid.
__device__ __forceinline__ void add_weights(const MdScfArgs& a, u64* sum, const GridPosition& g, u32 y, u32 z, u64 low, u64 high) {
#ifdef PACKED
    atomicAdd(&sum[sum_index(a, g.low[0], y, z)], low | high << 32);
#else
    atomicAdd(&sum[sum_index(a, g.low[0], y, z)], low);
    atomicAdd(&sum[sum_index(a, g.high[0], y, z)], high);
#endif
}

#ifdef PACKED
// A word has the weights of the particles whose lower vertex along x is that of the word: in its low half those for this vertex, in its high
// half those for the next one. The sum at a vertex is lower_sum of its word and upper_sum of the word before it along x.

// The sums are those of all particles.
__device__ __forceinline__ u32 checked_particles(const StateView& s) { return s.n_local; }

// Resets the own sums. Threads of md_scf_field cannot, because two of them read each word.
__device__ __forceinline__ void reset_sums(const MdScfArgs& a) {
    const u64 n = u64(FIELDS) * a.vertices;
    for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < n; k += u64(gridDim.x) * blockDim.x) a.sum[k] = 0ull;
}

// Computes the sums of a vertex from the words of all GPUs, if it exists, and checks them. Called by all threads of a block.
__device__ __forceinline__ void read_sums(const MdScfArgs& a, u32 v, u64 (&sum)[FIELDS]) {
    u64 halves = 0ull;
    bool too_large = false;
    if (v < a.vertices) {
        const u32 before = v % a.grid[0] == 0u ? v + a.grid[0] - 1u : v - 1u;
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) {
            const u64* words = a.total + u64(k) * a.vertices;
            const u64 word = words[v];
            sum[k] = lower_sum(word) + upper_sum(words[before]);
            halves += lower_sum(word) + upper_sum(word);
            too_large = too_large || sum[k] >= SUM_LIMIT;
        }
    }
    note_sums(a, halves);
    if (too_large) note_too_large(a);
}
#endif

// Converts sums to densities, and resets the sums if they are not packed. Without a Fourier transform, also computes the field of each vertex.
extern "C" __global__ void __launch_bounds__(128) md_scf_field(MdScfArgs a) {
    await_launches();
    const Globals* g = a.state.globals;
    if (g->halt) return;
    const bool collected = is_due(a, a.density_every), due = is_due(a, a.field_every);
    const u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (!(collected || due)) return;
#ifdef PACKED
    u64 sum[FIELDS];
    if (collected) read_sums(a, v, sum);
#endif
    if (v >= a.vertices) return;
    real n[FIELDS];
    if (collected) {
#ifdef PACKED
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) a.density[u64(k) * a.vertices + v] = n[k] = real(double(sum[k]) * a.of_type);
#else
        // read all sums before the first write: the compiler cannot know that the arrays do not overlap
        u64 sum[FIELDS];
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) sum[k] = a.total[u64(k) * a.vertices + v];
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) {
            const u64 at = u64(k) * a.vertices + v;
            n[k] = k < TYPES ? real(double(sum[k]) * a.of_type) : real(double((long long)sum[k]) * a.of_charge);
            a.sum[at] = 0ull;
            a.density[at] = n[k];
        }
#endif
    } else {
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) n[k] = a.density[u64(k) * a.vertices + v];
    }
#ifndef SPECTRAL
    if (due) set_fields(a, v, n, volume_of(g));
#endif
}
