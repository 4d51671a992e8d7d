// Plain Rosenbluth sampling. The lanes of a warp grow 32 chains of one block in lockstep.
extern "C" __global__ void __launch_bounds__(128) rosenbluth_chains(ChainArgs a) {
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31u;
    Walk w = walk_of(a, thread);
    for (u64 k = thread; k < (a.count + 31) / 32 * 32; k += a.threads) {
        const Draws draws = {a.key, a.first + k};
        bool live = k < a.count;
        w.begin();
        Weight weight = {1.0, 0};
        u32 contacts = 0;
        for (u32 n = 2; n <= MONOMERS; ++n) {
            Grown g;
            if (live) live = grow(w, a, draws, n - 1, g);
            if (live) {
                w.push(g.x, g.y, g.z);
                weight = times(weight, g.factor);
                contacts += g.contacts;
            }
            if (!__any_sync(0xffffffffu, live)) break;
            i64 v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
            const u32 row = row_of(n, contacts);
            if (live && numbers(a, w, weight, contacts, row, v)) histogram(a, w, draws.chain, v[1]);
            add_over_warp(a.rows + (u64(block_of(draws.chain)) * MONOMERS * WIDTH + row_of(n, 0)) * 6, v);
        }
    }
}
