// The pair loop: a team of threads shares the row of a particle. The engine places the components of a run after this
// header, one namespace each, and generates the kernels from pair_loop.
#pragma once
#include "galamost/state.cuh"
#include "galamost/args.cuh"
#include "galamost/list.cuh"
#include "galamost/reduce.cuh"
#include "galamost/virial.cuh"

template <class real> struct PairInput {
    real r2, r_cut, rv, zeta, charge_i, charge_j, diameter_i, diameter_j;
    Step<real> step;
    // the component's data in device memory: its rows, followed by additional data
    const void* numbers;
};

// Additional input of an oriented pair function: r_i - r_j, unit vectors along the particles' z axes, orientations.
template <class real> struct OrientedInput : PairInput<real> {
    Vec3<real> r, axis_i, axis_j;
    Quaternion<real> quaternion_i, quaternion_j;
};

// Neighbors per iteration of the pair loop.
static constexpr u32 BATCH = 2u;

// What pair functions read of a neighbor beside its position and type.
struct Partner {
    Vec4 velocity, quaternion;
    real charge, diameter;
    u32 tag;
};

// Loads what functions with these inputs read of particle j.
template <u32 INPUTS> __device__ __forceinline__ Partner load_partner(const StateView& s, u32 j) {
    Partner p;
    if (INPUTS & INPUT_VELOCITY) p.velocity = load(&s.velocity_mass[j]);
    if (INPUTS & INPUT_RANDOM) p.tag = __ldg(&s.tag[j]);
    if (INPUTS & INPUT_CHARGE) p.charge = __ldg(&s.charge[j]);
    if (INPUTS & INPUT_DIAMETER) p.diameter = __ldg(&s.diameter[j]);
    if (INPUTS & INPUT_ORIENTATION) p.quaternion = load(&s.quaternion[j]);
    return p;
}

// One neighbor, as input of the components.
struct Neighbor {
    Vec3<real> d;
    real r2;
#ifdef GALAMOST_SHEAR
    // velocity of the image along x relative to the particle's own velocity
    real slide;
#endif
    u32 i, j, type, tag_i;
    real charge_i, diameter_i;
    Vec4 vi;
    Quaternion<real> quaternion_i;
    // loaded in advance, or null
    const Partner* partner = nullptr;

    // Makes particle number `other` at pj the neighbor of the particle at pi.
    __device__ __forceinline__ void set(u32 other, const PosType& pi, const PosType& pj, const BoxScale& scale) {
        j = other;
        d = difference(pi, pj, scale);
#ifdef GALAMOST_SHEAR
        slide = real(box_crossing(pi, pj, scale)) * scale.speed;
#endif
        r2 = device_norm2(d);
        type = pj.kind;
    }
};

// Bytes of parameter rows of all pairs of types that a block copies to shared memory. With many types, they stay where they are.
static constexpr u32 SHARED_ROW_BYTES = 12288u;

// Returns where the pair loop reads the N rows of component TERM.
template <int TERM, u32 N, bool SHARED, class Row> __device__ __forceinline__ const Row* place_rows(const Row* rows) {
    if constexpr (!SHARED) {
        return rows;
    } else {
        __shared__ Row copy[N];
        for (u32 r = threadIdx.x; r < N; r += blockDim.x) copy[r] = rows[r];
        return copy;
    }
}

// The sums of a thread: TERMS energies, one virial.
template <int TERMS, u32 SUMS> struct Accumulator {
    static constexpr int ENERGIES = SUMS == ALL_SUMS ? TERMS : 0, VIRIALS = SUMS == ALL_SUMS ? 6 : SUMS == DIAGONAL ? BAROSTAT_VIRIALS : 0;
    Vec3<real> f, t;
    real u[ENERGIES > 0 ? ENERGIES : 1];
    real w[VIRIALS > 0 ? VIRIALS : 1];

    // Sets unused elements, too: left undefined, they made DPD over a staged list 10 % slower on an H200.
    __device__ __forceinline__ void clear() {
        f = t = {real(0), real(0), real(0)};
        for (real& x : u) x = real(0);
        for (real& x : w) x = real(0);
    }
};

// Loads what functions with these inputs read of particle i itself.
template <u32 INPUTS> __device__ __forceinline__ void load_particle(const StateView& s, u32 i, Neighbor& n) {
    n.i = i;
    n.tag_i = 0u;
    if (INPUTS & INPUT_VELOCITY) n.vi = load(&s.velocity_mass[i]);
    if (INPUTS & INPUT_RANDOM) n.tag_i = __ldg(&s.tag[i]);
    if (INPUTS & INPUT_CHARGE) n.charge_i = __ldg(&s.charge[i]);
    if (INPUTS & INPUT_DIAMETER) n.diameter_i = __ldg(&s.diameter[i]);
    if (INPUTS & INPUT_ORIENTATION) {
        const Vec4 q = load(&s.quaternion[i]);
        n.quaternion_i = {q.x, q.y, q.z, q.w};
    }
}

template <bool ORIENTED> struct InputOf { typedef PairInput<real> type; };
template <> struct InputOf<true> { typedef OrientedInput<real> type; };

// Evaluates one component for one neighbor. With a single particle type, rows are in registers. With SELECT, there is no
// branch at the cutoff.
template <class Potential, int INDEX, int TERMS, u32 SUMS, bool SELECT>
__device__ __forceinline__ void evaluate_term(const StateView& s, const PairTerm& term,
                                              const typename Potential::Row* rows,
                                              const CutoffRow<real>* cutoff, const Step<real>& step, u32 row,
                                              const Neighbor& n, Accumulator<TERMS, SUMS>& sum) {
    CutoffRow<real> cutoff_row = cutoff[row];
    const bool within = n.r2 < cutoff_row.cutoff2;
    if (!SELECT && !within) return;
    typename InputOf<Potential::oriented>::type input;
    input.r2 = n.r2;
    input.r_cut = cutoff_row.cutoff;
    input.step = step;
    input.numbers = term.rows;
    const Partner partner = n.partner ? *n.partner : load_partner<Potential::inputs>(s, n.j);
    if (Potential::inputs & INPUT_VELOCITY) {
        Vec4 vj = partner.velocity;
#ifdef GALAMOST_SHEAR
        vj.x += n.slide;
#endif
        input.rv = device_dot(n.d, Vec3<real>{n.vi.x - vj.x, n.vi.y - vj.y, n.vi.z - vj.z});
    }
    if (Potential::inputs & INPUT_RANDOM) {
        input.zeta = uniform_unit_variance<real>(random_pair(term.key, step.step, n.tag_i, partner.tag).v[0]);
    }
    if (Potential::inputs & INPUT_CHARGE) {
        input.charge_i = n.charge_i;
        input.charge_j = partner.charge;
    }
    if (Potential::inputs & INPUT_DIAMETER) {
        input.diameter_i = n.diameter_i;
        input.diameter_j = partner.diameter;
    }
    if constexpr (Potential::oriented) {
        const Vec4 q = partner.quaternion;
        input.r = n.d;
        input.quaternion_i = n.quaternion_i;
        input.quaternion_j = {q.x, q.y, q.z, q.w};
        input.axis_i = device_axis(input.quaternion_i);
        input.axis_j = device_axis(input.quaternion_j);
        Tuple3<Vec3<real>, Vec3<real>, real> felt = Potential::eval(input, rows[row]);
        if (Potential::mode == ModeNumber::Smooth && !(n.r2 < cutoff_row.on2)) {
            felt = smooth_oriented<real>(felt.v0, felt.v1, felt.v2, n.d, n.r2, cutoff_row);
        }
        const Vec3<real> f = felt.v0;
        sum.f += f;
        sum.t += felt.v1;
        if constexpr (Accumulator<TERMS, SUMS>::VIRIALS == 3) {
            device_set_mul_add(sum.w[0], n.d.x, f.x);
            device_set_mul_add(sum.w[1], n.d.y, f.y);
            device_set_mul_add(sum.w[2], n.d.z, f.z);
        }
        if constexpr (SUMS == ALL_SUMS) sum.u[INDEX] += felt.v2;
        if constexpr (Accumulator<TERMS, SUMS>::VIRIALS == 6) {
            // the force need not be parallel to r, so the virial uses the symmetric part
            device_set_mul_add(sum.w[0], n.d.x, f.x);
            sum.w[1] += real(0.5) * (n.d.x * f.y + n.d.y * f.x);
            sum.w[2] += real(0.5) * (n.d.x * f.z + n.d.z * f.x);
            device_set_mul_add(sum.w[3], n.d.y, f.y);
            sum.w[4] += real(0.5) * (n.d.y * f.z + n.d.z * f.y);
            device_set_mul_add(sum.w[5], n.d.z, f.z);
        }
    } else {
        const Tuple2<real, real> bare = Potential::eval(input, rows[row]);
        if ((Potential::mode == ModeNumber::ShiftEnergy || Potential::mode == ModeNumber::ShiftForce) &&
            (Potential::inputs & (INPUT_CHARGE | INPUT_DIAMETER | INPUT_STEP))) {
            // with charges or diameters, the shift differs between pairs of the same types, and with `step`, between steps
            input.r2 = cutoff_row.cutoff2;
            const Tuple2<real, real> at_cutoff = Potential::eval(input, rows[row]);
            cutoff_row.energy_shift = at_cutoff.v1;
            cutoff_row.force_shift = at_cutoff.v0 * cutoff_row.cutoff;
        }
        const Tuple2<real, real> fu = apply_mode<real>(Potential::mode, n.r2, bare, cutoff_row);
        const real factor = !SELECT || within ? fu.v0 : real(0);
        device_set_mul_add(sum.f, n.d, factor);
        if constexpr (Accumulator<TERMS, SUMS>::VIRIALS == 3) {
            const Vec3<real> f = n.d * factor;
            device_set_mul_add(sum.w[0], n.d.x, f.x);
            device_set_mul_add(sum.w[1], n.d.y, f.y);
            device_set_mul_add(sum.w[2], n.d.z, f.z);
        }
        if constexpr (SUMS == ALL_SUMS) sum.u[INDEX] += fu.v1;
        if constexpr (Accumulator<TERMS, SUMS>::VIRIALS == 6) {
            const Vec3<real> f = n.d * factor;
            device_set_mul_add(sum.w[0], n.d.x, f.x);
            device_set_mul_add(sum.w[1], n.d.x, f.y);
            device_set_mul_add(sum.w[2], n.d.x, f.z);
            device_set_mul_add(sum.w[3], n.d.y, f.y);
            device_set_mul_add(sum.w[4], n.d.y, f.z);
            device_set_mul_add(sum.w[5], n.d.z, f.z);
        }
    }
}

// Stores the force, torque, energy and virial of a particle.
template <int TERMS, u32 SUMS>
__device__ __forceinline__ void store_pair_force(const StateView& s, u32 i, const Accumulator<TERMS, SUMS>& sum) {
    real u = real(0);
    for (int k = 0; k < sum.ENERGIES; ++k) u += sum.u[k];
    // every pair is visited twice, once from each side
    s.force[i] = {sum.f.x, sum.f.y, sum.f.z, real(0.5) * u};
    if (s.torque) {
        s.torque[3u * i] = sum.t.x;
        s.torque[3u * i + 1u] = sum.t.y;
        s.torque[3u * i + 2u] = sum.t.z;
    }
    if constexpr (SUMS == ALL_SUMS) {
        if (s.virial) {
            for (u32 k = 0; k < 6u; ++k) s.virial[6u * i + k] = real(0.5) * sum.w[k];
        }
    }
}

// Adds the sums of a team, whose lanes are STEP apart, in a fixed tree order.
template <class PairTerms, int TERMS, u32 TEAM, u32 SUMS, u32 STEP = 1u>
__device__ __forceinline__ void sum_team(Accumulator<TERMS, SUMS>& sum) {
#pragma unroll
    for (u32 d = STEP * TEAM / 2u; d >= STEP; d >>= 1) {
        sum.f.x += __shfl_xor_sync(0xffffffffu, sum.f.x, d);
        sum.f.y += __shfl_xor_sync(0xffffffffu, sum.f.y, d);
        sum.f.z += __shfl_xor_sync(0xffffffffu, sum.f.z, d);
        if (PairTerms::inputs & INPUT_ORIENTATION) {
            sum.t.x += __shfl_xor_sync(0xffffffffu, sum.t.x, d);
            sum.t.y += __shfl_xor_sync(0xffffffffu, sum.t.y, d);
            sum.t.z += __shfl_xor_sync(0xffffffffu, sum.t.z, d);
        }
        for (int k = 0; k < sum.ENERGIES; ++k) sum.u[k] += __shfl_xor_sync(0xffffffffu, sum.u[k], d);
        for (int k = 0; k < sum.VIRIALS; ++k) sum.w[k] += __shfl_xor_sync(0xffffffffu, sum.w[k], d);
    }
}

// Whether pairs within the cutoff are collected before they are evaluated, so that most lanes have one. This pays where
// the functions read more of a neighbor than its position: they are expensive, and what they read is loaded for these pairs only.
template <class PairTerms> __host__ __device__ constexpr bool collects_pairs() {
    return (PairTerms::inputs & (INPUT_VELOCITY | INPUT_RANDOM | INPUT_ORIENTATION)) != 0u;
}

// Entries of the queue of a row, for each of its threads. The number is odd, so that rows have different banks.
static constexpr u32 ROW_QUEUE = 7u;

// The row of particle i as a team of threads sees it.
template <class PairTerms, int TERMS, u32 TEAM, u32 SUMS> struct PlainRow {
    const PairArgs& args;
    PairTerms& terms;
    Accumulator<TERMS, SUMS>& sum;
    BoxScale scale;
    PosType pi;
    Neighbor n;

    // Evaluates the pair with particle j.
    __device__ __forceinline__ void evaluate(u32 j, const PosType& pj, const Partner* partner) {
        n.partner = partner;
        n.set(j, pi, pj, scale);
        terms.template evaluate<false>(args.state, args, pi.kind, n, sum);
    }

    // Evaluates the pairs in the queue of the team, two at a time, with all loads first.
    __device__ __forceinline__ void evaluate_queue(const u32* queue, u32 held, u32 lane) {
        const StateView& s = args.state;
        for (u32 q = lane; q < held; q += 2u * TEAM) {
            const bool two = q + TEAM < held;
            const u32 j0 = queue[q], j1 = two ? queue[q + TEAM] : j0;
            const PosType p0 = load(&s.pos_type[j0]), p1 = load(&s.pos_type[j1]);
            const Partner a0 = load_partner<PairTerms::inputs>(s, j0), a1 = load_partner<PairTerms::inputs>(s, j1);
            evaluate(j0, p0, &a0);
            if (two) evaluate(j1, p1, &a1);
        }
    }
};

// Handles the neighbors of thread number `thread` of a block of THREADS threads and stores the force. Returns true if the thread holds the
// sums of a particle. All threads of a warp call it.
template <class PairTerms, int TERMS, u32 TEAM, u32 SUMS, u32 THREADS>
__device__ __forceinline__ bool pair_rows(const PairArgs& a, PairTerms& terms, u32 thread,
                                          Accumulator<TERMS, SUMS>& sum) {
    constexpr u32 ALL = 0xffffffffu;
    constexpr bool COLLECTS = collects_pairs<PairTerms>();
    const StateView& s = a.state;
    const u32 i = thread / TEAM, lane = thread % TEAM;
    const bool has_row = i < own_end(s);
    sum.clear();
    // a warp collects together, also for threads without a row
    if (COLLECTS ? own_begin(s) < own_end(s) : has_row) {
        const u32 own = has_row ? i : own_end(s) - 1u;
        PlainRow<PairTerms, TERMS, TEAM, SUMS> of = {a, terms, sum, make_scale(s.globals), load(&s.pos_type[own])};
        load_particle<PairTerms::inputs>(s, own, of.n);
        const u32 count = has_row ? __ldg(&a.list.count[own]) : 0u;
        const u32* row = a.list.index + list_offset(a.list, own, lane);
        // indices are loaded one iteration ahead and all positions of an iteration at once; sequential loads would take
        // as long as everything else
        u32 next[BATCH];
#pragma unroll
        for (u32 b = 0; b < BATCH; ++b) next[b] = lane + b * TEAM < count ? __ldg(row + 32u * b) : own;
        const auto load_batch = [&](u32 k, u32 (&j)[BATCH], PosType (&pj)[BATCH]) {
#pragma unroll
            for (u32 b = 0; b < BATCH; ++b) {
                j[b] = next[b];
                pj[b] = load(&s.pos_type[j[b]]);
            }
            row += 32u * BATCH;
#pragma unroll
            for (u32 b = 0; b < BATCH; ++b) next[b] = k + (BATCH + b) * TEAM < count ? __ldg(row + 32u * b) : own;
        };
        if constexpr (COLLECTS) {
            constexpr u32 ROOM = ROW_QUEUE * TEAM;
            __shared__ u32 queues[ROW_QUEUE * THREADS];
            u32* queue = queues + threadIdx.x / TEAM * ROOM;
            const double r_cut = s.globals->r_cut;
            // rounded up; the pair functions have their own limits
            const real limit = real(r_cut * r_cut * 1.000001);
            u32 most = count, held = 0u;
#pragma unroll
            for (u32 d = TEAM; d < 32u; d <<= 1) most = device_max(most, __shfl_xor_sync(ALL, most, d));
            for (u32 k = 0; k < most; k += BATCH * TEAM) {
                u32 j[BATCH];
                PosType pj[BATCH];
                load_batch(k + lane, j, pj);
#pragma unroll
                for (u32 b = 0; b < BATCH; ++b) {
                    const bool within = k + lane + b * TEAM < count && device_norm2(difference(of.pi, pj[b], of.scale)) < limit;
                    const u32 votes = __ballot_sync(ALL, within) >> ((threadIdx.x & 31u) / TEAM * TEAM) & (ALL >> (32u - TEAM));
                    if (within) queue[held + __popc(votes & ((1u << lane) - 1u))] = j[b];
                    held += __popc(votes);
                }
                if (k + BATCH * TEAM >= most || __any_sync(ALL, held > ROOM - BATCH * TEAM)) {
                    __syncwarp();
                    of.evaluate_queue(queue, held, lane);
                    held = 0u;
                    __syncwarp();
                }
            }
        } else {
            for (u32 k = lane; k < count; k += BATCH * TEAM) {
                u32 j[BATCH];
                PosType pj[BATCH];
                load_batch(k, j, pj);
#pragma unroll
                for (u32 b = 0; b < BATCH; ++b) {
                    if (b > 0u && k + b * TEAM >= count) break;
                    of.evaluate(j[b], pj[b], nullptr);
                }
            }
        }
    }
    sum_team<PairTerms, TERMS, TEAM, SUMS>(sum);
    const bool first = lane == 0u && has_row;
    if (first) store_pair_force(s, i, sum);
    return first;
}

// Adds the energies and virials of all blocks of `threads` threads. Runs in one block of at least as many. The virial belongs to
// the first component. Sums are added to those of another pass, and are 0 before the first one.
template <int TERMS> __device__ __forceinline__ void total_pair_sums(const PairArgs& a, u32 blocks, u32 threads) {
    constexpr int N = TERMS + 6;
    __shared__ double memory[N * 32];
    double total[N];
    sum_partials(a.partial, blocks, total, memory, threads);
    if (threadIdx.x == 0) {
        for (int k = 0; k < TERMS; ++k) a.sums[k].energy += total[k];
        for (int w = 0; w < 6; ++w) a.sums[0].virial[w] += total[TERMS + w];
    }
}

// Adds energies and virials of the particles of block number `block`. `first` is set in threads that hold the sums of a particle. The last
// block adds the sums of all, unless other ranks have further blocks.
template <int TERMS>
__device__ __forceinline__ void finish_pair_sums(const PairArgs& a, const Accumulator<TERMS, ALL_SUMS>& sum, bool first, u32 block) {
    constexpr int N = TERMS + 6;
    __shared__ double memory[N * 32];
    double values[N];
    for (int k = 0; k < TERMS; ++k) values[k] = first ? 0.5 * double(sum.u[k]) : 0.0;
    for (int k = 0; k < 6; ++k) values[TERMS + k] = first ? 0.5 * double(sum.w[k]) : 0.0;
    block_sum(values, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < N; ++k) a.partial[u64(block) * N + k] = values[k];
    }
#ifndef GALAMOST_RANKS
    __shared__ u32 flag;
    if (last_block(a.counter, &flag)) total_pair_sums<TERMS>(a, gridDim.x, blockDim.x);
#endif
}

// Adds the virial of the row of particle i to the thread's sum for barostats; with `holds` it is the row of a particle. Returns the requested
// stop flag: a halt if the virial is too large.
template <int TERMS, u32 SUMS, u32 TEAM>
__device__ __forceinline__ u32 add_pair_virial(const PairArgs& a, const Accumulator<TERMS, SUMS>& sum, u32 i, bool holds,
                                               VirialSum<TEAM>& virial) {
    real w[BAROSTAT_VIRIALS];
#pragma unroll
    for (int k = 0; k < BAROSTAT_VIRIALS; ++k) w[k] = holds ? sum.w[SUMS == ALL_SUMS ? barostat_virial(k) : k] : real(0);
    if (virial.add(a.virial, w)) return 0u;
    raise_virial_fault(a.state, i);
    return STOP_HALT;
}

// Adds the sums of a block of threads, each of which has the row of particle i.
template <int TERMS, u32 SUMS, u32 TEAM>
__device__ __forceinline__ void finish_rows(const PairArgs& a, const Accumulator<TERMS, SUMS>& sum, u32 i, bool first, u32 block) {
    if constexpr (SUMS == ALL_SUMS) finish_pair_sums(a, sum, first, block);
    if (SUMS == DIAGONAL || (SUMS == ALL_SUMS && a.virial.words)) {
        VirialSum<TEAM> virial;
        add_pair_virial(a, sum, i, i < own_end(a.state), virial);
        virial.finish(a.virial);
    }
}

template <class PairTerms, int TERMS, u32 TEAM, u32 SUMS>
__device__ __forceinline__ void pair_loop(const PairArgs& a) {
    if (a.state.globals->halt) return;
    PairTerms terms(a);
    Accumulator<TERMS, SUMS> sum;
    // a rank begins at a multiple of the particles of a block
    const u32 block = own_begin(a.state) * TEAM / blockDim.x + blockIdx.x, thread = block * blockDim.x + threadIdx.x;
    const bool first = pair_rows<PairTerms, TERMS, TEAM, SUMS, 128u>(a, terms, thread, sum);
    if constexpr (SUMS != FORCES) finish_rows<TERMS, SUMS, TEAM>(a, sum, thread / TEAM, first, block);
}
