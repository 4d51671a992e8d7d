// The loop over particles of an integrator's phase. The engine places the integrator's functions after this header in a
// namespace and generates one kernel for each particle phase from particle_loop.
#pragma once
#include "galamost/state.cuh"
#include "galamost/args.cuh"
#include "galamost/reduce.cuh"

// Returns vector i of an array with three numbers each.
__device__ __forceinline__ Vec3<real> load_vec3(const real* of, u32 i) {
    return {of[3u * i], of[3u * i + 1u], of[3u * i + 2u]};
}

// Applies the correction of an integrator with `corrects` to the carried velocity of particle i as well.
template <class Phase>
__device__ __forceinline__ void correct_carried(const PhaseArgs& a, u32 i, const Particle<real>& p,
                                                const typename Phase::template Extra<real>& x, const Step<real>& step,
                                                const Random& random) {
    typedef typename Phase::template Extra<real> Extra;
    typedef typename Phase::State State;
    real* carried = a.carried + size_t(i) * a.carried_width;
    Particle<real> carried_particle = p;
    carried_particle.velocity = {carried[0], carried[1], carried[2]};
    Extra own = x;
    Random same = random;
    double unused[MAX_SUMS] = {0, 0, 0, 0, 0, 0, 0, 0};
    Phase::call(carried_particle, own, *static_cast<const State*>(a.integrator), step, same, unused);
    carried[0] = carried_particle.velocity.x;
    carried[1] = carried_particle.velocity.y;
    carried[2] = carried_particle.velocity.z;
}

// Returns the stop flags that a particle requests after a move: a halt if the move was invalid, a rebuild if the
// particle is too far from `built`, its position at the last build.
__device__ __forceinline__ u32 check_displacement(Globals* g, u32 component, u32 tag, bool valid, const PosType& pos,
                                                  PosType& built, double slack2, const BoxScale& scale) {
    u32 requested = 0u;
    if (!valid) {
        raise_fault(g, FaultKind::NotFinite, component, tag, 0u);
        requested = STOP_HALT;
    } else {
#ifdef GALAMOST_DOUBLE
        // the stored position is relative to the box at the time of the build
        if (g->box_length[0] != g->built_length[0]) built.x *= g->box_length[0] / g->built_length[0];
        if (g->box_length[1] != g->built_length[1]) built.y *= g->box_length[1] / g->built_length[1];
        if (g->box_length[2] != g->built_length[2]) built.z *= g->box_length[2] / g->built_length[2];
#endif
        const Vec3<real> d = difference(pos, built, scale);
        if (device_norm2(d) > real(slack2)) {
            g->rebuild = 1u;
            requested = STOP_REBUILD;
        }
    }
    return requested;
}

// Returns a particle of this velocity, mass, force, type and tag.
__device__ __forceinline__ Particle<real> make_particle(const Vec4& v, const Vec4& f, u32 type, u32 tag) {
    Particle<real> p;
    p.velocity = {v.x, v.y, v.z};
    p.force = {f.x, f.y, f.z};
    p.mass = v.w;
    p.displacement = {real(0), real(0), real(0)};
    p.kind = type;
    p.tag = tag;
    return p;
}

// Loads the orientation of particle i and what changes it.
__device__ __forceinline__ void load_rotation(const StateView& s, u32 i, Particle<real>& p) {
    const Vec4 q = s.quaternion[i];
    p.quaternion = {q.x, q.y, q.z, q.w};
    p.angular_momentum = load_vec3(s.angular_momentum, i);
    p.torque = load_vec3(s.torque, i);
    p.inertia = load_vec3(s.inertia, i);
}

// Stores the normalized orientation and the angular momentum of particle i.
__device__ __forceinline__ void store_rotation(const StateView& s, u32 i, const Particle<real>& p) {
    const Quaternion<real> q = device_normalized(p.quaternion);
    s.quaternion[i] = {q.x, q.y, q.z, q.w};
    s.angular_momentum[3u * i] = p.angular_momentum.x;
    s.angular_momentum[3u * i + 1u] = p.angular_momentum.y;
    s.angular_momentum[3u * i + 2u] = p.angular_momentum.z;
}

#ifdef GALAMOST_SHEAR
// Displaces and slows down particle i, which has crossed the boundary along y. `low` holds the low bits of its
// position; it is unused in double precision.
template <class Phase, class Low>
__device__ __forceinline__ void cross_sheared_boundary(const PhaseArgs& a, const StateView& s, Globals* g, u32 i,
                                                       PosType& pos, Low& low, int (&crossed)[3]) {
    typedef typename Phase::template Extra<real> Extra;
    // the particle enters from below, displaced and slowed down like the box below; the shift is less than
    // half a box, so the move is always valid
    const double shift = -double(crossed[1]) * g->shear_offset;
#ifdef GALAMOST_DOUBLE
    move_axis(pos.x, crossed[0], shift, g->box_length[0]);
#else
    move_axis(pos.x, low[0], crossed[0], shift, g->box_length[0]);
#ifdef GALAMOST_MIXED
    s.pos_low[3u * i] = low[0];
#endif
#endif
    const real slower = real(double(crossed[1]) * g->shear_speed);
    s.velocity_mass[i].x -= slower;
    // the same for the velocity that an integrator continues with after the forces
    if (Phase::CARRIES) reinterpret_cast<real*>(static_cast<Extra*>(a.extra) + i)[0] -= slower;
    if (Phase::CORRECTS && a.carried) a.carried[size_t(i) * a.carried_width] -= slower;
}
#endif

// A generated `Phase` has State, Extra<real>, has_extra, SUMS, MOVES, POSITION, ROTATES, ADVANCE (the last block begins
// the next step), CORRECTS (it corrects what others moved), CARRIES, FIRST_DRAW (number of its first random draw),
// call(p, x, state, step, random, sums), and scalars(state, sums, globals, arguments): the scalar phases that follow.
//
// Handles particle i, which may be behind the last one. Returns the stop flags that the thread requests.
template <class Phase> __device__ __forceinline__ u32 phase_particle(const PhaseArgs& a, u32 i, double (&sums)[MAX_SUMS]) {
    typedef typename Phase::State State;
    typedef typename Phase::template Extra<real> Extra;
    const StateView& s = a.state;
    Globals* g = s.globals;
    u32 requested = 0u;
    if (i < own_end(s) && in_group(s, i, a.group)) {
        const Step<real> step = make_step<real>(g, a.first_varying);
        const Vec4 v = s.velocity_mass[i], f = s.force[i];
        PosType pos = s.pos_type[i];
        // all loads are issued at once: the compiler cannot move loads across the first store
        PosType built = pos;
        if (Phase::MOVES) built = s.pos_at_build[i];
#ifdef GALAMOST_MIXED
        u32 low[3] = {0u, 0u, 0u};
        if (Phase::MOVES) {
            for (int k = 0; k < 3; ++k) low[k] = s.pos_low[3u * i + k];
        }
#endif
        const double length[3] = {g->box_length[0], g->box_length[1], g->box_length[2]}, slack2 = g->slack2;
        const u32 dimensions = g->dimensions;
        const BoxScale scale = make_scale(g);
        Particle<real> p = make_particle(v, f, pos.kind, s.tag[i]);
        if (Phase::POSITION) p.position = position(pos, g);
        if (Phase::ROTATES) load_rotation(s, i, p);
        Extra x;
        if (Phase::has_extra) x = static_cast<const Extra*>(a.extra)[i];
        Random random = {a.key, step.step, p.tag, Phase::FIRST_DRAW};
        if (Phase::CORRECTS && a.carried) correct_carried<Phase>(a, i, p, x, step, random);
        Phase::call(p, x, *static_cast<const State*>(a.integrator), step, random, sums);
        if (dimensions == 2u) p.velocity.z = real(0);
        s.velocity_mass[i] = {p.velocity.x, p.velocity.y, p.velocity.z, p.mass};
        if (Phase::has_extra) static_cast<Extra*>(a.extra)[i] = x;
        if (Phase::ROTATES) store_rotation(s, i, p);
        if (Phase::MOVES) {
            int* image = s.image + 3u * i;
            int crossed[3] = {0, 0, 0};
#ifdef GALAMOST_TRICLINIC
            const Vec3<double> d = to_reduced({p.displacement.x, p.displacement.y, p.displacement.z}, g);
#else
            const Vec3<real>& d = p.displacement;
#endif
            bool valid = true;
#ifdef GALAMOST_DOUBLE
#ifdef GALAMOST_SHEAR
            int low = 0;
#endif
            valid &= move_axis(pos.x, crossed[0], d.x, length[0]);
            valid &= move_axis(pos.y, crossed[1], d.y, length[1]);
            if (dimensions == 3u) valid &= move_axis(pos.z, crossed[2], d.z, length[2]);
#else
#ifndef GALAMOST_MIXED
            u32 low[3] = {0u, 0u, 0u};
#endif
            valid &= move_axis(pos.x, low[0], crossed[0], d.x, length[0]);
            valid &= move_axis(pos.y, low[1], crossed[1], d.y, length[1]);
            if (dimensions == 3u) valid &= move_axis(pos.z, low[2], crossed[2], d.z, length[2]);
#ifdef GALAMOST_MIXED
            for (int k = 0; k < 3; ++k) s.pos_low[3u * i + k] = low[k];
#endif
#endif
#ifdef GALAMOST_SHEAR
            if (valid && crossed[1] != 0) cross_sheared_boundary<Phase>(a, s, g, i, pos, low, crossed);
#endif
            s.pos_type[i] = pos;
            for (int k = 0; k < 3; ++k) {
                if (crossed[k] != 0) image[k] += crossed[k];
            }
            requested = check_displacement(g, a.component, p.tag, valid, pos, built, slack2, scale);
        }
    }
    return requested;
}

// Handles the particles of group number `group` of SUM_THREADS particles and stores the sums of the group. Returns the
// stop flags that the thread requests.
template <class Phase> __device__ __forceinline__ u32 phase_block(const PhaseArgs& a, u32 group) {
    const u32 thread = threadIdx.x % SUM_THREADS, i = group * SUM_THREADS + thread;
    double sums[MAX_SUMS] = {0, 0, 0, 0, 0, 0, 0, 0};
    const u32 requested = phase_particle<Phase>(a, i, sums);
    if (Phase::SUMS > 0) {
        constexpr int SUMS = Phase::SUMS > 0 ? Phase::SUMS : 1;
        __shared__ double memory[SUMS * 32];
        double own_sums[SUMS];
        for (int k = 0; k < SUMS; ++k) own_sums[k] = sums[k];
        group_sum(own_sums, memory, SUM_THREADS);
        if (thread == 0 && i < own_end(a.state)) {
            for (int k = 0; k < SUMS; ++k) a.partial[group * SUMS + k] = own_sums[k];
        }
    }
    return requested;
}

// Handles the 32 particles of a warp, particle i by this thread, and stores the sums of the warp. Without WARPS, all threads of a group
// of SUM_THREADS particles call it, and the sums are those of the group.
template <class Phase, bool WARPS> __device__ __forceinline__ u32 phase_warp(const PhaseArgs& a, u32 i) {
    if constexpr (!WARPS) return phase_block<Phase>(a, i / SUM_THREADS);
    double sums[MAX_SUMS] = {0, 0, 0, 0, 0, 0, 0, 0};
    const u32 requested = phase_particle<Phase>(a, i, sums);
    for (int k = 0; k < Phase::SUMS; ++k) {
        const double sum = warp_total(sums[k]);
        if ((threadIdx.x & 31u) == 0u && i < own_end(a.state)) a.partial[place_of_warp<SUM_THREADS>(a.state.n_local, i / 32u, k)] = sum;
    }
    return requested;
}

// Copies an integrator's state with the threads of the block, the last ones first: the first ones have other work.
template <class State> __device__ __forceinline__ void copy_state(void* to, const void* from) {
    static_assert(sizeof(State) % 4u == 0u || sizeof(State) == 1u, "states consist of words");
    for (u32 k = blockDim.x - 1u - threadIdx.x; k < sizeof(State) / 4u; k += blockDim.x) {
        static_cast<u32*>(to)[k] = static_cast<const u32*>(from)[k];
    }
}

// Runs in one block of SUM_THREADS or more threads after all groups are done: total sums, scalar phases, beginning of
// the next step. `rows.add` adds the sums of groups. WARPS: `phase_warp` has stored the sums of warps.
template <class Phase, bool WARPS, class Rows> __device__ __forceinline__ void phase_end_of(const PhaseArgs& a, const Rows& rows) {
    typedef typename Phase::State State;
    Globals* g = a.state.globals;
    // loaded early to overlap the latency with the sums
    const u32 halt = g->halt;
    if constexpr (Phase::SUMS > 0) {
        // scalar phases change a large state in shared memory, where one thread reads what it has just written much sooner; for a
        // small one the copies take longer
        constexpr bool STAGED = sizeof(State) > 512u;
        alignas(16) __shared__ unsigned char copy[STAGED ? sizeof(State) : 16u];
        __shared__ double memory[Phase::SUMS * 32], total[Phase::SUMS];
        if (STAGED) copy_state<State>(copy, a.integrator);
#ifdef GALAMOST_STEPS
        sum_parts<SUM_THREADS, WARPS>(a.partial, a.state.n_local, total, memory);
#else
        double sums[Phase::SUMS] = {};
        rows.add(sums, SUM_THREADS);
        group_sum(sums, memory, SUM_THREADS);
        for (int k = 0; threadIdx.x == 0u && k < Phase::SUMS; ++k) total[k] = sums[k];
#endif
        // the copy and, in the persistent kernel, the virial are complete
        __syncthreads();
        if (threadIdx.x == 0 && !halt) {
            double all[MAX_SUMS] = {0, 0, 0, 0, 0, 0, 0, 0};
            for (int k = 0; k < Phase::SUMS; ++k) a.sums[k] = all[k] = total[k];
            Phase::scalars(STAGED ? *reinterpret_cast<State*>(copy) : *static_cast<State*>(a.integrator), all, g, a);
        }
        if (STAGED) {
            __syncthreads();
            copy_state<State>(a.integrator, copy);
        }
    }
    if (Phase::ADVANCE && threadIdx.x == 0 && !halt) begin_next_step(g);
}

// The sums of groups of all particles.
struct AllRows {
    const PhaseArgs& a;
    template <int N> __device__ __forceinline__ void add(double (&sums)[N], u32 threads) const {
        add_rows(a.partial, 0u, (a.state.n_local + SUM_THREADS - 1u) / SUM_THREADS, sums, threads);
    }
};

// The end of a phase of which this rank has all sums.
template <class Phase, bool WARPS = false> __device__ __forceinline__ void phase_end(const PhaseArgs& a) {
    phase_end_of<Phase, WARPS>(a, AllRows{a});
}

template <class Phase> __device__ __forceinline__ void particle_loop(const PhaseArgs& a) {
    if (a.state.globals->halt) return;
    phase_block<Phase>(a, own_begin(a.state) / SUM_THREADS + blockIdx.x);
    // sums are added in another kernel: the last block of this one could read them only after a fence of each block, which takes longer
    if (Phase::SUMS == 0 && Phase::ADVANCE) {
        __shared__ u32 flag;
        if (last_block_to_end(a.counter, &flag)) phase_end<Phase>(a);
    }
}
