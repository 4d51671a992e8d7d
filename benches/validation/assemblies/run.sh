#!/bin/bash
# Assemblies of anisotropic particles, on a machine with a GPU:
#
#     bash benches/validation/assemblies/run.sh GALAMOST OUT CASE...
#
# GALAMOST is the program. A case is one of
#     janus:ALPHA:BETA:STEPS
#     triblock:SHARE:ALPHA:BETA:CELLS:STEPS[:KT]      (KT: cooled from this temperature to 1)
#     disk:ALPHA:MU:DENSITY:LOW:HIGH:CELLS:STEPS      (pressure from LOW to HIGH in STEPS, and back)
#     rod:ALPHA:MU:DENSITY:LOW:HIGH:CELLS:STEPS
#     equipartition:INTEGRATOR:STEPS                  (kT 1; of linear rotors)
# OUT gets one archive: for each case a folder with tables and the last state (of disks and rods that at the highest pressure).
# SECONDS_EACH is the longest a case may take (120).
set -u
here=$(cd "$(dirname "$0")" && pwd)
galamost=$1; mkdir -p "$2"; out=$(cd "$2" && pwd); shift 2
device=${DEVICE:-cuda:0}; work=$(mktemp -d); cd "$work" || exit 1
for case in "$@"; do
    IFS=: read -r -a a <<<"$case"
    folder=${case//:/_}; mkdir "$folder"
    case ${a[0]} in
    janus) sed "s/ALPHA/${a[1]}/; s/BETA/${a[2]}/; s/STEPS/${a[3]}/" "$here/janus.ron" ;;
    triblock) sed "s/SHARE/${a[1]}/; s/REST/$(awk "BEGIN { print 1 - ${a[1]} }")/; s/ALPHA/${a[2]}/; s/BETA/${a[3]}/g; s/CELLS/${a[4]}/g; s/STEPS/${a[5]}/; ${a[6]:+s/RotationalBerendsen(kT: 1.0/RotationalBerendsen(kT: Ramp(from: ${a[6]}, to: 1.0, start: 0, steps: ${a[5]})/}" "$here/triblock.ron" ;;
    equipartition) sed "s/INTEGRATOR/${a[1]}(kT: 1.0, $([ "${a[1]}" = RotationalLangevin ] && echo 'gamma: 2.0, gamma_r: 0.5' || echo 'tau: 0.2, tau_r: 0.2'))/; s/INERTIA/(0.1, 0.1, 0.0)/; s/STEPS/${a[2]}/" "$here/equipartition.ron" ;;
    disk | rod) sed "s/POTENTIAL/Soft${a[0]^}/; s/ALPHA/${a[1]}/; s/MU/${a[2]}/; s/DENSITY/${a[3]}/; s/LOW/${a[4]}/; s/HIGH/${a[5]}/; s/CELLS/${a[6]}/g; s/STEPS/${a[7]}/g" "$here/bulk.ron" ;;
    *) echo "no case $case"; exit 2 ;;
    esac >"$folder/p.ron"
    # all occurrences, wherever a line has several
    for word in ALPHA:1 BETA:2 STEPS:3; do [ "${a[0]}" = janus ] && sed -i "s/${word%:*}/${a[${word#*:}]}/g" "$folder/p.ron"; done
    [ "${a[0]}" = triblock ] && sed -i "s/ALPHA/${a[2]}/g; s/STEPS/${a[5]}/g" "$folder/p.ron"
    timeout -s INT -k 20 "${SECONDS_EACH:-120}" "$galamost" --device "$device" --pipeline "$folder/p.ron" >"$folder/log" 2>&1 || { echo "$case: exit code $?"; tail -4 "$folder/log"; }
    grep -E ' steps in ' "$folder/log" | sed "s|^|$case: |"
    for table in clusters order thermo; do [ -f "$folder/$table.csv" ] && tail -1 "$folder/$table.csv" | cut -c1-150 | sed "s|^|$case, $table: |"; done
    # the solvent is not drawn, and fills most of the file
    rm -f "$folder"/*.checkpoint
done
tar czf "$out/assemblies.tar.gz" -C "$work" . && stat -c "%s bytes" "$out/assemblies.tar.gz"
rm -rf "$work"
