"""`collide batch` with an object store: a server of the S3 protocol on this machine."""

import errno
import json
import os
import shutil
import socket
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as parquet
import pytest

from collidecli.errors import InputError
from collidecli.storage.files import UnavailableError, files_at
from collidecli.verbs.batch import episode_worker as work_module
from collidecli.verbs.batch.episode_worker import work_shard
from collidecli.verbs.batch.store import DifferentContactsError, Failure, Store, content_of
from tests.cli.conftest import write_jobs, write_motion
from tests.cli.test_recordings import write_demos
from tests.support.batches import URL, compute, dataset, plan
from tests.support.batches import endpoint as endpoint
from tests.support.batches import proxy as proxy

pytestmark = pytest.mark.rest

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("s3fs")
werkzeug_app = pytest.importorskip("moto.moto_server.werkzeug_app")


@pytest.fixture
def requests(monkeypatch) -> list[tuple[str, str]]:
    """Method, and path with query, of each request that a server receives from now on."""
    found: list[tuple[str, str]] = []
    kind = werkzeug_app.DomainDispatcherApplication
    answer = kind.__call__

    def recorded(self, environ, start_response):
        found.append(
            (environ["REQUEST_METHOD"], f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}")
        )
        return answer(self, environ, start_response)

    monkeypatch.setattr(kind, "__call__", recorded)
    return found


@pytest.fixture
def jobs(here: Path) -> Path:
    return write_jobs(here, (12, 5, 9))


@pytest.mark.usefixtures("in_process")
def test_an_object_store_has_the_data_set_of_a_folder(endpoint, jobs, collide):
    compute(collide, "A")
    (jobs / "demos" / "junk.h5").write_bytes(b"junk")
    assert collide("batch run jobs.toml -o", URL, "--workers", "1").code == 1
    state = collide.result("batch status", URL)
    assert (state["done"], state["failed"], state["left"]) == (3, 1, 0)
    assert "not a recording" in state["failures"][0]["message"]
    gathered = collide.result("batch gather", URL, "-o", "s3.parquet")
    assert gathered["dataset_sha256"] == dataset(collide, "A")
    rows = parquet.read_table("s3.parquet").to_pylist()
    assert {row["file"] for row in rows} == {Store(URL).result_location(row["key"]) for row in rows}
    before = set(Store(URL).files.names("results")), len(list(Store(URL).logs()))
    assert collide("batch work", URL, "--slot", "0/1").code == 1
    assert (set(Store(URL).files.names("results")), len(list(Store(URL).logs()))) == before, (
        "nothing is computed again"
    )
    assert collide.result("batch verify", URL, "--sample", "100%")["checked"] == 3
    assert not list(jobs.glob("s3*/")), "a URL is not a folder"


@pytest.mark.usefixtures("in_process")
def test_recordings_in_an_object_store_give_the_data_set_of_their_files(
    endpoint, jobs, collide, requests
):
    """Also demonstrations of one file; what is unchanged is not fetched for another plan, and what
    changes fails."""
    states = np.zeros((4, 27))
    states[:, [4, 11]] = 1.0
    states[:, 3] = 0.9
    states[:, 8] = 9.0
    write_demos(jobs / "demos" / "more.hdf5", {"demo_0": states, "demo_1": states[:3]}, {})
    (jobs / "demos" / "junk.h5").write_bytes(b"junk")
    local = (jobs / "jobs.toml").read_text()
    local += local.replace('"balls"', '"more"').replace("*.h5", "more.hdf5")
    (jobs / "jobs.toml").write_text(local)
    assert collide("batch run jobs.toml -o A --workers 1").code == 1
    system = fsspec.filesystem("s3")
    system.put(str(jobs / "demos"), "bucket/", recursive=True)
    (jobs / "jobs.toml").write_text(local.replace('"demos/', '"s3://bucket/demos/'))
    assert collide("batch run jobs.toml -o B --workers 1").code == 1
    assert dataset(collide, "A") == dataset(collide, "B")
    state = collide.result("batch status B")
    assert (state["done"], state["failed"], state["failures"][0]["motion"]) == (
        5,
        1,
        "s3://bucket/demos/junk.h5",
    )
    assert state["failures"][0]["message"].startswith("s3://bucket/demos/junk.h5: ")
    requests.clear()
    plan(collide, "B", "--force")
    fetched = {
        path
        for method, path in requests
        if method == "GET" and "demos/d" in path and "list-type" not in path
    }
    assert fetched == {"/bucket/demos/d0.h5?"}, (
        "which is timed; hashes are remembered by the state of the objects"
    )
    shutil.rmtree("B/results")
    write_motion(jobs / "demos" / "d0.h5", 7)
    system.put(str(jobs / "demos" / "d0.h5"), "bucket/demos/d0.h5")
    assert collide("batch run B --workers 1").code == 1
    failed = {
        each["motion"]: each["message"] for each in collide.result("batch status B")["failures"]
    }
    assert "has changed since the batch was planned" in failed["s3://bucket/demos/d0.h5"]
    (jobs / "jobs.toml").write_text(local.replace('"demos/', '"s3://bucket/none/'))
    collide.refused("batch plan jobs.toml -o C", told=("'s3://bucket/none/*", "matches no object"))


@pytest.mark.parametrize("location", [URL, "folder", "folder without links", "memory://names"])
def test_a_name_keeps_its_first_file(endpoint, here, location, monkeypatch):
    if "without links" in location:  # SMB, gcsfuse
        monkeypatch.setattr(
            os, "link", Mock(side_effect=OSError(errno.EPERM, "Operation not permitted"))
        )
    files = files_at(location)
    assert (files.exists("results/ab/x.h5"), list(files.names("results"))) == (False, [])
    for content, kept in ((b"one", True), (b"two", False)):
        made = files.new_path("results/ab/x.h5")
        Path(made).write_bytes(content)
        assert files.add("results/ab/x.h5", made) is kept
        assert not Path(made).exists()
    assert files.read("results/ab/x.h5") == b"one"
    with files.local("results/ab/x.h5") as path:
        assert Path(path).read_bytes() == b"one"
    assert list(files.names("results")) == ["results/ab/x.h5"]
    for content in (b"1", b"2"):
        files.write("plan", content)
        files.remove("results/ab/x.h5")
    assert files.read("plan") == b"2"
    assert list(files.names("results")) == []
    with pytest.raises(FileNotFoundError):
        files.read("results/ab/x.h5")
    with pytest.raises(FileNotFoundError), files.local("results/ab/x.h5"):
        pass


def test_requests_of_a_shard(endpoint, here, collide, requests):
    """A conditional PUT for each episode; what else is asked does not depend on the number of
    episodes."""
    write_jobs(here, range(3, 15))
    plan(collide, URL)
    requests.clear()
    work_module._plans.clear()
    assert work_shard(URL, 0).done == 12
    put = [path for method, path in requests if method == "PUT" and "/results/" in path]
    assert len(put) == len(set(put)) == 12
    rest = [one for one in requests if one[1] not in put]
    assert len(rest) <= 10, rest
    assert sum("list-type=2" in path for _, path in rest) == 3, "contact sets, failures, and logs"
    requests.clear()
    assert work_shard(URL, 0).skipped == 12
    assert len(requests) <= 5, requests


def test_a_task_reads_the_logs_of_its_own_shards(endpoint, jobs, collide, requests):
    compute(collide, URL, "--shard-seconds", "1e-9")
    requests.clear()
    collide.ok("batch work", URL, "--slot", "0/2")
    read = [
        path.split("/")[-2:]
        for method, path in requests
        if method == "GET" and ".parquet" not in path
    ]
    assert {folder for folder, name in read if name.endswith(".jsonl?")} == {"000000", "000002"}
    assert not any(name.endswith(".h5?") for _, name in read), (
        "the sizes of contact sets are in the logs"
    )
    requests.clear()
    assert collide.result("batch status", URL)["done"] == 3
    assert sum(".jsonl" in path for _, path in requests) == 3, "one request for each log"


def test_two_workers_at_once_leave_one_contact_set(endpoint, jobs, collide):
    compute(collide, URL)
    store = Store(URL)
    first, second = sorted(store.results())[:2]
    for key, other in ((first, first), (first, second)):
        with store.result(other) as path:
            content = Path(path).read_bytes()
        made = store.new_result(key)
        Path(made).write_bytes(content)
        if key == other:
            store.keep_result(key, made, content_of(made))
        else:
            with pytest.raises(DifferentContactsError):
                store.keep_result(key, made, content_of(made))


def test_records_of_a_batch_are_read_back(endpoint):
    store = Store(URL)
    failure = Failure("k1", "job", "m.h5", "is bad", 2, "host")
    store.fail(failure)
    log = store.new_log(3)
    for key in ("a", "b"):  # another process appends after the first, and within APPEND_SECONDS
        store.log(log, {"event": "start", "key": key})
    Store(URL).log(log, {"event": "killed"}, at_once=True)
    assert store.failures() == {"k1": failure}
    ((name, events),) = store.logs(range(3, 4))
    assert (name, [event["event"] for event in events]) == (log, ["start", "killed"])
    assert not list(store.logs(range(4, 6)))
    store.forget_failure("k1")
    assert not store.has_failure("k1")
    store.files.write("failed/k2.json", b"[" * 100_000)
    with pytest.raises(InputError, match="no report"):
        store.failures()


def test_stores_that_cannot_be_used(endpoint, jobs, collide, monkeypatch):
    run = "batch run jobs.toml -o"
    monkeypatch.setattr(
        "collidecli.verbs.batch.plan.files_sha256", None
    )  # nothing is hashed for a store that is missing
    collide.refused(run, "s3://nobucket/run", told=("s3://nobucket/run", "bucket does not exist"))
    collide.refused(run, "qq://bucket/run", told=("qq://bucket/run", "qq"))
    collide.refused("batch status", URL)


def test_a_short_outage_delays_a_batch(proxy, jobs, collide):
    compute(collide, "A")
    plan(collide, URL)
    proxy.cut()
    began = time.monotonic()
    threading.Timer(3.0, proxy.restore).start()
    assert work_shard(URL, 0).done == 3
    assert time.monotonic() - began >= 3.0
    assert dataset(collide, URL) == dataset(collide, "A")


def test_a_store_that_stays_away_is_no_failure_of_an_episode(proxy, jobs, collide, monkeypatch):
    """The store goes away while an episode is computed, and later before a command begins."""
    plan(collide, URL)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    run = work_module.run

    def last_run(*words, **names):
        result = run(*words, **names)
        proxy.cut()
        return result

    monkeypatch.setattr(work_module, "run", last_run)
    with pytest.raises(UnavailableError):
        work_shard(URL, 0)
    collide.refused(
        "batch work",
        URL,
        "--slot",
        "0/1",
        told=(URL, "not available", "repeat the command"),
        code=75,
    )
    collide.refused("batch status", URL, told="not available", code=75)
    proxy.restore()
    monkeypatch.setattr(work_module, "run", run)
    assert Store(URL).failures() == {}
    assert work_shard(URL, 0).done == 3


def test_an_error_of_rights_or_of_the_address_has_one_attempt(
    proxy, jobs, collide, requests, monkeypatch
):
    plan(collide, URL)
    denied = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": "arn:aws:s3:::bucket/*",
    }
    fsspec.filesystem("s3").call_s3(
        "put_bucket_policy", Bucket="bucket", Policy=json.dumps({"Statement": [denied]})
    )
    requests.clear()
    collide.refused("batch status", URL, told=(URL, "your rights"))
    collide.refused(
        "batch status s3://nobucket/run", told=("s3://nobucket/run", "bucket does not exist")
    )
    assert len(requests) <= 4
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://nowhere.invalid:9")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    lookups = Mock(side_effect=socket.getaddrinfo)
    monkeypatch.setattr("socket.getaddrinfo", lookups)
    collide.refused("batch status", URL, told=(URL, "nowhere.invalid", "address"))
    assert lookups.call_count == 1, "one attempt"


def test_a_plan_in_an_object_store_is_read_back(endpoint, jobs, collide):
    there = plan(collide, URL)
    here = plan(collide)
    assert {one.key for one in there.episodes} == {one.key for one in here.episodes}
    assert there.requests == here.requests
