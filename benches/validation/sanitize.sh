#!/bin/bash
# memcheck, racecheck and initcheck of compute-sanitizer over the selftest of every component:
#
#     bash benches/validation/sanitize.sh PROGRAMS OUT [COMPONENT]…
#
# PROGRAMS is a folder with `galamost` and its plugins. Each tool has one process at a time; the tools run side by side. Variables:
# TOOLS ("memcheck racecheck initcheck"), LIMIT, seconds for a component (90), GROUP, components in one process (1; a group that is
# not clean is taken apart), BUDGET, seconds for everything (540), DEVICE (cuda:0), DONE, the folder OUT of an earlier call: what was
# clean there is not run again. Leaves TOOL.tsv (component, verdict, seconds) and the output of what was not clean in OUT, and prints
# a table, components by tools: `clean`, `N errors`, `selftest N` (its exit status, without a report of the tool), `timeout`, `-` (not
# run). The exit status is 0 if every component is clean with every tool, 3 if some were not run, otherwise 1.
set -u
galamost=$(cd "$1" && pwd)/galamost
mkdir -p "$2/log"
out=$(cd "$2" && pwd)
shift 2
read -ra tools <<<"${TOOLS:-memcheck racecheck initcheck}"
limit=${LIMIT:-90} group=${GROUP:-1} budget=${BUDGET:-540} device=${DEVICE:-cuda:0}
sanitizer=$(command -v "${SANITIZER:-compute-sanitizer}" || command -v /usr/local/cuda/bin/compute-sanitizer) ||
    { echo "compute-sanitizer is not in PATH; set SANITIZER" >&2; exit 2; }
# inside of graphs the tools see single kernels only with difficulty, and racecheck ends with an error
export GALAMOST_NO_GRAPHS=1 GALAMOST_LOG=error

if [ $# -gt 0 ]; then
    components=("$@")
else
    mapfile -t components < <("$galamost" plugins --json | python3 -c '
import json, sys
print(*dict.fromkeys(c["name"] for c in json.load(sys.stdin)), sep="\n")')
fi
[ ${#components[@]} -gt 0 ] || { echo "there are no components" >&2; exit 2; }

# check TOOL COMPONENT…: runs one process and prints `verdict seconds`
check() {
    local tool=$1 log code begun=$SECONDS errors seconds=$((limit * ($# - 1)))
    shift
    log=$out/log/$tool-$1.txt
    timeout -k 10 "$seconds" "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 99 \
        "$galamost" selftest --device "$device" --jobs 1 --timeout "$seconds" "$@" >"$log" 2>&1
    code=$?
    # every process has a summary of its own: `ERROR SUMMARY: 3 errors`, `RACECHECK SUMMARY: 2 hazards displayed (2 errors, …`
    errors=$(sed -nE 's/.*(ERROR|RACECHECK) SUMMARY: ([0-9]+) (errors?|hazards?).*/\2/p' "$log" | awk '{ s += $1 } END { print NR ? s : "none" }')
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        echo "timeout $((SECONDS - begun))"
    elif [ "$errors" = none ]; then
        echo "no_report_($code) $((SECONDS - begun))"
    elif [ "$errors" != 0 ]; then
        echo "${errors}_errors $((SECONDS - begun))"
    elif [ "$code" != 0 ]; then
        echo "selftest_$code $((SECONDS - begun))"
    else
        echo "clean $((SECONDS - begun))"
        rm "$log"
    fi
}

# all components with one tool
tool() {
    local tool=$1 name verdict seconds
    local todo=() some=() before=${DONE:+$DONE/$1.tsv}
    for name in "${components[@]}"; do
        if [ -n "$before" ] && [ -e "$before" ] && grep -q "^$name	clean	" "$before"; then
            grep "^$name	clean	" "$before" | head -1 >>"$out/$tool.tsv"
        else
            todo+=("$name")
        fi
    done
    while [ ${#todo[@]} -gt 0 ] && [ $SECONDS -lt $((budget - limit)) ]; do
        some=("${todo[@]:0:group}")
        todo=("${todo[@]:group}")
        read -r verdict seconds < <(check "$tool" "${some[@]}")
        if [ ${#some[@]} = 1 ] || [ "$verdict" = clean ]; then
            for name in "${some[@]}"; do printf '%s\t%s\t%s\n' "$name" "${verdict//_/ }" "$seconds" >>"$out/$tool.tsv"; done
        else
            for name in "${some[@]}"; do
                [ $SECONDS -lt $((budget - limit)) ] || break
                read -r verdict seconds < <(check "$tool" "$name")
                printf '%s\t%s\t%s\n' "$name" "${verdict//_/ }" "$seconds" >>"$out/$tool.tsv"
            done
        fi
    done
}

for t in "${tools[@]}"; do
    : >"$out/$t.tsv"
    tool "$t" &
done
wait

printf '%-32s' component
printf ' %14s' "${tools[@]}"
printf '\n'
bad=0 missing=0
for name in "${components[@]}"; do
    printf '%-32s' "$name"
    for t in "${tools[@]}"; do
        verdict=$(awk -F'\t' -v n="$name" '$1 == n { v = $2 } END { print v }' "$out/$t.tsv")
        printf ' %14s' "${verdict:--}"
        case $verdict in clean) ;; '') missing=1 ;; *) bad=1 ;; esac
    done
    printf '\n'
done
for t in "${tools[@]}"; do
    awk -F'\t' -v t="$t" -v n="${#components[@]}" '$2 == "clean" { c++ } END { printf "%s: %d clean, %d not clean, %d not run\n", t, c, NR - c, n - NR }' "$out/$t.tsv"
done
[ "$bad" = 0 ] || exit 1
[ "$missing" = 0 ] || exit 3
