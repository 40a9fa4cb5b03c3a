#!/bin/bash
# Waits until a Job has ended: wait.sh JOB. Exit code 0: it completed; 1: it failed; 2: there is none of this name.
# `kubectl wait --for=condition=complete` would not return for a Job that failed.
set -uo pipefail
job=${1:?usage: wait.sh JOB}
true_conditions='{.metadata.name} {.status.conditions[?(@.status=="True")].type} '
while true; do
    # An error of kubectl, as of a server that cannot be reached, is printed, and kubectl is tried again.
    if found=$(kubectl get job "$job" --ignore-not-found --output "jsonpath=$true_conditions"); then
        case $found in
            "") echo "wait.sh: $job: no Job of this name; create it by kubectl apply" >&2; exit 2 ;;
            *" Complete "*) echo "$job completed"; exit 0 ;;
            *" Failed "*) echo "$job failed; kubectl logs job/$job has messages" >&2; exit 1 ;;
        esac
    fi
    sleep 5
done
