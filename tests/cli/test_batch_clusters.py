"""Batches on clusters: scripts of Slurm and files of Kubernetes of samples/07_cluster, and Dask."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from collidecli.verbs.batch.command import verb
from collidecli.verbs.batch.plan import read_plan
from collidecli.verbs.batch.store import Store
from tests.cli.conftest import write_jobs, write_motion
from tests.support.batches import (
    COLLIDE,
    JOBS,
    REPOSITORY,
    Cluster,
    Slurm,
    compute,
    dataset,
    environment,
    free_port,
    missing_programs,
    plan,
    result_count,
    start,
    write_programs,
)
from tests.support.waits import PATIENCE, until

pytestmark = pytest.mark.rest

SCRIPTS = REPOSITORY / "samples" / "07_cluster" / "slurm"


@pytest.mark.parametrize("script", sorted(SCRIPTS.iterdir()), ids=lambda script: script.name)
def test_scripts_have_no_syntax_error(script):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert script.read_text().startswith("#!/bin/bash\n")


def ran(folder: Path, variables: dict[str, object], *words: str | Path, **programs: str):
    """A script that has run in a folder, with programs in place of those of Slurm or Kubernetes."""
    write_programs(folder, **programs)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"} | {
        name: str(value) for name, value in variables.items()
    }
    return subprocess.run(
        ["bash", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def task(
    folder: Path,
    *words: str,
    code: int = 0,
    first: int = 0,
    last: int = 7,
    number: int = 0,
    **variables: object,
):
    """work.sbatch as a task of an array of 8, with a `collide` that writes to `words` and ends with
    `code`."""
    array = {"JOB_ID": 7, "TASK_ID": number, "TASK_MIN": first, "TASK_MAX": last, "TASK_COUNT": 8}
    values = {f"SLURM_ARRAY_{name}": value for name, value in array.items()} | variables
    programs = {
        "collide": f'echo "$@" > words; exit {code}',
        "scontrol": "echo $@ > queued",
        "sleep": "",
    }
    return ran(folder, values, SCRIPTS / "work.sbatch", *words, **programs)


@pytest.mark.parametrize(
    ("code", "restarts", "requeued"),
    [
        (0, 0, False),
        (1, 0, False),
        (2, 0, False),
        (4, 0, True),
        (75, 0, True),
        (137, 2, True),
        (137, 3, False),
    ],
)
def test_only_a_task_that_another_try_may_help_is_queued_again(tmp_path, code, restarts, requeued):
    done = task(
        tmp_path, "B", code=code, number=4, SLURM_RESTART_COUNT=restarts, SLURM_CPUS_PER_TASK=2
    )
    assert done.returncode == code
    assert (tmp_path / "words").read_text() == "batch work B --slot 4/8 --workers 2\n"
    assert (tmp_path / "queued").exists() == requeued
    assert not requeued or (tmp_path / "queued").read_text() == "requeue 7_4\n"


def test_further_words_of_a_task_are_options_of_work(tmp_path):
    assert task(tmp_path, "B", "--retry-failed").returncode == 0
    written = (tmp_path / "words").read_text().split()
    assert written == ["batch", "work", "B", "--slot", "0/8", "--workers", "1", "--retry-failed"]
    verb.commands["work"].make_context("work", written[2:])


def test_arrays_with_gaps_are_refused(tmp_path):
    done = task(tmp_path, "B", first=10, last=24, number=24)
    assert (done.returncode, "gaps" in done.stderr) == (2, True)
    assert not (tmp_path / "words").exists()
    assert task(tmp_path, "B", first=10, last=17, number=17).returncode == 0
    assert "7/8" in (tmp_path / "words").read_text().split()


@pytest.mark.parametrize("name", ["submit.sh", "plan.sbatch", "work.sbatch", "gather.sbatch"])
def test_too_few_words_give_the_usage(tmp_path, name):
    done = ran(tmp_path, {}, SCRIPTS / name)
    assert (done.returncode != 0, f"usage: {name} " in done.stderr) == (True, True)


def submit(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    """submit.sh with an `sbatch` that prints 1, 2, 3; its result, and the words of each call."""
    (folder / "jobs.toml").write_text(JOBS)
    done = ran(
        folder,
        {},
        SCRIPTS / "submit.sh",
        *words,
        sbatch='echo "$@" >> calls\necho "$(wc -l < calls);main"',
    )
    calls = folder / "calls"
    return done, [line.split() for line in calls.read_text().splitlines()] if calls.exists() else []


def test_submitted_jobs_depend_on_the_plan(tmp_path):
    done, (plan, work, gather) = submit(
        tmp_path, "jobs.toml", "/shared/B", "20", "--cpus-per-task=4"
    )
    assert done.stdout == "plan 1, work 2, gather 3; collide batch status /shared/B --watch\n"
    assert plan[1:] == [str(SCRIPTS / "plan.sbatch"), "jobs.toml", "/shared/B"]
    assert {
        "--dependency=afterok:1",
        "--kill-on-invalid-dep=yes",
        "--array=0-19",
        "--cpus-per-task=4",
    } <= set(work)
    assert {"--dependency=afterok:1,afterany:2", "--kill-on-invalid-dep=yes"} <= set(gather)
    assert "--cpus-per-task=4" not in plan + gather


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.toml", "/shared/B", "20"), "none.toml: no file that can be read"),
        ((".", "/shared/B", "20"), ".: no file that can be read"),
        (("jobs.toml", "/shared/B", "--partition=main"), "TASKS is '--partition=main'"),
        (("jobs.toml", "/shared/B", "0"), "TASKS is '0'"),
        (("jobs.toml", "/shared/B"), "usage: submit.sh"),
    ],
)
def test_nothing_is_submitted_with_words_that_cannot_be_used(tmp_path, words, message):
    done, calls = submit(tmp_path, *words)
    assert (done.returncode != 0, message in done.stderr, calls) == (True, True, [])


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    """A Slurm whose jobs find `collide`."""
    missing = missing_programs()
    if missing:
        pytest.skip(
            f"not installed: {', '.join(missing)} (Debian: slurmctld slurmd slurm-client munge)"
        )
    folder = Path(tempfile.mkdtemp(prefix="slurm_", dir="/tmp"))
    (folder / "bin").mkdir()
    collide = folder / "bin" / "collide"
    # As the script that pip makes: worker processes import it, and must not run it.
    collide.write_text(f"#!{sys.executable}\nif __name__ == '__main__':\n    {COLLIDE[2]}\n")
    collide.chmod(0o755)
    variables = environment()
    made = Slurm(folder, {**variables, "PATH": f"{folder}/bin:{variables['PATH']}"})
    yield made
    made.close()
    shutil.rmtree(folder)


def ended(slurm: Slurm, job: str) -> bool:
    return not {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"} & set(
        slurm.state(job)
    )


@pytest.mark.slow
def test_the_table_of_an_earlier_plan_stays_where_planning_fails(slurm, here):
    (here / "jobs.toml").write_text("no job file")
    (here / "B").mkdir()
    (here / "B" / "contacts.parquet").write_text("earlier")
    printed = slurm.run(str(SCRIPTS / "submit.sh"), "jobs.toml", "B", "2")
    plan, work, gather = re.findall(r"\d+", printed.split(";")[0])
    until(lambda: all(ended(slurm, job) for job in (plan, work, gather)), every=1.0)
    assert slurm.state(plan) == ["FAILED"]
    assert set(slurm.state(work)) == set(slurm.state(gather)) == {"CANCELLED"}
    assert (here / "B" / "contacts.parquet").read_text() == "earlier"


yaml = pytest.importorskip("yaml")
FOLDER = REPOSITORY / "samples" / "07_cluster" / "kubernetes"
MANIFESTS = sorted(FOLDER.glob("*.yaml"))
VARIABLE = re.compile(r"\$\((\w+)\)")


def read(path: Path) -> dict[str, Any]:
    """The one object of a manifest."""
    (found,) = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return found


def container(path: Path) -> dict[str, Any]:
    """The one container of a Job."""
    (found,) = read(path)["spec"]["template"]["spec"]["containers"]
    return found


MANIFEST_JOBS = [path for path in MANIFESTS if read(path)["kind"] == "Job"]


@pytest.mark.parametrize("path", MANIFEST_JOBS, ids=lambda path: path.stem)
def test_each_job_is_a_command_of_collide_with_limits(path):
    held = container(path)
    values = {one["name"]: one.get("value", "3") for one in held.get("env", [])}
    words = [VARIABLE.sub(lambda found: values[found[1]], word) for word in held["args"]]
    assert words[0] == "batch"
    command = verb.commands[words[1]]
    command.make_context(path.stem, words[2:])
    assert (
        set(held["resources"]["limits"]) == set(held["resources"]["requests"]) == {"cpu", "memory"}
    )
    spec = read(path)["spec"]["template"]["spec"]
    assert {mount["name"] for mount in held["volumeMounts"]} == {
        volume["name"] for volume in spec["volumes"]
    }
    assert "/tmp" in {mount["mountPath"] for mount in held["volumeMounts"]}
    assert held["image"] == "collide", "which the README replaces by registry, name and tag"
    pod = spec["securityContext"]
    own = held["securityContext"]
    assert pod["runAsNonRoot"], 'the "restricted" standard of pod security'
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["fsGroupChangePolicy"] == "OnRootMismatch"
    assert own == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_slots_are_the_completions():
    spec = read(FOLDER / "work.yaml")["spec"]
    held = container(FOLDER / "work.yaml")
    values = {one["name"]: one.get("value") for one in held["env"]}
    assert spec["completionMode"] == "Indexed"
    assert (
        spec["completions"]
        == spec["parallelism"]
        == spec["maxFailedIndexes"]
        == int(values["SLOTS"])
    )
    assert held["args"][held["args"].index("--workers") + 1] == held["resources"]["limits"]["cpu"]
    (rule,) = (rule for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex")
    assert rule["onExitCodes"]["values"] == [1, 2, 3], (
        "exit codes that a repetition would give again"
    )


def wait(folder: Path, kubectl: str) -> subprocess.CompletedProcess[str]:
    """wait.sh with this `kubectl`, and a `sleep` that counts its calls in `slept`."""
    return ran(
        folder, {}, FOLDER / "wait.sh", "collide-work", kubectl=kubectl, sleep="echo >> slept"
    )


@pytest.mark.parametrize(
    ("conditions", "code"),
    [("SuccessCriteriaMet Complete", 0), ("FailureTarget Failed", 1), ("Failed", 1)],
)
def test_waiting_ends_when_a_job_has_completed_or_failed(tmp_path, conditions, code):
    """First the server does not answer, then the Job has not ended and its last condition is only
    announced."""
    kubectl = f"""case $(cat slept 2>/dev/null | wc -l) in
        0) echo refused >&2; exit 1 ;;
        1) echo -n "collide-work  " ;;
        2) echo -n "collide-work FailureTarget " ;;
        *) echo -n "collide-work {conditions} " ;;
        esac"""
    done = wait(tmp_path, kubectl)
    assert (done.returncode, len((tmp_path / "slept").read_text().splitlines())) == (code, 3)
    assert done.stderr.startswith("refused")


def test_waiting_for_no_job_is_refused(tmp_path):
    done = wait(tmp_path, "exit 0")
    assert (done.returncode, "collide-work: no Job of this name" in done.stderr) == (2, True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_prints_the_conditions_that_hold(tmp_path):
    job = read(FOLDER / "work.yaml")
    held = {"Suspended": "False", "FailureTarget": "True", "Failed": "True"}
    job["status"] = {
        "conditions": [{"type": name, "status": state} for name, state in held.items()]
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    template = re.search(
        r"^true_conditions='(.*)'$", (FOLDER / "wait.sh").read_text(encoding="utf-8"), re.M
    )
    assert template is not None
    local = [
        "kubectl",
        "patch",
        "--local",
        "-f",
        tmp_path / "job.yaml",
        "--type",
        "merge",
        "-p",
        '{"metadata": {}}',
    ]
    done = subprocess.run(
        [*local, "-o", f"jsonpath={template[1]}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "collide-work FailureTarget Failed "


@pytest.mark.slow
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_manifests_follow_the_schema_of_kubernetes(path):
    validate = pytest.importorskip("kubernetes_validate")
    validate.validate(read(path), "1.30", strict=True)
    broken = read(path)
    broken["spec"]["nonsense"] = 1
    with pytest.raises(validate.ValidationError):
        validate.validate(broken, "1.30", strict=True)


pytest.importorskip("distributed")
DASK_EPISODES = 16


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def batch(here: Path, collide) -> str:
    """The folder of a planned batch with a shard per recording."""
    write_jobs(here, range(5, 5 + DASK_EPISODES))
    plan(collide, "B", "--shard-seconds", "1e-9")
    return "B"


@pytest.fixture
def undisturbed(batch: str, collide) -> str:
    """Hash of the data set that one process computes."""
    compute(collide, "A")
    return dataset(collide, "A")


def on(cluster: Cluster) -> tuple[str, ...]:
    """Words of a run on a cluster."""
    return (
        "batch",
        "run",
        "B",
        "--executor",
        "dask",
        "--scheduler-file",
        str(cluster.file),
        "--json",
    )


def test_two_workers_give_the_data_set_of_one_process(cluster, batch, undisturbed, collide):
    answer = collide(*on(cluster))
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out)["done"] == DASK_EPISODES
    assert dataset(collide, "B") == undisturbed
    assert cluster.dashboard("/health") == "ok"
    pytest.importorskip("bokeh")
    assert "Dask" in cluster.dashboard()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--address 127.0.0.1:{free}", "no Dask scheduler responds"),
        ("--address tcp://", "tcp://HOST:PORT"),
        ("--scheduler-file gone.json", "no such file"),
        ("--scheduler-file scene.xml", "not the file of a Dask scheduler"),
        ("--scheduler-file x --address y", "give one of them"),
    ],
)
def test_a_scheduler_that_does_not_answer_gives_one_message(batch, collide, words, said):
    collide.refused(f"batch run B --executor dask {words.format(free=free_port())}", told=said)


@pytest.mark.parametrize("listens", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_server_that_is_no_scheduler_gives_one_message(batch, listens):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        running = start("batch", "run", batch, "--executor", "dask", "--address", address)
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, len(err.decode().splitlines())) == (2, b"", 2), err.decode()
    assert "no Dask scheduler responds" in err.decode()


def finished(running) -> dict:
    """The result of a run that must end with exit code 0 and without a message."""
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err.decode()) == (0, "")
    return json.loads(out)


@pytest.mark.slow
def test_a_batch_can_be_resumed_after_its_scheduler_is_killed(
    cluster, batch, undisturbed, collide, tmp_path
):
    running = start(*on(cluster))
    until(lambda: result_count(batch) > 1)
    cluster.scheduler.kill()
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, json.loads(out)["error"]["exit_code"]) == (75, 75), err.decode()
    assert (len(err.decode().splitlines()), "scheduler" in err.decode()) == (2, True), err.decode()
    (tmp_path / "again").mkdir()
    another = Cluster(tmp_path / "again", workers=1)
    try:
        assert finished(start(*on(another)))["done"] == DASK_EPISODES
    finally:
        another.close()
    assert dataset(collide, batch) == undisturbed


@pytest.mark.slow
def test_the_tasks_of_a_killed_client_stop(cluster, batch, undisturbed, collide):
    running = start(*on(cluster))
    until(lambda: result_count(batch) > 1)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    time.sleep(8)
    count = result_count(batch)
    time.sleep(3)
    assert result_count(batch) == count < DASK_EPISODES
    assert finished(start(*on(cluster)))["done"] == DASK_EPISODES
    assert dataset(collide, batch) == undisturbed


@pytest.mark.slow
def test_an_episode_that_kills_its_process_is_quarantined(cluster, batch, collide):
    episodes = read_plan(Store("B")).episodes
    killer = next(one for one in episodes if one.motion.endswith("d3.h5"))
    Path(next(one for one in episodes if one.motion.endswith("d5.h5")).motion).write_bytes(b"junk")
    write_motion(Path(killer.motion), 300_000)  # long enough to be found while it is computed
    running = start(*on(cluster))
    partial = f"{killer.key}."
    while running.poll() is None:
        for child in cluster.worker_children():
            try:
                if any(partial in file.path for file in child.open_files()):
                    child.kill()
            except psutil.Error:
                continue
    out, _ = running.communicate()
    state = json.loads(out)
    assert running.returncode == 1
    said = {
        Path(one["motion"]).name: (one["exit_code"], one["attempts"]) for one in state["failures"]
    }
    assert said == {"d5.h5": (2, 1), "d3.h5": (4, 3)}
    assert state["done"] == DASK_EPISODES - 2
