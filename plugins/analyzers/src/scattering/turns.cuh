// cos 2 pi x and sin 2 pi x as in turns.rs; x is a number of 2^-32 turns.
__device__ __forceinline__ u32 fixed(double x) { return u32((long long)rint(x)); }

struct CosSin {
    float cos, sin;
};

__device__ __forceinline__ CosSin cos_sin(u32 x) {
    // the nearest quarter of a turn
    const u32 quarter = (x + (1u << 29)) >> 30;
    const float y = times(float(int(x - (quarter << 30))), 1.0f / 4294967296.0f), z = times(y, y);
    float c = plus(times(COSINE_4, z), COSINE_3), s = plus(times(SINE_3, z), SINE_2);
    c = plus(times(c, z), COSINE_2);
    s = plus(times(s, z), SINE_1);
    c = plus(times(c, z), COSINE_1);
    s = plus(times(s, z), SINE_0);
    c = plus(times(c, z), COSINE_0);
    s = times(s, y);
    const bool odd = (quarter & 1u) != 0u;
    const float first = odd ? s : c, second = odd ? c : s;
    return {((quarter + 1u) & 2u) != 0u ? -first : first, (quarter & 2u) != 0u ? -second : second};
}
