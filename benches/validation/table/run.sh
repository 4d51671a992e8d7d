#!/bin/bash
# Lennard-Jones from a table beside its formula, on a machine with a GPU:
#
#     bash benches/validation/table/run.sh GALAMOST
#
# GALAMOST is the program. For 64,000 and 512,000 particles, steps/s of both, three times in turn, and of the medians the ratio
# (formula over table); then rms(E)/|E| without thermostat, and the harness on the four components. About 3 minutes.
# Variables: DEVICE (cuda:0); SIZES, edges of the lattice (40 80); STEPS, of the timed stage for up to 64,000 particles, for more
# particles fewer (20000); REPEATS (3).
set -u
here=$(cd "$(dirname "$0")" && pwd)
galamost=$(realpath "$1")
device=${DEVICE:-cuda:0}; work=$(mktemp -d); cd "$work" || exit 1
formula='LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })'
"$galamost" table make 'LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })' --pair A A --from 0.7 --n 4001 \
    --out lj.pot 2>/dev/null || exit 1
table='PairTable(mode: ShiftForce, pairs: { ("A", "A"): (file: "lj.pot") })'

# steps/s of the second stage: the time of the whole run less that of one without it
run() {
    sed "s|POTENTIAL|$1|; s|CELLS|$2|g; s|MELT|$3|; s|STEPS|$4|; s|EVERY|$5|" "$here/liquid.ron" >p.ron
    timeout -s INT 150 "$galamost" --device "$device" --pipeline p.ron >log 2>&1 || { tail -5 log >&2; return 1; }
    grep -oE 'steps in [0-9.]+ s' log | grep -oE '[0-9.]+'
}
for cells in ${SIZES:-40 80}; do
    n=$((cells * cells * cells)); steps=${STEPS:-20000}; [ $n -le 64000 ] || steps=$((steps * 64000 / n)); melt=$((steps / 4))
    for k in $(seq "${REPEATS:-3}"); do
        for which in formula table; do
            short=$(run "${!which}" "$cells" "$melt" 0 100000000) && long=$(run "${!which}" "$cells" "$melt" "$steps" 100000000) || exit 1
            awk "BEGIN { printf \"%d %s %.2f\\n\", $n, \"$which\", $steps / ($long - $short) }" | tee -a speeds
        done
    done
    for which in formula table; do
        run "${!which}" "$cells" "$melt" $((steps / 2)) $((melt / 50 + 1)) >/dev/null || exit 1
        # samples of the second half are those without a thermostat
        awk -F, -v from="$((2 * melt))" -v what="$n $which" 'NR == 1 { for (k = 1; k <= NF; k++) if ($k == "total") c = k; next }
            $1 >= from { s += $c; q += $c * $c; m++ } END { a = s / m; v = q / m - a * a; printf "%s: rms(E)/|E| %.2e\n", what, sqrt(v > 0 ? v : 0) / (a < 0 ? -a : a) }' thermo.csv
    done
done
sort -k1,1n -k2,2 -k3,3n speeds | awk -v r="${REPEATS:-3}" '{ v[$1 " " $2, ++c[$1 " " $2]] = $3; n[$1] = 1 }
    END { m = int((r + 1) / 2); for (k in n) printf "%d particles: %.1f steps/s by the formula, %.1f from the table, ratio %.3f (wanted: at most 1.3)\n",
        k, v[k " formula", m], v[k " table", m], v[k " formula", m] / v[k " table", m] }'
"$galamost" selftest PairTable BondTable AngleTable DihedralTable --device "$device" 2>/dev/null | tail -1
rm -rf "$work"
