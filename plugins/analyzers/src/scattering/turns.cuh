// cos 2 pi x and sin 2 pi x as in turns.rs; x is a number of 2^-32 turns.
__device__ __forceinline__ u32 fixed(double x) { return u32((long long)rint(x)); }

__device__ __forceinline__ float cosine(u32 x) {
    const u32 magnitude = int(x) < 0 ? 0u - x : x;
    const float y = times(float(int((1u << 30) - magnitude)), 1.0f / 4294967296.0f), z = times(y, y);
    float sum = plus(times(SINE_4, z), SINE_3);
    sum = plus(times(sum, z), SINE_2);
    sum = plus(times(sum, z), SINE_1);
    sum = plus(times(sum, z), SINE_0);
    return times(sum, y);
}

__device__ __forceinline__ float sine(u32 x) { return cosine(x - (1u << 30)); }
