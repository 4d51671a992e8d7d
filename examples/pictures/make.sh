#!/usr/bin/env bash
# Makes the pictures of the README: runs a few examples on the CPU and draws them. A minute or two. The page is
# photographed by Chromium, if it is there.
#
#     cargo build --release --workspace && examples/pictures/make.sh
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
galamost="${GALAMOST:-$here/../../target/release/galamost}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp "$here"/../*.ron "$here"/../*.xml "$work"
cd "$work"
run() { "$galamost" --pipeline "$1.ron" --device cpu --quiet; }
draw() { "$galamost" render "$1" --out "$here/$2.png" --size 600x480 "${@:3}"; }

run 06-kremer-grest-melt
draw 06-kremer-grest-melt.0000004000.xml melt --color molecule

run 47-build-brush
draw 47-build-brush.gsd brush --hide W

run 13-janus
draw 13-janus.gsd janus --hide S

draw 16-rods.ron rods --shape rod:2 --radius 0.35 --color z --key

run 60-pictures
"$galamost" plot 60-pictures.csv --out "$here/thermo.png"
"$galamost" report 60-pictures.ron
if command -v chromium >/dev/null; then
    chromium --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir="$work/browser" --window-size=1000,1300 \
        --hide-scrollbars --screenshot="$here/report.png" "file://$work/60-pictures.report.html" 2>/dev/null
fi
