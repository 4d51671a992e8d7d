#!/bin/bash
# Tables of all analyzers that work on the device, on one GPU and on several, byte for byte:
#
#     bash benches/validation/gpus.sh PROGRAMS [GPUS] [OUT]
#
# PROGRAMS is a folder with `galamost` and its plugins. GPUS: 2. OUT: gpus, replaced. Lennard-Jones particles, 125,000 (staged list,
# distributed arrays on two GPUs) and 46,656 (plain list, copies of ghosts), each twice on several GPUs: kernels of an analyzer run while the
# host goes on, so a race with the next step need not show in every run. The exit status is 1 if a table differs.
set -eu
programs=$(cd "$1" && pwd)
gpus=${2:-2}
out=${3:-gpus}
rm -rf "$out"
mkdir -p "$out"
cd "$out"
status=0
for side in 36 50; do
    cat >p.ron <<P
(seed: 3,
 initial: [Lattice(lattice: Sc, cells: [$side, $side, $side], density: 0.382), Velocities(kT: 1.2)],
 forces: [LennardJones(r_cut: 3.0, mode: ShiftEnergy, pairs: { ("*", "*"): (epsilon: 1.0, sigma: 1.0) })],
 integrators: [NoseHoover(kT: 1.2, tau: 0.5)],
 analyzers: [
    Thermo(every: 7, file: "thermo.csv"),
    StructureFactor(every: 33, q_max: 2.0, bins: 20, file: "structure.csv"),
    Rdf(every: 20, r_max: 2.0, file: "rdf.csv"),
    Msd(every: 10, file: "msd.csv"),
    Vacf(every: 10, file: "vacf.csv"),
    IntermediateScattering(every: 50, q: [2.0], width: 0.5, file: "scattering.csv"),
 ],
 stages: [(steps: 600, dt: 0.005), (steps: 300, dt: 0.005)])
P
    for run in 1 "$gpus" "$gpus"; do
        rm -f ./*.csv
        "$programs/galamost" --pipeline p.ron --device cuda:0 --gpus "$run" -q --overwrite 2>messages.txt ||
            { cat messages.txt >&2; exit 1; }
        if [ "$run" = 1 ]; then
            rm -rf one
            mkdir one
            mv ./*.csv one/
            continue
        fi
        for table in one/*.csv; do
            name=$(basename "$table")
            if cmp -s "$table" "$name"; then verdict=same; else verdict=differs status=1; fi
            printf '%s particles, %s GPUs: %s %s\n' $((side * side * side)) "$run" "$name" "$verdict"
        done
    done
done
exit $status
