// Counter-based random numbers: Philox 4x32 with seven rounds (Salmon, Moraes, Dror & Shaw, SC11). The bits are those
// of plugin-api/src/device/philox.rs.
#pragma once
#include "galamost/api.cuh"

struct Words { u32 v[4]; };

template <int ROUNDS> __device__ __forceinline__ Words philox4x32(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        if (round > 0) {
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        const u64 p0 = u64(0xD2511F53u) * c0, p1 = u64(0xCD9E8D57u) * c2;
        const u32 n0 = u32(p1 >> 32) ^ c1 ^ k0, n2 = u32(p0 >> 32) ^ c3 ^ k1;
        c0 = n0;
        c1 = u32(p1);
        c2 = n2;
        c3 = u32(p0);
    }
    return {{c0, c1, c2, c3}};
}

__device__ __forceinline__ Words random_pair(RandomKey k, u64 step, u32 a, u32 b) {
    return philox4x32<7>(a < b ? a : b, a < b ? b : a, u32(step), u32(step >> 32), k.key[0], k.key[1]);
}

__device__ __forceinline__ Words random_single(RandomKey k, u64 step, u32 tag, u32 draw) {
    return philox4x32<7>(tag, tag, u32(step), u32(step >> 32) | (draw << 16), k.key[0], k.key[1]);
}

// Uniform in (-sqrt 3, sqrt 3): mean 0, variance 1.
template <class T> __device__ __forceinline__ T uniform_unit_variance(u32 word) {
    return (T(int(word) >> 8) + T(0.5)) * T(1.7320508075688772 / 8388608.0);
}

// Uniform in (0, 1).
template <class T> __device__ __forceinline__ T unit_uniform(u32 word) {
    return (T(word >> 9) + T(0.5)) * T(1.0 / 8388608.0);
}

// Three normal random numbers with mean 0 and variance 1 (Box and Muller).
template <class T> __device__ __forceinline__ Vec3<T> normal3(Words w) {
    const T a = device_sqrt(T(-2) * device_ln(unit_uniform<T>(w.v[0])));
    const T b = device_sqrt(T(-2) * device_ln(unit_uniform<T>(w.v[2])));
    const T p = (T(int(w.v[1]) >> 8) + T(0.5)) * T(3.14159265358979323846 / 8388608.0);
    const T q = (T(int(w.v[3]) >> 8) + T(0.5)) * T(3.14159265358979323846 / 8388608.0);
    return {a * device_cos(p), a * device_sin(p), b * device_cos(q)};
}

// The sequence of random draws of one particle in one step.
struct Random {
    RandomKey key;
    u64 step;
    u32 tag, draw;
    __device__ __forceinline__ Words words() { return random_single(key, step, tag, draw++); }
};

template <class T> __device__ __forceinline__ T device_uniform(Random& r) { return unit_uniform<T>(r.words().v[0]); }
template <class T> __device__ __forceinline__ Vec3<T> device_normal3(Random& r) { return normal3<T>(r.words()); }
