#!/bin/bash
# Fuzzes every reader for a given time, guided by code coverage:
#
#     bash tests/fuzz/run.sh SECONDS [TARGET]…
#
# Needs g++ (libFuzzer is written in C++) and the plugins built by `cargo build --release --workspace`. The seeds are
# examples, tests/bad and tests/fuzz/corpus. New inputs are kept in target/fuzz/corpus, inputs that cause a failure in
# target/fuzz/TARGET-*. A stable compiler is sufficient: the instrumentation needs no nightly option, and no sanitizer is
# used. With 0 seconds, the program is only built.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=$1
shift
cd "$root"
out=$root/target/fuzz
export CARGO_TARGET_DIR=$out/build
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# with --target, so that the flags do not apply to macros and build scripts
RUSTFLAGS=$flags cargo build --release --manifest-path tests/fuzz/Cargo.toml --target x86_64-unknown-linux-gnu
unset CARGO_TARGET_DIR
# the folder where the tests expect the program and the plugins
mkdir -p "$root/target/release/deps"
cp "$out/build/x86_64-unknown-linux-gnu/release/any" "$root/target/release/deps/fuzz-any"
[ "$seconds" != 0 ] || exit 0

targets=${*:-pipeline generators galamost_xml packed gsd lammps_data lammps_dump extended_xyz mst pdb gro dcd xtc trr pair_table angle_table patches checkpoint csv parquet}
for target in $targets; do
    mkdir -p "$out/corpus/$target"
    GALAMOST_FUZZ_SEEDS=$out/corpus/$target GALAMOST_FUZZ=$target GALAMOST_REPOSITORY=$root RUST_BACKTRACE=0 \
        "$root/target/release/deps/fuzz-any" "$out/corpus/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
        -max_len=20000 -artifact_prefix="$out/$target-" -print_final_stats=1 2>&1 | grep -v '^thread\|^note' | tail -25
done
