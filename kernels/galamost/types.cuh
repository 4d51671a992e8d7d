// Numbers, vectors and functions of the device language.
//
// The engine defines GALAMOST_DOUBLE for precision Double, and GALAMOST_MIXED for positions with additional low bits.
#pragma once

#ifdef GALAMOST_DOUBLE
typedef double real;
#else
typedef float real;
#endif

typedef unsigned int u32;
typedef unsigned long long u64;

// The offset of a member, as a constant expression. NVRTC has no offsetof.
#ifdef __CUDACC_RTC__
#define GALAMOST_OFFSET(type, member) ((u64)__INTADDR__(&((type*)0)->member))
#else
#define GALAMOST_OFFSET(type, member) __builtin_offsetof(type, member)
#endif

template <class T> struct Plain { typedef T type; };
template <class T> struct Plain<const T> { typedef T type; };
template <class T> using PlainType = typename Plain<T>::type;

// A tuple of plain numbers such as (n, 1) converts to the requested element types.
template <class A, class B> struct Tuple2 {
    A v0; B v1;
    template <class E, class F> __device__ __forceinline__ operator Tuple2<E, F>() const { return {E(v0), F(v1)}; }
};
template <class A, class B, class C> struct Tuple3 {
    A v0; B v1; C v2;
    template <class E, class F, class G> __device__ __forceinline__ operator Tuple3<E, F, G>() const {
        return {E(v0), F(v1), G(v2)};
    }
};
template <class A, class B, class C, class D> struct Tuple4 {
    A v0; B v1; C v2; D v3;
    template <class E, class F, class G, class H> __device__ __forceinline__ operator Tuple4<E, F, G, H>() const {
        return {E(v0), F(v1), G(v2), H(v3)};
    }
};
template <class A, class B, class C, class D, class E> struct Tuple5 {
    A v0; B v1; C v2; D v3; E v4;
    template <class P, class Q, class R, class S, class T>
    __device__ __forceinline__ operator Tuple5<P, Q, R, S, T>() const {
        return {P(v0), Q(v1), R(v2), S(v3), T(v4)};
    }
};
template <class A, class B, class C, class D, class E, class F> struct Tuple6 {
    A v0; B v1; C v2; D v3; E v4; F v5;
    template <class P, class Q, class R, class S, class T, class U>
    __device__ __forceinline__ operator Tuple6<P, Q, R, S, T, U>() const {
        return {P(v0), Q(v1), R(v2), S(v3), T(v4), U(v5)};
    }
};
template <class A, class B> __device__ __forceinline__ Tuple2<A, B> tuple(A a, B b) { return {a, b}; }
template <class A, class B, class C> __device__ __forceinline__ Tuple3<A, B, C> tuple(A a, B b, C c) { return {a, b, c}; }
template <class A, class B, class C, class D>
__device__ __forceinline__ Tuple4<A, B, C, D> tuple(A a, B b, C c, D d) { return {a, b, c, d}; }
template <class A, class B, class C, class D, class E>
__device__ __forceinline__ Tuple5<A, B, C, D, E> tuple(A a, B b, C c, D d, E e) {
    return {a, b, c, d, e};
}
template <class A, class B, class C, class D, class E, class F>
__device__ __forceinline__ Tuple6<A, B, C, D, E, F> tuple(A a, B b, C c, D d, E e, F f) {
    return {a, b, c, d, e, f};
}

template <class T> struct Vec3 { T x, y, z; };
template <class T> __device__ __forceinline__ Vec3<T> operator+(Vec3<T> a, Vec3<T> b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
template <class T> __device__ __forceinline__ Vec3<T> operator-(Vec3<T> a, Vec3<T> b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
template <class T> __device__ __forceinline__ Vec3<T> operator-(Vec3<T> a) { return {-a.x, -a.y, -a.z}; }
template <class T> __device__ __forceinline__ Vec3<T> operator*(Vec3<T> a, T s) { return {a.x * s, a.y * s, a.z * s}; }
template <class T> __device__ __forceinline__ Vec3<T> operator/(Vec3<T> a, T s) { return {a.x / s, a.y / s, a.z / s}; }
template <class T> __device__ __forceinline__ void operator+=(Vec3<T>& a, Vec3<T> b) { a = a + b; }
template <class T> __device__ __forceinline__ void operator-=(Vec3<T>& a, Vec3<T> b) { a = a - b; }
template <class T> __device__ __forceinline__ void operator*=(Vec3<T>& a, T s) { a = a * s; }
template <class T> __device__ __forceinline__ void operator/=(Vec3<T>& a, T s) { a = a / s; }
template <class T> __device__ __forceinline__ bool operator==(Vec3<T> a, Vec3<T> b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
template <class T> __device__ __forceinline__ bool operator!=(Vec3<T> a, Vec3<T> b) { return !(a == b); }
template <class T> __device__ __forceinline__ Vec3<T> device_vec3(T x, T y, T z) { return {x, y, z}; }
template <class A, class B> __device__ __forceinline__ bool operator==(Tuple2<A, B> a, Tuple2<A, B> b) { return a.v0 == b.v0 && a.v1 == b.v1; }
template <class A, class B> __device__ __forceinline__ bool operator!=(Tuple2<A, B> a, Tuple2<A, B> b) { return !(a == b); }
template <class A, class B, class C> __device__ __forceinline__ bool operator==(Tuple3<A, B, C> a, Tuple3<A, B, C> b) {
    return a.v0 == b.v0 && a.v1 == b.v1 && a.v2 == b.v2;
}
template <class A, class B, class C> __device__ __forceinline__ bool operator!=(Tuple3<A, B, C> a, Tuple3<A, B, C> b) { return !(a == b); }
template <class A, class B, class C, class D>
__device__ __forceinline__ bool operator==(Tuple4<A, B, C, D> a, Tuple4<A, B, C, D> b) {
    return a.v0 == b.v0 && a.v1 == b.v1 && a.v2 == b.v2 && a.v3 == b.v3;
}
template <class A, class B, class C, class D>
__device__ __forceinline__ bool operator!=(Tuple4<A, B, C, D> a, Tuple4<A, B, C, D> b) { return !(a == b); }
template <class A, class B, class C, class D, class E>
__device__ __forceinline__ bool operator==(Tuple5<A, B, C, D, E> a, Tuple5<A, B, C, D, E> b) {
    return a.v0 == b.v0 && a.v1 == b.v1 && a.v2 == b.v2 && a.v3 == b.v3 && a.v4 == b.v4;
}
template <class A, class B, class C, class D, class E>
__device__ __forceinline__ bool operator!=(Tuple5<A, B, C, D, E> a, Tuple5<A, B, C, D, E> b) { return !(a == b); }
template <class A, class B, class C, class D, class E, class F>
__device__ __forceinline__ bool operator==(Tuple6<A, B, C, D, E, F> a, Tuple6<A, B, C, D, E, F> b) {
    return a.v0 == b.v0 && a.v1 == b.v1 && a.v2 == b.v2 && a.v3 == b.v3 && a.v4 == b.v4 && a.v5 == b.v5;
}
template <class A, class B, class C, class D, class E, class F>
__device__ __forceinline__ bool operator!=(Tuple6<A, B, C, D, E, F> a, Tuple6<A, B, C, D, E, F> b) { return !(a == b); }

// x * y + z, rounded once on a GPU. NVRTC does not contract products and sums by itself (--fmad=false): it would do so
// differently in each kernel, and the same function would give other bits in a kernel that also computes energies.
#ifdef GALAMOST_HOST
__device__ __forceinline__ float device_mul_add(float x, float y, float z) { return x * y + z; }
__device__ __forceinline__ double device_mul_add(double x, double y, double z) { return x * y + z; }
#else
__device__ __forceinline__ float device_mul_add(float x, float y, float z) { return fmaf(x, y, z); }
__device__ __forceinline__ double device_mul_add(double x, double y, double z) { return fma(x, y, z); }
#endif
template <class T> __device__ __forceinline__ Vec3<T> device_mul_add(Vec3<T> x, T y, Vec3<T> z) {
    return {device_mul_add(x.x, y, z.x), device_mul_add(x.y, y, z.y), device_mul_add(x.z, y, z.z)};
}

template <class T> __device__ __forceinline__ T device_dot(Vec3<T> a, Vec3<T> b) {
    return device_mul_add(a.z, b.z, device_mul_add(a.y, b.y, a.x * b.x));
}
template <class T> __device__ __forceinline__ Vec3<T> device_cross(Vec3<T> a, Vec3<T> b) {
    return {device_mul_add(a.y, b.z, -(a.z * b.y)), device_mul_add(a.z, b.x, -(a.x * b.z)),
            device_mul_add(a.x, b.y, -(a.y * b.x))};
}

// A rotation x i + y j + z k + w. Keep in sync with plugin-api/src/device/quaternion.rs.
template <class T> struct Quaternion { T x, y, z, w; };
template <class T> __device__ __forceinline__ Quaternion<T> device_quaternion(T x, T y, T z, T w) { return {x, y, z, w}; }
template <class T> __device__ __forceinline__ Vec3<T> device_rotate(Quaternion<T> q, Vec3<T> v) {
    const Vec3<T> u = {q.x, q.y, q.z};
    return device_mul_add(device_cross(u, device_mul_add(v, q.w, device_cross(u, v))), T(2), v);
}
template <class T> __device__ __forceinline__ Vec3<T> device_rotate_back(Quaternion<T> q, Vec3<T> v) {
    const Vec3<T> u = {q.x, q.y, q.z};
    return device_mul_add(device_cross(u, device_mul_add(v, -q.w, device_cross(u, v))), T(2), v);
}
template <class T> __device__ __forceinline__ Vec3<T> device_axis(Quaternion<T> q) {
    return {T(2) * device_mul_add(q.x, q.z, q.w * q.y), T(2) * device_mul_add(q.y, q.z, -(q.w * q.x)),
            device_mul_add(T(-2), device_mul_add(q.x, q.x, q.y * q.y), T(1))};
}
template <class T> __device__ __forceinline__ Quaternion<T> operator*(Quaternion<T> a, Quaternion<T> b) {
    return {a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z};
}

__device__ __forceinline__ float device_sqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ double device_sqrt(double x) { return sqrt(x); }
__device__ __forceinline__ float device_rsqrt(float x) { return rsqrtf(x); }
__device__ __forceinline__ double device_rsqrt(double x) { return rsqrt(x); }
__device__ __forceinline__ float device_recip(float x) { return 1.0f / x; }
__device__ __forceinline__ double device_recip(double x) { return 1.0 / x; }
__device__ __forceinline__ float device_exp(float x) { return expf(x); }
__device__ __forceinline__ double device_exp(double x) { return exp(x); }
__device__ __forceinline__ float device_ln(float x) { return logf(x); }
__device__ __forceinline__ double device_ln(double x) { return log(x); }
// Sine and cosine of |x| <= 10^4 by n quarters of a turn and a remainder in -pi/4 ... pi/4. The toolkit's functions accept larger angles, too,
// for which they have a branch. Of an angle whose sine and cosine are needed, the compiler computes everything once.
struct QuarterTurns {
    float sine, cosine;
    u32 n;

    __device__ __forceinline__ explicit QuarterTurns(float x) {
        const float turns = rintf(x * 0.636619772f);
        // the first difference is exact: it has at most 24 bits
        const float r = fmaf(-turns, -4.37113883e-8f, fmaf(-turns, 1.57079637f, x)), r2 = r * r;
        // polynomials of the Cephes library
        sine = device_mul_add(r * r2, device_mul_add(r2, device_mul_add(r2, -1.9515295891e-4f, 8.3321608736e-3f), -1.6666654611e-1f), r);
        cosine = device_mul_add(r2 * r2, device_mul_add(r2, device_mul_add(r2, 2.443315711809948e-5f, -1.388731625493765e-3f), 4.166664568298827e-2f),
                                device_mul_add(r2, -0.5f, 1.0f));
        n = u32(int(turns));
    }
};
__device__ __forceinline__ float device_sin(float x) {
    const QuarterTurns t(x);
    const float s = t.n & 1u ? t.cosine : t.sine;
    return t.n & 2u ? -s : s;
}
__device__ __forceinline__ double device_sin(double x) { return sin(x); }
__device__ __forceinline__ float device_cos(float x) {
    const QuarterTurns t(x);
    const float c = t.n & 1u ? t.sine : t.cosine;
    return (t.n + 1u) & 2u ? -c : c;
}
__device__ __forceinline__ double device_cos(double x) { return cos(x); }
__device__ __forceinline__ float device_acos(float x) { return acosf(x); }
__device__ __forceinline__ double device_acos(double x) { return acos(x); }
__device__ __forceinline__ float device_atan2(float y, float x) { return atan2f(y, x); }
__device__ __forceinline__ double device_atan2(double y, double x) { return atan2(y, x); }
// x^y for x > 0; NaN for x < 0. The toolkit's functions use logarithms of more digits than x has. If x is 0, the result is that of the smallest
// normal number, as on the CPU.
__device__ __forceinline__ float device_powf(float x, float y) { return exp2f(y * log2f(x == 0.0f ? 1.17549435e-38f : x)); }
__device__ __forceinline__ double device_powf(double x, double y) { return exp(y * log(x == 0.0 ? 2.2250738585072014e-308 : x)); }
__device__ __forceinline__ float device_abs(float x) { return fabsf(x); }
__device__ __forceinline__ double device_abs(double x) { return fabs(x); }
__device__ __forceinline__ float device_floor(float x) { return floorf(x); }
__device__ __forceinline__ double device_floor(double x) { return floor(x); }
__device__ __forceinline__ float device_round(float x) { return rintf(x); }
__device__ __forceinline__ double device_round(double x) { return rint(x); }
template <class T> __device__ __forceinline__ T device_norm2(Vec3<T> a) { return device_dot(a, a); }
template <class T> __device__ __forceinline__ T device_norm(Vec3<T> a) { return device_sqrt(device_dot(a, a)); }
template <class T> __device__ __forceinline__ Quaternion<T> device_normalized(Quaternion<T> q) {
    const T s = device_rsqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    return {q.x * s, q.y * s, q.z * s, q.w * s};
}
template <class T> __device__ __forceinline__ T device_powi(T x, int n) {
    T result = T(1), base = x;
    for (u32 left = n < 0 ? 0u - u32(n) : u32(n); left > 0u; left >>= 1) {
        if (left & 1u) result *= base;
        base *= base;
    }
    return n < 0 ? T(1) / result : result;
}

// The device language's operators with Rust's semantics for integers and booleans. In C++, signed overflow, shifts
// beyond the width and out-of-range casts are undefined, and `&` of two bools is an int.
template <class T> struct Whole { static constexpr bool is = false, is_signed = false; static constexpr int bits = 0; };
template <> struct Whole<int> { static constexpr bool is = true, is_signed = true; static constexpr int bits = 32; };
template <> struct Whole<u32> { static constexpr bool is = true, is_signed = false; static constexpr int bits = 32; };
template <> struct Whole<u64> { static constexpr bool is = true, is_signed = false; static constexpr int bits = 64; };
template <class T> struct Truth { static constexpr bool is = false; };
template <> struct Truth<bool> { static constexpr bool is = true; };

// The common type of two numbers, one of which may be a literal.
template <class A, class B> using device_common = PlainType<decltype(A() + B())>;

template <class A, class B> __device__ __forceinline__ auto device_add(A a, B b) {
    if constexpr (Whole<decltype(a + b)>::is_signed) return int(u32(a) + u32(b));
    else return a + b;
}
template <class A, class B> __device__ __forceinline__ auto device_sub(A a, B b) {
    if constexpr (Whole<decltype(a - b)>::is_signed) return int(u32(a) - u32(b));
    else return a - b;
}
template <class A, class B> __device__ __forceinline__ auto device_mul(A a, B b) {
    if constexpr (Whole<decltype(a * b)>::is_signed) return int(u32(a) * u32(b));
    else return a * b;
}
// Other numbers and literals; see the overloads for floating-point numbers.
template <class A, class B, class C> __device__ __forceinline__ auto device_mul_add(A x, B y, C z) {
    return device_add(device_mul(x, y), z);
}
template <class A, class B, class C> __device__ __forceinline__ auto device_mul_sub(A x, B y, C z) {
    if constexpr (Whole<decltype(x * y - z)>::is) return device_sub(device_mul(x, y), z);
    else return device_mul_add(x, y, -z);
}
template <class A, class B, class C> __device__ __forceinline__ auto device_sub_mul(C z, A x, B y) {
    if constexpr (Whole<decltype(z - x * y)>::is) return device_sub(z, device_mul(x, y));
    else return device_mul_add(-x, y, z);
}
template <class T> __device__ __forceinline__ T device_neg(T a) {
    if constexpr (Whole<T>::is_signed) return int(0u - u32(a));
    else return -a;
}
// An integer division by 0 gives 0; on the CPU it panics.
template <class A, class B> __device__ __forceinline__ auto device_div(A a, B b) {
    using T = PlainType<decltype(a / b)>;
    if constexpr (Whole<T>::is) {
        if (b == B(0)) return T(0);
        if constexpr (Whole<T>::is_signed) {
            if (b == B(-1)) return T(device_neg(T(a)));
        }
    }
    return a / b;
}
__device__ __forceinline__ double device_rem(double a, double b) { return fmod(a, b); }
__device__ __forceinline__ float device_rem(float a, float b) { return fmodf(a, b); }
template <class A, class B> __device__ __forceinline__ auto device_rem(A a, B b) {
    using T = PlainType<decltype(a % b)>;
    if (b == B(0)) return T(0);
    if constexpr (Whole<T>::is_signed) {
        if (b == B(-1)) return T(0);
    }
    return T(a % b);
}
// Shift distances are taken modulo the width.
template <class A, class B> __device__ __forceinline__ A device_shl(A a, B b) {
    const u32 distance = u32(b) & u32(Whole<A>::bits - 1);
    if constexpr (Whole<A>::is_signed) return A(u32(a) << distance);
    else return a << distance;
}
template <class A, class B> __device__ __forceinline__ A device_shr(A a, B b) {
    return a >> (u32(b) & u32(Whole<A>::bits - 1));
}
template <class A, class B> __device__ __forceinline__ auto device_and(A a, B b) {
    if constexpr (Truth<A>::is) return bool(a & b);
    else return a & b;
}
template <class A, class B> __device__ __forceinline__ auto device_or(A a, B b) {
    if constexpr (Truth<A>::is) return bool(a | b);
    else return a | b;
}
template <class A, class B> __device__ __forceinline__ auto device_xor(A a, B b) {
    if constexpr (Truth<A>::is) return bool(a ^ b);
    else return a ^ b;
}
template <class T> __device__ __forceinline__ T device_not(T x) {
    if constexpr (Truth<T>::is) return !x;
    else return ~x;
}
template <class A, class B> __device__ __forceinline__ auto device_min(A a, B b) {
    using T = device_common<A, B>;
    return T(a) < T(b) ? T(a) : T(b);
}
template <class A, class B> __device__ __forceinline__ auto device_max(A a, B b) {
    using T = device_common<A, B>;
    return T(a) > T(b) ? T(a) : T(b);
}
__device__ __forceinline__ int device_abs(int x) { return x < 0 ? device_neg(x) : x; }

template <class A, class B> __device__ __forceinline__ void device_set_add(A& a, B b) { a = device_add(a, b); }
template <class A, class B, class C> __device__ __forceinline__ void device_set_mul_add(A& a, B x, C y) { a = device_mul_add(x, y, a); }
template <class A, class B, class C> __device__ __forceinline__ void device_set_sub_mul(A& a, B x, C y) { a = device_sub_mul(a, x, y); }
template <class A, class B> __device__ __forceinline__ void device_set_sub(A& a, B b) { a = device_sub(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_mul(A& a, B b) { a = device_mul(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_div(A& a, B b) { a = device_div(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_rem(A& a, B b) { a = device_rem(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_and(A& a, B b) { a = device_and(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_or(A& a, B b) { a = device_or(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_xor(A& a, B b) { a = device_xor(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_shl(A& a, B b) { a = device_shl(a, b); }
template <class A, class B> __device__ __forceinline__ void device_set_shr(A& a, B b) { a = device_shr(a, b); }

// Casts saturate: a number out of range becomes the nearest representable one, NaN becomes 0.
template <class T, class F> __device__ __forceinline__ T device_cast(F x) {
    if constexpr (Whole<T>::is && !Whole<F>::is && !Truth<F>::is) {
        constexpr F high = Whole<T>::bits == 64 ? F(18446744073709551616.0) : Whole<T>::is_signed ? F(2147483648.0) : F(4294967296.0);
        constexpr F low = Whole<T>::is_signed ? F(-2147483648.0) : F(0);
        if (x != x) return T(0);
        if (x <= low) return Whole<T>::is_signed ? T(0x80000000u) : T(0);
        if (x >= high) return Whole<T>::is_signed ? T(0x7fffffff) : T(~T(0));
        return T(x);
    } else {
        return T(x);
    }
}

// Constants without a C++ literal, from the bits of an f64.
template <class T> __device__ __forceinline__ T device_bits(u64 bits) { return T(__longlong_as_double((long long)bits)); }

// Four numbers that are loaded and stored at once.
#ifdef GALAMOST_DOUBLE
struct alignas(32) Vec4 { real x, y, z, w; };
#else
struct alignas(16) Vec4 { real x, y, z, w; };
#endif

// Position and type: fixed point in units of 2^-32 of the box length, or f64.
#ifdef GALAMOST_DOUBLE
struct alignas(32) PosType { double x, y, z; u32 kind, reserved; };
#else
struct alignas(16) PosType { int x, y, z; u32 kind; };
#endif

// Loads through the read-only cache, except in the persistent kernel, which also writes these arrays.
#ifdef GALAMOST_STEPS
#define GALAMOST_READ(p) (*(p))
#else
#define GALAMOST_READ(p) __ldg(p)
#endif
__device__ __forceinline__ Vec4 load(const Vec4* p) {
#ifdef GALAMOST_DOUBLE
    const double2 a = GALAMOST_READ(reinterpret_cast<const double2*>(p)), b = GALAMOST_READ(reinterpret_cast<const double2*>(p) + 1);
    return {a.x, a.y, b.x, b.y};
#else
    const float4 a = GALAMOST_READ(reinterpret_cast<const float4*>(p));
    return {a.x, a.y, a.z, a.w};
#endif
}
__device__ __forceinline__ PosType load(const PosType* p) {
#ifdef GALAMOST_DOUBLE
    const double2 a = GALAMOST_READ(reinterpret_cast<const double2*>(p)), b = GALAMOST_READ(reinterpret_cast<const double2*>(p) + 1);
    return {a.x, a.y, b.x, u32(__double2loint(b.y)), 0u};
#else
    const int4 a = GALAMOST_READ(reinterpret_cast<const int4*>(p));
    return {a.x, a.y, a.z, u32(a.w)};
#endif
}
