"""The scripts of samples/07_cluster/slurm, in a real Slurm of one node, and their syntax."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from collidecli.cli.batch import verb
from tests.cli.conftest import write_jobs
from tests.support.batches import (
    COLLIDE,
    JOBS,
    REPOSITORY,
    Slurm,
    compute,
    dataset,
    environment,
    missing_programs,
    result_count,
    until,
    write_programs,
)

SCRIPTS = REPOSITORY / "samples" / "07_cluster" / "slurm"
EPISODES = 24


@pytest.mark.parametrize("script", sorted(SCRIPTS.iterdir()), ids=lambda script: script.name)
def test_scripts_have_no_syntax_error(script):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert script.read_text().startswith("#!/bin/bash\n")


@pytest.mark.parametrize(
    ("code", "restarts", "requeued"),
    [(0, 0, False), (1, 0, False), (2, 0, False), (4, 0, True), (75, 0, True), (137, 2, True), (137, 3, False)],
)
def test_only_a_killed_task_and_one_without_its_store_are_queued_again(tmp_path, code, restarts, requeued):
    collide, scontrol = f'echo "$@" > {tmp_path}/words; exit {code}', f"echo $@ > {tmp_path}/queued"
    write_programs(tmp_path, collide=collide, scontrol=scontrol, sleep="")
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLURM_ARRAY_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "5",
        "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_COUNT": "8",
        "SLURM_RESTART_COUNT": str(restarts),
        "SLURM_CPUS_PER_TASK": "2",
    }
    done = subprocess.run(["bash", SCRIPTS / "work.sbatch", "/shared/B"], env=variables, check=False)
    assert done.returncode == code
    assert (tmp_path / "words").read_text().split() == ["batch", "work", "/shared/B", "--slot", "4/8", "--workers", "2"]
    assert (tmp_path / "queued").exists() == requeued
    if requeued:
        assert (tmp_path / "queued").read_text().split() == ["requeue", "7_5"]


def task(folder: Path, *words: str, first: int = 0, last: int = 7, number: int = 0) -> subprocess.CompletedProcess[str]:
    """work.sbatch as a task of an array of 8, with a `collide` that writes its words to `words`."""
    write_programs(folder, collide=f'echo "$@" > {folder}/words')
    variables = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_ID": str(number),
        "SLURM_ARRAY_TASK_MIN": str(first),
        "SLURM_ARRAY_TASK_MAX": str(last),
        "SLURM_ARRAY_TASK_COUNT": "8",
    }
    return subprocess.run(
        ["bash", SCRIPTS / "work.sbatch", *words], env=variables, capture_output=True, text=True, check=False
    )


def test_further_words_of_a_task_are_options_of_work(tmp_path):
    assert task(tmp_path, "/shared/B", "--retry-failed").returncode == 0
    written = (tmp_path / "words").read_text().split()
    assert written == ["batch", "work", "/shared/B", "--slot", "0/8", "--workers", "1", "--retry-failed"]
    verb.commands["work"].make_context("work", ["B", *written[3:-1]])


def test_arrays_with_gaps_are_refused(tmp_path):
    done = task(tmp_path, "/shared/B", first=10, last=24, number=24)
    assert (done.returncode, "gaps" in done.stderr) == (2, True)
    assert not (tmp_path / "words").exists()
    assert task(tmp_path, "/shared/B", first=10, last=17, number=17).returncode == 0
    assert "7/8" in (tmp_path / "words").read_text().split()


@pytest.mark.parametrize("script", ["submit.sh", "plan.sbatch", "work.sbatch", "gather.sbatch"])
def test_too_few_words_give_the_usage(script):
    done = subprocess.run(["bash", SCRIPTS / script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"usage: {script} " in done.stderr


def submit(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    """submit.sh with an `sbatch` that prints 1, 2, 3; its result, and the words of each call."""
    log = folder / "calls"
    write_programs(folder, sbatch=f'echo "$@" >> {log}\necho "$(wc -l < {log});main"')
    (folder / "jobs.toml").write_text(JOBS)
    done = subprocess.run(
        ["bash", SCRIPTS / "submit.sh", *words],
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done, [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def test_submitted_jobs_depend_on_the_plan(tmp_path):
    done, (plan, work, gather) = submit(tmp_path, "jobs.toml", "/shared/B", "20", "--cpus-per-task=4")
    assert done.stdout == "plan 1, work 2, gather 3; collide batch status /shared/B --watch\n"
    assert plan[1:] == [str(SCRIPTS / "plan.sbatch"), "jobs.toml", "/shared/B"]
    assert {"--dependency=afterok:1", "--kill-on-invalid-dep=yes", "--array=0-19", "--cpus-per-task=4"} <= set(work)
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
    assert done.returncode != 0
    assert message in done.stderr
    assert calls == []


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    """A Slurm whose jobs find `collide`."""
    missing = missing_programs()
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: slurmctld slurmd slurm-client munge)")
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
    return not {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"} & set(slurm.state(job))


@pytest.mark.slow
def test_the_table_of_an_earlier_plan_stays_where_planning_fails(slurm, here):
    (here / "jobs.toml").write_text("no job file")
    (here / "B").mkdir()
    (here / "B" / "contacts.parquet").write_text("earlier")
    printed = slurm.run(str(SCRIPTS / "submit.sh"), "jobs.toml", "B", "2")
    plan, work, gather = re.findall(r"\d+", printed.split(";")[0])
    until(lambda: all(ended(slurm, job) for job in (plan, work, gather)), 300, every=1.0)
    assert slurm.state(plan) == ["FAILED"]
    assert set(slurm.state(work)) == set(slurm.state(gather)) == {"CANCELLED"}
    assert (here / "B" / "contacts.parquet").read_text() == "earlier"


@pytest.mark.slow
def test_requeued_and_killed_tasks_give_the_data_set_of_one_process(slurm, here, collide):
    write_jobs(here, range(5, 5 + EPISODES))
    plan = slurm.run(
        "sbatch", "--parsable", "--wait", "--wrap", "collide batch plan jobs.toml -o B --shard-seconds 1e-9"
    )
    assert slurm.state(plan) == ["COMPLETED"], Path(f"slurm-{plan}.out").read_text()
    work = slurm.run("sbatch", "--parsable", "--array=0-1", str(SCRIPTS / "work.sbatch"), "B")
    until(lambda: result_count("B") > 2, 600)
    slurm.run("scontrol", "requeue", f"{work}_0")
    until(lambda: result_count("B") > 6, 600)
    kill_program("0/2", "1/2")
    until(lambda: ended(slurm, work), 900, every=1.0)
    assert set(slurm.state(work)) == {"COMPLETED"}, [path.read_text() for path in here.glob("slurm-*.out")]
    gather = slurm.run("sbatch", "--parsable", "--wait", str(SCRIPTS / "gather.sbatch"), "B")
    assert slurm.state(gather) == ["COMPLETED"], Path(f"slurm-{gather}.out").read_text()
    state = collide.result("batch status B")
    assert (state["done"], state["left"]) == (EPISODES, 0)
    compute(collide, "A")
    assert dataset(collide, "A") == dataset(collide, "B")
    shown = slurm.run("scontrol", "show", "job", work)
    assert sum(int(number) for number in re.findall(r"Restarts=(\d+)", shown)) >= 1, shown


def kill_program(*slots: str) -> None:
    """Kills one `collide batch work` of these slots and all that it has started, as kill -9 of a user would."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "work" in words and set(slots) & set(words) and "python" in words[0]:
            process.kill()
            return
    raise AssertionError("no task is running")
