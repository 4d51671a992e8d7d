#!/bin/bash
# Runs validation runs on a machine with a GPU, whose driver, NVRTC, python3 (its standard library) and tar are all it needs:
#
#     bash benches/validation/run.sh PACK OUT PART...
#
# PACK is the folder that pack.sh made. Parts: melt (with LAMMPS beside it on the CPU's cores), nvt, npt, sampling, vesicles,
# reactions. Each part leaves one archive in OUT, melt two. Variables: BUDGET, seconds for all parts together (560); DEVICE (cuda:0);
# WORK, a folder for large files (validation in the folder for temporary files); VESICLE_SECONDS (420); WALLS, axes with walls that reflect forward ("z" or
# "xyz"; none); and for short trials MELTS ("200x50 500x20", chains and beads), MELT_STEPS, ENSEMBLE_STEPS,
# VESICLE_PARTICLES, VESICLE_STEPS,
# BALLS ("radius:box:steps …"), BRUSH (radius:box:steps of the brushes).
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=$(cd "$1" && pwd); out=$2; shift 2
mkdir -p "$out"; out=$(cd "$out" && pwd)
budget=${BUDGET:-560}; device=${DEVICE:-cuda:0}; work=${WORK:-${TMPDIR:-/tmp}/validation}
melts=${MELTS:-200x50 500x20}
parts=" $* "; failures=0; lammps_jobs=()
mkdir -p "$work"; cd "$work" || exit 1; work=$PWD

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
wanted() { [[ "$parts" == *" $1 "* ]]; }
left() { echo $((budget - SECONDS)); }
# seconds, but no more than are left
limit() { local l; l=$(left); echo $(($1 < l ? $1 : (l > 1 ? l : 1))); }

unpack() { [ -e "$2" ] || { mkdir -p "$2" && tar xzf "$pack/$1" -C "$2"; } || { say "FAILED: $1 cannot be unpacked"; exit 1; }; }
unpack engine.tar.gz "$work/engine"
galamost=$work/engine/galamost
export GALAMOST_CACHE=$work/cache

# a run of GALAMOST with a time limit; its last lines are told
run() {
    local seconds name=$2 code
    seconds=$(limit "$1"); shift 2
    timeout -s INT -k 20 "$seconds" "$galamost" --device "$device" "$@" >"$name.log" 2>&1
    code=$?
    grep -E ' steps in | last sample|^error|rror:' "$name.log" | sed "s|^ *INFO|[$name]|"
    [ $code = 0 ] || { say "$name: exit code $code (124: stopped after $seconds s)"; [ $code = 124 ] || { tail -5 "$name.log"; failures=$((failures + 1)); }; }
    return $code
}
archive() { tar czf "$out/$1.tar.gz" -C "$work" "${@:2}" && say "$1: $(stat -c %s "$out/$1.tar.gz") bytes"; }

# LAMMPS in the background until shortly before the end
start_lammps() {
    local ranks seconds
    unpack lammps.tar.gz "$work/lammps"
    ranks=$(( ($(nproc) - 2) / 2 )); [ $ranks -ge 1 ] || ranks=1
    seconds=$(($(left) - 40))
    (
        cd "$work/$1" || exit 1
        export LD_LIBRARY_PATH=$work/lammps/lib:$work/lammps/lib/mpich OMP_NUM_THREADS=1 PATH=$work/lammps:$PATH
        how=(mpiexec.hydra -launcher fork -n "$ranks")
        threads=()
        timeout 45 "${how[@]}" lmp -h >/dev/null 2>lammps.err || { how=(); threads=(-sf omp -pk omp "$ranks"); export OMP_NUM_THREADS=$ranks; }
        echo "${how[*]:-mpiexec failed} lmp ${threads[*]-}" >lammps.how
        exec timeout -k 5 $((seconds + 25)) ${how[@]+"${how[@]}"} lmp ${threads[@]+"${threads[@]}"} -in in.melt -var steps 100000000 \
            -var limit "$(printf '%d:%02d:%02d' $((seconds / 3600)) $((seconds / 60 % 60)) $((seconds % 60)))" >lammps.out 2>>lammps.err
    ) &
    lammps_jobs+=($!)
    say "$1: LAMMPS for $seconds s"
}

if wanted melt; then
    steps=$((13000 + ${MELT_STEPS:-2000000}))
    for c in $melts; do
        m=melt-${c#*x}; rm -rf "$m"; mkdir "$m"; cp "$here"/melt/* "$m"
        (cd "$m" && python3 make_melt.py "${c%x*}" "${c#*x}" start.xml)
        # the same steps come again in the long run, bit for bit
        run 60 "$m/relax" --pipeline "$m/melt.ron" --steps 13000 &&
            (cd "$m" && python3 lammps_data.py relaxed.xml relaxed.data) && start_lammps "$m"
    done
    for c in $melts; do run 130 "melt-${c#*x}/run" --pipeline "melt-${c#*x}/melt.ron" --steps "$steps"; done
fi

ensemble() { # part, seconds, name, pipeline, integrator, further options
    local folder=$1 seconds=$2 name=$3 file=$4 integrator=$5 kt; shift 5
    kt=$(sed -E 's/.*kT: ([0-9.]+).*/\1/' <<<"$integrator")
    run "$seconds" "$folder/$name" --pipeline "$folder/$file" --set "integrators=[$integrator]" --set "initial[1].kT=$kt" \
        --set "stages[1].analyzers[0].file=\"$name.csv\"" ${ENSEMBLE_STEPS:+--set stages[0].steps=$ENSEMBLE_STEPS --set stages[1].steps=$ENSEMBLE_STEPS} "$@"
}

if wanted nvt; then
    mkdir -p nvt; cp "$here"/ensembles/*.ron nvt
    for t in 1.20 1.28; do
        for i in "NoseHoover(kT: $t, tau: 0.5)" "NoseHooverChain(kT: $t, tau: 0.5)" "Andersen(kT: $t, nu: 1.0)" \
            "Bussi(kT: $t, tau: 0.5)" "Langevin(kT: $t, gamma: 1.0)" "Berendsen(kT: $t, tau: 0.5)"; do
            ensemble nvt 30 "nvt-${i%%(*}-$t" liquid.ron "$i"
        done
    done
    archive nvt nvt
fi

if wanted npt; then
    mkdir -p npt; cp "$here"/ensembles/*.ron npt
    for c in MtkNpt AndersenNpt BerendsenBarostat; do
        "$galamost" plugins $c >/dev/null 2>&1 || { say "FAILED: there is no component $c"; failures=$((failures + 1)); continue; }
        for state in 1.20-1.35 1.20-1.50 1.26-1.35; do
            t=${state%-*}; p=${state#*-}; more=()
            case $c in
            MtkNpt) i="MtkNpt(kT: $t, tau: 0.5, pressure: $p, tau_p: 1.0)" ;;
            AndersenNpt) i="AndersenNpt(kT: $t, nu: 1.0, pressure: $p, tau_p: 1.0)" ;;
            *)  i="Bussi(kT: $t, tau: 0.5)"
                more=(--set "updaters=[BerendsenBarostat(every: 10, pressure: $p, tau: 2.0, compressibility: 0.2)]")
                [ $t = 1.20 ] || continue ;;
            esac
            ensemble npt 40 "npt-$c-$state" liquid.ron "$i" ${more[@]+"${more[@]}"}
        done
    done
    ensemble npt 40 ideal-MtkNpt-1.5-0.5 ideal.ron "MtkNpt(kT: 1.5, tau: 0.5, pressure: 0.5, tau_p: 1.0)"
    ensemble npt 40 ideal-AndersenNpt-1.5-0.5 ideal.ron "AndersenNpt(kT: 1.5, nu: 2.0, pressure: 0.5, tau_p: 1.0)"
    archive npt npt
fi

if wanted sampling; then
    mkdir -p sampling
    for precision in Mixed Single; do
        GALAMOST_REPOSITORY=$here/../.. GALAMOST_TEST_DEVICE=$device GALAMOST_TEST_PRECISION=$precision \
            timeout "$(limit 90)" "$work/engine/deps/all" --ignored --nocapture --test-threads 1 physics::angles:: physics::bonds:: \
            >"sampling/$precision.txt" 2>&1 || { say "sampling in $precision failed or ran out of time"; failures=$((failures + 1)); }
        grep -E '^test result|χ²|panicked' "sampling/$precision.txt"
    done
    archive sampling sampling
fi

if wanted vesicles; then
    rm -rf vesicles; mkdir vesicles; cp "$here"/vesicles/* vesicles
    # walls on these axes: two planes each, a little inside of the box
    half=$(cd vesicles && python3 make_amphiphiles.py start.xml "${VESICLE_PARTICLES:-1000000}" 0.1 5 1 "${WALLS:-}")
    planes=
    for axis in x y z; do
        [[ "${WALLS:-}" == *$axis* ]] || continue
        for sign in "" -; do
            at=(0.0 0.0 0.0); normal=(0.0 0.0 0.0); k=$(expr index xyz $axis)
            at[k - 1]=$sign$half; normal[k - 1]=$([ -z "$sign" ] && echo -1.0 || echo 1.0)
            planes+="Bounce(wall: Plane(point: [$(IFS=,; echo "${at[*]}")], normal: [$(IFS=,; echo "${normal[*]}")]), rule: Forward), "
        done
    done
    say "vesicles: start made${planes:+, with walls at $half on $WALLS}"
    run "${VESICLE_SECONDS:-420}" vesicles/run --pipeline vesicles/vesicles.ron ${VESICLE_STEPS:+--set stages[1].steps=$VESICLE_STEPS} \
        --set "integrators=[${planes}GrootWarren()]"
    ls vesicles/state.*.xml >/dev/null 2>&1 && timeout 60 python3 vesicles/beads.py vesicles/state.*.xml || { say 'FAILED: no state'; failures=$((failures + 1)); }
    archive vesicles vesicles/vesicles.csv vesicles/run.log $(ls vesicles/state.*.csv.gz 2>/dev/null)
fi

brush() { # seconds, name, radius, box, initiators per area, steps, further options
    local seconds=$1 name=$2 radius=$3 box=$4 density=$5 steps=$6; shift 6
    run "$seconds" "reactions/$name" --pipeline reactions/polymerization.ron --set "initial[0].surface=Sphere(radius: $radius)" \
        --set "initial[0].box=[$box, $box, $box]" --set "initial[0].initiators=$density" --set "stages[0].steps=$steps" "$@"
}

if wanted reactions; then
    rm -rf reactions; mkdir reactions; cp "$here"/reactions/* "$here"/../cases/polymerization.ron reactions
    # time steps per second of the paper's sizes, with and without reactions; after a run that fills the kernel cache
    brush 60 warm 5.0 36.2 0.5 200 >/dev/null
    for c in ${BALLS:-5.0:36.2:40000 10.0:46.1744:40000 15.0:56.2:20000 45.0:170.3:2000}; do
        IFS=: read -r radius box steps <<<"$c"
        brush 60 "speed-$radius-without" "$radius" "$box" 0.5 "$steps" --set "updaters=[]"
        brush 60 "speed-$radius-with" "$radius" "$box" 0.5 "$steps"
    done
    # brushes: height and lengths against the density of initiators; the densest for the picture
    IFS=: read -r radius box steps <<<"${BRUSH:-10.0:46.1744:600000}"
    for density in 0.1 0.25 0.5; do
        brush 90 "brush-$density" "$radius" "$box" $density "$steps" --set "analyzers=[ChainLengths(every: $((steps / 20)), \
            file: \"brush-$density.csv\", distribution: \"brush-$density.lengths.csv\", groups: {\"M\": 1}, shortest: 2), \
            GalamostXml(every: $steps, file: \"brush-$density.{step}.xml\")]"
        last=$(ls reactions/brush-$density.0*.xml 2>/dev/null | tail -1)
        [ -n "$last" ] && { printf '[brush-%s] ' $density; python3 reactions/brush.py "$radius" "$last" "reactions/brush-$density.chains.csv.gz"; } ||
            { say "FAILED: no state of brush-$density"; failures=$((failures + 1)); }
        rm -f reactions/brush-$density.0*.xml
    done
    archive reactions reactions
fi

if wanted melt; then
    for job in ${lammps_jobs[@]+"${lammps_jobs[@]}"}; do wait "$job" || say "LAMMPS: exit code $?"; done
    for c in $melts; do
        m=melt-${c#*x}
        grep -hE '^Loop time|^Performance' "$m/lammps.out" | sed "s|^|[$m, LAMMPS] |"
        gzip -f "$m/chains.dump"
        archive "$m" "$m/thermo.csv" "$m/chains.gsd" "$m/run.log" "$m/chains.dump.gz" "$m/log.lammps" "$m/lammps.how"
    done
fi
say "$failures failures"
[ "$failures" = 0 ]
