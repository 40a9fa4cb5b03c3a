#!/bin/bash
# Submits a whole batch: submit.sh JOBS.TOML FOLDER TASKS [options of sbatch, as --partition=...].
set -euo pipefail
jobs=$1 folder=$2 tasks=$3
shift 3
here=$(dirname "$(readlink -f "$0")")

plan=$(sbatch --parsable "$@" "$here/plan.sbatch" "$jobs" "$folder")
work=$(sbatch --parsable "$@" --dependency="afterok:$plan" --kill-on-invalid-dep=yes --array="0-$((tasks - 1))" "$here/work.sbatch" "$folder")
# afterany: a task ends with exit code 1 where an episode failed, and the others are gathered nevertheless.
gather=$(sbatch --parsable "$@" --dependency="afterany:$work" "$here/gather.sbatch" "$folder")
echo "plan $plan, work $work, gather $gather; collide batch status $folder --watch"
