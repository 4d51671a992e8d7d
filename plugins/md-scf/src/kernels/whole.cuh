// Densities and fields of the whole grid: on one GPU, or on several if each needs all fields. Sums are kept grid by grid.

// Index of the sum of a vertex among those of a field, whose first one is at `first_sum`.
__device__ __forceinline__ u32 sum_index(const MdScfArgs& a, u32 x, u32 y, u32 z) { return vertex_at(a, x, y, z); }
__device__ __forceinline__ u64* first_sum(const MdScfArgs& a, u32 field) { return a.sum + u64(field) * a.vertices; }

__device__ __forceinline__ void mark_bricks(const MdScfArgs&, const GridPosition&) {}

// Converts sums to densities and resets the sums. Without a Fourier transform, also computes the field of each vertex.
extern "C" __global__ void __launch_bounds__(128) md_scf_field(MdScfArgs a) {
    await_launches();
    const Globals* g = a.state.globals;
    if (g->halt) return;
    const bool collected = is_due(a, a.density_every), due = is_due(a, a.field_every);
    const u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= a.vertices || !(collected || due)) return;
    real n[FIELDS];
    if (collected) {
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
    } else {
#pragma unroll
        for (int k = 0; k < FIELDS; ++k) n[k] = a.density[u64(k) * a.vertices + v];
    }
#ifndef SPECTRAL
    if (due) set_fields(a, v, n, volume_of(g));
#endif
}
