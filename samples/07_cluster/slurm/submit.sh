#!/bin/bash
# Submits a whole batch: submit.sh JOBS.TOML FOLDER TASKS [options of sbatch for the array, as --cpus-per-task=4].
# Options of all three jobs are variables of sbatch: SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_QOS.
set -euo pipefail
usage="usage: submit.sh JOBS.TOML FOLDER TASKS [options of sbatch for the array, as --cpus-per-task=4]"
jobs=${1:?$usage} folder=${2:?$usage} tasks=${3:?$usage}
shift 3
here=$(dirname "$(readlink -f "$0")")
if [[ ! -f $jobs || ! -r $jobs ]]; then
    echo "submit.sh: $jobs: no file that can be read; give the job file of the batch" >&2
    exit 2
fi
if [[ ! $tasks =~ ^[1-9][0-9]*$ ]]; then
    echo "submit.sh: TASKS is '$tasks'; give a whole number from 1; $usage" >&2
    exit 2
fi

plan=$(sbatch --parsable "$here/plan.sbatch" "$jobs" "$folder")
plan=${plan%%;*} # of "job;cluster"
work=$(sbatch --parsable --dependency="afterok:$plan" --kill-on-invalid-dep=yes --array="0-$((tasks - 1))" "$@" "$here/work.sbatch" "$folder")
work=${work%%;*}
# afterany: a task ends with exit code 1 where an episode failed, and the others are gathered nevertheless.
# afterok: without a new plan nothing is gathered, so that the table of an earlier plan stays.
gather=$(sbatch --parsable --dependency="afterok:$plan,afterany:$work" --kill-on-invalid-dep=yes "$here/gather.sbatch" "$folder")
echo "plan $plan, work $work, gather ${gather%%;*}; collide batch status $folder --watch"
