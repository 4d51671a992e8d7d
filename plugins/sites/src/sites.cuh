// Virtual sites on CUDA, equivalent to virtual_sites.rs.
#include "galamost/place.cuh"

// A site: the particles that construct it, their displacements from the first one, and its numbers.
struct Site {
    u32 form, n;
    u32 atoms[MOST];
    Vec3<real> arms[MOST];
    const real* numbers;
};

__device__ __forceinline__ Vec3<real> zero() { return {real(0), real(0), real(0)}; }

// Returns particle i as a site; its form is 0 if it is none.
__device__ __forceinline__ Site load_site(const StateView& s, const SiteArrays& b, u32 i) {
    Site site;
    site.form = b.form[i];
    site.n = 0u;
    site.numbers = b.numbers + size_t(MOST) * i;
    for (u32 k = 0u; k < MOST; ++k) site.arms[k] = zero();
    if (site.form == 0u) return site;
    const u32 tag = s.tag[i];
    const BoxScale scale = make_scale(s.globals);
    PosType first;
    for (u32 k = 0u; k < MOST; ++k) {
        const int relative = b.atoms[MOST * i + k];
        if (relative == 0) break;
        const u32 j = s.index_of_tag[tag + u32(relative)];
        const PosType at = s.pos_type[j];
        if (k == 0u) first = at;
        else site.arms[k] = difference(at, first, scale);
        site.atoms[k] = j;
        site.n = k + 1u;
    }
    return site;
}

__device__ __forceinline__ Vec3<real> parameters(const Site& site) {
    return {site.numbers[0], site.numbers[1], site.numbers[2]};
}

// Returns displacement and velocity relative to the first particle; rates are the velocities of the arms.
__device__ __forceinline__ Tuple3<Vec3<real>, Vec3<real>, bool> place_one(const Site& site, const Vec3<real>* rates) {
    if (site.form != LINEAR) {
        return place_site(site.form, parameters(site), site.arms[1], site.arms[2], site.arms[3], rates[1], rates[2], rates[3]);
    }
    Vec3<real> d = zero(), v = zero();
    for (u32 k = 1u; k < site.n; ++k) {
        d = d + site.arms[k] * site.numbers[k];
        v = v + rates[k] * site.numbers[k];
    }
    return {d, v, true};
}

// Returns the part of a force that particle k receives.
__device__ __forceinline__ Vec3<real> part_of(const Site& site, const Vec3<real>& f, u32 k) {
    if (site.form == LINEAR) {
        if (k > 0u) return f * site.numbers[k];
        Vec3<real> rest = f;
        for (u32 m = 1u; m < site.n; ++m) rest = rest - f * site.numbers[m];
        return rest;
    }
    const Tuple3<Vec3<real>, Vec3<real>, Vec3<real>> parts =
        spread_force(site.form, parameters(site), site.arms[1], site.arms[2], site.arms[3], f);
    if (k == 0u) return f - parts.v0 - parts.v1 - parts.v2;
    return k == 1u ? parts.v0 : k == 2u ? parts.v1 : parts.v2;
}

// Places each site.
extern "C" __global__ void __launch_bounds__(128) place(PlaceArgs a, SiteArrays b) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 i = particle_block(s) * blockDim.x + threadIdx.x;
    if (i >= own_end(s)) return;
    const Site site = load_site(s, b, i);
    if (site.form == 0u) return;
    const Vec4 first = s.velocity_mass[site.atoms[0]];
    Vec3<real> rates[MOST];
    for (u32 k = 0u; k < MOST; ++k) rates[k] = zero();
    for (u32 k = 1u; k < site.n; ++k) {
        const Vec4 v = s.velocity_mass[site.atoms[k]];
        rates[k] = {v.x - first.x, v.y - first.y, v.z - first.z};
    }
    const Tuple3<Vec3<real>, Vec3<real>, bool> placed = place_one(site, rates);
    if (!placed.v2) {
        raise_fault(s.globals, FaultKind::Component, a.component, s.tag[i], 0u);
        return;
    }
    const Vec3<real> velocity = {first.x, first.y, first.z};
    place_particle(s, a.component, i, site.atoms[0], placed.v0, velocity + placed.v1);
}

// Adds the virial of the transfer of the force on particle i, if it is a site; that of a linear site is 0.
__device__ __forceinline__ void site_virial(const StateView& s, const SiteArrays& b, u32 i, double (&virial)[6]) {
    const Site site = load_site(s, b, i);
    if (site.form == 0u || site.form == LINEAR) return;
    Vec3<real> rates[MOST];
    for (u32 k = 0u; k < MOST; ++k) rates[k] = zero();
    const Vec3<real> d = place_one(site, rates).v0;
    const Vec4 force = s.force[i];
    for (u32 k = 0u; k < site.n; ++k) {
        const Vec3<real> arm = site.arms[k] - d, part = part_of(site, {force.x, force.y, force.z}, k);
        const double r[3] = {arm.x, arm.y, arm.z}, f[3] = {part.x, part.y, part.z};
        int slot = 0;
        for (int x = 0; x < 3; ++x) {
            for (int w = x; w < 3; ++w) virial[slot++] += 0.5 * (r[x] * f[w] + r[w] * f[x]);
        }
    }
}

// Adds to the force on each particle its parts of the forces on sites, and the virial.
extern "C" __global__ void __launch_bounds__(128) collect(PlaceArgs a, SiteArrays b) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 block = particle_block(s), i = block * blockDim.x + threadIdx.x;
    double virial[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (i < own_end(s)) {
        const u32 tag = s.tag[i];
        int next = b.uses[(MOST + 1u) * i];
        const bool used = next != 0;
        double sum[3] = {0.0, 0.0, 0.0};
        while (next != 0) {
            const u32 j = s.index_of_tag[tag + u32(next >> 3)], k = u32(next & 7);
            const Vec4 force = s.force[j];
            const Vec3<real> part = part_of(load_site(s, b, j), {force.x, force.y, force.z}, k);
            sum[0] += part.x;
            sum[1] += part.y;
            sum[2] += part.z;
            next = b.uses[(MOST + 1u) * j + k + 1u];
        }
        if (used) {
            Vec4 force = s.force[i];
            force.x += real(sum[0]);
            force.y += real(sum[1]);
            force.z += real(sum[2]);
            s.force[i] = force;
        }
        if (a.full != 0u) site_virial(s, b, i, virial);
    }
    if (a.full != 0u) store_virial(a, block, virial);
}
