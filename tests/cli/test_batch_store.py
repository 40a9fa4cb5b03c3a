"""`collide batch` with an object store: a server of the S3 protocol on this machine."""

from __future__ import annotations

import errno
import os
import socket
import urllib.request
from pathlib import Path
from unittest.mock import Mock

import pyarrow.parquet as parquet
import pytest

from collidecli.batch.store import DifferentContactsError, Failure, Store, content_of, files_at
from collidecli.errors import InputError
from tests.cli.conftest import write_jobs
from tests.support.batches import compute, dataset, plan

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("s3fs")
server = pytest.importorskip("moto.server")
URL = "s3://bucket/nightly"


@pytest.fixture
def endpoint(monkeypatch):
    """The environment of a running server with an empty bucket; yields its address."""
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "user",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    system.mkdir("bucket")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    yield f"http://{host}:{port}"
    running.stop()
    fsspec.get_filesystem_class("s3").clear_instance_cache()


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
    before = dict.fromkeys(Store(URL).files.names("results"))
    events = len(list(Store(URL).logs()))
    assert collide("batch work", URL, "--slot", "0/1").code == 1
    assert dict.fromkeys(Store(URL).files.names("results")) == before
    assert len(list(Store(URL).logs())) == events, "nothing is computed again"
    assert collide.result("batch verify", URL, "--sample", "100%")["checked"] == 3
    assert not list(jobs.glob("s3*/")), "a URL is not a folder"


@pytest.mark.parametrize("location", [URL, "folder", "folder without links", "memory://nightly"])
def test_a_name_keeps_its_first_file(endpoint, here, location, monkeypatch):
    if "without links" in location:  # SMB, gcsfuse
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "Operation not permitted")))
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
    files.write("plan", b"1")
    files.write("plan", b"2")
    assert files.read("plan") == b"2"
    files.remove("results/ab/x.h5")
    files.remove("results/ab/x.h5")
    assert list(files.names("results")) == []
    with pytest.raises(FileNotFoundError):
        files.read("results/ab/x.h5")
    with pytest.raises(FileNotFoundError), files.local("results/ab/x.h5"):
        pass


def test_two_workers_at_once_leave_one_contact_set(endpoint, jobs, collide, monkeypatch):
    """The file appears between the question whether it exists and the upload."""
    compute(collide, URL)
    store = Store(URL)
    first, second = sorted(store.results())[:2]
    monkeypatch.setattr(store.files, "exists", lambda name: False)
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


def test_records_of_failures_and_events(endpoint):
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
    collide.refused(run, "s3://nobucket/run", told=("s3://nobucket/run", "bucket does not exist"), code=3)
    collide.refused(run, "qq://bucket/run", told=("qq://bucket/run", "qq"))
    collide.refused("batch status", URL)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        collide.refused("batch status", URL, told="cannot be read")


def test_a_plan_in_an_object_store_is_read_back(endpoint, jobs, collide):
    there, here = plan(collide, URL), plan(collide)
    assert {one.key for one in there.episodes} == {one.key for one in here.episodes}
    assert there.requests == here.requests
