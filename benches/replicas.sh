#!/bin/sh
# Compares the files of replicas with those of single runs, byte for byte:
#
#     benches/replicas.sh GALAMOST sim.ron [OPTIONS OF BOTH RUNS]
#
# GALAMOST is the program; the pipeline has no other input files. Everything is written to a temporary folder.
set -eu
program=$(realpath "$1")
pipeline=$(realpath "$2")
shift 2
folder=$(mktemp -d)
mkdir "$folder/alone"
cp "$pipeline" "$folder/p.ron"
cd "$folder"
"$program" --pipeline p.ron --quiet "$@"
differ=0
for replica in p.[0-9]*.ron; do
    cp "$replica" alone
    (cd alone && "$program" --pipeline "$replica" --quiet "$@")
done
for file in alone/*; do
    case $file in *.run.json | *.lock) continue ;; esac
    cmp "$file" "$(basename "$file")" || differ=1
done
echo "$(ls alone | wc -l) files compared, in $folder: $([ $differ = 0 ] && echo all equal || echo some differ)"
exit $differ
