#!/bin/bash
# Chains by Rosenbluth sampling and PERM, and a melt built from nothing, on a machine with a GPU:
#
#     bash benches/validation/rosenbluth.sh PACK OUT [PART...]
#
# PACK is the folder that pack.sh made. Parts, all by default: speed (10⁶ chains begun, of 8 to 2048 monomers on lattices, of 8 to 256
# beads off lattice, on the GPU, and on two cores of the CPU beside it), counts (exact numbers of walks, fits of μ, γ and ν), perm
# (2048 monomers by PERM and by plain sampling, the θ point), million (time to build 10⁶ beads), melt (500 chains of 200 beads built,
# pushed off and run: internal distances). Each part leaves one archive in OUT. Variables: DEVICE (cuda:0), WORK, and for short
# trials SCALE (1: a divisor of the numbers of chains), MELT_STEPS.
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=$(cd "$1" && pwd); out=$2; shift 2
mkdir -p "$out"; out=$(cd "$out" && pwd)
device=${DEVICE:-cuda:0}; work=${WORK:-${TMPDIR:-/tmp}/rosenbluth}; scale=${SCALE:-1}
parts=" ${*:-speed counts perm million melt} "; failures=0; cpu_job=
mkdir -p "$work"; cd "$work" || exit 1; work=$PWD

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
wanted() { [[ "$parts" == *" $1 "* ]]; }
[ -e engine ] || { mkdir engine && tar xzf "$pack/engine.tar.gz" -C engine; } || { say "FAILED: the engine cannot be unpacked"; exit 1; }
galamost=$work/engine/galamost
export GALAMOST_CACHE=$work/cache
archive() { tar czf "$out/$1.tar.gz" -C "$work" "${@:2}" && say "$1: $(stat -c %s "$out/$1.tar.gz") bytes"; }

# a run with a time limit; its name, its seconds and what went wrong are told
run() {
    local seconds=$1 name=$2 code; shift 2
    timeout -s INT -k 20 "$seconds" "$galamost" "$@" >"$name.log" 2>&1
    code=$?
    grep -E ' batches in | steps in | last sample|kT_theta|^error|rror:| WARN' "$name.log" | sed -E "s|^ *INFO|[$name]|"
    [ $code = 0 ] || { say "$name: exit code $code (124: stopped after $seconds s)"; [ $code = 124 ] || { tail -5 "$name.log"; failures=$((failures + 1)); }; }
    return $code
}
# a pipeline of samplers
ensemble() { printf '(seed: %s, ensemble: [ %s ])\n' "$2" "$3" >"$1.ron"; }

if wanted speed; then
    rm -rf speed; mkdir speed
    million=$((1000000 / scale))
    for n in 8 16 32 64 128 256 512 1024 2048; do
        for lattice in Cubic Cubic26; do
            ensemble speed/$lattice-$n 1 "Rosenbluth(lattice: $lattice, monomers: $n, chains: $million, file: \"$lattice-$n.csv\", lengths: [$n])"
        done
    done
    for n in 8 16 32 64 128 256; do
        ensemble speed/Beads-$n 1 "OffLatticeRosenbluth(diameter: 1.0, trials: 16, monomers: $n, chains: $million, batch: 262144, file: \"Beads-$n.csv\", lengths: [$n])"
    done
    # two cores: fewer of the long chains, since time goes with their number
    (
        cd speed; mkdir cpu; cp ./*.ron cpu; cd cpu
        for name in Cubic-{8,16,32,64,128,256,512,1024,2048} Cubic26-{8,16,32,64} Beads-{8,16,32,64}; do
            n=${name#*-}; chains=$million
            case $name in Beads-*) [ "$n" -ge 32 ] && chains=$((million / 10)) ;; *) [ "$n" -ge 512 ] && chains=$((million / 10)) ;; esac
            timeout 100 "$galamost" --pipeline "$name.ron" --device cpu --threads 2 --set "ensemble[0].chains=$chains" \
                --set "ensemble[0].batch=$((chains < 16384 ? 1024 : 16384))" >"$name.log" 2>&1
            echo "$name $chains $(sed -nE 's/.* batches in ([0-9.]+) s/\1/p' "$name.log")"
        done >cpu.txt
    ) &
    cpu_job=$!
    for f in speed/*.ron; do
        name=$(basename "$f" .ron)
        # twice: kernels come out of the cache the second time
        run 60 "speed/$name" --device "$device" --pipeline "$f" >/dev/null
        run 60 "speed/$name" --device "$device" --pipeline "$f" >/dev/null
        echo "$name $million $(sed -nE 's/.* batches in ([0-9.]+) s/\1/p' "speed/$name.log")"
    done >speed/gpu.txt
    ensemble speed/many 1 "Rosenbluth(lattice: Cubic, monomers: 64, chains: $((100 * million)), file: \"many.csv\", lengths: [64])"
    run 60 speed/many --device "$device" --pipeline speed/many.ron
    ensemble speed/many-beads 1 "OffLatticeRosenbluth(trials: 16, monomers: 64, chains: $((10 * million)), batch: 1048576, file: \"many-beads.csv\", lengths: [64])"
    run 60 speed/many-beads --device "$device" --pipeline speed/many-beads.ron
    say "seconds for 10⁶ chains begun (GPU):"; sort -t- -k1,1 -k2,2n speed/gpu.txt
fi

if wanted counts; then
    rm -rf counts; mkdir counts
    ensemble counts/cubic 2 "Rosenbluth(lattice: Cubic, monomers: 13, chains: $((200000000 / scale)), file: \"cubic.csv\")"
    ensemble counts/cubic26 3 "Rosenbluth(lattice: Cubic26, monomers: 9, chains: $((50000000 / scale)), file: \"cubic26.csv\")"
    ensemble counts/fit 4 "Rosenbluth(lattice: Cubic, monomers: 64, chains: $((400000000 / scale)), file: \"fit.csv\", distribution: (file: \"distances.csv\", width: 0.5, bins: 80))"
    ensemble counts/fit26 5 "Rosenbluth(lattice: Cubic26, monomers: 64, chains: $((50000000 / scale)), file: \"fit26.csv\")"
    ensemble counts/beads 6 "OffLatticeRosenbluth(diameter: 1.0, trials: 16, monomers: 64, chains: $((40000000 / scale)), batch: 1048576, file: \"beads.csv\")"
    for name in cubic cubic26 fit fit26 beads; do run 60 counts/$name --device "$device" --pipeline counts/$name.ron; done
    python3 "$here/rosenbluth/report.py" counts counts
    archive rosenbluth-counts counts
fi

if wanted perm; then
    rm -rf perm; mkdir perm
    ensemble perm/plain 7 "Rosenbluth(lattice: Cubic, monomers: 2048, chains: $((4000000 / scale)), file: \"plain.csv\")"
    ensemble perm/flat 8 "Perm(chain: OnLattice(lattice: Cubic), monomers: 2048, tours: $((200000 / scale)), batch: 16384, file: \"flat.csv\")"
    ensemble perm/thresholds 9 "Perm(chain: OnLattice(lattice: Cubic), monomers: 2048, tours: $((200000 / scale)), batch: 16384, control: Thresholds(low: 0.3, high: 3.0), file: \"thresholds.csv\")"
    ensemble perm/beads 10 "Perm(chain: OffLattice(diameter: 1.0, trials: 8), monomers: 512, tours: $((100000 / scale)), batch: 16384, file: \"beads.csv\")"
    ensemble perm/theta 11 "Perm(chain: OnLattice(lattice: Cubic), monomers: 256, tours: $((400000 / scale)), batch: 8192, control: FlatContacts, temperatures: [2.0, 2.5, 3.0, 3.2, 3.4, 3.6, 3.7, 3.8, 4.0, 4.2, 4.5, 5.0, 6.0], scan: \"scan.csv\", file: \"theta.csv\", lengths: [16, 32, 64, 128, 256])"
    for kt in 3.5 3.7 3.9; do
        attraction=$(python3 -c "print(1 / $kt)")
        ensemble perm/at-$kt 12 "Perm(chain: OnLattice(lattice: Cubic, attraction: $attraction), monomers: 2048, tours: $((200000 / scale)), batch: 16384, file: \"at-$kt.csv\", lengths: [128, 256, 512, 1024, 2048])"
    done
    for name in plain flat thresholds beads theta at-3.5 at-3.7 at-3.9; do run 14 perm/$name --device "$device" --pipeline perm/$name.ron; done
    python3 "$here/rosenbluth/report.py" perm perm
    archive rosenbluth-perm perm
fi

if wanted million; then
    rm -rf million; mkdir million
    cp "$here/rosenbluth/melt.ron" million/melt.ron
    for distance in 0.0 0.7; do
        begun=$(date +%s.%N)
        "$galamost" check million/melt.ron --device cpu --set "initial[0].box=[105.6,105.6,105.6]" --set "initial[0].molecules[0].count=5000" \
            --set "initial[0].distance=$distance" >million/check-$distance.log 2>&1 || { say "million: failed"; tail -3 million/check-$distance.log; failures=$((failures + 1)); }
        say "10⁶ beads at distance $distance: $(echo "$(date +%s.%N) - $begun" | bc 2>/dev/null || python3 -c "import time; print(time.time() - $begun)") s, checks included"
    done
fi

if wanted melt; then
    rm -rf melt; mkdir melt; cp "$here/rosenbluth/melt.ron" melt
    run 120 melt/run --device "$device" --pipeline melt/melt.ron --set "stages[4].steps=${MELT_STEPS:-250000}"
    python3 "$here/rosenbluth/report.py" melt melt
    (cd melt && gzip -f ./*.xml)
    archive rosenbluth-melt melt
fi

if wanted speed; then
    wait "$cpu_job"
    say "seconds for so many chains (two cores):"; cat speed/cpu/cpu.txt
    archive rosenbluth-speed speed
fi
say "$failures failures"
[ "$failures" = 0 ]
