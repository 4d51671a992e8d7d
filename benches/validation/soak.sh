#!/bin/bash
# A run with 19 analyzers, reactions and a checkpoint every minute, for a given time:
#
#     bash benches/validation/soak.sh PROGRAMS [DEVICE] [SECONDS] [OUT]
#
# PROGRAMS is a folder with `galamost`, its plugins and `galamost-instruments` (built by `cargo build --release` and `cargo build
# --release -p galamost-instruments`, or unpacked by hostile.sh). DEVICE: cpu or cuda:0 (cpu). SECONDS: 550. OUT: soak, replaced.
# THREADS: 2. Prints a row every ten seconds (a twentieth of the time, if that is less): resident memory, GPU memory, steps per
# second, on the CPU of processor time. Then, for two minutes, the run and a new one of the same pipeline are measured in turn. The
# exit status is 1 if memory changes by more than 1 % after a tenth of the time, or if the speeds differ by more than 2 %.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "$1" && pwd)
seconds=${3:-550}
interval=$(awk "BEGIN { print ($seconds / 30 < 10) ? $seconds / 30 : 10 }")
exec "$programs/galamost-instruments" soak --repository "$here/../.." --device "${2:-cpu}" --threads "${THREADS:-2}" \
    --minutes "$(awk "BEGIN { print $seconds / 60 }")" --interval "$interval" --out "${4:-soak}"
