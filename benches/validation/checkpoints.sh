#!/bin/bash
# What checkpoints cost, and kills at random moments, on a GPU or the CPU:
#
#     bash benches/validation/checkpoints.sh PACK OUT [DEVICE] [KILLS]
#
# PACK is what pack.sh made. Prints the doctor's page; the time that 10⁶ particles lose to checkpoints every 5 s; time and size of a
# checkpoint of 10⁷ particles, written and read; and what kills.py finds. About 5 minutes on an H200.
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=$1; mkdir -p "$2"; out=$(cd "$2" && pwd); device=${3:-cuda:0}; kills=${4:-100}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir -p "$work/engine/plugins"
tar xzf "$pack/engine.tar.gz" -C "$work/engine"
mv "$work"/engine/*.so "$work/engine/plugins/"
program=$work/engine/galamost
export GALAMOST_CACHE=$work/cache
"$program" doctor | tee "$out/doctor.txt"

liquid() { # CELLS FILE: an LJ liquid of 4 CELLS³ particles
    cat > "$2" <<EOF
(
    seed: 1,
    initial: [ Lattice(lattice: Fcc, cells: [$1, $1, $1], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    analyzers: [ Thermo(every: 1000, file: "t.csv") ],
    stages: [ (steps: 1000000000, dt: 0.004) ],
)
EOF
}
tps() { grep -o 'steps in [0-9.]* s: [0-9.]* TPS' "$1" | awk '{print $5}'; }
cd "$work"
liquid 63 million.ron
echo "== 1,000,188 particles, three times 20 s without checkpoints and with one every 5 s"
for k in ${WINDOWS:-1 2 3}; do
    for how in "()" "(minutes: 0.0833333, keep: 1)"; do
        "$program" --pipeline million.ron --device "$device" --set "checkpoint=$how" --walltime 0:${SECONDS_EACH:-30} -v 2> log
        echo "checkpoint=$how: $(tps log) TPS; waited: $(grep -o 'the run waited [0-9.]* s' log | awk '{print $4}' | paste -sd' ') s; \
$(grep -o '([0-9.]* MB in [0-9.]* s)' log | tail -1)"
        rm -f million.checkpoint*
    done
done | tee "$out/overhead.txt"
liquid 136 large.ron
echo "== 10,061,824 particles: one written, and read again"
{
    "$program" --pipeline large.ron --device "$device" --set "checkpoint=(every: 100, keep: 1)" --steps 200 -v 2> log
    grep -E 'checkpoint of|waited|TPS' log
    begun=$(date +%s.%N)
    "$program" --pipeline large.ron --device "$device" --set "checkpoint=(every: 100, keep: 1)" --steps 201 -v --resume 2> log
    echo "resumed, one step and a checkpoint in $(echo "$(date +%s.%N) - $begun" | bc -l 2>/dev/null || python3 -c "import time; print(time.time() - $begun)") s"
    grep -E 'going on|checkpoint of|waited' log
} | tee "$out/large.txt"
rm -f large.checkpoint*
echo "== $kills kills"
python3 "$here/kills.py" "$program" "$here/../../examples" "$kills" --device "$device" --only 01,03,06,10,13,17,18,30,36,45 --seconds 1.0 | tee "$out/kills.txt"
