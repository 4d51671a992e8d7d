// The state as kernels see it. galamost/api.cuh is generated from Rust definitions: Globals, StateView, ListView, LinkView,
// Step, Sums and other structs, the kinds of faults, and functions of the box and of time-dependent values.
#pragma once
#include "galamost/types.cuh"
#include "galamost/philox.cuh"
#include "galamost/api.cuh"

// Waits until all kernels ahead of this one have ended and what they wrote is visible. A kernel of a graph that begins with it may be
// launched before they have ended.
__device__ __forceinline__ void await_launches() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The particles that this device propagates: all of them, unless several ranks share the run.
#ifdef GALAMOST_RANKS
__device__ __forceinline__ u32 own_begin(const StateView& s) { return s.own_begin; }
__device__ __forceinline__ u32 own_end(const StateView& s) { return s.own_end; }
#else
__device__ __forceinline__ u32 own_begin(const StateView&) { return 0u; }
__device__ __forceinline__ u32 own_end(const StateView& s) { return s.n_local; }
#endif

// The block of threads among those of all particles, of all GPUs: one thread for each particle.
__device__ __forceinline__ u32 particle_block(const StateView& s) { return own_begin(s) / blockDim.x + blockIdx.x; }

// The number of these blocks on all GPUs.
__device__ __forceinline__ u32 particle_blocks(const StateView& s) { return (s.n_local + blockDim.x - 1u) / blockDim.x; }

#ifdef GALAMOST_STEPS
// The current step in the persistent kernel. Each block counts by itself, so a new step needs no message to all blocks; `Globals` has the
// number between launches.
__shared__ u64 counted_step;

__device__ __forceinline__ u64 current_step(const Globals*) { return counted_step; }
#else
__device__ __forceinline__ u64 current_step(const Globals* g) { return g->step; }
#endif

template <class real> __device__ __forceinline__ Step<real> make_step(const Globals* g, u32 first) {
    Step<real> s;
    s.dt = real(g->dt);
    s.inv_sqrt_dt = real(1.0 / sqrt(g->dt));
    s.step = current_step(g);
    for (u32 k = 0; k < COMPONENT_VARYINGS; ++k) s.varying[k] = first + k < MAX_VARYINGS ? real(g->values[first + k]) : real(0);
    return s;
}

template <class real> struct Particle {
    Vec3<real> position, velocity, force;
    real mass;
    Vec3<real> displacement;
    Quaternion<real> quaternion;
    Vec3<real> angular_momentum, torque, inertia;
    u32 kind, tag;
};

// Box constants for differences: the length of one fixed-point unit, or the box lengths and their inverses.
struct BoxScale {
#ifdef GALAMOST_DOUBLE
    double length[3], inverse[3];
#else
    float unit[3];
#endif
#ifdef GALAMOST_SHEAR
    // the periodic image above along y is displaced by offset along x and moves with this speed (Lees-Edwards)
    real offset, speed;
    int offset_units;
#endif
#ifdef GALAMOST_TRICLINIC
    // tilt factors xy, xz, yz
    real tilt[3];
#endif
};

__device__ __forceinline__ BoxScale make_scale(const Globals* g) {
    BoxScale b;
    for (int k = 0; k < 3; ++k) {
        const double l = g->box_length[k];
#ifdef GALAMOST_DOUBLE
        b.length[k] = l;
        b.inverse[k] = l > 0.0 ? 1.0 / l : 0.0;
#else
        b.unit[k] = float(l / 4294967296.0);
#endif
    }
#ifdef GALAMOST_SHEAR
    b.offset = real(g->shear_offset);
    b.speed = real(g->shear_speed);
    b.offset_units = int((long long)rint(g->shear_offset / g->box_length[0] * 4294967296.0));
#endif
#ifdef GALAMOST_TRICLINIC
    for (int k = 0; k < 3; ++k) b.tilt[k] = real(g->tilt[k]);
#endif
    return b;
}

#ifdef GALAMOST_SHEAR
// Returns the number of boxes along y by which the nearest image of j is displaced.
__device__ __forceinline__ int box_crossing(const PosType& i, const PosType& j, const BoxScale& b) {
#ifdef GALAMOST_DOUBLE
    return int(rint((i.y - j.y) * b.inverse[1]));
#else
    const int d = int(u32(i.y) - u32(j.y));
    // -1 or 1 if the difference overflows; the sign is that of i.y
    return (((i.y ^ j.y) & (i.y ^ d)) >> 31) & (1 | (i.y >> 31));
#endif
}
#endif

// Returns the difference in space of a difference of reduced coordinates. Stored positions are reduced coordinates; in a
// rectangular box they are the positions themselves.
__device__ __forceinline__ Vec3<real> in_space(const Vec3<real>& q, const BoxScale& b) {
#ifdef GALAMOST_TRICLINIC
    return {q.x + b.tilt[0] * q.y + b.tilt[1] * q.z, q.y + b.tilt[2] * q.z, q.z};
#else
    return q;
#endif
}

// Returns the displacement of reduced coordinates of a displacement in space.
__device__ __forceinline__ Vec3<double> to_reduced(const Vec3<double>& d, const Globals* g) {
#ifdef GALAMOST_TRICLINIC
    const double y = d.y - g->tilt[2] * d.z;
    return {d.x - g->tilt[0] * y - g->tilt[1] * d.z, y, d.z};
#else
    return d;
#endif
}

// Returns r_i - r_j for the nearest image of j.
__device__ __forceinline__ Vec3<real> difference(const PosType& i, const PosType& j, const BoxScale& b) {
#ifdef GALAMOST_DOUBLE
#ifdef GALAMOST_SHEAR
    const double x = i.x - j.x - double(box_crossing(i, j, b)) * b.offset, y = i.y - j.y, z = i.z - j.z;
#else
    const double x = i.x - j.x, y = i.y - j.y, z = i.z - j.z;
#endif
    return in_space({x - b.length[0] * rint(x * b.inverse[0]), y - b.length[1] * rint(y * b.inverse[1]),
                     z - b.length[2] * rint(z * b.inverse[2])},
                    b);
#else
    // unsigned subtraction wraps around, and the wrapped difference is that of the nearest image
#ifdef GALAMOST_SHEAR
    const u32 x = u32(i.x) - u32(j.x) - u32(box_crossing(i, j, b)) * u32(b.offset_units);
#else
    const u32 x = u32(i.x) - u32(j.x);
#endif
    return in_space({float(int(x)) * b.unit[0], float(int(u32(i.y) - u32(j.y))) * b.unit[1],
                     float(int(u32(i.z) - u32(j.z))) * b.unit[2]},
                    b);
#endif
}

// Returns the reduced coordinates of a particle, rounded to real; in a rectangular box they are its position. The box center
// is 0.
__device__ __forceinline__ Vec3<real> position(const PosType& p, const Globals* g) {
#ifdef GALAMOST_DOUBLE
    return {p.x, p.y, p.z};
#else
    return {float(p.x * (g->box_length[0] / 4294967296.0)), float(p.y * (g->box_length[1] / 4294967296.0)),
            float(p.z * (g->box_length[2] / 4294967296.0))};
#endif
}

// Moves one coordinate by d and wraps it. Returns false if |d| is not below half a box length.
#ifdef GALAMOST_DOUBLE
__device__ __forceinline__ bool move_axis(double& x, int& image, double d, double length) {
    if (!(fabs(d) < 0.5 * length)) return false;
    double s = x + d;
    const double n = floor(s / length + 0.5);
    double wrapped = s - n * length;
    int crossed = int(n);
    if (wrapped >= 0.5 * length) {
        wrapped -= length;
        ++crossed;
    } else if (wrapped < -0.5 * length) {
        wrapped += length;
        --crossed;
    }
    x = wrapped;
    image += crossed;
    return true;
}
#else
__device__ __forceinline__ bool move_axis(int& x, u32& low, int& image, double d, double length) {
    if (!(fabs(d) < 0.5 * length)) return false;
#ifdef GALAMOST_MIXED
    const long long old = (long long)((u64(u32(x)) << 32) | low);
    const long long units = (long long)(d * (4294967296.0 / length) * 4294967296.0);
    const long long now = (long long)(u64(old) + u64(units));
    // the sum overflows if both terms have the same sign and the sum has the other
    if (((old ^ now) & (units ^ now)) < 0) image += units > 0 ? 1 : -1;
    x = int(now >> 32);
    low = u32(now);
#else
    const long long sum = (long long)x + (long long)rint(d * (4294967296.0 / length));
    x = int(sum);
    image += int((sum - (long long)x) >> 32);
#endif
    return true;
}
#endif

// Returns true if particle i belongs to the group with this bit (32: all particles).
__device__ __forceinline__ bool in_group(const StateView& s, u32 i, u32 bit) {
    return bit >= 32u || (__ldg(&s.group[i]) >> bit & 1u);
}

// Stop flags that a thread requests from the persistent kernel: halt after a fault, or rebuild the neighbor list. The
// globals hold the same information.
static constexpr u32 STOP_HALT = 1u, STOP_REBUILD = 0x10000u;

// Raises a fault and halts all kernels. Of several faults in one step, the smallest tag is kept.
__device__ __forceinline__ void raise_fault(Globals* g, u32 code, u32 component, u32 tag, u32 detail) {
    atomicMin(&g->fault.tag, tag);  // the initial value is the largest number
    atomicCAS(&g->fault.code, 0u, code);
    atomicMax(&g->fault.detail, detail);
    atomicExch(&g->fault.component, component);
    __threadfence();
    atomicExch(&g->halt, 1u);
}

// Returns the box for a barostat.
__device__ __forceinline__ SimBox make_sim_box(const Globals* g) {
    SimBox c = {};
    c.size = u32(sizeof(SimBox));
    c.dimensions = g->dimensions;
    c.dt = g->dt;
    c.offset = g->shear_offset;
    c.speed = g->shear_speed;
    for (int k = 0; k < 3; ++k) {
        c.length[k] = g->box_length[k];
        c.tilt[k] = g->tilt[k];
        c.virial[k] = g->virial[k];
        c.shear_virial[k] = g->shear_virial[k];
    }
    return c;
}

// Requests a rebuild of the neighbor list if it is due.
__device__ __forceinline__ void request_rebuild(Globals* g, bool due) {
    if (due) g->rebuild = 1u;
}

// Notes that a neighbor list is built in the current box.
__device__ __forceinline__ void begin_list(Globals* g) { request_rebuild(g, start_list<double>(*g)); }

// Ends a rebuild, whose lists are complete.
__device__ __forceinline__ void finish_rebuild(Globals* g) {
    g->rebuild = 0u;
    g->rebuilds += 1ull;
    begin_list(g);
}

// Sets the shear offset of the images along y.
__device__ __forceinline__ void set_shear(Globals* g, double offset, double speed) {
    request_rebuild(g, update_shear<double>(*g, offset, speed));
}

// Computes the heights of a box with these lengths and tilt factors; see plugin-api/src/device/tilt.rs.
__device__ __forceinline__ void box_heights(const double* length, const double* tilt, double* height) {
#ifdef GALAMOST_TRICLINIC
    const double across = tilt[0] * tilt[2] - tilt[1];
    height[0] = length[0] / sqrt(1.0 + tilt[0] * tilt[0] + across * across);
    height[1] = length[1] / sqrt(1.0 + tilt[2] * tilt[2]);
    height[2] = length[2];
#else
    for (int k = 0; k < 3; ++k) height[k] = length[k];
#endif
}

// Sets new box lengths and tilt factors. One thread calls it.
__device__ __forceinline__ void set_shape(Globals* g, const double* length, const double* tilt, u32 component) {
    bool same = true;
    double height[3];
    box_heights(length, tilt, height);
    for (u32 k = 0; k < g->dimensions; ++k) {
        if (!is_valid_length<double>(height[k], g->r_cut)) {
            raise_fault(g, FaultKind::BoxTooSmall, component, NO_TAG, k);
            return;
        }
        same &= length[k] == g->box_length[k];
    }
#ifdef GALAMOST_TRICLINIC
    for (int k = 0; k < 3; ++k) {
        same &= tilt[k] == g->tilt[k];
        g->tilt[k] = tilt[k];
    }
#endif
    if (!same) request_rebuild(g, update_box<double>(*g, length));
}

// Applies the box that a scalar phase returned.
__device__ __forceinline__ void set_sim_box(Globals* g, const SimBox& sim_box, u32 component) {
    if (sim_box.offset != g->shear_offset || sim_box.speed != g->shear_speed) set_shear(g, sim_box.offset, sim_box.speed);
    set_shape(g, sim_box.length, sim_box.tilt, component);
}

// Evaluates all time-dependent values at a step.
__device__ __forceinline__ void evaluate_varyings(Globals* g, u64 step) {
    for (u32 k = 0; k < g->n_values; ++k) g->values[k] = varying_at<double>(g->varyings[k], step);
}

// Begins the next step. Positions have moved: everything after this call belongs to the next step.
__device__ __forceinline__ void begin_next_step(Globals* g) {
    const u64 next = current_step(g) + 1ull;
#ifdef GALAMOST_STEPS
    counted_step = next;
#else
    g->step = next;
#endif
    evaluate_varyings(g, next);
}
