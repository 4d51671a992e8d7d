// Writes the particle arrays in tag order, as f64.
extern "C" __global__ void gather_columns(ColumnsArgs a) {
    const StateView& s = a.state;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n_local) return;
    const u32 tag = s.tag[i];
    const PosType p = s.pos_type[i];
    double* x = a.position + 3u * u64(tag);
#ifdef GALAMOST_DOUBLE
    x[0] = p.x;
    x[1] = p.y;
    x[2] = p.z;
#else
    u32 low[3] = {0u, 0u, 0u};
#ifdef GALAMOST_MIXED
    for (int k = 0; k < 3; ++k) low[k] = s.pos_low[3u * u64(i) + k];
#endif
    const int high[3] = {p.x, p.y, p.z};
    for (int k = 0; k < 3; ++k) {
        const long long q = (long long)((u64(u32(high[k])) << 32) | low[k]);
        x[k] = double(q) / (4294967296.0 * 4294967296.0) * s.globals->box_length[k];
    }
#endif
#ifdef GALAMOST_TRICLINIC
    const double* tilt = s.globals->tilt;
    x[0] += tilt[0] * x[1] + tilt[1] * x[2];
    x[1] += tilt[2] * x[2];
#endif
    const Vec4 v = s.velocity_mass[i], f = s.force[i];
    a.velocity[3u * u64(tag)] = v.x;
    a.velocity[3u * u64(tag) + 1] = v.y;
    a.velocity[3u * u64(tag) + 2] = v.z;
    a.force[3u * u64(tag)] = f.x;
    a.force[3u * u64(tag) + 1] = f.y;
    a.force[3u * u64(tag) + 2] = f.z;
    for (int k = 0; k < 3; ++k) a.image[3u * u64(tag) + k] = s.image[3u * u64(i) + k];
    a.mass[tag] = v.w;
    a.kind[tag] = p.kind;
}
