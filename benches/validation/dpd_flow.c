/* The DPD liquid of Groot and Warren in a periodic flow, with nothing of GALAMOST: references for examples 11 and 23.
 *
 *     cc -O3 -march=native dpd_flow.c -lm -o dpd_flow
 *     ./dpd_flow P 10 5 10 0.05 100000 1     # box, force, steps, seed
 *
 * P: the force g along x in the lower half of z and -g in the upper half. K: g sin(2 pi z/Lz). rho 3, a 25, sigma 3, kT 1,
 * r_cut 1, m 1, dt 0.02, lambda 0.65, double precision, Gaussian random forces, direct sums over cells of edge 1.
 * Prints the mean velocity along the force (P), or the amplitude of the flow (K), the standard error of ten blocks, and the
 * viscosity: rho g D^2/(12 v) with D = Lz/2, or rho g/(k^2 v). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 10, SKIPPED = 1500, EVERY = 5, DRIFT = 100 };
static const double A = 25, SIGMA = 3, GAMMA = 4.5, DT = 0.02, LAMBDA = 0.65;
typedef double vec[3];
static vec box, *r, *v, *predicted, *force; /* v: at the full step, then at half of it */
static int n, cells[3], *head, *next;
static uint64_t state[4];

static uint64_t rotate(uint64_t x, int k) { return x << k | x >> (64 - k); }

/* xoshiro256** of Blackman and Vigna */
static double uniform(void) {
    uint64_t number = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
    state[2] ^= state[0], state[3] ^= state[1], state[1] ^= state[2], state[0] ^= state[3];
    state[2] ^= shifted, state[3] = rotate(state[3], 45);
    return (number >> 11) * 0x1p-53;
}

static void seed(uint64_t number) {
    for (int k = 0; k < 4; k++) { /* splitmix64 */
        uint64_t z = (number += 0x9E3779B97F4A7C15u);
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        state[k] = z ^ z >> 31;
    }
}

/* polar method of Marsaglia */
static double gauss(void) {
    double x, y, s;
    do {
        x = 2 * uniform() - 1, y = 2 * uniform() - 1, s = x * x + y * y;
    } while (s >= 1 || s == 0);
    return x * sqrt(-2 * log(s) / s);
}

static double profile(char flow, double z) {
    if (flow == 'P') return z < 0.5 * box[2] ? 1 : -1;
    return sin(2 * M_PI * z / box[2]);
}

static void fill_cells(void) {
    for (int c = 0; c < cells[0] * cells[1] * cells[2]; c++) head[c] = -1;
    for (int i = 0; i < n; i++) {
        int at[3];
        for (int d = 0; d < 3; d++) {
            at[d] = (int)(r[i][d] / box[d] * cells[d]);
            if (at[d] >= cells[d]) at[d] = cells[d] - 1;
        }
        int c = (at[2] * cells[1] + at[1]) * cells[0] + at[0];
        next[i] = head[c], head[c] = i;
    }
}

static void pair(int i, int j, const vec image) {
    vec e;
    double square = 0, approach = 0;
    for (int d = 0; d < 3; d++) e[d] = r[i][d] - r[j][d] - image[d], square += e[d] * e[d];
    if (square >= 1 || square == 0) return;
    double distance = sqrt(square), weight = 1 - distance;
    for (int d = 0; d < 3; d++) e[d] /= distance, approach += e[d] * (predicted[i][d] - predicted[j][d]);
    double f = A * weight - GAMMA * weight * weight * approach + SIGMA * weight * gauss() / sqrt(DT);
    for (int d = 0; d < 3; d++) force[i][d] += f * e[d], force[j][d] -= f * e[d];
}

/* Pairs of a cell with itself and with half of the cells around it. */
static void pairs_of_cell(const int at[3]) {
    int own = (at[2] * cells[1] + at[1]) * cells[0] + at[0];
    for (int o = 13; o < 27; o++) {
        int to[3] = {at[0] + o % 3 - 1, at[1] + o / 3 % 3 - 1, at[2] + o / 9 - 1};
        vec image = {0, 0, 0};
        for (int d = 0; d < 3; d++) {
            if (to[d] < 0) to[d] += cells[d], image[d] = -box[d];
            else if (to[d] >= cells[d]) to[d] -= cells[d], image[d] = box[d];
        }
        int other = (to[2] * cells[1] + to[1]) * cells[0] + to[0];
        for (int i = head[own]; i >= 0; i = next[i])
            for (int j = o == 13 ? next[i] : head[other]; j >= 0; j = next[j]) pair(i, j, image);
    }
}

static void step(char flow, double g) {
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++) {
            predicted[i][d] = v[i][d] + LAMBDA * DT * force[i][d];
            v[i][d] += 0.5 * DT * force[i][d];
            r[i][d] += DT * v[i][d];
            r[i][d] -= box[d] * floor(r[i][d] / box[d]);
            if (r[i][d] >= box[d]) r[i][d] = 0;
        }
    fill_cells();
    for (int i = 0; i < n; i++) force[i][0] = g * profile(flow, r[i][2]), force[i][1] = force[i][2] = 0;
    int at[3];
    for (at[2] = 0; at[2] < cells[2]; at[2]++)
        for (at[1] = 0; at[1] < cells[1]; at[1]++)
            for (at[0] = 0; at[0] < cells[0]; at[0]++) pairs_of_cell(at);
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++) v[i][d] += 0.5 * DT * force[i][d];
}

static double drift(int d) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += v[i][d];
    return sum / n;
}

/* A liquid that drifts along z would leave the flow behind. */
static void stop_drift(void) {
    for (int d = 0; d < 3; d++) {
        double mean = drift(d);
        for (int i = 0; i < n; i++) v[i][d] -= mean;
    }
}

static double flow_now(char flow) {
    double sum = 0, mean = drift(0);
    for (int i = 0; i < n; i++) sum += (v[i][0] - mean) * profile(flow, r[i][2]);
    return (flow == 'P' ? 1 : 2) * sum / n;
}

int main(int count, char **words) {
    if (count != 8) return fprintf(stderr, "usage: dpd_flow P|K Lx Ly Lz g STEPS SEED\n"), 2;
    char flow = words[1][0];
    for (int d = 0; d < 3; d++) box[d] = atof(words[2 + d]), cells[d] = (int)box[d];
    double g = atof(words[5]), block[BLOCKS] = {0}, mean = 0, error = 0;
    long steps = atol(words[6]), length = steps / BLOCKS;
    seed(strtoull(words[7], NULL, 10));
    n = (int)(3 * box[0] * box[1] * box[2] + 0.5);
    r = calloc(n, sizeof(vec)), v = calloc(n, sizeof(vec)), predicted = calloc(n, sizeof(vec));
    force = calloc(n, sizeof(vec)), next = calloc(n, sizeof(int));
    head = calloc((size_t)cells[0] * cells[1] * cells[2], sizeof(int));
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++) r[i][d] = box[d] * uniform(), v[i][d] = gauss();
    stop_drift();
    for (long t = 0; t < SKIPPED + length * BLOCKS; t++) {
        step(flow, g);
        if (t % DRIFT == DRIFT - 1) stop_drift();
        if (t >= SKIPPED && t % EVERY == 0) block[(t - SKIPPED) / length] += flow_now(flow) * EVERY / length;
    }
    for (int b = 0; b < BLOCKS; b++) mean += block[b] / BLOCKS;
    for (int b = 0; b < BLOCKS; b++) error += (block[b] - mean) * (block[b] - mean);
    error = sqrt(error / (BLOCKS * (BLOCKS - 1)));
    double d = 0.5 * box[2], k = 2 * M_PI / box[2];
    double eta = flow == 'P' ? 3 * g * d * d / (12 * mean) : 3 * g / (k * k * mean);
    printf("%c, box %g %g %g, g %g, %ld steps: flow %.5f +- %.5f, viscosity %.4f +- %.4f\n", flow, box[0], box[1], box[2], g,
           length * BLOCKS, mean, error, eta, eta * error / mean);
    return 0;
}
