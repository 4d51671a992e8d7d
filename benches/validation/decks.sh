#!/bin/bash
# Decks 6, 7, 10 and 15 of PyGAMD beside their translations in decks/: observables with block errors, and energies of GBForce.
#
#     bash benches/validation/decks.sh GALAMOST PEERS OUT [SECONDS of PyGAMD for a case, 30]
#
# GALAMOST is the program in a folder with its plugins; PEERS the folder with PyGAMD (pg, site), its setup.sh and the input files of the decks
# (cases). Needs python3 with numpy and GPUs: GPUS="0 1 2 3" (default: 0) are taken in turn by four lanes: deck 7, deck 10 (twice SECONDS, it is
# slow), deck 15 with SEEDS (3) seeds on the third and later GPUs, deck 6 and GBForce. On fewer GPUs lanes share them, and PyGAMD gets so slow that
# decks 6 and 15 do not come far; run them alone with CASES="6" or CASES="15". At most 6 minutes, about 4 with 30. OUT gets tables, logs, result.json of each case, and the last frames.
# On the CPU without PyGAMD: DEVICE=cpu NO_PEER=1 STEPS=200 MELT_STEPS=500 bash decks.sh GALAMOST PEERS OUT. Another variable: PYTHON.
set -u
here=$(cd "$(dirname "$0")" && pwd)/decks
galamost=$(realpath "$1"); peers=$(realpath "$2"); mkdir -p "$3"; out=$(realpath "$3"); seconds=${4:-30}; begun=$SECONDS
python=${PYTHON:-python3}
if [ -z "${NO_PEER:-}" ]; then
    limit=330
    set +u; . "$peers/setup.sh" >"$out/setup.txt" 2>&1; set -u; grep "NOT" "$out/setup.txt"
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
    python=$PYTHON
else
    limit=36000
fi
read -ra gpus <<<"${GPUS:-0}"
gpu() { echo "${gpus[$1 % ${#gpus[@]}]}"; }
compare() { # case, seconds of PyGAMD, GPUs
    case " ${CASES:-6 7 10 15} " in *" $1 "*) ;; *) return ;; esac
    SECONDS_OF_PEER=$2 GPUS=$3 timeout -k 5 $((limit - SECONDS + begun)) "$python" "$here/compare.py" "$galamost" "$peers" "$out" "$1" 2>&1
    [ $? = 124 ] && echo "TIMED OUT: $1"
}
compare 7 "$seconds" "$(gpu 0)" >"$out/lane-one.txt" & one=$!
compare 10 $((2 * seconds)) "$(gpu 1)" >"$out/lane-two.txt" & two=$!
seeds=${gpus[*]:2}
compare 15 $((2 * seconds)) "${seeds:-$(gpu 2)}" >"$out/lane-three.txt" & three=$!
{
    compare 6 "$seconds" "$(gpu 0)"
    [ -z "${NO_PEER:-}" ] && timeout 90 "$python" "$here/gay_berne.py" "$out/gay-berne" "$(gpu 0)" 2>&1
} >"$out/lane-four.txt" & four=$!
wait $one $two $three $four
cat "$out"/lane-*.txt | tee "$out/decks.txt"
# the last frame of each run, for pictures; all frames are too large
for folder in "$out"/case*/ "$out"/case15/seed*/; do
    for side in ours peer; do
        last=$(ls -v "$folder$side".*xml 2>/dev/null | tail -n 1)
        [ -n "$last" ] && xz -T 4 -f "$last"
    done
done
find "$out" -name '*.xml' -size +200k -delete
echo "decks: $((SECONDS - begun)) s"
