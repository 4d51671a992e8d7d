#!/bin/bash
# Inversions whose answer is known, on a machine with a GPU:
#
#     bash benches/validation/ibi.sh PACK|GALAMOST OUT [PART...]
#
# PACK is the folder that pack.sh made, or GALAMOST the program. Parts, all by default (imc wants wca before it):
#   wca      the WCA potential from its g(r) by iterative Boltzmann inversion, ρ 0.7, kT 1, 8,000 particles; about 90 s
#   imc      the same from iteration 10 of it on, by inverse Monte Carlo; about 60 s
#   mixture  three potentials of a Lennard-Jones mixture, 8,000 particles, by IBI and then IMC; about 90 s
#   chain    pair, bond, angle and dihedral potentials of 200 chains of 50 beads, and the run with the tables that were found, on the GPU and
#            on the CPU; about 120 s
# Each leaves an archive in OUT and prints, for each iteration, seconds, distances from the targets and from the true potentials.
# Variables: DEVICE (cuda:0), CPU (1: also seconds per iteration on the CPU), WORK, CELLS (20), CHAINS (200), REFERENCE (100000), STEPS (20000), and
# numbers of iterations WCA (120), IMC (14), MIXTURE (30, and as many again by IMC as IMC says), CHAIN (30). python3 needs no packages; ibi/plot.py makes pictures of the
# archives, with matplotlib.
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=$(realpath "$1"); out=$2; shift 2
mkdir -p "$out"; out=$(cd "$out" && pwd)
device=${DEVICE:-cuda:0}; work=${WORK:-${TMPDIR:-/tmp}/ibi}
parts=" ${*:-wca imc mixture chain} "; failures=0
rm -rf "$work"; mkdir -p "$work"; cd "$work" || exit 1; work=$PWD
galamost=$pack
if [ -d "$pack" ]; then
    mkdir engine && tar xzf "$pack/engine.tar.gz" -C engine || { echo 'FAILED: the engine cannot be unpacked'; exit 1; }
    galamost=$work/engine/galamost
fi
cells=${CELLS:-20}; reference=${REFERENCE:-100000}; steps=${STEPS:-20000}

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
wanted() { [[ "$parts" == *" $1 "* ]]; }
archive() { tar czf "$out/$1.tar.gz" --exclude '*.gsd' --exclude '*.checkpoint' -C "$work" "$1" && say "$1: $(stat -c %s "$out/$1.tar.gz") bytes"; }

# the first lines and the last ones
ends() { awk '{ line[NR] = $0 } END { for (k = 1; k <= NR; k++) if (k <= 2 || k > NR - 5 || k % 20 == 0) print line[k] }'; }

# the numbers of a part's files
fill() { # folder, iterations, method, gain of the pressure, steps between samples
    sed -i "s|CELLS|$cells|g; s|REFERENCE|$reference|; s|STEPS|$steps|; s|ITERATIONS|$2|; s|METHOD|$3|; s|EQUILIBRATE|$((reference / 2))|; s|GAIN|$4|; s|EVERY|$5|" "$1"/*.ron
}

# the pressure of the reference
pressure() { # folder
    local p
    p=$(awk -F, 'NR > 1 { s += $4 } END { printf "%.5f", s / (NR - 1) }' "$1/thermo.csv")
    sed -i "s|PRESSURE|$p|" "$1/spec.ron"
    say "$1: reference done, pressure $p"
}

run() { # seconds, log, arguments
    local seconds=$1 log=$2; shift 2
    timeout -s INT -k 20 "$seconds" "$galamost" "$@" >"$log" 2>&1 && return 0
    local code=$?
    say "FAILED: $log: exit code $code"; tail -8 "$log"; failures=$((failures + 1))
    return 1
}

# iterations, and the time of each; where CPU is set, also that of two iterations on the CPU
invert() { # folder, seconds
    run "$2" "$1/ibi.log" ibi "$1/spec.ron" --device "$device"
    grep -E 'iteration|distribution|stopped' "$1/ibi.log" | tail -3
    awk -F, -v what="$1" 'NR > 1 && $1 != last { last = $1; n++; if (n > 1) s += $NF } END { if (n > 1) printf "[%s] %d iterations, %.2f s each after the first (GPU)\n", what, n, s / (n - 1) }' "$1/spec/convergence.csv"
    if [ "${CPU:-}" = 1 ]; then
        rm -rf "$1-cpu"; cp -r "$1" "$1-cpu"; rm -rf "$1-cpu/spec"
        run 300 "$1-cpu/ibi.log" ibi "$1-cpu/spec.ron" --device cpu --iterations 2 &&
            awk -F, -v what="$1" 'NR > 1 && $1 == 2 { s = $NF } END { printf "[%s] %.2f s an iteration (CPU, %d threads)\n", what, s, '"$(nproc)"' }' "$1-cpu/spec/convergence.csv"
    fi
}

for method in "wca|Ibi|${WCA:-120}|50" "imc|Imc(lambda: 0.02)|${IMC:-14}|20"; do
    IFS='|' read -r part name iterations every <<<"$method"
    wanted $part || continue
    cp -r "$here/ibi/wca" $part
    fill $part "$iterations" "$name" 0.0 "$every"
    # one reference for both
    if [ -e first/rdf.csv ]; then
        cp first/rdf.csv first/thermo.csv $part
    else
        run 60 $part/reference.log --pipeline $part/reference.ron --device "$device" || continue
        mkdir first; cp $part/rdf.csv $part/thermo.csv first
    fi
    pressure $part
    begun=$(ls -d wca/spec/iter-010/main 2>/dev/null)
    if [ $part = imc ] && [ -n "$begun" ]; then
        cp "$begun/pair.A-A.csv" imc/start.csv
        sed -i 's|column: "A-A"|column: "A-A", start: "start.csv"|' imc/spec.ron
    fi
    invert $part 180
    python3 "$here/ibi/deviations.py" wca $part/spec | ends
    archive $part
done

if wanted mixture; then
    cp -r "$here/ibi/mixture" mixture
    fill mixture "${MIXTURE:-30}" Ibi 0.0 50
    if run 60 mixture/reference.log --pipeline mixture/reference.ron --device "$device"; then
        pressure mixture
        invert mixture 120
        # the same folder goes on with the other method
        sed -i "s|iterations: [0-9]*|iterations: $((${MIXTURE:-30} + ${IMC:-14}))|; s|method: Ibi|method: Imc(lambda: 0.1)|; s|every: 50|every: 20|" mixture/spec.ron
        CPU='' invert mixture 180
        python3 "$here/ibi/deviations.py" mixture mixture/spec | ends
        archive mixture
    fi
fi

if wanted chain; then
    cp -r "$here/ibi/chain" chain
    python3 chain/make_chains.py "${CHAINS:-200}" 50 chain/chains.xml 0.75
    # the frame at the last step, whose number is that of all steps
    sed -i "s|LAST|$((7000 + reference / 2 + reference))|" chain/reference.ron
    fill chain "${CHAIN:-30}" Ibi 0.02 100
    if run 120 chain/reference.log --pipeline chain/reference.ron --device "$device"; then
        cp "$(ls chain/end.*.xml | tail -1)" chain/start.xml; rm -f chain/end.*.xml
        pressure chain
        invert chain 200
        for place in gpu cpu; do
            mkdir -p chain/$place; cp chain/spec/result/*.csv chain/start.xml chain/$place
            python3 - chain/template.ron chain/reference.ron chain/$place/final.ron <<'P'
import re, sys
template, reference = (open(f).read() for f in sys.argv[1:3])
analyzers = re.search(r"analyzers: \[.*?\n        \]", reference, re.S).group(0)
analyzers = re.sub(r"\n *(GalamostXml|Thermo).*", "", analyzers)
template = re.sub(r'(name: "run", steps: \d+, dt: 0.003)', lambda m: m.group(1) + ", " + analyzers, template)
open(sys.argv[3], "w").write(template)
P
            on=$device; [ $place = cpu ] && on=cpu
            run 120 chain/$place.log --pipeline chain/$place/final.ron --device "$on"
        done
        python3 "$here/ibi/distances.py" chain
        archive chain
    fi
fi
say "$failures failures"
[ "$failures" = 0 ]
