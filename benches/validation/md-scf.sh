#!/bin/bash
# Particle-field dynamics of DPPC and water (MD-SCF) on a machine with a GPU:
#
#     bash benches/validation/md-scf.sh PACK OUT [PART...]
#
# PACK is the folder that pack.sh made. Parts, all by default: speed (steps per second with fields of every step, of every 300
# steps and without fields, at 21,216, 572,832 and 1,018,368 particles), dppc (10⁶ steps of 21,216 particles), periods (fields of
# every step and every 300 steps from the end of dppc), bilayer (208 DPPC and 1,600 water from random starts, on the GPU and
# beside it on the CPU's cores), theory (the tests physics::field: structure, phases and lamellae of polymers). Each part leaves one
# archive in OUT. Variables: DEVICE (cuda:0), WORK, BUDGET (420, seconds that the CPU's run may last at most), and for short trials
# SPEED_STEPS, DPPC_STEPS, PERIOD_STEPS, BILAYER_STEPS, CPU_STEPS, SIZES.
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=$(cd "$1" && pwd); out=$2; shift 2
mkdir -p "$out"; out=$(cd "$out" && pwd)
device=${DEVICE:-cuda:0}; work=${WORK:-${TMPDIR:-/tmp}/md-scf}; budget=${BUDGET:-420}
parts=" ${*:-speed dppc periods theory bilayer} "; failures=0; cpu_job=
mkdir -p "$work"; cd "$work" || exit 1; work=$PWD

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
wanted() { [[ "$parts" == *" $1 "* ]]; }
[ -e engine ] || { mkdir engine && tar xzf "$pack/engine.tar.gz" -C engine; } || { say "FAILED: the engine cannot be unpacked"; exit 1; }
galamost=$work/engine/galamost
export GALAMOST_CACHE=$work/cache
archive() { tar czf "$out/$1.tar.gz" -C "$work" "${@:2}" && say "$1: $(stat -c %s "$out/$1.tar.gz") bytes"; }

# a run with a time limit, in a folder of its own; its last lines are told
run() {
    local seconds=$1 name=$2 code; shift 2
    timeout -s INT -k 20 "$seconds" "$galamost" "$@" >"$name.log" 2>&1
    code=$?
    grep -E ' steps in | last sample|neighbor list|^error|rror:' "$name.log" | sed "s|^ *INFO|[$name]|"
    [ $code = 0 ] || { say "$name: exit code $code (124: stopped after $seconds s)"; [ $code = 124 ] || { tail -5 "$name.log"; failures=$((failures + 1)); }; }
    return $code
}

python3 "$here/md-scf/replicate.py" "$here/../../tests/data/dppc-water-21216.xml.xz" dppc.xml 1 || exit 1

if wanted bilayer; then
    rm -rf bilayer; mkdir -p bilayer/gpu bilayer/cpu
    for place in gpu cpu; do
        cp "$here/md-scf/dppc.ron" bilayer/$place
        python3 "$here/md-scf/make_dppc.py" bilayer/$place/dppc.xml 208 1600 $([ $place = gpu ] && echo 1 || echo 2)
    done
    small=(--set "forces[3].grid=[13,13,13]")
    threads=$(($(nproc) - 3)); [ $threads -ge 1 ] || threads=1
    (
        timeout -s INT -k 20 "$budget" "$galamost" --pipeline bilayer/cpu/dppc.ron --device cpu --threads $threads "${small[@]}" \
            --set "seed=2" --set "precision=Mixed" --set "stages[0].steps=${CPU_STEPS:-2000000}" >bilayer/cpu.log 2>&1
    ) &
    cpu_job=$!
fi

if wanted speed; then
    rm -rf speed; mkdir speed
    for size in ${SIZES:-1 3 4x4x3}; do
        mkdir "speed/$size"; cp "$here/md-scf/dppc.ron" "speed/$size"
        case $size in 1) grid='[22,22,22]'; steps=60000 ;; 3) grid='[66,66,66]'; steps=15000 ;; *) grid='[88,88,66]'; steps=9000 ;; esac
        [ $size = 1 ] && cp dppc.xml speed/1/dppc.xml || python3 "$here/md-scf/replicate.py" dppc.xml "speed/$size/dppc.xml" "$size"
        for every in 1 300 none; do
            set=(--set "analyzers=[]" --set "stages[0].steps=${SPEED_STEPS:-$steps}" --set "forces[3].grid=$grid")
            if [ $every = none ]; then set+=(--set "forces[3].density_every=1000000000" --set "forces[3].field_every=1000000000"); fi
            [ $every = 1 ] && set+=(--set "forces[3].density_every=1" --set "forces[3].field_every=1")
            run 60 "speed/$size/every-$every" --device "$device" --pipeline "speed/$size/dppc.ron" "${set[@]}"
        done
        # the smoothed variational field, in Fourier space
        run 60 "speed/$size/filter" --device "$device" --pipeline "speed/$size/dppc.ron" --set "analyzers=[]" --set "forces[3].grid=$grid" \
            --set "stages[0].steps=$((${SPEED_STEPS:-$steps} / 3))" --set "forces[3].scheme=Variational" --set "forces[3].filter=0.5" \
            --set "forces[3].density_every=1" --set "forces[3].field_every=1"
        rm -f "speed/$size/dppc.xml" "speed/$size"/*.checkpoint
    done
    if command -v nsys >/dev/null; then
        cp dppc.xml speed/1/dppc.xml
        (cd speed && timeout 60 nsys profile -o profile --cuda-graph-trace=node "$galamost" --device "$device" --pipeline 1/dppc.ron --set "analyzers=[]" \
            --set "stages[0].steps=3000" --set "forces[3].density_every=1" --set "forces[3].field_every=1" >nsys.log 2>&1
            nsys stats -r cuda_gpu_kern_sum profile.nsys-rep 2>/dev/null | head -30)
        rm -f speed/1/dppc.xml
    fi
    python3 "$here/md-scf/speed.py" speed
    archive md-scf-speed speed
fi

if wanted dppc; then
    rm -rf dppc; mkdir dppc; cp "$here/md-scf/dppc.ron" dppc.xml dppc
    run 120 dppc/run --device "$device" --pipeline dppc/dppc.ron ${DPPC_STEPS:+--set stages[0].steps=$DPPC_STEPS}
    python3 "$here/md-scf/report.py" energies dppc/thermo.csv
    (cd dppc && gzip -f state.*.xml && rm -f dppc.xml)
    archive md-scf-dppc dppc
fi

if wanted periods; then
    rm -rf periods; mkdir periods; cp "$here/md-scf/dppc.ron" periods
    last=$(ls dppc/state.*.xml.gz 2>/dev/null | tail -1)
    [ -n "$last" ] && gzip -dc "$last" >periods/dppc.xml || cp dppc.xml periods/dppc.xml
    for every in 1 300; do
        mkdir -p periods/$every
        run 60 periods/every-$every --device "$device" --pipeline periods/dppc.ron --set "forces[3].density_every=$every" --set "forces[3].field_every=$every" \
            --set "stages[0].steps=${PERIOD_STEPS:-240000}" \
            --set "analyzers=[Thermo(every: 300, file: \"$every/thermo.csv\"), DensityGrid(every: 12000, file: \"$every/density.{step}.npy\", grid: [22, 22, 22])]"
    done
    python3 "$here/md-scf/report.py" periods periods/1 periods/300
    rm -f periods/dppc.xml; archive md-scf-periods periods
fi

if wanted theory; then
    rm -rf theory; mkdir theory
    GALAMOST_REPOSITORY=$here/../.. GALAMOST_TEST_DEVICE=$device GALAMOST_TEST_PRECISION=Single \
        timeout 150 "$work/engine/deps/all" --ignored --nocapture --test-threads 1 physics::field:: >theory/field.txt 2>&1 \
        || { say 'the tests physics::field failed or ran out of time'; failures=$((failures + 1)); }
    grep -E '^test result|χN|panicked' theory/field.txt
    archive md-scf-theory theory
fi

if wanted bilayer; then
    run 150 bilayer/gpu --device "$device" --pipeline bilayer/gpu/dppc.ron "${small[@]}" --set "stages[0].steps=${BILAYER_STEPS:-3000000}"
    python3 "$here/md-scf/report.py" layers bilayer/gpu
    wait "$cpu_job"; code=$?
    [ $code = 0 ] || [ $code = 124 ] || { say "the CPU's run: exit code $code"; failures=$((failures + 1)); }
    grep -E ' steps in | last sample|^error|rror:' bilayer/cpu.log
    python3 "$here/md-scf/report.py" layers bilayer/cpu
    rm -f bilayer/*/dppc.xml bilayer/*/*.npy; gzip -f bilayer/*/state.*.xml
    archive md-scf-bilayer bilayer
fi
say "$failures failures"
[ "$failures" = 0 ]
