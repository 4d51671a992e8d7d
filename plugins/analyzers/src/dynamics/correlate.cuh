// Samples of positions or velocities, and sums over pairs of samples. `measure` (text of a `Measure`) adds VALUES numbers
// of the items of a thread.

// Returns an unwrapped reduced coordinate: that of the position, unless the box is triclinic.
__device__ __forceinline__ double reduced_quantity(const TakeArgs& a, u32 tag, u32 i, u32 axis) {
    const double x = unwrapped(a.state, i, axis);
    return a.carry ? plus(x, a.carry[3u * tag + axis]) : x;
}

__device__ __forceinline__ double quantity(const TakeArgs& a, u32 tag, u32 i, u32 axis) {
    if (a.velocities) return velocity(a.state, i, axis);
    const double x = reduced_quantity(a, tag, i, axis);
#ifdef GALAMOST_TRICLINIC
    const double* tilt = a.state.globals->tilt;
    if (axis == 2u) return x;
    const double z = reduced_quantity(a, tag, i, 2u);
    if (axis == 1u) return plus(x, times(tilt[2], z));
    return plus(plus(x, times(tilt[0], reduced_quantity(a, tag, i, 1u))), times(tilt[1], z));
#else
    return x;
#endif
}

// Accumulates the unwrapping correction of a particle for a box smaller by `change` than at the last sample.
__device__ __forceinline__ void follow_particle(const TakeArgs& a, u32 tag, u32 i) {
    for (u32 axis = 0; axis < 3u; ++axis) {
        const u32 k = 3u * tag + axis;
        if (a.change[axis] != 0.0) a.carry[k] = plus(a.carry[k], times(a.change[axis], double(a.image[k])));
        a.image[k] = a.state.image[3u * i + axis];
    }
}

extern "C" __global__ void follow(TakeArgs a) {
    const u32 tag = blockIdx.x * blockDim.x + threadIdx.x;
    if (tag < a.state.n_local) follow_particle(a, tag, a.state.index_of_tag[tag]);
}

// Computes the center of mass of all particles, or its velocity, in tag order.
extern "C" __global__ void take_drift(TakeArgs a, double* drift) {
    __shared__ double memory[4 * 8];
    __shared__ u32 flag;
    double sums[4] = {0, 0, 0, 0};
    for (u32 r = 0; r < ITEMS_PER_THREAD; ++r) {
        const u32 tag = (blockIdx.x * ITEMS_PER_THREAD + r) * blockDim.x + threadIdx.x;
        if (tag >= a.state.n_local) continue;
        const u32 i = a.state.index_of_tag[tag];
        const double w = a.state.velocity_mass[i].w;
        for (u32 k = 0; k < 3u; ++k) sums[k] = plus(sums[k], times(w, quantity(a, tag, i, k)));
        sums[3] = plus(sums[3], w);
    }
    block_sum(sums, memory);
    if (threadIdx.x == 0u) {
        for (u32 k = 0; k < 4u; ++k) a.partial[4u * blockIdx.x + k] = sums[k];
    }
    if (last_block(a.counter, &flag)) {
        double total[4];
        sum_partials(a.partial, gridDim.x, total, memory);
        if (threadIdx.x == 0u) {
            for (u32 k = 0; k < 3u; ++k) drift[k] = total[k] / total[3];
        }
    }
}

// Stores a sample, coordinate by coordinate, in the order of the items.
extern "C" __global__ void take_frame(TakeArgs a) {
    const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= a.n_items) return;
    const u32 item = a.items[k];
    double x[3] = {0, 0, 0};
    if (item != NONE) {
        if (a.first) {
            double total = 0;
            for (u32 m = a.first[item]; m < a.first[item + 1u]; ++m) {
                const u32 tag = a.members[m], i = a.state.index_of_tag[tag];
                const double w = a.state.velocity_mass[i].w;
                for (u32 axis = 0; axis < 3u; ++axis) x[axis] = plus(x[axis], times(w, quantity(a, tag, i, axis)));
                total = plus(total, w);
            }
            for (u32 axis = 0; axis < 3u; ++axis) x[axis] /= total;
        } else {
            const u32 i = a.state.index_of_tag[item];
            if (a.image) follow_particle(a, item, i);
            for (u32 axis = 0; axis < 3u; ++axis) x[axis] = quantity(a, item, i, axis);
        }
        if (a.drift) {
            for (u32 axis = 0; axis < 3u; ++axis) x[axis] = minus(x[axis], a.drift[axis]);
        }
    }
    for (u32 axis = 0; axis < 3u; ++axis) a.frame[u64(axis) * a.n_items + k] = x[axis];
}

// Reads the items `from`, `from` + blockDim.x, … of a stored sample.
__device__ __forceinline__ Sample sample(const CompareArgs& a, u32 slot, u32 from) {
    const double* frame = a.frames + u64(slot) * 3u * a.n_items;
    Sample s;
    for (u32 r = 0; r < ITEMS_PER_THREAD; ++r) {
        const u32 k = from + r * blockDim.x;
        s.some[r] = a.items[k] != NONE;
        for (u32 axis = 0; axis < 3u; ++axis) s.x[r][axis] = frame[u64(axis) * a.n_items + k];
    }
    return s;
}

extern "C" __global__ void compare_frames(CompareArgs a, Settings settings) {
    __shared__ double memory[VALUES * 8];
    const u32 first = blockIdx.x / a.blocks * PAIRS_PER_BLOCK, block = blockIdx.x % a.blocks;
    const u32 end = first + PAIRS_PER_BLOCK < a.n_pairs ? first + PAIRS_PER_BLOCK : a.n_pairs;
    const u32 from = block * ITEMS_PER_THREAD * blockDim.x + threadIdx.x;
    const Sample now = sample(a, a.now, from);
    for (u32 pair = first; pair < end; ++pair) {
        double values[VALUES];
        for (u32 v = 0; v < VALUES; ++v) values[v] = 0.0;
        measure(settings, now, sample(a, a.slot[pair], from), values);
        block_sum(values, memory);
        if (threadIdx.x == 0u) {
            for (u32 v = 0; v < VALUES; ++v) a.partial[(u64(pair) * a.blocks + block) * VALUES + v] = values[v];
        }
    }
}

// Adds the partial sums; one thread block for each pair of samples and species.
extern "C" __global__ void add_sums(CompareArgs a) {
    __shared__ double memory[VALUES * 8];
    const u32 pair = blockIdx.x / a.species, species = blockIdx.x % a.species;
    const u32 from = a.first[species], to = a.first[species + 1u];
    double total[VALUES];
    sum_partials(a.partial + (u64(pair) * a.blocks + from) * VALUES, to - from, total, memory);
    if (threadIdx.x == 0u) {
        double* sums = a.sums + (u64(a.lag[pair]) * a.species + species) * VALUES;
        for (u32 v = 0; v < VALUES; ++v) sums[v] = plus(sums[v], total[v]);
    }
}
