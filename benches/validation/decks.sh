#!/bin/bash
# Decks 6, 7, 10 and 15 of PyGAMD beside their translations in decks/: observables with block errors, and energies of GBForce.
#
#     bash benches/validation/decks.sh GALAMOST PEERS OUT [SECONDS of PyGAMD for a case, 30]
#
# GALAMOST is the program in a folder with its plugins; PEERS the folder with PyGAMD (pg, site), its setup.sh and the input files of the decks
# (cases). Needs a GPU and python3 with numpy. Three lanes share the GPU, so steps per second say nothing: one runs decks 6 and 7 (the second for
# SECONDS, the first for half of it), one deck 10 (twice SECONDS, it is slow), one deck 15 with SEEDS (3) seeds and GBForce. At most 6 minutes,
# about 4 with 30. OUT gets tables, logs and result.json of each case.
# On the CPU without PyGAMD: DEVICE=cpu NO_PEER=1 STEPS=200 MELT_STEPS=500 bash decks.sh GALAMOST PEERS OUT. Other variables: PYTHON, GPU (0).
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
compare() { # seconds of PyGAMD, case…
    SECONDS_OF_PEER=$1 timeout -k 5 $((limit - SECONDS + begun)) "$python" "$here/compare.py" "$galamost" "$peers" "$out" "${@:2}" 2>&1
    [ $? = 124 ] && echo "TIMED OUT: ${*:2}"
}
{ compare $((seconds / 2)) 6; compare "$seconds" 7; } >"$out/lane-one.txt" & one=$!
compare $((2 * seconds)) 10 >"$out/lane-two.txt" & two=$!
{
    compare "$seconds" 15
    [ -z "${NO_PEER:-}" ] && timeout 90 "$python" "$here/gay_berne.py" "$out/gay-berne" "${GPU:-0}" 2>&1
} >"$out/lane-three.txt" & three=$!
wait $one $two $three
cat "$out"/lane-*.txt | tee "$out/decks.txt"
# frames are large
find "$out" -name '*.xml' -size +200k -delete
echo "decks: $((SECONDS - begun)) s"
