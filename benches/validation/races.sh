#!/bin/bash
# Data races between the ranks of a run: ThreadSanitizer over emulated kernels, of which each rank has a thread.
#
#     bash benches/validation/races.sh PROGRAMS OUT
#
# PROGRAMS is a folder with `galamost` and its plugins; OUT is replaced. Needs g++ with libtsan, addr2line and Python. Barriers of ranks are
# atomic words of the kernels, which the tool understands; waiting on the host is not, so a long history tells where accesses
# come from. Prints pairs of places in kernels, and exits with 1 if there is one other than these, where two ranks write the same
# number: boxes of a group of tiles and positions of the rebuild at the end of a range, and the order of a cell at that place.
set -eu
galamost=$(cd "$1" && pwd)/galamost
rm -rf "$2"
mkdir -p "$2/bin" "$2/cache"
cd "$2"
out=$PWD
# static, so that the tool is not loaded into the compiler
cat >wrapper.c <<'C'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int n, char** a) {
    static char* with[] = {"-g", "-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"};
    char** b = calloc(n + 6, sizeof *b);
    int k = 0, asks = n > 1 && !strcmp(a[1], "--version");
    b[k++] = GXX;
    for (int i = 0; !asks && i < 4; ++i) b[k++] = with[i];
    for (int i = 1; i < n; ++i) b[k++] = a[i];
    unsetenv("LD_PRELOAD");
    return execv(GXX, b);
}
C
gcc -static -DGXX="\"$(command -v g++)\"" -o bin/g++ wrapper.c
printf 'race:%s\nrace:^std\n' "$galamost" >suppressions
cat >places.py <<'P'
import collections, re, subprocess, sys

known = ["store_bounds", "bound_group", "order_slot"]
log = open("log").read()
pairs = collections.Counter()
for report in re.findall(r"WARNING: ThreadSanitizer: data race.*?SUMMARY[^\n]*", log, re.S):
    unit = re.search(r"galamost-([0-9a-f]{32})", report.split("SUMMARY")[1])
    places = []
    for frame in re.findall(r"of size \d+ at \S+ by [^\n]*:\n *(?:#0 )?([^\n]*)", report)[:2]:
        offset = re.search(r"unit\.so\+(0x[0-9a-f]+)", frame)
        if unit and offset:
            command = ["addr2line", "-f", "-C", "-e", f"{sys.argv[1]}/{unit[1]}.so", offset[1]]
            name, line = subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[:2]
            frame = f"{name.split('(')[0]} {line.split('/')[-1]}"
        places.append(frame)
    pairs[" | ".join(places)] += 1
other = 0
for pair, n in pairs.items():
    same = [k for k in known if pair.count(k) == 2]
    print(f"    {n} {pair}{'  (same number)' if same else ''}")
    other += not same
sys.exit(other > 0)
P
status=0
run() { # NAME GPUS VARIABLE=VALUE INITIAL FORCES INTEGRATOR NEIGHBORS STEPS
    mkdir -p "$1"
    cat >"$1/p.ron" <<P
(seed: 3, initial: [$4, Velocities(kT: 1.0)], forces: [$5], integrators: [$6], neighbors: ($7, list: Staged), stages: [(steps: $8, dt: 0.01)])
P
    (cd "$1" && env "$3" PATH="$out/bin:$PATH" GALAMOST_CACHE="$out/cache" LD_PRELOAD="$(g++ -print-file-name=libtsan.so)" \
        TSAN_OPTIONS="history_size=7 report_signal_unsafe=0 suppressions=$out/suppressions" \
        "$galamost" --pipeline p.ron --device emulated --gpus "$2" --no-record >log 2>&1 </dev/null) || true
    echo "$1, $2 ranks, $3: $(grep -c 'WARNING: ThreadSanitizer' "$1/log" || true) reports"
    grep -q "TPS" "$1/log" || { echo "    the run failed: $1/log" && status=1; }
    (cd "$1" && python3 ../places.py "$out/cache") || status=1
}
pairs='pairs: { ("*", "*")'
dense="Lattice(lattice: Sc, cells: [16, 16, 16], density: 3.0)"
run liquid 2 GALAMOST_BALANCE=0 "$dense" "Dpd(r_cut: 1.0, kT: 1.0, $pairs: (a: 25.0, sigma: 3.0) })" "GrootWarren()" "buffer: 0.2" 16
run divided 2 GALAMOST_BALANCE=5 "$dense" "Dpd(r_cut: 1.0, kT: 1.0, $pairs: (a: 25.0, sigma: 3.0) })" "GrootWarren()" "buffer: 0.2" 16
run pressure 3 GALAMOST_BALANCE=0 "Lattice(lattice: Sc, cells: [14, 14, 14], density: 0.85)" \
    "LennardJones(r_cut: 2.5, $pairs: (epsilon: 1.0, sigma: 1.0) })" "MtkNpt(kT: 1.0, tau: 0.5, pressure: 2.0, tau_p: 0.5)" "buffer: 0.3" 16
run bonds 2 GALAMOST_BALANCE=0 'Polymers(box: [15.0, 15.0, 15.0], density: 0.85, bond_length: 0.97, distance: 0.3, molecules: [(molecule: "A10", fraction: 1.0)])' \
    "HarmonicRepulsion(r_cut: 1.0, $pairs: (alpha: 10.0) }), HarmonicBond(bonds: {\"*\": (k: 30.0, r0: 0.97)})" "Langevin(kT: 1.0, gamma: 1.0)" "buffer: 0.2" 20
run overflow 2 GALAMOST_BALANCE=0 "Lattice(lattice: Sc, cells: [16, 16, 16], density: 0.85)" \
    "Dpd(r_cut: 1.6, kT: 1.0, $pairs: (a: -90.0, sigma: 3.0) })" "GrootWarren()" "buffer: 0.15" 40
exit $status
