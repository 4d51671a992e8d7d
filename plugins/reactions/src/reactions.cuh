#include "galamost/list.cuh"
#include "galamost/topology.cuh"

// Products and sums with separate rounding, as on the CPU, so that both find the same pairs.
#ifdef __CUDACC__
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ double plus(double a, double b) { return a + b; }
#endif

// Squared minimum-image distance |r_i - r_j|^2 in f64.
__device__ __forceinline__ double apart2(const PosType& i, const PosType& j, const Globals* g) {
    const double* l = g->box_length;
#ifdef GALAMOST_DOUBLE
    const double d[3] = {i.x - j.x, i.y - j.y, i.z - j.z};
    double near[3];
    for (int k = 0; k < 3; ++k) near[k] = l[k] > 0.0 ? plus(d[k], -times(l[k], rint(times(d[k], 1.0 / l[k])))) : d[k];
#else
    const double near[3] = {times(double(int(u32(i.x) - u32(j.x))), l[0] / 4294967296.0),
                            times(double(int(u32(i.y) - u32(j.y))), l[1] / 4294967296.0),
                            times(double(int(u32(i.z) - u32(j.z))), l[2] / 4294967296.0)};
#endif
    return plus(plus(times(near[0], near[0]), times(near[1], near[1])), times(near[2], near[2]));
}

struct Reactant {
    u32 kind, limit;
    int init, cris;
    bool free;
};

__device__ __forceinline__ Reactant reactant(const ReactArgs& a, u32 i) {
    Reactant w;
    w.kind = a.state.pos_type[i].kind;
    w.init = a.init[i];
    w.cris = a.cris[i] > 0 ? a.cris[i] : 0;
    w.limit = a.limits[w.kind];
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

__device__ __forceinline__ void emit(const ReactArgs& a, u32 r, u32 first, u32 second) {
    const u32 n = atomicAdd(a.out + a.counter, 1u);
    if (n >= a.room) return;
    u32* names = a.out + 16u + u64(n) * (4u + 2u * a.stride);
    names[0] = r;
    names[1] = first;
    names[2] = second;
}

// Emits candidates with partners of particle i within r_cut.
__device__ __forceinline__ void partners(const ReactArgs& a, u32 r, const Row& row, u32 i, u32 tag, const Reactant& me) {
    const StateView& s = a.state;
    if (row.kind == Kind::Insert && !breakable(a.bonds, i, row.broken)) return;
    const bool once = a.partners == 0u && symmetric(row.kind) && row.of[0] == row.of[1];
    const PosType at = s.pos_type[i];
    const double limit = times(a.r_cut, a.r_cut);
    u32 best = 0xffffffffu, best_word = 0u;
    double best_r2 = 0.0;
    bool best_reacts = false;
    for (u32 k = 0; k < a.list.count[i]; ++k) {
        const u32 j = neighbor(a.list, i, k), other = s.tag[j];
        const Reactant you = reactant(a, j);
        if (!second_role(you, row) || (once && other < tag)) continue;
        const double r2 = apart2(at, s.pos_type[j], s.globals);
        if (!(r2 < limit) || (row.kind == Kind::Exchange && !breakable(a.bonds, j, row.broken)) || bonded(a.bonds, i, j)) continue;
        const Words w = draw(a, r, tag, other);
        const bool reacts = decides(w, tag, other) < threshold(row, me, you);
        if (a.partners == 0u) {
            if (reacts) emit(a, r, tag, other);
            continue;
        }
        const bool equal = a.partners == 2u ? r2 == best_r2 : w.v[0] == best_word;
        const bool before = a.partners == 2u ? r2 < best_r2 : w.v[0] < best_word;
        if (best == 0xffffffffu || before || (equal && other < best)) {
            best = other;
            best_word = w.v[0];
            best_r2 = r2;
            best_reacts = reacts;
        }
    }
    if (best_reacts) emit(a, r, tag, best);
}

// Finds the candidates of the own particles.
extern "C" __global__ void react_find(ReactArgs a) {
    const u32 i = own_begin(a.state) + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= own_end(a.state)) return;
    const Reactant me = reactant(a, i);
    for (u32 r = 0; r < a.n_rows; ++r) {
        const Row row = a.rows[r];
        if (!first_role(me, row)) continue;
        const u32 tag = a.state.tag[i];
        if (row.kind == Kind::Die) {
            if (u64(random_single(a.key, a.step, tag, r).v[1]) < threshold(row, me, me)) emit(a, r, tag, tag);
        } else if (row.kind == Kind::Break || row.kind == Kind::Unzip) {
            const bool twice = row.kind == Kind::Break && row.of[0] == row.of[1];
            for (u32 e = 0; e < a.bonds.count[i]; ++e) {
                const u32 j = partner(a.bonds, i, e), other = a.state.tag[j];
                if (bond_kind(a.bonds, i, e) != row.broken || !second_role(reactant(a, j), row) || (twice && other < tag)) continue;
                if (decides(draw(a, r, tag, other), tag, other) < threshold(row, me, me)) emit(a, r, tag, other);
            }
        } else {
            partners(a, r, row, i, tag, me);
        }
    }
}

// Writes a particle: coordinates, type, h_init, h_cris, number of bonds, and tag and type of each bond.
__device__ __forceinline__ void describe(const ReactArgs& a, u32 tag, u32* to) {
    const u32 i = a.state.index_of_tag[tag];
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
    for (u32 e = 0; e < n; ++e) {
        to[10u + 2u * e] = a.state.tag[partner(a.bonds, i, e)];
        to[11u + 2u * e] = bond_kind(a.bonds, i, e);
    }
}

// Writes the two particles of each candidate, and sets the counter of the next search to 0.
extern "C" __global__ void react_describe(ReactArgs a) {
    const u32 found = a.out[a.counter], n = found < a.room ? found : a.room;
    if (blockIdx.x == 0u && threadIdx.x == 0u) a.out[1u - a.counter] = 0u;
    for (u32 t = blockIdx.x * blockDim.x + threadIdx.x; t < 2u * n; t += gridDim.x * blockDim.x) {
        u32* candidate = a.out + 16u + u64(t >> 1) * (4u + 2u * a.stride);
        describe(a, candidate[1u + (t & 1u)], candidate + 4u + (t & 1u) * a.stride);
    }
}

// Writes the own ones of particles given by their tags; the number of bonds of others is 0xffffffff.
extern "C" __global__ void react_lookup(ReactArgs a) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= a.n_tags) return;
    const u32 i = a.state.index_of_tag[a.tags[t]];
    u32* to = a.found + u64(t) * a.stride;
    if (i >= own_begin(a.state) && i < own_end(a.state)) {
        describe(a, a.tags[t], to);
    } else {
        to[9] = 0xffffffffu;
    }
}

// Applies changes of particles and requests topology edits.
extern "C" __global__ void react_apply(ApplyArgs a) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t == 0u) *a.edits.count = a.n_edits;
    if (t < a.n_edits) a.edits.edits[t] = a.wanted[t];
    if (t >= a.n_changes) return;
    const Change c = a.changes[t];
    const u32 i = a.state.index_of_tag[c.tag];
    a.state.pos_type[i].kind = c.kind;
    a.init[i] = c.init;
    a.cris[i] = c.cris;
    if (c.charged) a.state.charge[i] = real(c.charge);
}
