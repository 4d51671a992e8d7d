#!/usr/bin/env bash
# Generates the pictures of the book: runs a few examples on the CPU and renders them. Takes one or two minutes.
# The screenshot of the report requires Chromium; without it, that picture is skipped.
#
#     cargo build --release && examples/pictures/make.sh
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

# Plots of the first chapters and the tutorials
images="$here/../../docs/src/images"
plot() { "$galamost" plot "$1" --out "$images/$2.svg" "${@:3}"; }
"$galamost" new pipeline liquid --folder . > /dev/null
run sim
plot liquid.csv first-simulation --y kT --y pressure --y potential
run 34-field-blend
plot 34-field-blend-profile.csv blend-profile --x position --y A,B
run 31-network
plot 31-network.csv network --x conversion --y reduced
run 44-rosenbluth
plot 44-rosenbluth.csv walks --x monomers --y R2,Rg2 --log-x --log-y --errors
cp -r "$here/../41-ibi" .
"$galamost" ibi 41-ibi/spec.ron --device cpu --iterations 8 --quiet
plot 41-ibi/spec/convergence.csv ibi-convergence --x iteration --y norm --log-y --points
# Buckingham without attraction (c = 0) is the Born-Mayer potential
"$galamost" table make 'Buckingham(r_cut: 3.0, pairs: { ("A", "A"): (a: 20.0, rho: 0.5, c: 0.0) })' \
    --pair A A --from 0.1 --out born-mayer.csv
"$galamost" table plot born-mayer.csv --kind pair --range 0,20 --out "$images/born-mayer.svg"

run 60-pictures
"$galamost" plot 60-pictures.csv --out "$here/thermo.png"
"$galamost" report 60-pictures.ron
if command -v chromium >/dev/null; then
    chromium --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir="$work/browser" --window-size=1000,1300 \
        --hide-scrollbars --screenshot="$here/report.png" "file://$work/60-pictures.report.html" 2>/dev/null
fi
