// Grows chains monomer by monomer; walk.rs, grow.rs, and perm.rs are bit-identical counterparts on the CPU.
//
// One thread grows one chain. Each thread stores occupied sites in its own hash table, and beads in a list. Sums are
// integers, so the order of threads does not matter. Macros before this text define the chains.
#include "galamost/philox.cuh"
#include "galamost/reduce.cuh"

typedef long long i64;

// products and sums that the compiler must not fuse
#ifdef GALAMOST_HOST
__device__ __forceinline__ double mul(double a, double b) { return a * b; }
__device__ __forceinline__ double add(double a, double b) { return a + b; }
#else
__device__ __forceinline__ double mul(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
#endif

#ifdef SMALL
typedef u32 Key;
#define KEY_BITS 10
#else
typedef u64 Key;
#define KEY_BITS 21
#endif

__device__ __forceinline__ constexpr Key key_part(int x, int axis) {
    return Key(x + (1 << (KEY_BITS - 1))) << (KEY_BITS * axis);
}
__device__ __forceinline__ constexpr Key key_of(int x, int y, int z) { return key_part(x, 0) | key_part(y, 1) | key_part(z, 2); }

// A weight m 2^e.
struct Weight { double m; int e; };

__device__ __forceinline__ double power(int e) { return __longlong_as_double(i64(e + 1023) << 52); }

__device__ __forceinline__ Weight times(Weight w, double f) {
    const double m = mul(w.m, f);
    if (m > power(256)) return {mul(m, power(-256)), w.e + 256};
    if (m < power(-256)) return {mul(m, power(256)), w.e - 256};
    return {m, w.e};
}
// Returns m 2^(e + shift), or 0 or a very large number out of the range of double.
__device__ __forceinline__ double scaled(Weight w, int shift) {
    const int e = w.e + shift;
    if (e < -1000) return 0.0;
    if (e > 700) return 1e300;
    return mul(w.m, power(e));
}
__device__ __forceinline__ int exponent(Weight w) { return w.e + int((__double_as_longlong(w.m) >> 52) & 0x7ff) - 1023; }

struct Draws {
    RandomKey key;
    u64 chain;
    __device__ __forceinline__ Words words(u32 draw, u32 stream) const {
        return philox4x32<7>(u32(chain), draw, stream, u32(chain >> 32), key.key[0], key.key[1]);
    }
};

struct Grown { double factor; u32 contacts; int x, y, z; };

__device__ __forceinline__ bool allowed(const ChainArgs& a, int x, int y, int z) {
#if WALLS > 0
    const i64 p[3] = {i64(x) * WALL_UNITS, i64(y) * WALL_UNITS, i64(z) * WALL_UNITS};
#pragma unroll
    for (int k = 0; k < WALLS; ++k) {
        const WallRow& w = a.walls[k];
        if (w.kind == 0) {
            const i64 c = w.side == 0 ? p[0] : w.side == 1 ? p[1] : p[2];
            if (c < w.low || c > w.high) return false;
        } else {
            const i64 dx = p[0] - w.center[0], dy = p[1] - w.center[1], dz = p[2] - w.center[2];
            const i64 d2 = dx * dx + dy * dy + dz * dz;
            if (w.kind == 1 ? d2 > w.radius2 : d2 < w.radius2) return false;
        }
    }
#endif
    return true;
}

// A growing chain: n monomers, the last one at x, y, z.
struct Walk {
    u32 n;
    int x, y, z;
    double sx, sy, sz, square;
#ifndef BEADS
    Key* table;
#endif
#ifdef PLACES
    int4* place;
    u32 stride;
    __device__ __forceinline__ int4& at(u32 i) const { return place[u64(i) * stride]; }
#endif

#ifndef BEADS
    __device__ __forceinline__ u32 slot(Key k) const {
#ifdef SMALL
        u32 h = (k * 0x9E3779B9u) >> (32 - BITS);
#else
        u32 h = u32((k * 0x9E3779B97F4A7C15ull) >> (64 - BITS));
#endif
        while (table[h] != 0 && table[h] != k) h = (h + 1) & ((1u << BITS) - 1);
        return h;
    }
    __device__ __forceinline__ bool occupied(Key k) const { return table[slot(k)] != 0; }
#endif

    __device__ __forceinline__ void sum(double sign) {
        const double fx = x, fy = y, fz = z;
        sx = add(sx, mul(sign, fx));
        sy = add(sy, mul(sign, fy));
        sz = add(sz, mul(sign, fz));
        square = add(square, mul(sign, add(add(mul(fx, fx), mul(fy, fy)), mul(fz, fz))));
    }
    __device__ __forceinline__ void push(int px, int py, int pz) {
        x = px;
        y = py;
        z = pz;
#ifndef BEADS
        const Key k = key_of(x, y, z);
        table[slot(k)] = k;
#endif
#ifdef PLACES
        at(n) = {x, y, z, 0};
#endif
        ++n;
        sum(1.0);
    }
    __device__ __forceinline__ void begin() {
#if !defined(BEADS)
        int4* all = reinterpret_cast<int4*>(table);
        for (u32 k = 0; k < (sizeof(Key) << BITS) / sizeof(int4); ++k) all[k] = {0, 0, 0, 0};
#endif
        n = 0;
        sx = sy = sz = square = 0.0;
        push(0, 0, 0);
    }
    __device__ __forceinline__ double end2() const {
        const double fx = x, fy = y, fz = z;
        return add(add(mul(fx, fx), mul(fy, fy)), mul(fz, fz));
    }
    __device__ __forceinline__ double gyration2() const {
        const double of_mean = add(add(mul(sx, sx), mul(sy, sy)), mul(sz, sz));
        const double m = n;
        return add(mul(m, square), -of_mean) / mul(m, m);
    }
};

#ifndef BEADS
static constexpr int OFFSET[Z][3] = {OFFSETS};

__device__ __forceinline__ Key step(int j) {
    return key_of(OFFSET[j][0], OFFSET[j][1], OFFSET[j][2]) - key_of(0, 0, 0);
}

__device__ __forceinline__ bool grow(const Walk& w, const ChainArgs& a, const Draws& draws, u32 draw, Grown& g) {
#ifdef LINEAR
    const int x = w.x, y = w.y, z = w.z;
#else
    const int4 from = w.at(a.parents[w.n]);
    const int x = from.x, y = from.y, z = from.z;
#endif
    const Key here = key_of(x, y, z);
    u32 free = 0;
#pragma unroll
    for (int j = 0; j < Z; ++j) {
        const bool is = !w.occupied(here + step(j)) && allowed(a, x + OFFSET[j][0], y + OFFSET[j][1], z + OFFSET[j][2]);
        free |= u32(is) << j;
    }
    if (free == 0) return false;
    const u32 word = draws.words(draw >> 2, 0u).v[draw & 3];
    int chosen = -1;
#ifndef WEIGHTED
    const u32 count = __popc(free);
    u32 left = u32((u64(word) * count) >> 32);
    g.factor = mul(double(count), a.factors[0]);
    g.contacts = 0;
#pragma unroll
    for (int j = 0; j < Z; ++j) {
        if (free >> j & 1u) {
            if (left == 0 && chosen < 0) chosen = j;
            --left;
        }
    }
#else
    u32 total = 0;
    u32 contacts[Z];
#pragma unroll
    for (int j = 0; j < Z; ++j) {
        contacts[j] = 0;
        if (free >> j & 1u) {
            u32 near = 0;
#pragma unroll
            for (int l = 0; l < Z; ++l) near += w.occupied(here + step(j) + step(l));
            contacts[j] = near - 1;
            total += a.weights[near - 1];
        }
    }
    u64 left = (u64(word) * total) >> 32;
#pragma unroll
    for (int j = 0; j < Z; ++j) {
        if ((free >> j & 1u) && chosen < 0) {
            const u32 weight = a.weights[contacts[j]];
            if (left < weight) {
                chosen = j;
                g.contacts = contacts[j];
            } else {
                left -= weight;
            }
        }
    }
    g.factor = mul(double(total), a.factors[g.contacts]);
#endif
    int dx = 0, dy = 0, dz = 0;
#pragma unroll
    for (int j = 0; j < Z; ++j) {
        if (j == chosen) {
            dx = OFFSET[j][0];
            dy = OFFSET[j][1];
            dz = OFFSET[j][2];
        }
    }
    g.x = x + dx;
    g.y = y + dy;
    g.z = z + dz;
    return true;
}
#else
__device__ __forceinline__ i64 distance2(int ax, int ay, int az, int bx, int by, int bz) {
    const int dx = ax - bx, dy = ay - by, dz = az - bz;
    return i64(dx) * dx + i64(dy) * dy + i64(dz) * dz;
}

// Returns a bond with a direction uniform on the sphere.
__device__ __forceinline__ int4 direction(const Draws& draws, u32 draw, u32 trial) {
    const i64 one = 1ll << 60;
    const double scale = 262144.0 / 1152921504606846976.0;
    for (u32 attempt = 0;; ++attempt) {
        const Words w = draws.words(draw, 0x10000u | trial << 8 | attempt);
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            const i64 x = int(w.v[2 * p]) >> 1, y = int(w.v[2 * p + 1]) >> 1;
            const i64 s = x * x + y * y;
            if (s < one) {
                const double root = mul(sqrt(double(one - s)), 2.0 * scale);
                return {int(rint(mul(double(x), root))), int(rint(mul(double(y), root))), int(rint(mul(double(one - 2 * s), scale))), 0};
            }
        }
    }
}

// Trials that are processed together.
#define TRIAL_GROUP (TRIALS < 8 ? TRIALS : 8)

__device__ __forceinline__ bool grow(const Walk& w, const ChainArgs& a, const Draws& draws, u32 draw, Grown& g) {
#ifdef LINEAR
    const int parent = int(w.n) - 1;
    const int x = w.x, y = w.y, z = w.z;
#else
    const int parent = int(a.parents[w.n]);
    const int4 from = w.at(parent);
    const int x = from.x, y = from.y, z = from.z;
#endif
    u32 total = 0;
    bool found = false;
    for (u32 begin = 0; begin < TRIALS; begin += TRIAL_GROUP) {
        int tx[TRIAL_GROUP], ty[TRIAL_GROUP], tz[TRIAL_GROUP];
        u32 contacts[TRIAL_GROUP];
        u32 free = 0;
#pragma unroll
        for (int t = 0; t < TRIAL_GROUP; ++t) {
            if (begin + t < TRIALS) {
                const int4 d = direction(draws, draw, begin + t);
                tx[t] = x + d.x;
                ty[t] = y + d.y;
                tz[t] = z + d.z;
                free |= u32(allowed(a, tx[t], ty[t], tz[t])) << t;
            }
            contacts[t] = 0;
        }
        for (int j = int(w.n) - 1; j >= 0 && free != 0;) {
            const int4 b = w.at(j);
            const i64 d2 = distance2(b.x, b.y, b.z, x, y, z);
            int skip = 1;
            if (d2 <= i64(REACH) * REACH) {
                if (j != parent) {
#pragma unroll
                    for (int t = 0; t < TRIAL_GROUP; ++t) {
                        const i64 e2 = distance2(b.x, b.y, b.z, tx[t], ty[t], tz[t]);
                        if (e2 < SIGMA2) free &= ~(1u << t);
#ifdef WEIGHTED
                        contacts[t] += e2 < REACH2;
#endif
                    }
                }
            } else {
#ifdef LINEAR
                // a bead this far away is followed by others out of reach
                const int bonds = int((sqrtf(float(d2)) * 0.99999f - float(REACH)) * (0.99999f / 262144.0f));
                skip = bonds > 1 ? bonds : 1;
#endif
            }
            j -= skip;
        }
#pragma unroll
        for (int t = 0; t < TRIAL_GROUP; ++t) {
            if (free >> t & 1u) {
#ifdef WEIGHTED
                const u32 c = contacts[t] < CONTACTS - 1 ? contacts[t] : CONTACTS - 1;
                const u32 weight = a.weights[c];
#else
                const u32 c = 0, weight = 1;
#endif
                total += weight;
                const u32 trial = begin + t;
                const u32 word = draws.words(draw, 0x20000u | trial >> 2).v[trial & 3];
                if ((u64(word) * total) >> 32 < weight) {
                    g.x = tx[t];
                    g.y = ty[t];
                    g.z = tz[t];
                    g.contacts = c;
                    found = true;
                }
            }
        }
    }
    if (!found) return false;
    g.factor = mul(double(total), a.factors[g.contacts]);
    return true;
}
#endif

__device__ __forceinline__ u32 row_of(u32 n, u32 contacts) {
    return (n - 1) * WIDTH + (WIDTH == 1 ? 0u : contacts < WIDTH ? contacts : u32(WIDTH) - 1);
}
__device__ __forceinline__ u32 block_of(u64 chain) { return u32((chain / 32) % BLOCKS); }

// Computes the numbers that a chain adds to its bin; returns false if its weight is too large.
__device__ __forceinline__ bool numbers(const ChainArgs& a, const Walk& w, Weight weight, u32 contacts, u32 row, i64 v[6]) {
    const double t = scaled(weight, 30 - a.scales[row]);
    if (t > 4398046511104.0) {
        atomicMax(&a.over[row], exponent(weight));
        return false;
    }
    const double per = 1.0 / double(w.n), area = mul(a.area, per);
    v[0] = 1;
    v[1] = i64(rint(t));
    v[2] = i64(rint(mul(mul(t, t), power(-40))));
    v[3] = i64(rint(mul(t, mul(w.end2(), area))));
    v[4] = i64(rint(mul(t, mul(w.gyration2(), area))));
    v[5] = i64(rint(mul(t, mul(double(contacts), per))));
    return true;
}

__device__ __forceinline__ void histogram(const ChainArgs& a, const Walk& w, u64 chain, i64 v) {
#if BINS > 0
    if (w.n == MONOMERS) {
        const double at = mul(sqrt(w.end2()), a.per_unit);
        const u32 bin = at < BINS - 1 ? u32(at) : BINS - 1;
        atomicAdd(&a.bins[block_of(chain) * BINS + bin], u64(v));
    }
#endif
}

__device__ __forceinline__ i64 shuffled(i64 x, u32 d) { return __shfl_xor_sync(0xffffffffu, x, d); }

// Adds the numbers of the chains of a warp, v[0] to v[5], to six sums; v[6] and v[7] are 0.
__device__ __forceinline__ void add_over_warp(u64* to, i64 v[8]) {
    const u32 lane = threadIdx.x & 31u;
    // eight sums over the warp with nine exchanges: each halves the number of sums per lane
#pragma unroll
    for (int half = 4, bit = 1; half > 0; half /= 2, bit *= 2) {
        const bool high = (lane & bit) != 0;
#pragma unroll
        for (int q = 0; q < half; ++q) {
            const i64 gives = high ? v[q] : v[q + half], keeps = high ? v[q + half] : v[q];
            v[q] = keeps + shuffled(gives, bit);
        }
    }
    i64 total = v[0] + shuffled(v[0], 8);
    total += shuffled(total, 16);
    const u32 q = (lane & 1u) * 4 + (lane & 2u) + (lane >> 2 & 1u);
    if (lane < 8 && q < 6) atomicAdd(&to[q], u64(total));
}

__device__ __forceinline__ Walk walk_of(const ChainArgs& a, u32 thread) {
    Walk w;
#ifndef BEADS
    w.table = static_cast<Key*>(a.table) + (u64(thread) << BITS);
#endif
#ifdef PLACES
    w.place = a.places + thread;
    w.stride = a.threads;
#endif
    return w;
}

