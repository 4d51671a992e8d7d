#!/bin/bash
# Hostile input on many cores of a machine without Rust.
#
#     bash benches/validation/hostile.sh pack ARCHIVE.tar.xz             # where the repository and Rust are, and g++ and xz
#     bash benches/validation/hostile.sh run ARCHIVE.tar.xz OUT [SECONDS [CORES]]
#
# `run` gives the cores to three programs for SECONDS (540): half of them mutate pipelines (a few thousand in a second on each); a
# third mutate files of all readers, tables and checkpoints, and copies of plugin libraries, which `galamost doctor` and
# `galamost plugins` then load; the others run libFuzzer on each target in turn. CORES: all but two. Prints a table of executions
# and findings; inputs that cause a failure stay in OUT. The exit status is 1 if there are any, or if fewer than PIPELINES (10⁷)
# pipelines were tried. SEED: 1. TARGETS: those of libFuzzer.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mode=$1

pack() {
    local root archive=$1 stage built name
    root=$(cd "$here/../.." && pwd)
    built=${CARGO_TARGET_DIR:-$root/target}/release
    cd "$root"
    cargo build --release
    cargo build --release --package galamost-instruments
    bash tests/fuzz/run.sh 0
    stage=$(mktemp -d)
    mkdir -p "$stage/bin/deps" "$stage/tests/fuzz" "$stage/corpus"
    cp "$built/galamost" "$built/galamost-instruments" "$stage/bin/"
    for manifest in plugins/*/Cargo.toml; do
        name=$(basename "$(dirname "$manifest")")
        cp "$built/lib${name//-/_}.so" "$stage/bin/"
    done
    cp target/release/deps/fuzz-any "$stage/bin/deps/"
    strip -s "$stage"/bin/galamost* "$stage"/bin/*.so "$stage/bin/deps/fuzz-any"
    mkdir "$stage/examples"
    find examples -maxdepth 1 -type f ! -name '*.png' ! -name '*.csv' -size -200k -exec cp {} "$stage/examples/" \;
    cp -r tests/fuzz/corpus "$stage/tests/fuzz/"
    [ ! -d target/fuzz/corpus ] || cp -r target/fuzz/corpus "$stage/"
    tar cJf "$archive" -C "$stage" .
    rm -r "$stage"
    stat -c '%n: %s bytes' "$archive"
}

# the targets of libFuzzer, one after another: a share of them for each process
fuzz() { # NUMBER SECONDS TARGET…
    local number=$1 seconds=$2 target share
    shift 2
    [ $# -gt 0 ] || return 0
    share=$((seconds / $#))
    for target in "$@"; do
        mkdir -p "$work/corpus/$target"
        GALAMOST_FUZZ=$target GALAMOST_FUZZ_SEEDS=$work/corpus/$target GALAMOST_REPOSITORY=$work RUST_BACKTRACE=0 RAYON_NUM_THREADS=1 \
            "$work/bin/deps/fuzz-any" "$work/corpus/$target" -max_total_time="$share" -timeout=20 -rss_limit_mb=4096 -max_len=20000 \
            -seed="$((seed + number))" -artifact_prefix="$out/libfuzzer-$target-" -print_final_stats=1 >"$out/log/libfuzzer-$target.txt" 2>&1 ||
            echo "$target: libFuzzer ended with status $?" >>"$out/log/failures.txt"
    done
}

instrument() { # NAME JOBS TARGETS
    "$work/bin/galamost-instruments" hostile --repository "$work" --minutes "$(awk "BEGIN { print $seconds / 60 }")" --jobs "$2" \
        --seed "$seed" --targets "$3" --out "$out/$1" >"$out/log/$1.txt" 2>&1 || echo "$1: status $?" >>"$out/log/failures.txt"
}

run() {
    local archive=$1 cores pipelines fuzzers files k list all
    out=$2 seconds=${3:-540} cores=${4:-$(($(nproc) > 3 ? $(nproc) - 2 : 1))} seed=${SEED:-1}
    mkdir -p "$out/log"
    out=$(cd "$out" && pwd)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tar xJf "$archive" -C "$work"
    export GALAMOST_LOG=error TMPDIR=$work/tmp GALAMOST_CACHE=$work/cache
    mkdir -p "$TMPDIR"
    all="generators,galamost_xml,gsd,packed,lammps_data,lammps_dump,extended_xyz,mst,pdb,gro,dcd,xtc,trr,pair_table,angle_table,patches,checkpoint,csv,parquet,commands"
    read -ra list <<<"${TARGETS:-pipeline generators galamost_xml packed gsd lammps_data lammps_dump extended_xyz mst pdb gro dcd xtc trr pair_table angle_table patches checkpoint csv parquet}"
    pipelines=$(((cores + 1) / 2))
    files=$((cores / 3 > 0 ? cores / 3 : 1))
    fuzzers=$((cores - pipelines - files > 0 ? cores - pipelines - files : 1))
    echo "$pipelines cores: pipelines; $files: files, tables, checkpoints, libraries; $fuzzers: libFuzzer; $seconds s"
    instrument pipelines "$pipelines" pipeline &
    instrument files "$files" "$all" &
    for ((k = 0; k < fuzzers; k++)); do
        local own=()
        for ((i = k; i < ${#list[@]}; i += fuzzers)); do own+=("${list[i]}"); done
        fuzz "$k" "$seconds" ${own[@]+"${own[@]}"} &
    done
    wait
    summary
}

summary() {
    local target executed bad=0 found tried
    printf '%-16s %14s %9s\n' target executions findings
    for name in pipelines files; do
        # rows of the table: target, inputs, accepted, rate, slowest, findings
        awk -v s=" (mutated)" 'NF == 7 && $2 ~ /^[0-9]+$/ { printf "%-16s %14d %9d\n", $1, $2, $NF }' "$out/log/$name.txt"
        grep -E ' inputs in .* minutes' "$out/log/$name.txt" || { echo "$name: no summary"; tail -5 "$out/log/$name.txt"; bad=1; }
    done
    echo "libFuzzer:"
    for log in "$out"/log/libfuzzer-*.txt; do
        target=$(basename "$log" .txt)
        target=${target#libfuzzer-}
        executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        found=$(find "$out" -maxdepth 1 -name "libfuzzer-$target-*" | wc -l)
        printf '%-16s %14s %9d\n' "$target" "${executed:-none}" "$found"
        [ "$found" = 0 ] && [ -n "$executed" ] || bad=1
    done
    tried=$(awk '$1 == "pipeline" && NF == 7 { print $2 }' "$out/log/pipelines.txt")
    if [ "${tried:-0}" -lt "${PIPELINES:-10000000}" ]; then
        echo "${tried:-0} pipelines are fewer than ${PIPELINES:-10000000}"
        bad=1
    fi
    [ ! -e "$out/log/failures.txt" ] || { cat "$out/log/failures.txt"; bad=1; }
    [ "$bad" = 0 ] && echo "no findings"
    exit "$bad"
}

case $mode in
    pack) pack "$(realpath "$2")" ;;
    run) run "${@:2}" ;;
    *) echo "unknown mode $mode" >&2; exit 2 ;;
esac
