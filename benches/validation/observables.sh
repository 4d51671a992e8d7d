#!/bin/bash
# What observables cost a Lennard-Jones liquid, on a machine with a GPU:
#
#     bash benches/validation/observables.sh GALAMOST
#
# GALAMOST is the program. Steps/s of 512,000 particles without analyzers, with Thermo, with Rdf (to 3.0), with Msd, and with all
# three, each every 100 steps, in turn; of the medians the overhead (wanted: at most 5 % for all three), and the spread. Then the other
# observables, each alone, and the harness on all. 4 minutes.
# Variables: DEVICE (cuda:0); CELLS, edge of the lattice (80); MELT (2000) and STEPS (40000), steps of the two stages; REPEATS (3);
# EVERY (100).
set -u
here=$(cd "$(dirname "$0")" && pwd)
galamost=$(realpath "$1")
device=${DEVICE:-cuda:0}; cells=${CELLS:-80}; melt=${MELT:-2000}; steps=${STEPS:-40000}; every=${EVERY:-100}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work" || exit 1
export GALAMOST_CACHE=$work/cache
none=
thermo="Thermo(every: $every, file: \"thermo.csv\")"
rdf="Rdf(every: $every, file: \"rdf.csv\", r_max: 3.0, bins: 150)"
msd="Msd(every: $every, file: \"msd.csv\")"
all="$thermo, $rdf, $msd"
vacf="Vacf(every: $every, file: \"vacf.csv\")"
structure="StructureFactor(every: $every, file: \"structure.csv\", q_max: 3.0, bins: 60, vectors: 5)"
scattering="IntermediateScattering(every: $every, file: \"scattering.csv\", q: [2.0, 7.0], width: 0.1, vectors: 4)"

# seconds of a run, from its steps and its steps/s
run() { # analyzers, steps of the second stage
    sed "s|CELLS|$cells|g; s|MELT|$melt|; s|STEPS|$2|" "$here/observables/liquid.ron" >p.ron
    # '&' and '|' do not occur in analyzers
    sed -i "s|ANALYZERS ]|$1 ]|" p.ron
    timeout -s INT 100 "$galamost" --device "$device" --pipeline p.ron >log 2>&1 || { tail -5 log >&2; return 1; }
    grep -oE '[0-9]+ steps in [0-9.]+ s: [0-9.]+ TPS' log | awk '{ printf "%.6f\n", $1 / $6 }'
}
measure() { # repeats, names
    local repeats=$1 short long k which; shift
    for which in "$@"; do run "${!which}" $((2 * every)) >/dev/null || exit 1; done # kernels are compiled
    for k in $(seq "$repeats"); do
        for which in "$@"; do
            short=$(run "$none" 0) && long=$(run "${!which}" "$steps") || exit 1
            awk "BEGIN { printf \"%s %.2f\\n\", \"$which\", $steps / ($long - $short) }" | tee -a speeds
        done
    done
}
measure "${REPEATS:-3}" none thermo rdf msd all
measure 1 vacf structure scattering
sort -k1,1 -k2,2n speeds | awk -v every="$every" '{ v[$1, ++c[$1]] = $2 }
    END { m = v["none", int((c["none"] + 1) / 2)]
        printf "%-12s %10s %10s %10s %10s %16s\n", "analyzers", "TPS", "lowest", "highest", "overhead", "ms a sample"
        split("none thermo rdf msd all vacf structure scattering", names, " ")
        for (k = 1; k in names; ++k) { w = names[k]; x = v[w, int((c[w] + 1) / 2)]
            printf "%-12s %10.1f %10.1f %10.1f %9.2f%% %16.3f\n", w, x, v[w, 1], v[w, c[w]], 100 * (m / x - 1), 1000 * every * (1 / x - 1 / m) } }'
"$galamost" selftest Rdf Msd Vacf StructureFactor IntermediateScattering --device "$device" 2>/dev/null | tail -1
