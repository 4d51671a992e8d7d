#include "galamost/list.cuh"

// Products and sums with separate rounding, as on the CPU, so that both find the same pairs.
#ifdef __CUDACC__
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ double plus(double a, double b) { return a + b; }
#endif

// Minimum image of r_i - r_j in f64.
struct Apart {
    double x, y, z;
};
__device__ __forceinline__ Apart apart(const PosType& i, const PosType& j, const Globals* g) {
    const double* l = g->box_length;
#ifdef GALAMOST_DOUBLE
    const double d[3] = {i.x - j.x, i.y - j.y, i.z - j.z};
    double near[3];
    for (int k = 0; k < 3; ++k) near[k] = l[k] > 0.0 ? plus(d[k], -times(l[k], rint(times(d[k], 1.0 / l[k])))) : d[k];
    return Apart{near[0], near[1], near[2]};
#else
    return Apart{times(double(int(u32(i.x) - u32(j.x))), l[0] / 4294967296.0),
                 times(double(int(u32(i.y) - u32(j.y))), l[1] / 4294967296.0),
                 times(double(int(u32(i.z) - u32(j.z))), l[2] / 4294967296.0)};
#endif
}

__device__ __forceinline__ double dot(const Apart& a, const Apart& b) {
    return plus(plus(times(a.x, b.x), times(a.y, b.y)), times(a.z, b.z));
}

struct Reactant {
    u32 kind, limit;
    int init, cris;
    bool free;
};

__device__ __forceinline__ Reactant reactant(const ReactArgs& a, u32 i, u32 kind) {
    Reactant w;
    w.kind = kind;
    w.init = a.init[i];
    w.cris = a.cris[i] > 0 ? a.cris[i] : 0;
    w.limit = a.limits[kind];
    w.free = u32(w.cris) < w.limit;
    return w;
}

__device__ __forceinline__ bool first_role(const Reactant& w, const Row& r) {
    if (w.kind != r.of[0]) return false;
    if (r.kind == Kind::Join || r.kind == Kind::Exchange) return w.free;
    if (r.kind == Kind::Insert || r.kind == Kind::Break) return true;
    return w.init == 1;
}

__device__ __forceinline__ bool second_role(const Reactant& w, const Row& r) {
    if (w.kind != r.of[1]) return false;
    if (r.kind == Kind::Grow || r.kind == Kind::Insert) return w.init != 1 && w.free;
    if (r.kind == Kind::Combine || r.kind == Kind::Disproportionate) return w.init == 1;
    if (r.kind == Kind::Join) return w.free;
    return true;
}

__device__ __forceinline__ bool symmetric(u32 kind) {
    return kind == Kind::Join || kind == Kind::Combine || kind == Kind::Disproportionate || kind == Kind::Break;
}

// Reduces p by the previous reactions of a partner.
__device__ __forceinline__ double lowered(double p, const Row& r, const Reactant& w) {
    for (int k = 0; k < w.cris; ++k) p = times(p, r.factor);
    if (r.by_groups) {
        const u32 left = w.limit > u32(w.cris) ? w.limit - u32(w.cris) : 0u;
        p = times(p, double(left) / double(w.limit > 0u ? w.limit : 1u));
    }
    return p;
}

__device__ __forceinline__ u64 threshold(const Row& r, const Reactant& a, const Reactant& b) {
    double p = r.p;
    if (r.kind == Kind::Join || r.kind == Kind::Exchange) p = lowered(p, r, a);
    if (r.kind == Kind::Join || r.kind == Kind::Exchange || r.kind == Kind::Grow || r.kind == Kind::Insert) p = lowered(p, r, b);
    return u64(times(p, 4294967296.0));
}

__device__ __forceinline__ Words draw(const ReactArgs& a, u32 r, u32 i, u32 j) {
    return random_pair(a.key, a.step | u64(r) << 48, i, j);
}

__device__ __forceinline__ u64 decides(const Words& w, u32 first, u32 second) { return first < second ? w.v[1] : w.v[2]; }

__device__ __forceinline__ u32 partner(const LinkView& b, u32 i, u32 e) { return b.words[u64(2u * e) * b.stride + i]; }
__device__ __forceinline__ u32 bond_kind(const LinkView& b, u32 i, u32 e) {
    return b.words[u64(2u * e + 1u) * b.stride + i] >> 2;
}

__device__ __forceinline__ bool breakable(const LinkView& b, u32 i, u32 kind) {
    for (u32 e = 0; e < b.count[i]; ++e) {
        if (bond_kind(b, i, e) == kind) return true;
    }
    return false;
}

__device__ __forceinline__ bool bonded(const LinkView& b, u32 i, u32 j) {
    for (u32 e = 0; e < b.count[i]; ++e) {
        if (partner(b, i, e) == j) return true;
    }
    return false;
}

// Largest error of an angle in radians: rounding of a cosine near 1 or -1.
#define ANGLE_ERROR 1e-7

// An energy and the bound of its error.
struct Energy {
    double value, error;
};

__device__ __forceinline__ void add(Energy& sum, double value, double error) {
    sum.value += value;
    sum.error += error + 1e-12 * fabs(value);
}

// Adds the energy of a bond of length r; false if it is about to diverge.
__device__ __forceinline__ bool add_bond(const Rule& rule, double r, Energy& sum) {
    if (rule.parts & Part::Harmonic) {
        add(sum, rule.bond_k * (r - rule.bond_length) * (r - rule.bond_length), 1e-12 * rule.bond_k * r * r);
    } else if (rule.parts & Part::Fene) {
        const double left = 1.0 - (r / rule.bond_length) * (r / rule.bond_length), k = 0.5 * rule.bond_k * rule.bond_length * rule.bond_length;
        if (left < 1e-6) return false;
        add(sum, -k * log(left), 1e-9 * k);
    }
    if (rule.parts & (Part::Harmonic | Part::Fene)) add(sum, -rule.bound, 0.0);
    return true;
}

// Adds the energy of two particles that are not bonded.
__device__ __forceinline__ void add_pair(const Rule& rule, double r, Energy& sum) {
    if (!(rule.parts & Part::Pair) || r >= rule.pair_cut) return;
    const double s2 = rule.sigma * rule.sigma / (r * r), s6 = s2 * s2 * s2;
    add(sum, 4.0 * rule.epsilon * s6 * (s6 - 1.0) - rule.shift, 1e-12 * (4.0 * rule.epsilon * s6 * (s6 + 1.0) + fabs(rule.shift)));
}

// Returns whether angles and energies refuse a candidate of one bond that forms or breaks, beyond the error of this computation; the host
// decides about others. Bonds of its particles cannot change before it is decided, see `resolve.rs`.
__device__ __forceinline__ bool refused(const ReactArgs& a, u32 r, const Row& row, u32 i, u32 j) {
    const Rule rule = a.rules[r];
    const bool breaks = row.kind == Kind::Break || row.kind == Kind::Unzip;
    const bool forms = row.kind == Kind::Grow || row.kind == Kind::Join || row.kind == Kind::Combine;
    if (!a.alone || rule.parts == 0u || !(breaks || forms)) return false;
    const StateView& s = a.state;
    const u32 of[2] = {i, j};
    const PosType at[2] = {s.pos_type[i], s.pos_type[j]};
    const Apart d = apart(at[0], at[1], s.globals);
    const double distance = sqrt(dot(d, d));
    Energy bond{0.0, 0.0}, pair{0.0, 0.0};
    if (!add_bond(rule, distance, bond)) return false;
    add_pair(rule, distance, pair);
    u32 angles = 0;
    for (u32 m = 0; m < 2u && (rule.parts & (Part::Angle | Part::Limit)); ++m) {
        const Apart v = apart(at[1u - m], at[m], s.globals);
        for (u32 e = 0; e < a.bonds.count[of[m]]; ++e) {
            const u32 c = partner(a.bonds, of[m], e);
            if (c == of[1u - m]) continue;
            const Apart u = apart(s.pos_type[c], at[m], s.globals);
            const double theta = acos(fmin(fmax(dot(u, v) / sqrt(dot(u, u) * dot(v, v)), -1.0), 1.0));
            if ((rule.parts & Part::Limit) && forms && theta < rule.least - ANGLE_ERROR) return true;
            const double turned = fabs(theta - rule.theta0);
            if (rule.parts & Part::Angle) add(bond, rule.angle_k * turned * turned, rule.angle_k * ANGLE_ERROR * (2.0 * turned + ANGLE_ERROR));
            ++angles;
        }
    }
    if (!(rule.parts & Part::Energies)) return false;
    if (rule.parts & Part::Mean) {
        bond.value /= 1.0 + angles;
        bond.error /= 1.0 + angles;
    }
    const Energy& before = breaks ? bond : pair;
    const Energy after = (rule.parts & Part::Activation) ? Energy{rule.activation, 0.0} : breaks ? pair : bond;
    const double least = after.value - before.value - after.error - before.error;
    const double word = (double(draw(a, r, s.tag[i], s.tag[j]).v[3]) + 0.5) / 4294967296.0;
    return least > 0.0 && word > exp(-least / rule.kt) * (1.0 + 1e-9);
}

// Writes a particle: coordinates, type, h_init, h_cris, number of bonds, tag, and tag and type of each bond.
__device__ __forceinline__ void describe(const ReactArgs& a, u32 i, u32* to) {
    const PosType p = a.state.pos_type[i];
    double* position = reinterpret_cast<double*>(to);
    position[0] = double(p.x);
    position[1] = double(p.y);
    position[2] = double(p.z);
    to[6] = p.kind;
    to[7] = u32(a.init[i]);
    to[8] = u32(a.cris[i]);
    const u32 n = a.bonds.count[i];
    to[9] = n;
    to[10] = a.state.tag[i];
    for (u32 e = 0; e < n; ++e) {
        to[12u + 2u * e] = a.state.tag[partner(a.bonds, i, e)];
        to[13u + 2u * e] = bond_kind(a.bonds, i, e);
    }
}

// Adds a candidate with its particles, and those up to `depth` bonds away from them, unless angles or energies refuse it.
__device__ __forceinline__ void emit(const ReactArgs& a, u32 r, const Row& row, u32 i, u32 j) {
    if (refused(a, r, row, i, j)) return;
    const u32 n = atomicAdd(a.counts + a.counter, 1u);
    if (n >= a.room) return;
    u32* record = a.out + u64(n) * a.record;
    record[0] = a.stamp;
    record[1] = r;
    record[2] = a.state.tag[i];
    record[3] = a.state.tag[j];
    u32* to = record + 6u;
    const auto next = [&](u32 k) {
        describe(a, k, to);
        to += a.stride;
    };
    next(i);
    if (j != i) next(j);
    for (u32 m = 0; m < (j != i ? 2u : 1u) && a.depth > 0u; ++m) {
        const u32 of = m == 0u ? i : j;
        for (u32 e = 0; e < a.bonds.count[of]; ++e) {
            const u32 k = partner(a.bonds, of, e);
            next(k);
            for (u32 f = 0; f < a.bonds.count[k] && a.depth > 1u; ++f) next(partner(a.bonds, k, f));
        }
    }
    record[4] = u32(to - record - 6) / a.stride;
}

// The partner of particle i that comes first so far.
struct Best {
    u32 j, tag, word;
    double r2;
    bool reacts;
};

// Tries particle j at p as a partner of particle i. Returns true for a candidate if all partners are tried.
__device__ __forceinline__ bool attempt(const ReactArgs& a, u32 r, const Row& row, u32 i, u32 tag, const PosType& at, const Reactant& me,
                                        u32 j, const PosType& p, Best& best) {
    const StateView& s = a.state;
    if (p.kind != row.of[1]) return false;
    const Apart d = apart(at, p, s.globals);
    const double r2 = dot(d, d);
    if (!(r2 < times(a.r_cut, a.r_cut))) return false;
    const Reactant you = reactant(a, j, p.kind);
    const u32 other = s.tag[j];
    const bool once = a.partners == 0u && symmetric(row.kind) && row.of[0] == row.of[1];
    if (!second_role(you, row) || (once && other < tag)) return false;
    if ((row.kind == Kind::Exchange && !breakable(a.bonds, j, row.broken)) || bonded(a.bonds, i, j)) return false;
    const Words w = draw(a, r, tag, other);
    const bool reacts = decides(w, tag, other) < threshold(row, me, you);
    if (a.partners == 0u) return reacts;
    const bool equal = a.partners == 2u ? r2 == best.r2 : w.v[0] == best.word;
    const bool before = a.partners == 2u ? r2 < best.r2 : w.v[0] < best.word;
    if (best.j == 0xffffffffu || before || (equal && other < best.tag)) best = Best{j, other, w.v[0], r2, reacts};
    return false;
}

// Threads that share the neighbors of a particle, and neighbors whose positions a thread loads together.
#define TEAM 4u
#define AHEAD 4u

// Emits candidates with partners of particle i within r_cut. Called by the threads of a team; one of them alone compares partners.
__device__ __forceinline__ void partners(const ReactArgs& a, u32 r, const Row& row, u32 i, u32 tag, const PosType& at, const Reactant& me,
                                         u32 member) {
    const bool compares = a.partners != 0u;
    if ((compares && member != 0u) || (row.kind == Kind::Insert && !breakable(a.bonds, i, row.broken))) return;
    const u32 n = a.list.count[i], step = compares ? 1u : TEAM;
    Best best{0xffffffffu, 0u, 0u, 0.0, false};
    for (u32 first = member; first < n; first += AHEAD * step) {
        u32 j[AHEAD];
        PosType p[AHEAD];
#pragma unroll
        for (u32 k = 0; k < AHEAD; ++k) j[k] = neighbor(a.list, i, first + k * step < n ? first + k * step : first);
#pragma unroll
        for (u32 k = 0; k < AHEAD; ++k) p[k] = a.state.pos_type[j[k]];
        u32 reacting = 0u;
#pragma unroll
        for (u32 k = 0; k < AHEAD; ++k) {
            if (first + k * step < n && attempt(a, r, row, i, tag, at, me, j[k], p[k], best)) reacting |= 1u << k;
        }
        for (u32 k = 0; reacting >> k; ++k) {
            if (reacting >> k & 1u) emit(a, r, row, i, neighbor(a.list, i, first + k * step));
        }
    }
    if (best.reacts) emit(a, r, row, i, best.j);
}

// Finds the candidates of the own particles, and sets the counter of the next search to 0.
extern "C" __global__ void react_find(ReactArgs a) {
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, i = own_begin(a.state) + thread / TEAM, member = thread % TEAM;
    if (thread == 0u) a.counts[1u - a.counter] = 0u;
    if (a.state.globals->halt || i >= own_end(a.state)) return;
    const PosType at = a.state.pos_type[i];
    const Reactant me = reactant(a, i, at.kind);
    for (u32 r = 0; r < a.n_rows; ++r) {
        const Row row = a.rows[r];
        if (!first_role(me, row)) continue;
        const u32 tag = a.state.tag[i];
        const bool unbonded = row.kind != Kind::Die && row.kind != Kind::Break && row.kind != Kind::Unzip;
        if (unbonded) {
            partners(a, r, row, i, tag, at, me, member);
        } else if (member != 0u) {
            continue;
        } else if (row.kind == Kind::Die) {
            if (u64(random_single(a.key, a.step, tag, r).v[1]) < threshold(row, me, me)) emit(a, r, row, i, i);
        } else {
            const bool twice = row.kind == Kind::Break && row.of[0] == row.of[1];
            for (u32 e = 0; e < a.bonds.count[i]; ++e) {
                const u32 j = partner(a.bonds, i, e), other = a.state.tag[j];
                if (bond_kind(a.bonds, i, e) != row.broken || (twice && other < tag)) continue;
                if (row.kind == Kind::Unzip && a.bonds.count[i] != 1u) continue;
                if (!second_role(reactant(a, j, a.state.pos_type[j].kind), row)) continue;
                if (decides(draw(a, r, tag, other), tag, other) < threshold(row, me, me)) emit(a, r, row, i, j);
            }
        }
    }
}

// Writes the own ones of particles given by their tags; the number of bonds of others is 0xffffffff.
extern "C" __global__ void react_lookup(ReactArgs a) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= a.n_tags) return;
    const u32 i = a.state.index_of_tag[a.tags[t]];
    u32* to = a.found + u64(t) * a.stride;
    if (i >= own_begin(a.state) && i < own_end(a.state)) {
        describe(a, i, to);
    } else {
        to[9] = 0xffffffffu;
    }
}

// Applies changes of particles.
extern "C" __global__ void react_apply(ApplyArgs a) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= a.n_changes) return;
    const Change c = a.changes[t];
    const u32 i = a.state.index_of_tag[c.tag];
    a.state.pos_type[i].kind = c.kind;
    a.init[i] = c.init;
    a.cris[i] = c.cris;
    if (c.charged) a.state.charge[i] = real(c.charge);
}
