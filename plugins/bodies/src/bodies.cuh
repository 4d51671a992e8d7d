// Rigid bodies on CUDA, equivalent to rigid.rs.
#include "galamost/place.cuh"

__device__ __forceinline__ Quaternion<real> orientation(const StateView& s, u32 i) {
    const Vec4 q = s.quaternion[i];
    return {q.x, q.y, q.z, q.w};
}

// Places each particle of a body from its center.
extern "C" __global__ void __launch_bounds__(128) place(PlaceArgs a, BodyArrays b) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 i = particle_block(s) * blockDim.x + threadIdx.x;
    if (i >= own_end(s) || b.center[i] == 0) return;
    const u32 c = s.index_of_tag[s.tag[i] + u32(b.center[i])];
    const Quaternion<real> q = orientation(s, c);
    const Vec3<real> d = device_rotate(q, load_vec3(b.offset, i)), inertia = load_vec3(s.inertia, c);
    const double* length = s.globals->box_length;
    // NaN is a fault of place_particle
    if (fabs(double(d.x)) > 0.5 * length[0] || fabs(double(d.y)) > 0.5 * length[1] || fabs(double(d.z)) > 0.5 * length[2]) {
        raise_fault(s.globals, FaultKind::Component, a.component, s.tag[i], 0u);
        return;
    }
    const Vec3<real> l = device_rotate_back(q, load_vec3(s.angular_momentum, c));
    const Vec3<real> rate = {inertia.x > real(0) ? l.x / inertia.x : real(0), inertia.y > real(0) ? l.y / inertia.y : real(0),
                             inertia.z > real(0) ? l.z / inertia.z : real(0)};
    const Vec4 v = s.velocity_mass[c];
    const Vec3<real> velocity = {v.x, v.y, v.z};
    place_particle(s, a.component, i, c, d, velocity + device_cross(device_rotate(q, rate), d));
}

// Adds the forces on particles first + lane, first + lane + 32, … of a body: F, T, and the virial with its sign.
__device__ __forceinline__ void collect_lane(const StateView& s, const BodyArrays& b, u32 first, u32 n, u32 c, u32 lane, double (&sums)[12]) {
    const Quaternion<real> q = orientation(s, c);
    for (u32 k = lane; k < n; k += 32u) {
        const u32 j = s.index_of_tag[first + k];
        const Vec3<real> place = device_rotate(q, load_vec3(b.offset, j));
        const Vec4 force = s.force[j];
        const double d[3] = {place.x, place.y, place.z}, f[3] = {force.x, force.y, force.z};
        int slot = 6;
        for (int x = 0; x < 3; ++x) {
            const int y = (x + 1) % 3, z = (x + 2) % 3;
            sums[x] += f[x];
            sums[3 + x] += d[y] * f[z] - d[z] * f[y];
            for (int w = x; w < 3; ++w) sums[slot++] -= 0.5 * (d[x] * f[w] + d[w] * f[x]);
        }
    }
}

// Adds the forces on the particles of each body to its center. A warp handles its 32 particles one after the other, and all
// its threads share the sum of one body.
extern "C" __global__ void __launch_bounds__(128) collect(PlaceArgs a, BodyArrays b) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 block = particle_block(s), i = block * blockDim.x + threadIdx.x, lane = threadIdx.x & 31u;
    const u32 n = i < own_end(s) ? u32(b.members[2u * i + 1u]) : 0u;
    const u32 first = n > 0u ? s.tag[i] + u32(b.members[2u * i]) : 0u;
    double virial[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    u32 centers = __ballot_sync(0xffffffffu, n > 0u);
    while (centers != 0u) {
        const u32 source = u32(__ffs(int(centers))) - 1u;
        centers &= centers - 1u;
        const u32 body_first = __shfl_sync(0xffffffffu, first, int(source)), body_n = __shfl_sync(0xffffffffu, n, int(source));
        double sums[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        collect_lane(s, b, body_first, body_n, i - lane + source, lane, sums);
        for (int k = 0; k < 12; ++k) {
            for (u32 step = 16u; step > 0u; step >>= 1) sums[k] += __shfl_down_sync(0xffffffffu, sums[k], step);
        }
        if (lane == 0u) {
            const u32 c = i + source;
            Vec4 force = s.force[c];
            force.x += real(sums[0]);
            force.y += real(sums[1]);
            force.z += real(sums[2]);
            s.force[c] = force;
            for (u32 k = 0; k < 3u; ++k) s.torque[3u * c + k] += real(sums[3 + k]);
            for (int k = 0; k < 6; ++k) virial[k] += sums[6 + k];
        }
    }
    if (a.full != 0u) store_virial(a, block, virial);
}
