"""`collide batch run --executor dask`: a cluster of processes, parts of which are killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from collidecli.batch.plan import read_plan
from collidecli.batch.store import Store
from tests.cli.conftest import write_jobs, write_motion
from tests.support.batches import Cluster, compute, dataset, free_port, plan, result_count, start, until

pytest.importorskip("distributed")
EPISODES = 16


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def batch(here: Path, collide) -> str:
    """The folder of a planned batch with a shard per recording."""
    write_jobs(here, range(5, 5 + EPISODES))
    plan(collide, "B", "--shard-seconds", "1e-9")
    return "B"


@pytest.fixture
def undisturbed(batch: str, collide) -> str:
    """Hash of the data set that one process computes."""
    compute(collide, "A")
    return dataset(collide, "A")


def on(cluster: Cluster) -> tuple[str, ...]:
    """Words of a run on a cluster."""
    return "batch", "run", "B", "--executor", "dask", "--scheduler-file", str(cluster.file), "--json"


def test_two_workers_give_the_data_set_of_one_process(cluster, batch, undisturbed, collide):
    answer = collide(*on(cluster))
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out)["done"] == EPISODES
    assert dataset(collide, "B") == undisturbed
    assert cluster.dashboard("/health") == "ok"
    pytest.importorskip("bokeh")
    assert "Dask" in cluster.dashboard()


@pytest.mark.slow
def test_a_local_cluster_is_started_without_an_address(batch, undisturbed, collide):
    answer = collide("batch run B --executor dask --workers 2 --json")
    assert (answer.code, answer.err) == (0, "")
    assert dataset(collide, "B") == undisturbed


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


def test_dask_prints_nothing_where_no_scheduler_answers(batch):
    begin = time.monotonic()
    running = start("batch", "run", batch, "--executor", "dask", "--address", f"tcp://127.0.0.1:{free_port()}")
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (2, b"")
    assert "no Dask scheduler responds" in err.decode()
    assert len(err.decode().splitlines()) == 2, err.decode()
    assert time.monotonic() - begin < 30


@pytest.mark.slow
def test_a_server_that_is_no_scheduler_gives_one_message(batch):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        running = start("batch", "run", batch, "--executor", "dask", "--address", address)
        _, err = running.communicate(timeout=90)
    assert running.returncode == 2
    assert len(err.decode().splitlines()) == 2, err.decode()
    assert "no Dask scheduler responds" in err.decode()


def finished(running) -> dict:
    """The result of a run that must end with exit code 0 and without a message."""
    out, err = running.communicate(timeout=300)
    assert (running.returncode, err.decode()) == (0, "")
    return json.loads(out)


@pytest.mark.slow
def test_killed_workers_and_their_children_lose_nothing(cluster, batch, undisturbed, collide):
    running = start(*on(cluster))
    until(lambda: result_count(batch) > 1)
    cluster.workers[0].kill()  # the nanny; its worker ends with it
    until(lambda: result_count(batch) > 5)
    for count in (7, 10):
        cluster.worker_children()[-1].kill()
        until(lambda wanted=count: result_count(batch) > wanted)
    assert finished(running)["done"] == EPISODES
    assert dataset(collide, batch) == undisturbed


@pytest.mark.slow
def test_a_killed_scheduler_is_one_message_and_the_batch_can_be_resumed(cluster, batch, undisturbed, collide, tmp_path):
    running = start(*on(cluster))
    until(lambda: result_count(batch) > 1)
    cluster.scheduler.kill()
    out, err = running.communicate(timeout=90)
    assert running.returncode == 75, err.decode()
    assert json.loads(out)["error"]["exit_code"] == 75
    assert len(err.decode().splitlines()) == 2, err.decode()
    assert "scheduler" in err.decode()
    (tmp_path / "again").mkdir()
    another = Cluster(tmp_path / "again", workers=1)
    try:
        assert finished(start(*on(another)))["done"] == EPISODES
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
    assert result_count(batch) == count < EPISODES
    assert finished(start(*on(cluster)))["done"] == EPISODES
    assert dataset(collide, batch) == undisturbed


@pytest.mark.slow
def test_an_episode_that_kills_its_process_is_quarantined_and_bad_input_is_not_repeated(cluster, batch, collide):
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
    said = {Path(failure["motion"]).name: failure for failure in state["failures"]}
    assert said["d5.h5"]["exit_code"] == 2
    assert said["d5.h5"]["attempts"] == 1
    assert (said["d3.h5"]["exit_code"], said["d3.h5"]["attempts"]) == (4, 3)
    assert state["done"] == EPISODES - 2
