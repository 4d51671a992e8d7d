// Shared code of analyzer kernels; positions.rs computes the same numbers on the CPU.
#include "galamost/list.cuh"
#include "galamost/reduce.cuh"

static constexpr u32 NONE = 0xffffffffu;

// Each product and sum is rounded separately (no fused multiply-add), as on the CPU.
#ifdef __CUDACC__
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double minus(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ double plus(double a, double b) { return a + b; }
__device__ __forceinline__ double minus(double a, double b) { return a - b; }
__device__ __forceinline__ float times(float a, float b) { return a * b; }
__device__ __forceinline__ float plus(float a, float b) { return a + b; }
#endif

// Returns the unwrapped coordinate of particle i on an axis.
__device__ __forceinline__ double unwrapped(const StateView& s, u32 i, u32 axis) {
    const double length = s.globals->box_length[axis];
    const PosType p = s.pos_type[i];
#ifdef GALAMOST_DOUBLE
    const double wrapped = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
#else
    const int high = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
#ifdef GALAMOST_MIXED
    const long long units = (long long)(u64(u32(high)) << 32 | s.pos_low[3u * i + axis]);
    const double wrapped = times(double(units), length / 18446744073709551616.0);
#else
    const double wrapped = times(double(high), length / 4294967296.0);
#endif
#endif
    return plus(wrapped, times(length, double(s.image[3u * i + axis])));
}

__device__ __forceinline__ double velocity(const StateView& s, u32 i, u32 axis) {
    const Vec4 v = s.velocity_mass[i];
    return axis == 0u ? v.x : axis == 1u ? v.y : v.z;
}
