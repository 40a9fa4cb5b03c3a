"""`collide batch`: plans, killed workers, resumption, failures, full disks, warnings, tables,
refusals."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import fields
from pathlib import Path
from unittest.mock import MagicMock, call

import h5py
import numpy as np
import psutil
import pyarrow
import pyarrow.parquet as parquet
import pytest
from rich.console import Console

from collidecli.pages.progress import batch_progress
from collidecli.scene import options as declarations
from collidecli.storage import input_files
from collidecli.storage.files import ObjectFiles, UnavailableError
from collidecli.verbs.batch import episode_worker as work_module
from collidecli.verbs.batch import plan as plan_module
from collidecli.verbs.batch.episode_worker import work_shard
from collidecli.verbs.batch.executors import Slot, WorkerKilledError, by_processes
from collidecli.verbs.batch.job_options import job_options
from collidecli.verbs.batch.log import attempts, dataset_hash
from collidecli.verbs.batch.plan import Plan
from collidecli.verbs.batch.store import (
    DifferentContactsError,
    Failure,
    Store,
    content_of,
    open_store,
)
from collidecli.verbs.run.run import RunRequest
from tests.cli.conftest import refusals, write_jobs, write_motion
from tests.cli.test_recordings import falling, write_demos
from tests.support.batches import (
    JOBS,
    KillsOn,
    command_line,
    compute,
    dataset,
    environment,
    plan,
    result_count,
    start,
)
from tests.support.waits import PATIENCE, until

LENGTHS = (12, 5, 20, 9, 16, 7)


@pytest.fixture
def jobs(here: Path) -> Path:
    """The current folder with jobs.toml and six recordings of different lengths."""
    return write_jobs(here, LENGTHS)


def test_every_recording_is_computed_once_as_by_run(jobs, collide):
    state = collide.result("batch run jobs.toml -o B --workers 2")
    assert (state["episodes"], state["done"], state["failed"], state["left"]) == (6, 6, 0, 0)
    gathered = collide.result("batch gather B -o all.parquet")
    rows = parquet.read_table("all.parquet").to_pylist()
    named = [(Path(row["motion"]).name, row["frames"]) for row in rows]
    assert named == [(f"d{k}.h5", length) for k, length in enumerate(LENGTHS)]
    assert gathered["contacts"] == sum(row["contacts"] for row in rows) > 0
    for row in rows:
        alone = collide.result("run scene.xml --gap 0.02 -o one.h5 --force -t", row["motion"])
        assert alone["content_sha256"] == row["content_sha256"] == content_of(row["file"])

    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in Path("B/results").rglob("*.h5")}

    before = times()
    collide.ok("batch work B --slot 0/1")
    assert times() == before, "nothing is done again"
    assert not [path for path in Path("B").rglob("*") if path.name.startswith(".")]
    assert collide.result("batch verify B --sample 100%")["checked"] == 6
    assert collide.result("batch verify B --sample 1%")["checked"] == 1, "at least one"


@pytest.mark.usefixtures("in_process")
def test_shards_by_slots_give_the_same_data_set(jobs, collide, monkeypatch):
    compute(collide, "A")
    monkeypatch.setattr(
        Store, "is_damaged", lambda self, key: pytest.fail("opens contact sets of other slots")
    )
    assert plan(collide, "B", "--shard-seconds", "1e-9").shard_count == 6
    assert collide.result("batch status B")["left"] == 6
    for slot in (2, 0, 1, 0):
        collide.ok("batch work B --slot", f"{slot}/3")
    assert dataset(collide, "A") == dataset(collide, "B")


@pytest.mark.rest
@pytest.mark.usefixtures("in_process")
def test_the_whole_run_killed_goes_on_where_it_was(jobs, collide):
    running = start(
        *["batch", "run", "jobs.toml", "-o", "B", "--workers", "1", "--shard-seconds", "1e-9"]
    )
    while running.poll() is None and not result_count("B"):
        time.sleep(0.02)
    workers = psutil.Process(running.pid).children(recursive=True)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert alive == [], "workers end with the process that started them"
    collide.ok("batch work B --slot 0/1")
    assert collide.result("batch status B")["done"] == 6
    compute(collide, "A")
    assert dataset(collide, "A") == dataset(collide, "B")


@pytest.mark.rest
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2])
def test_workers_that_are_interrupted_while_they_start_are_silent(jobs, delay):
    running = start("batch", "run", "jobs.toml", "-o", "B", "--workers", "2")

    def has_worker() -> bool:
        children = psutil.Process(running.pid).children(recursive=True)
        return any("spawn_main" in command_line(child) for child in children)

    until(lambda: running.poll() is not None or has_worker())
    time.sleep(delay)
    os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=PATIENCE)
    said = told.decode()
    assert running.returncode == 130, said
    assert "Traceback" not in said
    assert said.count("error: interrupted") == 1


@pytest.mark.rest
def test_neither_a_batch_nor_its_workers_import_pandas(jobs, collide):
    """pyarrow imports it for some calls, which takes as long as an episode."""
    plan(collide, "B", "--shard-seconds", "1e-9")
    code = """import sys
from collidecli.verbs.batch.episode_worker import work_shard
from collidecli.cli.main import main
work_shard('B', 0)
main(['batch', 'run', 'B', '--workers', '1', '-q'])
sys.exit('pandas' in sys.modules)"""
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment(), check=False).returncode == 0
    )


def test_why_a_quiet_batch_ends_with_one(jobs, collide, monkeypatch):
    """As where another program removes the contact sets while they are computed."""
    plan(collide)
    monkeypatch.setattr("collidecli.verbs.batch.executors.by_processes", lambda *arguments: None)
    quiet = collide("batch run B --quiet")
    told = "error: B: 6 of 6 episodes have no contact set: it was removed, or damaged\n"
    assert (quiet.code, quiet.out, quiet.err) == (1, "", f"{told}  repeat the command\n")
    assert collide("batch run B").err == ""


@pytest.mark.usefixtures("in_process")
def test_a_bad_recording_does_not_stop_the_others(jobs, collide):
    (jobs / "demos" / "junk.h5").write_bytes(b"junk")
    write_motion(jobs / "demos" / "nan.h5", 5)
    with h5py.File(jobs / "demos" / "nan.h5", "a") as file:
        file["body_q"][3, 0, 0, 1] = float("nan")
    plan(collide)
    quiet = collide("batch work B --slot 0/1 --quiet")
    assert (quiet.code, quiet.out, "2 of 8 episodes failed" in quiet.err) == (1, "", True)
    state = collide.result("batch work B --slot 0/1", code=1)
    assert (state["done"], state["failed"], state["left"], state["computed"]) == (6, 2, 0, 0)
    assert {failure["exit_code"] for failure in state["failures"]} == {2}
    said = {Path(failure["motion"]).name: failure["message"] for failure in state["failures"]}
    assert ("not a recording" in said["junk.h5"], said["junk.h5"].count("junk.h5")) == (True, 1)
    assert "frame 3" in said["nan.h5"]
    write_motion(jobs / "demos" / "nan.h5", 13)
    assert collide("batch work B --slot 0/1").code == 1
    state = collide.result("batch run B --retry-failed --workers 1", code=1)
    assert (state["computed"], state["failed"]) == (0, 2), "its key is that of the earlier content"
    assert any(
        "has changed since the batch was planned" in failure["message"]
        for failure in state["failures"]
    )
    plan(collide, "B", "--force")
    assert collide.result("batch run B --workers 1", code=1)["computed"] == 1
    status = collide("batch status B").out
    assert (status.count("junk.h5"), "worker time" in status) == (1, True), (
        "a recording is named once"
    )
    gathered = collide("batch gather B -o x.parquet")
    assert re.search(r"episodes +7\nfailed +1, without a row", gathered.out)
    assert collide.result("batch gather B -o y.parquet")["failed"] == 1
    write_motion(jobs / "demos" / "junk.h5", 14)
    plan(collide, "B", "--force")
    assert collide.result("batch work B --slot 0/1")["computed"] == 1


@pytest.mark.rest
@pytest.mark.parametrize(
    ("number", "timeout", "attempts", "said"),
    [
        (signal.SIGKILL, None, 3, "ended 3 times (Killed), as for want of memory"),
        (signal.SIGSTOP, 20.0, 1, "after 20 s"),
    ],
)
def test_an_episode_that_kills_or_stops_its_worker_is_quarantined(
    jobs, collide, monkeypatch, number, timeout, attempts, said
):
    made = plan(collide)
    store = open_store("B")
    bad = next(episode for episode in made.episodes if episode.motion.endswith("d3.h5"))
    monkeypatch.setattr("collidecli.verbs.batch.executors.work_shard", KillsOn(bad.key, number))
    reports = []
    by_processes(store, range(made.shard_count), 1, reports.append, timeout)
    (failure,) = store.failures().values()
    assert (failure.key, failure.attempts, failure.exit_code) == (bad.key, attempts, 4)
    assert said in failure.message
    assert set(store.results()) == {episode.key for episode in made.episodes} - {bad.key}
    assert sum(report.done for report in reports) == 5
    assert sum(host["episodes"] for host in collide.result("batch status B")["hosts"]) >= 4


def test_three_workers_killed_before_an_episode_end_the_command_for_a_repetition(
    planned, collide, monkeypatch
):
    killed = MagicMock(side_effect=WorkerKilledError(-signal.SIGKILL))
    monkeypatch.setattr(Slot, "_call", killed)
    said = "3 worker processes ended before an episode of shard 0"
    collide.refused(
        "batch work B --slot 0/1 --workers 1", told=(said, "repeat the command"), code=75
    )
    assert (killed.call_count, open_store("B").failures()) == (3, {})


@pytest.mark.parametrize(("away", "logged"), [(("add",), "stopped"), (("add", "write"), "start")])
def test_an_outage_of_the_store_is_no_attempt_of_the_episode_where_its_log_can_be_ended(
    jobs, collide, monkeypatch, away, logged
):
    """The store goes away as a contact set is made; it answers again before the log ends, or does
    not."""
    pytest.importorskip("fsspec").filesystem("memory").store.clear()
    url = "memory://nightly"
    run = work_module.run
    made = plan(collide, url)

    def last_run(*words, **names):
        result = run(*words, **names)
        for name in away:
            outage.setattr(
                ObjectFiles,
                name,
                MagicMock(side_effect=UnavailableError("the store is not available")),
            )
        return result

    with monkeypatch.context() as outage:
        outage.setattr(work_module, "run", last_run)
        with pytest.raises(UnavailableError):
            work_shard(url, 0)
    ((_, events),) = Store(url).logs()
    assert events[-1]["event"] == logged
    first = made.shard(0)[0].key
    assert list(attempts(Store(url).logs())) == ([first] if logged == "start" else [])
    assert Store(url).failures() == {}
    assert work_shard(url, 0).done == len(made.shard(0))


@pytest.mark.usefixtures("in_process")
def test_attempts_of_processes_that_ended_with_their_parent_count(jobs, collide, monkeypatch):
    """As where the whole container is killed: nobody could record how the process ended."""
    (jobs / "jobs.toml").write_text(
        JOBS.replace("gap = 0.02", 'gap = 0.02, memory-limit = "512MiB"')
    )
    made = plan(collide)
    store = open_store("B")
    limits = []
    real = work_module.run

    def run(request, cache=None):
        limits.append((Path(request.trajectory).name, request.engine.memory_limit >> 20))
        return real(request, cache=cache)

    monkeypatch.setattr(work_module, "run", run)
    bad, stopped = (
        next(one for one in made.episodes if one.motion.endswith(name))
        for name in ("d2.h5", "d4.h5")
    )
    for _ in range(2):
        store.log(store.new_log(bad.shard), {"event": "begin"}, {"event": "start", "key": bad.key})
        store.log(
            store.new_log(bad.shard), {"event": "start", "key": stopped.key}, {"event": "stopped"}
        )
    collide.ok("batch work B --slot 0/1")
    assert limits.pop() == ("d2.h5", 128), "suspects come last, with less memory"
    assert {limit for _, limit in limits} == {512}
    Path(store.result_location(bad.key)).unlink()
    store.log(store.new_log(bad.shard), {"event": "start", "key": bad.key})
    state = collide.result("batch work B --slot 0/1", code=1)
    assert [(one["attempts"], one["exit_code"]) for one in state["failures"]] == [(3, 4)]
    assert collide.result("batch work B --slot 0/1 --retry-failed")["computed"] == 1, (
        "attempts are counted anew"
    )


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "damage",
    [b"", b"\0" * 100, b"{", b"7\n[]\n" + b"[" * 100_000, b'{"event": "done", "key": 1}\n'],
    ids=range(5),
)
@pytest.mark.usefixtures("in_process")
def test_a_damaged_log_stops_nothing(jobs, collide, damage):
    made = plan(collide, "B", "--shard-seconds", "1e-9")
    logs = [Path("B/events/000000/a.jsonl"), Path("B/events/000000.jsonl"), Path("B/events/x.json")]
    logs[0].parent.mkdir(parents=True)
    for log in logs:
        log.write_bytes(damage)
    store = open_store("B")
    store.log(
        "events/000000/a.jsonl", {"event": "done", "key": made.episodes[0].key, "seconds": 2.0}
    )
    assert collide.result("batch status B")["hosts"][0]["episodes"] == 1, (
        "a line after a damaged one"
    )
    assert collide.result("batch work B --slot 0/1")["computed"] == 6
    assert collide.result("batch run B")["done"] == 6


@pytest.mark.usefixtures("in_process")
def test_a_truncated_contact_set_is_computed_again(jobs, collide):
    made = compute(collide)
    whole = dataset(collide, "B")
    paths = [
        Path(open_store("B").result_location(episode.key)) for episode in list(made.episodes)[:3]
    ]
    for verb, sizes in (
        ("run B --workers 1", (0, 40, 3000)),
        ("work B --slot 0/1", (100, None, None)),
    ):
        for path, size in zip(paths, sizes, strict=True):
            os.truncate(path, path.stat().st_size if size is None else size)
        damaged = sum(size is not None for size in sizes)
        assert collide.result("batch status B")["left"] == damaged
        answer = collide(f"batch {verb} --json")
        assert (answer.code, json.loads(answer.out)["computed"]) == (0, damaged)
        assert answer.err.count("is truncated or damaged; its episode is computed again") == damaged
        assert str(paths[0]) in answer.err
    assert dataset(collide, "B") == whole
    for log in Path("B/events").rglob("*.jsonl"):
        log.unlink()
    os.truncate(paths[1], 4000)
    assert collide.result("batch status B")["left"] == 1, "without the log too"


def test_different_contacts_of_one_key_stop_the_batch(jobs, collide):
    compute(collide)
    store = Store("B")
    one, other = sorted(store.results())[:2]
    made = store.new_result(one)
    Path(made).write_bytes(Path(store.result_location(other)).read_bytes())
    with pytest.raises(DifferentContactsError, match=os.uname().nodename):
        store.keep_result(one, made, content_of(made))
    made = store.new_result(one)
    Path(made).write_bytes(Path(store.result_location(one)).read_bytes())
    store.keep_result(one, made, content_of(made))
    assert not Path(made).exists()


def test_keys_depend_on_all_that_changes_contacts(jobs, collide, monkeypatch):
    def keys(options: str = "gap = 0.02") -> frozenset[str]:
        (jobs / "jobs.toml").write_text(JOBS.replace("gap = 0.02", options))
        return frozenset(episode.key for episode in plan(collide, "B", "--force").episodes)

    same = {keys() for _ in range(2)} | {keys('gap = 0.02, broad-phase = "sap", threads = 2')}
    assert len(same) == 1, "options that change no contact change no key"
    found = {*same, keys("gap = 0.03"), keys("gap = 0.02, ignore-particles = true")}
    with monkeypatch.context() as patch:
        patch.setattr(plan_module, "RESULT_EPOCH", 99)
        found.add(keys())
    (jobs / "scene.xml").write_text(
        (jobs / "scene.xml").read_text().replace('size="0.5"', 'size="0.51"')
    )
    found.add(keys())
    assert len(frozenset.union(*found)) == 5 * 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[[job]]\nname = 'a'\nscene = 'scene.xml'\nmotoin = ['x']",
            ("job 1", "'motoin'", "did you mean motion"),
        ),
        (
            "[[job]]\nname = 'a'\nscene = 'scene.xml'\nmotion = ['nothing/*.h5']",
            ("job 'a'", "matches no file"),
        ),
        (JOBS + JOBS, ("two jobs", "'balls'")),
        (JOBS.replace("gap", "gpa"), ("job 'balls'", "no option 'gpa'", "did you mean gap")),
        (JOBS.replace("gap = 0.02", "gap = -1"), ("job 'balls'", "gap")),
        (JOBS.replace("gap = 0.02", "force = true"), ("'force' cannot be set in a job file",)),
        (
            JOBS.replace("gap = 0.02", "engine = 'mujoco'"),
            ("job 'balls'", "'engine' cannot be set in a job file"),
        ),
        (
            JOBS.replace("gap = 0.02", "engine-option = 'multiccd=0'"),
            ("'engine-option' cannot be set", "remove it"),
        ),
        (
            JOBS.replace("gap = 0.02", "engine_python = 'python'"),
            ("'engine_python' cannot be set", "remove it"),
        ),
        (JOBS.replace("gap = 0.02", "gap = true"), ("gap is True",)),
        (JOBS.replace('"cpu"', '"cpY"'), ("jobs.toml: job 'balls', --device", "no device 'cpY'")),
        (JOBS.replace("scene.xml", "gone.xml"), ("job 'balls'", "gone.xml", "there is no scene")),
        ("jobs = 1", ("'jobs'", "[[job]]")),
        (JOBS.replace("[[job]]", "[job]"), ("write [[job]]",)),
        (JOBS.replace('"balls"', '"../balls"'), ("cannot be that of a folder",)),
        ("", ("no job",)),
        ("[[job]", ("not TOML",)),
        ("name = " + "[" * 100_000, ("nested too deep", "jobs.toml")),
        ("[[job]]\nscene = 'scene.xml'", ("no name",)),
        ("[[job]]\nname = 'a'", ("neither a scene nor a motion",)),
    ],
)
def test_a_faulty_job_file_is_refused(jobs, collide, text, words):
    (jobs / "jobs.toml").write_text(text)
    collide.refused("batch run jobs.toml -o B", told=words)


def test_every_option_of_a_job_file_has_a_field_in_the_request():
    """One that has none would be ignored."""
    groups = declarations.OPTION_GROUPS
    names = {field.name for kind in (RunRequest, *groups.values()) for field in fields(kind)}
    assert {option.name for option in job_options().values()} <= names


@pytest.fixture
def planned(jobs, collide) -> Plan:
    """The plan B of jobs.toml."""
    return plan(collide)


test_wrong_words_are_refused = refusals(
    "batch",
    ("status nothing", "no plan"),
    ("run jobs.toml", "is a job file"),
    ("run B --shard-seconds 5", "the shards of the plan in B are of 90 s"),
    ("plan jobs.toml -o B --shard-seconds 5", "the shards of the plan in B are of 90 s"),
    ("run jobs.toml -o N --scheduler-file x --workers 1 --executor dask", "--workers"),
    ("work B --slot 3/3", "not a slot"),
    ("work B --slot x", "not a slot"),
    ("verify B --sample 0%", "not a share"),
    ("verify B", "no contact set"),
    ("gather B -o x.parquet", "have no contact set"),
    ("gather B -o x.csv", "a manifest has the extension .parquet"),
    ("run B --address tcp://127.0.0.1:1", "no effect on processes"),
    ("plan jobs.toml -o scene.xml", "cannot be written", 3),
    needs="planned",
)


def test_a_folder_of_another_plan_is_refused(planned, jobs, collide):
    plan(collide)
    write_motion(jobs / "demos" / "more.h5", 5)
    collide.refused("batch plan jobs.toml -o B", told="other recordings or options", code=3)
    assert len(plan(collide, "B", "--force").episodes) == 7


@pytest.mark.rest
@pytest.mark.usefixtures("in_process")
def test_what_a_killed_worker_leaves_is_removed(jobs, collide):
    made = compute(collide)
    code = """
import os, signal
from collidecli.verbs.batch.store import Store
store = Store("B")
open(store.new_result("0" * 64), "w").close()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert len(list(Path("B").glob("collide_unfinished_*/*.h5"))) == 1
    collide.ok("batch status B")
    Path(open_store("B").result_location(made.episodes[0].key)).unlink()
    collide.ok("batch work B --slot 0/1")
    assert not list(Path("B").glob("collide_*"))
    assert {path.suffix for path in Path("B").rglob("*") if path.is_file()} == {
        ".h5",
        ".jsonl",
        ".parquet",
    }


@pytest.mark.parametrize(
    "report",
    [
        "",
        "{",
        "7",
        "{}",
        "[" * 100_000,
        '{"key": 1}',
        b"\xff",
        '{"key": "a", "job": "b", "more": 1}',
    ],
    ids=range(8),
)
def test_a_damaged_report_of_a_failure_is_named(planned, collide, report):
    Path("B/failed").mkdir()
    Path("B/failed/x.json").write_bytes(report if isinstance(report, bytes) else report.encode())
    collide.refused("batch status B", told="B/failed/x.json: is no report of a failed episode")


def test_a_new_plan_reads_the_recordings_that_have_changed(jobs, collide, monkeypatch):
    read = []
    whole = plan_module.files_sha256
    now = time.time_ns
    monkeypatch.setattr(
        plan_module,
        "files_sha256",
        lambda paths: (read.append(Path(paths[0]).name), whole(paths))[1],
    )
    monkeypatch.setattr(input_files.time, "time_ns", lambda: now() + 2 * input_files.SETTLED_NS)
    first = {episode.motion: episode.key for episode in plan(collide).episodes}
    assert sorted(read) == sorted(path.name for path in Path("demos").iterdir())
    read.clear()
    plan(collide)
    assert {
        episode.motion: episode.key for episode in plan(collide, "B", "--force").episodes
    } == first
    assert read == []
    other = (jobs / "demos/d1.h5").read_bytes()
    before = (jobs / "demos/d0.h5").stat()
    (jobs / "demos/d0.h5").write_bytes(other)
    # its time of change differs nevertheless
    os.utime("demos/d0.h5", ns=(before.st_atime_ns, before.st_mtime_ns))
    keys = {
        Path(episode.motion).name: episode.key for episode in plan(collide, "B", "--force").episodes
    }
    assert (read, keys["d0.h5"]) == (["d0.h5"], keys["d1.h5"])


def test_a_damaged_plan_is_named(planned, collide):
    """Parquet reads most files with a changed byte, with other values."""
    data = Path("B/plan.parquet").read_bytes()
    for at in range(0, len(data), max(1, len(data) // 60)):
        Path("B/plan.parquet").write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        answer = collide("batch status B --json")
        assert answer.code == 0 or "B/plan.parquet: is " in answer.err, (at, answer.err)
        # What nothing reads is a byte of a name or a statistic.
        assert answer.code != 0 or json.loads(answer.out)["left"] == len(LENGTHS)
    Path("B/plan.parquet").write_bytes(data)
    table = parquet.read_table("B/plan.parquet")
    moved = pyarrow.array([f"{path.as_py()}x" for path in table["motion"]])
    parquet.write_table(
        table.set_column(table.column_names.index("motion"), "motion", moved), "B/plan.parquet"
    )
    assert "B/plan.parquet: is damaged: it was changed" in collide("batch status B").err


def test_refused_jobs_leave_no_folder(jobs, collide):
    Path("demos/d0.h5").write_bytes(b"junk")
    Path("scene.xml").write_text("<mujoco><worldbody>")
    collide.refused("batch plan jobs.toml -o B")


def test_a_batch_of_failures_alone_is_gathered_as_no_rows(planned, collide):
    for episode in planned.episodes:
        Store("B").fail(Failure(episode.key, episode.job, episode.motion, "is damaged", 2, "here"))
    assert collide.result("batch gather B -o out.parquet")["episodes"] == 0
    assert parquet.read_table("out.parquet").num_rows == 0


def test_status_lists_the_throughput_of_each_host(jobs, collide):
    made = compute(collide)
    here = os.uname().nodename
    (host,) = collide.result("batch status B")["hosts"]
    assert (host["host"], host["episodes"], host["shards"]) == (here, 6, made.shard_count)
    assert host["processor"]
    assert host["instruction_set"].startswith(os.uname().machine)
    assert host["episodes_per_second"] == pytest.approx(6 / host["seconds"])
    store = open_store("B")
    ((_, events),) = store.logs()
    assert [event["event"] for event in events] == ["begin", *("start", "done") * 6, "end"]
    done = [event for event in events if event["event"] == "done"]
    contents = {event["key"]: event["content_sha256"] for event in done}
    assert dataset_hash(contents) == dataset(collide, "B"), "one shard is the whole data set"
    other = [event | {"host": "other", "seconds": 10 / 6} for event in done]
    store.log(store.new_log(0), *other)
    store.log(store.new_log(0), {**other[0], "host": "of an earlier plan", "key": "0" * 64})
    hosts = {one["host"]: one for one in collide.result("batch status B")["hosts"]}
    assert {name: one["episodes"] for name, one in hosts.items()} == {"other": 6, here: 6}
    assert hosts["other"]["episodes_per_second"] == pytest.approx(0.6)
    assert re.search("episodes/s.*other", collide("batch status B").out, re.DOTALL)


def test_status_watches_until_nothing_is_left(jobs, collide):
    plan(collide, "B", "--shard-seconds", "1e-9")
    worker = threading.Thread(target=lambda: [work_shard("B", shard) for shard in range(6)])
    worker.start()
    state = collide.result("batch status B --watch --interval 0.1")
    assert (state["done"], state["left"]) == (6, 0)
    worker.join()


@pytest.mark.usefixtures("in_process")
def test_the_bar_has_the_episodes_that_are_left(jobs, collide, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    plan(collide, "B", "--shard-seconds", "1e-9")
    work_shard("B", 0)
    seen = []
    bar = MagicMock()
    monkeypatch.setattr(
        "collidecli.pages.progress.batch_progress", lambda _, left: seen.append(dict(left)) or bar
    )
    collide.ok("batch run B --workers 1")
    assert seen == [dict.fromkeys(range(1, 6), 1)]
    assert bar.__enter__().call_args_list == [call(shard, 0) for shard in range(1, 6)], (
        "shards that are left alone"
    )


@pytest.mark.rest
def test_the_bar_counts_each_episode(jobs, collide):
    made = plan(collide, "B", "--shard-seconds", "1e9")
    out = io.StringIO()
    shown = []
    with batch_progress(Console(file=out, force_terminal=True, width=90), {0: 6}) as bar:
        (task,) = bar._bar.tasks

        def begun(shard: int) -> None:
            bar.begun(shard)
            shown.append((task.completed, task.description))

        by_processes(
            Store("B"), range(made.shard_count), 1, lambda report: bar(report.shard, 1), begun=begun
        )
        assert shown == [(done, f"{done} of 6 episodes") for done in range(6)]
        assert (task.completed, task.description) == (6, "6 of 6 episodes, 1 failed")
        bar._bar.update(task.id, completed=3)
        for seconds, is_estimated in ((0.9, False), (1.1, True)):
            task.start_time = task.get_time() - seconds
            assert (bar._bar.columns[-1].render(task).plain != "-:--:--") == is_estimated


@pytest.mark.usefixtures("in_process")
def test_no_process_starts_where_nothing_is_left(jobs, collide, monkeypatch):
    collide.ok("batch run jobs.toml -o B --workers 1")
    monkeypatch.setattr(Slot, "_call", lambda *_: pytest.fail("a process was started"))
    collide.ok("batch run B --workers 1")
    collide.ok("batch work B --slot 0/1")


@pytest.mark.parametrize(("errors", "attempts", "code"), [(1, 0, 0), (2, 0, 0), (3, 3, 1)])
@pytest.mark.usefixtures("in_process")
def test_an_internal_error_is_tried_three_times_with_less_memory(
    jobs, collide, monkeypatch, errors, attempts, code
):
    limits = []
    real = work_module.run

    def run(request, cache=None):
        if request.trajectory.endswith("d2.h5"):
            limits.append(request.engine.memory_limit)
            if len(limits) <= errors:
                raise MemoryError
        return real(request, cache=cache)

    monkeypatch.setattr(work_module, "run", run)
    (jobs / "jobs.toml").write_text(
        JOBS.replace("gap = 0.02", 'gap = 0.02, memory-limit = "512MiB"')
    )
    plan(collide)
    limits.clear()
    assert collide("batch work B --slot 0/1").code == code
    assert [failure.attempts for failure in open_store("B").failures().values()] == [
        attempts
    ] * bool(attempts)
    assert limits == [512 << 20, 256 << 20, 128 << 20][: min(errors + 1, 3)]


@pytest.mark.usefixtures("in_process")
def test_each_demonstration_is_an_episode(jobs, collide):
    """Demonstrations of unequal lengths need no --uneven-demos; one that cannot be used does not
    stop the others."""
    states = falling()
    bad = states.copy()
    bad[3, 2] = float("nan")
    write_demos(jobs / "demos.hdf5", {"demo_0": states, "demo_1": states[:7], "demo_10": bad})
    (jobs / "bad.hdf5").write_bytes(b"junk")
    text = "[[job]]\nname = '{}'\nmotion = ['demos.hdf5'{}]\noptions = {{ gap = 0.2, {} }}\n"
    some = text.format("some", "", "demos = 'demo_0..demo_1', fps = 10")
    (jobs / "jobs.toml").write_text(text.format("lift", ", 'bad.hdf5'", "device = 'cpu'") + some)
    plan(collide)
    state = collide.result("batch work B --slot 0/1", code=1)
    assert (state["done"], state["failed"]) == (4, 2)
    failed = {
        (Path(one["motion"]).name, one["demo"], "demo_10" in one["message"])
        for one in state["failures"]
    }
    assert failed == {("bad.hdf5", "", False), ("demos.hdf5", "demo_10", True)}
    assert "demos.hdf5 demo_10" in collide("batch status B").out
    collide.ok("batch gather B -o all.parquet")
    rows = parquet.read_table("all.parquet").to_pylist()
    named = [(row["job"], row["demo"], row["frames"]) for row in rows]
    assert named == [
        (job, demo, frames)
        for job in ("lift", "some")
        for demo, frames in (("demo_0", 12), ("demo_1", 7))
    ]
    alone = collide.result("run -t demos.hdf5 --demos demo_1 --gap 0.2 --device cpu -o one.h5")
    assert alone["content_sha256"] == rows[1]["content_sha256"]


@pytest.fixture
def two_jobs(here: Path) -> Path:
    """The current folder with jobs.toml: two jobs of three recordings each."""
    return write_jobs(
        here, (5, 6, 7), JOBS + JOBS.replace("balls", "again\\u001b").replace("0.02", "0.03")
    )


def test_plan_shows_what_it_does(two_jobs, collide, monkeypatch):
    bar = MagicMock()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("collidecli.pages.progress.frame_progress", bar)
    plan(collide)
    seen = [
        (*args[1:],) if name == "" else args
        for name, args, _ in bar.mock_calls
        if name in ("", "().__enter__()")
    ]
    assert seen == [
        ("hashing", "reading scenes", "recordings"),
        *((number, 6) for number in range(1, 7)),
        ("estimating job balls", "", "frames"),
        ("estimating job again\\x1b", "", "frames"),
    ]


def test_the_time_of_a_host_is_readable_for_batches_of_any_length(here, collide):
    write_jobs(here, (5,))
    (episode,) = plan(collide).episodes
    for host, spent in (("a", 5.7168), ("b", 3599.0), ("c", 5400.0)):
        Store("B").log(
            Store("B").new_log(0),
            {"event": "done", "host": host, "key": episode.key, "seconds": spent},
        )
    shown = collide("batch status B").out
    assert all(words in shown for words in ("5.72 s", "3599 s", "1.50 h"))


@pytest.mark.usefixtures("in_process")
def test_a_command_says_what_it_computed(two_jobs, collide):
    plan(collide)
    assert "computed now" not in collide("batch status B").out
    for computed in (6, 0):
        assert collide.result("batch work B --slot 0/1")["computed"] == computed
    answer = collide("batch work B --slot 7/8")
    assert re.search(r"computed now +0", answer.out)
    assert "slot 7/8 has no shard: the plan has 2" in answer.err


def test_a_watcher_waits_for_the_plan(two_jobs, collide):
    compute(collide, "A")
    planner = threading.Timer(0.5, lambda: Path("A").rename("B"))
    planner.start()
    state = collide("batch status B --watch --interval 0.1 --json")
    assert json.loads(state.out)["left"] == 0
    assert "waiting for it" in state.err


def test_warnings_of_runs_are_counted(here, collide):
    write_jobs(here, (5, 6, 7))
    with h5py.File(here / "demos" / "d1.h5", "a") as file:
        file["mocap_q"] = np.zeros((len(file["time"]), 1, 0, 7))
    compute(collide)
    missing, mocap = collide.result("batch status B")["run_warnings"]
    said = "/mocap_q is ignored: it applies to /joint_q only"
    assert mocap == {"message": said, "episodes": 1, "motion": str(here / "demos" / "d1.h5")}
    assert (missing["episodes"], "far" in missing["message"]) == (3, True)
    assert missing["motion"].startswith(str(here / "demos"))
    shown = collide("batch status B")
    assert (bool(re.search(r"3 +.*far", shown.out)), shown.err) == (True, "")


COUNT = 12


def mount(*words: str) -> bool:
    """Whether the command mount has done it: a user without that right cannot."""
    return (
        subprocess.run(
            ["mount", "-t", "tmpfs", *words], stderr=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    )


@pytest.fixture
def small(here: Path):
    """A file system of its own in the folder small, with too little space for the batch of
    jobs.toml."""
    write_jobs(here, range(5, 5 + COUNT))
    (here / "small").mkdir()
    if shutil.which("mount") is None or not mount("-o", "size=500k", "tmpfs", "small"):
        pytest.skip("no file system can be mounted")
    yield here / "small"
    subprocess.run(["umount", "-l", "small"], cwd=here, check=True)


@pytest.mark.rest
def test_a_full_disk_ends_a_batch_which_goes_on_where_there_is_space(small, collide, request):
    compute(collide, "whole")
    collide.ok("batch plan jobs.toml -o small/B --shard-seconds 1e-9")
    full = collide("batch run small/B --workers 2")
    assert (full.code, "no space left" in full.err, "Traceback" in full.err) == (3, True, False)
    kept = list(open_store("small/B").results())
    assert 0 < len(kept) < COUNT
    assert mount("-o", "remount,size=20m", "tmpfs", "small")
    request.getfixturevalue("in_process")
    collide.ok("batch work small/B --slot 0/1")
    assert dataset(collide, "small/B") == dataset(collide, "whole")
    assert not list(Path("small/B").rglob("*.partial")), "of the other worker, which was ended"
