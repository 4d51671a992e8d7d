// What kernels of analyzers share; the same numbers are made in positions.rs.
#include "galamost/list.cuh"
#include "galamost/reduce.cuh"

static constexpr u32 NONE = 0xffffffffu;

// Products and sums that are rounded one by one, as on the CPU.
#ifdef __CUDACC__
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double minus(double a, double b) { return __dsub_rn(a, b); }
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ double plus(double a, double b) { return a + b; }
__device__ __forceinline__ double minus(double a, double b) { return a - b; }
#endif

// Coordinate of particle i on an axis, without periodic boundaries.
__device__ __forceinline__ double unwrapped(const StateView& s, u32 i, u32 axis) {
    const double length = s.globals->box_length[axis];
    const PosType p = s.pos_type[i];
#ifdef GALAMOST_DOUBLE
    const double inside = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
#else
    const int high = axis == 0u ? p.x : axis == 1u ? p.y : p.z;
#ifdef GALAMOST_MIXED
    const long long units = (long long)(u64(u32(high)) << 32 | s.pos_low[3u * i + axis]);
    const double inside = times(double(units), length / 18446744073709551616.0);
#else
    const double inside = times(double(high), length / 4294967296.0);
#endif
#endif
    return plus(inside, times(length, double(s.image[3u * i + axis])));
}

__device__ __forceinline__ double velocity(const StateView& s, u32 i, u32 axis) {
    const Vec4 v = s.velocity_mass[i];
    return axis == 0u ? v.x : axis == 1u ? v.y : v.z;
}
