// Returns how many copies continue, and updates their weight.
__device__ __forceinline__ u32 controlled(const ChainArgs& a, Weight& weight, const Branch& mean, bool may_clone, u32 word) {
    if (mean.m == 0.0) return 1;
    const double ratio = scaled(weight, -mean.e) / mean.m;
    const double chance = mul(double(word), 1.0 / 4294967296.0);
#ifdef FLAT
    if (ratio >= 2.0 && may_clone) {
        const u32 k = ratio < 8.0 ? u32(ratio) : 8u;
        weight = times(weight, 1.0 / double(k));
        return k;
    }
    if (ratio < 1.0) {
        weight = {mean.m, mean.e};
        return chance < ratio;
    }
#else
    if (ratio > a.high && may_clone) {
        weight = times(weight, 0.5);
        return 2;
    }
    if (ratio < a.low) {
        weight = times(weight, 2.0);
        return chance < 0.5;
    }
#endif
    return 1;
}

// PERM. Threads take tours from a queue.
extern "C" __global__ void __launch_bounds__(128) rosenbluth_tours(ChainArgs a) {
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    Walk w = walk_of(a, thread);
    Branch* stack = a.stacks + u64(thread) * (MONOMERS + 1);
    for (;;) {
        const u64 k = atomicAdd(a.queue, u64(1));
        if (k >= a.count) return;
        const Draws draws = {a.key, a.first + k};
        w.begin();
        stack[1] = {1.0, 0, 0u, 0u, 0u};
        Weight weight = {1.0, 0};
        u32 contacts = 0, steps = 0, waiting = 0, top = 1;
        for (;;) {
            bool continues = false;
            Grown g;
            if (grow(w, a, draws, steps, g)) {
                w.push(g.x, g.y, g.z);
                weight = times(weight, g.factor);
                contacts += g.contacts;
                const u32 row = row_of(w.n, contacts);
                i64 v[6];
                if (numbers(a, w, weight, contacts, row, v)) {
                    histogram(a, w, draws.chain, v[1]);
                    u64* to = a.rows + (u64(block_of(draws.chain)) * MONOMERS * WIDTH + row) * 6;
#pragma unroll
                    for (int q = 0; q < 6; ++q) atomicAdd(&to[q], u64(v[q]));
                }
                u32 copies = 0;
                if (w.n < MONOMERS) {
                    const bool may = waiting + 8 <= WAITING && steps < BUDGET;
                    copies = controlled(a, weight, a.means[row], may, draws.words(steps, 0x30000u).v[0]);
                }
                continues = copies > 0;
                if (copies > 0) --copies;
                waiting += copies;
                ++top;
                stack[top] = {weight.m, weight.e, contacts, copies, 0u};
            }
            ++steps;
            if (continues) continue;
            // back to the last branch with waiting copies
            while (top > 0 && stack[top].copies == 0) {
                --top;
                if (top > 0) w.pop();
            }
            if (top == 0) break;
            Branch& s = stack[top];
            --s.copies;
            --waiting;
            weight = {s.m, s.e};
            contacts = s.contacts;
        }
    }
}
