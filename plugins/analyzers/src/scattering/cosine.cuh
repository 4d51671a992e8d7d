// cos 2 pi x as in turns.rs; x is a number of 2^-32 turns.
static constexpr u32 QUARTER = 1u << 30;

__device__ __forceinline__ u32 fixed(double turns) { return u32((long long)rint(times(turns, 4294967296.0))); }

__device__ __forceinline__ float cosine(u32 x) {
    const u32 near = int(x) < 0 ? 0u - x : x;
    const bool far = near > QUARTER;
    const float y = times(float(far ? 2u * QUARTER - near : near), 1.0f / 4294967296.0f), z = times(y, y);
    float sum = COSINE_5;
    sum = plus(times(sum, z), COSINE_4);
    sum = plus(times(sum, z), COSINE_3);
    sum = plus(times(sum, z), COSINE_2);
    sum = plus(times(sum, z), COSINE_1);
    sum = plus(times(sum, z), COSINE_0);
    return far ? -sum : sum;
}
