#!/bin/bash
# What a Parquet table and DomainSize cost, on a machine with a GPU:
#
#     bash benches/validation/tables.sh GALAMOST
#
# GALAMOST is the program. 512,000 Lennard-Jones particles of two types, each analyzer every 100 steps: none, Thermo as CSV and as Parquet, a long table
# (DensityProfile of 100,000 slabs) as CSV and as Parquet with its bytes, DomainSize. Then a run with Parquet is killed five times (kill -9) and resumed: its
# folder must equal that of a run in one piece. Then DomainSize of one state on the device and on the CPU: the rows must be equal. Under 3 minutes.
# Variables: DEVICE (cuda:0); CELLS, edge of the lattice (80); STEPS (3000); REPEATS (3).
set -u
galamost=$(realpath "$1")
device=${DEVICE:-cuda:0}; cells=${CELLS:-80}; steps=${STEPS:-3000}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work" || exit 1
export GALAMOST_CACHE=$work/cache
cat >p.ron <<'RON'
(
    seed: 68,
    initial: [
        Lattice(lattice: Sc, cells: [CELLS, CELLS, CELLS], density: 0.8442, types: { "A": 0.5, "B": 0.5 }),
        Velocities(kT: 1.44),
    ],
    forces: [ LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: {
        ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 0.5, sigma: 1.0), ("B", "B"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ NoseHoover(kT: 0.72, tau: 0.5) ],
    checkpoint: (every: 500),
    stages: [ (name: "run", steps: 0, dt: 0.005) ],
)
RON
sed -i "s|CELLS|$cells|g" p.ron
domains='DomainSize(every: 100, file: "domains.csv", positive: ["A"], negative: ["B"], q_max: 1.0, vectors: 50)'
long='DensityProfile(every: 100, axis: Z, bins: 100000, file:'
thermo='Thermo(every: 100, file:'
declare -A of=([none]="" [thermo-csv]="$thermo \"t.csv\")" [thermo-parquet]="$thermo \"t.parquet\")" \
    [long-csv]="$long \"l.csv\")" [long-parquet]="$long \"l.parquet\")" [domains]="$domains")
run() { # analyzers, steps, more options
    timeout 100 "$galamost" --device "$device" --pipeline p.ron --set "analyzers=[$1]" --set "stages[0].steps=$2" "${@:3}" >log 2>&1 \
        || { tail -5 log >&2; return 1; }
    grep -oE '[0-9]+ steps in [0-9.]+ s: [0-9.]+ TPS' log | awk '{ print $6 }'
}
for which in none thermo-csv thermo-parquet long-csv long-parquet domains; do
    run "${of[$which]}" 200 >/dev/null || exit 1
    for k in $(seq "${REPEATS:-3}"); do echo "$which $(run "${of[$which]}" "$steps")"; done
done | tee speeds
sort -k1,1 -k2,2n speeds | awk '{ v[$1, ++c[$1]] = $2 }
    END { m = v["none", int((c["none"] + 1) / 2)]
        split("none thermo-csv thermo-parquet long-csv long-parquet domains", names, " ")
        for (k = 1; k in names; ++k) { w = names[k]; x = v[w, int((c[w] + 1) / 2)]
            printf "%-16s %10.1f TPS  overhead %6.2f%%  %8.3f ms a sample\n", w, x, 100 * (m / x - 1), 100000 * (1 / x - 1 / m) } }'
du -b l.csv && du -bs l.parquet

# kills
mkdir -p whole killed; cp p.ron whole; cp p.ron killed; table="${of[long-parquet]}, ${of[thermo-parquet]}"
(cd whole && run "$table" "$steps" >/dev/null) || exit 1
cd killed || exit 1
for k in 1 2 3 4 5; do
    timeout -s KILL $((6 + k)) "$galamost" --device "$device" --pipeline p.ron --set "analyzers=[$table]" --set "stages[0].steps=$steps" \
        --resume=auto >log 2>&1 && echo "run $k was over before its kill"
    "$galamost" info l.parquet | grep -E 'rows|parts' || echo "no table yet"
done
run "$table" "$steps" --resume=auto >/dev/null; cd ..
diff -r whole/l.parquet killed/l.parquet && diff -r whole/t.parquet killed/t.parquet && echo "killed and whole: the same files"

# one state on both devices
for d in "$device" cpu; do
    mkdir -p "on-$d"; cp p.ron "on-$d"
    (cd "on-$d" && "$galamost" --device "$d" --pipeline p.ron --quiet --set "analyzers=[$domains]")
done
diff "on-$device/domains.csv" on-cpu/domains.csv && echo "DomainSize: the same row on both devices" && cat on-cpu/domains.csv
"$galamost" selftest DomainSize --device "$device" 2>/dev/null | tail -1
