// Constraints on CUDA, equivalent to solver.rs. One thread handles a cluster. With several GPUs, each solves the clusters with own
// particles, and changes these. The numbers of 32 clusters are interleaved: all numbers
// of a cluster are STRIDE = 32 apart, so that the threads of a warp access consecutive ones.
#include "galamost/place.cuh"

typedef Vec3<double> Vector;

// A cluster: its members and pairs, with ten numbers in `work` for each member and four in `vectors` for each pair.
struct Cluster {
    const u32 *members, *pairs;
    const double* squares;
    double *work, *vectors;
    u32 n_members, n_pairs;
    double dt, tolerance;
};

__device__ __forceinline__ double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ __forceinline__ Vector get(const double* p) { return {p[0], p[STRIDE], p[2u * STRIDE]}; }
__device__ __forceinline__ void set(double* p, const Vector& v) {
    p[0] = v.x;
    p[STRIDE] = v.y;
    p[2u * STRIDE] = v.z;
}
// Numbers of member m: position, inverse mass, and two further vectors.
__device__ __forceinline__ double* place_of(const Cluster& c, u32 m) { return c.work + 10u * STRIDE * m; }
__device__ __forceinline__ double& inverse_mass(const Cluster& c, u32 m) { return place_of(c, m)[3u * STRIDE]; }
__device__ __forceinline__ double* first_of(const Cluster& c, u32 m) { return place_of(c, m) + 4u * STRIDE; }
__device__ __forceinline__ double* second_of(const Cluster& c, u32 m) { return place_of(c, m) + 7u * STRIDE; }
// Numbers of pair k: vector and multiplier.
__device__ __forceinline__ double* vector_of(const Cluster& c, u32 k) { return c.vectors + 4u * STRIDE * k; }
__device__ __forceinline__ double& multiplier_of(const Cluster& c, u32 k) { return vector_of(c, k)[3u * STRIDE]; }
__device__ __forceinline__ double square_of(const Cluster& c, u32 k) { return c.squares[STRIDE * k]; }
__device__ __forceinline__ u32 member_of(const Cluster& c, u32 k, u32 end) { return c.pairs[STRIDE * (2u * k + end)]; }
__device__ __forceinline__ u32 tag_of(const Cluster& c, u32 m) { return c.members[2u * STRIDE * m]; }
__device__ __forceinline__ u32 index_of(const StateView& s, const Cluster& c, u32 m) { return s.index_of_tag[tag_of(c, m)]; }
__device__ __forceinline__ u32 before(const Cluster& c, u32 m) { return c.members[STRIDE * (2u * m + 1u)]; }

// Returns r_i - r_j for the nearest image of j, with all stored digits.
__device__ __forceinline__ Vector separation(const StateView& s, u32 i, u32 j) {
#ifdef GALAMOST_DOUBLE
    return difference(s.pos_type[i], s.pos_type[j], make_scale(s.globals));
#else
    const PosType a = s.pos_type[i], b = s.pos_type[j];
    const double* length = s.globals->box_length;
#ifdef GALAMOST_MIXED
    const int p[3] = {a.x, a.y, a.z}, q[3] = {b.x, b.y, b.z};
    double d[3];
    for (int k = 0; k < 3; ++k) {
        const u64 x = u64(u32(p[k])) << 32 | s.pos_low[3u * i + k], y = u64(u32(q[k])) << 32 | s.pos_low[3u * j + k];
        d[k] = double((long long)(x - y)) * (length[k] * (1.0 / 18446744073709551616.0));
    }
    return {d[0], d[1], d[2]};
#else
    const double unit = 1.0 / 4294967296.0;
    return {double(int(u32(a.x) - u32(b.x))) * (length[0] * unit), double(int(u32(a.y) - u32(b.y))) * (length[1] * unit),
            double(int(u32(a.z) - u32(b.z))) * (length[2] * unit)};
#endif
#endif
}

#ifdef GALAMOST_RANKS
__device__ __forceinline__ bool is_own(const StateView& s, u32 i) { return i >= own_begin(s) && i < own_end(s); }

// Returns whether a cluster has an own particle.
__device__ __forceinline__ bool has_own(const StateView& s, const ConstraintArrays& a, u32 number) {
    const u32* members = a.members + 2ull * STRIDE * a.starts[2u * (number / STRIDE)] + number % STRIDE;
    for (u32 m = 0; m < a.sizes[2u * number]; ++m) {
        if (is_own(s, s.index_of_tag[members[2u * STRIDE * m]])) return true;
    }
    return false;
}
#else
__device__ __forceinline__ bool is_own(const StateView&, u32) { return true; }
__device__ __forceinline__ bool has_own(const StateView&, const ConstraintArrays&, u32) { return true; }
#endif

__device__ __forceinline__ Cluster load_cluster(const StateView& s, const ConstraintArrays& a, u32 number) {
    const u32 group = number / STRIDE, lane = number % STRIDE;
    const u64 m0 = u64(a.starts[2u * group]) * STRIDE, k0 = u64(a.starts[2u * group + 1u]) * STRIDE;
    Cluster c = {a.members + 2u * m0 + lane,
                 a.pairs + 2u * k0 + lane,
                 a.squares + k0 + lane,
                 a.work + 10u * m0 + lane,
                 a.vectors + 4u * k0 + lane,
                 a.sizes[2u * number],
                 a.sizes[2u * number + 1u],
                 s.globals->dt,
                 a.tolerance};
    for (u32 m = 0; m < c.n_members; ++m) {
        const u32 i = index_of(s, c, m);
        Vector x = {0.0, 0.0, 0.0};
        if (m > 0u) x = get(place_of(c, before(c, m))) + separation(s, i, index_of(s, c, before(c, m)));
        set(place_of(c, m), x);
        inverse_mass(c, m) = 1.0 / double(s.velocity_mass[i].w);
    }
    return c;
}

// Sets the vectors of the constraints from the vectors at `offset` in the numbers of members.
__device__ __forceinline__ void set_vectors(const Cluster& c, u32 offset) {
    for (u32 k = 0; k < c.n_pairs; ++k) {
        const double *a = place_of(c, member_of(c, k, 0u)), *b = place_of(c, member_of(c, k, 1u));
        set(vector_of(c, k), get(a + STRIDE * offset) - get(b + STRIDE * offset));
    }
}

__device__ __forceinline__ bool is_satisfied(const Cluster& c) {
    for (u32 k = 0; k < c.n_pairs; ++k) {
        const Vector s = get(vector_of(c, k));
        if (!(fabs(dot(s, s) - square_of(c, k)) <= 2.0 * c.tolerance * square_of(c, k))) return false;
    }
    return true;
}

// Corrects the positions along the old vectors of the constraints, or at the start along their present ones. Returns the number of a
// member if this fails, otherwise n_members.
__device__ __forceinline__ u32 shake(const Cluster& c, bool moved) {
    u32 last = 0u;
    for (u32 pass = 0; pass < PASSES; ++pass) {
        double worst = 0.0;
        for (u32 k = 0; k < c.n_pairs; ++k) {
            const u32 a = member_of(c, k, 0u), b = member_of(c, k, 1u);
            const Vector x = get(place_of(c, a)), y = get(place_of(c, b)), d = x - y, s = moved ? get(vector_of(c, k)) : d;
            const double square = square_of(c, k), off = dot(d, d) - square, along = dot(d, s);
            if (!(along > COSINE * square)) return b;
            if (fabs(off) > worst * square) {
                worst = fabs(off) / square;
                last = b;
            }
            const double u = inverse_mass(c, a), v = inverse_mass(c, b);
            const Vector push = s * (off / (2.0 * (u + v) * along));
            set(place_of(c, a), x - push * u);
            set(place_of(c, b), y + push * v);
        }
        if (worst <= 2.0 * c.tolerance) return c.n_members;
    }
    return last;
}

// Removes the velocities (first vectors of members) along the constraints; sets `changed`. Returns as `shake`.
__device__ __forceinline__ u32 project(const Cluster& c, bool& changed) {
    u32 last = 0u;
    for (u32 pass = 0; pass < PASSES; ++pass) {
        double worst = 0.0;
        for (u32 k = 0; k < c.n_pairs; ++k) {
            const u32 a = member_of(c, k, 0u), b = member_of(c, k, 1u);
            const Vector s = get(vector_of(c, k)), x = get(first_of(c, a)), y = get(first_of(c, b));
            const double square = square_of(c, k), along = dot(x - y, s);
            if (!isfinite(along)) return b;
            if (fabs(along) * c.dt > worst * square) {
                worst = fabs(along) * c.dt / square;
                last = b;
            }
            const double m = inverse_mass(c, a), n = inverse_mass(c, b);
            const Vector push = s * (along / ((m + n) * dot(s, s)));
            set(first_of(c, a), x - push * m);
            set(first_of(c, b), y + push * n);
        }
        changed = pass > 0u;
        if (worst <= c.tolerance) return c.n_members;
    }
    return last;
}

// Returns whether a constraint of the cluster is longer than half the box, or nearly so.
__device__ __forceinline__ bool exceeds_half_box(const Globals* g, const Cluster& c) {
    for (u32 k = 0; k < c.n_pairs; ++k) {
        for (u32 axis = 0; axis < g->dimensions; ++axis) {
            if (4.0 * square_of(c, k) > 0.999 * g->box_length[axis] * g->box_length[axis]) return true;
        }
    }
    return false;
}

__device__ __forceinline__ void raise_cluster(const PlaceArgs& a, const Cluster& c, u32 member) {
    if (member >= c.n_members) return;
    const u32 detail = exceeds_half_box(a.state.globals, c) ? 1u : 0u;
    raise_fault(a.state.globals, FaultKind::Component, a.component, tag_of(c, member), detail);
}

__device__ __forceinline__ void constrain(const PlaceArgs& a, const ConstraintArrays& arrays, const Cluster& c, bool moved) {
    const StateView& s = a.state;
    for (u32 m = 0; m < c.n_members; ++m) {
        set(second_of(c, m), get(place_of(c, m)));
        Vector x = {0.0, 0.0, 0.0};
        const real* r = arrays.reference + 3u * index_of(s, c, m);
        if (m > 0u) x = get(first_of(c, before(c, m))) + Vector{double(r[0]), double(r[1]), double(r[2])};
        set(first_of(c, m), x);
    }
    set_vectors(c, moved ? 4u : 0u);
    if (moved || !is_satisfied(c)) {
        const u32 failed = shake(c, moved);
        if (failed < c.n_members) return raise_cluster(a, c, failed);
    }
    const double rate = moved ? 1.0 / c.dt : 0.0;
    for (u32 m = 0; m < c.n_members; ++m) {
        const u32 i = index_of(s, c, m);
        if (!is_own(s, i)) continue;
        const Vector x = get(place_of(c, m)), d = x - get(second_of(c, m)), r = x - get(place_of(c, before(c, m)));
        const Vec4 v = s.velocity_mass[i];
        const Vec3<real> velocity = {real(double(v.x) + d.x * rate), real(double(v.y) + d.y * rate), real(double(v.z) + d.z * rate)};
        move_particle(s, a.component, i, i, d, velocity);
        arrays.reference[3u * i] = real(r.x);
        arrays.reference[3u * i + 1u] = real(r.y);
        arrays.reference[3u * i + 2u] = real(r.z);
    }
}

__device__ __forceinline__ void constrain_velocities(const PlaceArgs& a, const Cluster& c) {
    const StateView& s = a.state;
    set_vectors(c, 0u);
    for (u32 m = 0; m < c.n_members; ++m) {
        const Vec4 v = s.velocity_mass[index_of(s, c, m)];
        set(first_of(c, m), {double(v.x), double(v.y), double(v.z)});
    }
    bool changed = false;
    const u32 failed = project(c, changed);
    if (failed < c.n_members) return raise_cluster(a, c, failed);
    for (u32 m = 0; m < c.n_members && changed; ++m) {
        const u32 i = index_of(s, c, m);
        const Vector v = get(first_of(c, m));
        if (is_own(s, i)) s.velocity_mass[i] = {real(v.x), real(v.y), real(v.z), s.velocity_mass[i].w};
    }
}

// Constrains the positions after a move (moment 1) or at the start (0), and the velocities at the start and the end (2).
extern "C" __global__ void __launch_bounds__(128) place(PlaceArgs a, ConstraintArrays arrays) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number == 0u) *arrays.half = a.moment == 1u ? 1u : 0u;
    if (number >= arrays.n || !has_own(s, arrays, number)) return;
    const Cluster c = load_cluster(s, arrays, number);
    if (a.moment != 2u) constrain(a, arrays, c, a.moment == 1u);
    if (a.moment != 1u) constrain_velocities(a, c);
}

// Finds the multipliers (fourth numbers of vectors) of the constraint forces for which the second derivatives of the lengths
// vanish, from velocities and accelerations (first and second vectors of members). Returns as `shake`.
__device__ __forceinline__ u32 find_multipliers(const Cluster& c) {
    double scale = 0.0;
    for (u32 k = 0; k < c.n_pairs; ++k) multiplier_of(c, k) = 0.0;
    for (u32 pass = 0; pass < PASSES; ++pass) {
        double worst = 0.0;
        for (u32 k = 0; k < c.n_pairs; ++k) {
            const u32 i = member_of(c, k, 0u), j = member_of(c, k, 1u);
            const Vector s = get(vector_of(c, k)), x = get(second_of(c, i)), y = get(second_of(c, j));
            const Vector w = get(first_of(c, i)) - get(first_of(c, j));
            const double along = dot(x - y, s), turning = dot(w, w);
            if (pass == 0u) scale = fmax(scale, fabs(along) + turning);
            worst = fmax(worst, fabs(along + turning));
            const double m = inverse_mass(c, i), n = inverse_mass(c, j);
            const double multiplier = (along + turning) / ((m + n) * dot(s, s));
            multiplier_of(c, k) += multiplier;
            set(second_of(c, i), x - s * (multiplier * m));
            set(second_of(c, j), y + s * (multiplier * n));
        }
        if (worst <= c.tolerance * scale) return c.n_members;
    }
    return 0u;
}

__device__ __forceinline__ void add_forces(const PlaceArgs& a, const Cluster& c, bool half, double (&virial)[6]) {
    const StateView& s = a.state;
    set_vectors(c, 0u);
    for (u32 m = 0; m < c.n_members; ++m) {
        const u32 i = index_of(s, c, m);
        const Vec4 v = s.velocity_mass[i], f = s.force[i];
        const Vector kicked = Vector{double(v.x), double(v.y), double(v.z)} +
                              Vector{double(f.x), double(f.y), double(f.z)} * (0.5 * c.dt * inverse_mass(c, m));
        set(first_of(c, m), kicked);
        set(second_of(c, m), kicked);
    }
    bool changed = false;
    u32 failed = project(c, changed);
    if (failed < c.n_members) return raise_cluster(a, c, failed);
    const double rate = 2.0 / c.dt;
    for (u32 m = 0; m < c.n_members; ++m) {
        const u32 i = index_of(s, c, m);
        const Vec4 v = s.velocity_mass[i], old = s.force[i];
        const Vector f = (get(first_of(c, m)) - get(second_of(c, m))) * (rate * double(v.w));
        if (is_own(s, i)) s.force[i] = {old.x + real(f.x), old.y + real(f.y), old.z + real(f.z), old.w};
        if (!half) set(first_of(c, m), {double(v.x), double(v.y), double(v.z)});
        set(second_of(c, m), Vector{double(old.x), double(old.y), double(old.z)} * inverse_mass(c, m));
    }
    // the GPU of the first particle counts the virial
    if (a.full == 0u || !is_own(s, index_of(s, c, 0u))) return;
    failed = find_multipliers(c);
    if (failed < c.n_members) return raise_cluster(a, c, failed);
    for (u32 k = 0; k < c.n_pairs; ++k) {
        const Vector v = get(vector_of(c, k));
        const double r[3] = {v.x, v.y, v.z};
        int slot = 0;
        for (int x = 0; x < 3; ++x) {
            for (int w = x; w < 3; ++w) virial[slot++] -= multiplier_of(c, k) * r[x] * r[w];
        }
    }
}

// Adds the forces of the constraints, and their virial.
extern "C" __global__ void __launch_bounds__(128) collect(PlaceArgs a, ConstraintArrays arrays) {
    if (a.state.globals->halt) return;
    const u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    double virial[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (number < arrays.n && has_own(a.state, arrays, number)) {
        add_forces(a, load_cluster(a.state, arrays, number), *arrays.half != 0u, virial);
    }
    if (a.full != 0u) store_virial_of_item(a, virial);
}
