#!/bin/bash
# A bilayer of DPPC in water with Martini 2: energies of the first frame and speed, beside OpenMM and PyGAMD.
#
#     bash benches/validation/martini.sh GALAMOST OUT [PART]…
#
# Parts, all by default:
#   energies  the terms of the first frame by GALAMOST and OpenMM, for the shift function and for the reaction field: the largest
#             relative deviation must be below 1e-6. PYTHON needs openmm and numpy; platform Reference
#   ours      `galamost bench` of both forms
#   openmm    martini/openmm_martini.py of both forms, platform PLATFORM
#   pygamd    martini/pygamd_martini.py, whose force has the shift function; PYTHON needs pygamd; on a GPU only
# Variables: DEVICE (cuda:0), COPIES ("6 6", 20,736 beads), PRECISION (Mixed), WINDOW (2), THREADS, PYTHON (python3), PLATFORM (CUDA),
# STEPS (steps per window of OpenMM; chosen by its speed). On the CPU: DEVICE=cpu PLATFORM=CPU COPIES="2 2" STEPS=100.
# About 2 minutes on a GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)/martini
galamost=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); shift 2
parts=${*:-energies ours openmm pygamd}
device=${DEVICE:-cuda:0}; python=${PYTHON:-python3}
read -r nx ny <<<"${COPIES:-6 6}"
cd "$out" || exit 1
export GALAMOST_CACHE=$out/cache
rm -f rf.ron rf.xml shift.ron energies-*.csv
"$python" "$here/make_bilayer.py" "$nx" "$ny" . || exit 1
"$galamost" convert system.top rf.ron --coordinates system.gro --temperature 323 --quiet || exit 1
"$galamost" convert dppc.force_field shift.ron --coordinates dppc.xml --temperature 323 --r-cut 1.2 --r-shift 0.9 --epsilon-r 15 \
    --exclude bonds --quiet || exit 1
langevin='integrators: [Langevin(kT: 2.685571426, gamma: 72.0)]'
status=0
for part in $parts; do
    echo "== $part, $nx × $ny copies"
    for form in shift rf; do
        case $part in
        energies)
            "$galamost" --pipeline $form.ron --device cpu --overwrite --quiet --set precision=Double \
                --set "analyzers=[Thermo(every: 1, file: \"energies-$form.csv\")]" \
                --set "stages=[(name: \"frame\", steps: 0, dt: 0.02, $langevin)]" || exit 1
            "$python" "$here/openmm_martini.py" . $form Reference 1 >"openmm-$form.txt" || exit 1
            "$python" "$here/compare.py" "energies-$form.csv" "openmm-$form.txt" || status=1;;
        ours)
            "$galamost" bench $form.ron --device "$device" --window "${WINDOW:-2}" ${THREADS:+--threads "$THREADS"} \
                --set "analyzers=[]" --set "stages=[(name: \"run\", steps: 1_000_000, dt: 0.02, $langevin)]" \
                --set "precision=${PRECISION:-Mixed}" --sweep 'seed=[1]' | tee "ours-$form.md" || status=1;;
        openmm) "$python" "$here/openmm_martini.py" . $form "${PLATFORM:-CUDA}" ${STEPS:+"$STEPS"} | tee "openmm-$form.txt" || status=1;;
        pygamd) [ $form = rf ] || "$python" "$here/pygamd_martini.py" . | tee pygamd.txt || status=1;;
        *) echo "unknown part $part" >&2; exit 2;;
        esac
    done
done
exit $status
