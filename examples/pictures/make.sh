#!/usr/bin/env bash
# Makes the pictures of the README: runs a few examples on the CPU and draws them. Some minutes.
#
#     cargo build --release --workspace && examples/pictures/make.sh
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
galamost="${GALAMOST:-$here/../../target/release/galamost}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp "$here"/../*.ron "$here"/../*.xml "$work"
cd "$work"
run() { "$galamost" --pipeline "$1.ron" --device cpu --quiet --no-record; }
size=720x560

run 06-kremer-grest-melt
"$galamost" render 06-kremer-grest-melt.0000004000.xml --size $size --color molecule --out "$here/melt.png"

run 13-janus
"$galamost" render 13-janus.gsd --size $size --hide S --out "$here/janus.png"

run 60-pictures
"$galamost" plot 60-pictures.rdf.csv --out "$here/rdf.png"
