"""Batches of small recordings, `collide` in its own process, Dask clusters, a Slurm of one node, a
failing network."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from collidecli.verbs.batch import episode_worker as work_module
from collidecli.verbs.batch.episode_worker import work_shard
from collidecli.verbs.batch.episodes import Episode
from collidecli.verbs.batch.log import ShardReport
from collidecli.verbs.batch.plan import Plan, read_plan
from collidecli.verbs.batch.store import Store
from tests.support.waits import PATIENCE, until

JOBS = """
[[job]]
name = "balls"
scene = "scene.xml"
motion = ["demos/*.h5"]
options = { gap = 0.02, device = "cpu" }
"""


def plan(collide: Any, folder: str = "B", *options: str) -> Plan:
    """The plan of jobs.toml. collide: the command line in process."""
    collide.ok("batch plan jobs.toml -o", folder, *options)
    return read_plan(Store(folder))


def compute(collide: Any, folder: str = "B", *options: str) -> Plan:
    """Plans jobs.toml and computes it in this process."""
    made = plan(collide, folder, *options)
    for shard in range(made.shard_count):
        work_shard(folder, shard)
    return made


def dataset(collide: Any, folder: str) -> str:
    """Hash of the data set of a batch."""
    output = f"{os.path.basename(folder) if '://' in folder else folder}.parquet"
    return collide.result("batch gather", folder, "-o", output, "--force")["dataset_sha256"]


COLLIDE = (
    sys.executable,
    "-c",
    "from collidecli.cli.guard import command; raise SystemExit(command())",
)
REPOSITORY = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    """The variables of this process; Python finds what this one finds."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)]),
        **more,
    }


def start(*words: str, **more: str) -> subprocess.Popen[bytes]:
    """`collide` with these words, its output in pipes, as the leader of a process group."""
    return subprocess.Popen(
        [*COLLIDE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**more),
        start_new_session=True,
    )


def write_programs(folder: Path, **texts: str) -> None:
    """Shell scripts that stand in for programs, by name."""
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)


def result_count(folder: str) -> int:
    """Number of contact sets in a batch."""
    return sum(not path.name.startswith(".") for path in Path(folder, "results").rglob("*.h5"))


def command_line(process: psutil.Process) -> str:
    """Command line of a process; "" for one that has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class Cluster:
    """A Dask scheduler with a dashboard, and workers: each a process of its own, ended by
    `close`."""

    def __init__(self, folder: Path, workers: int = 2, threads: int = 1) -> None:
        self.file = folder / "scheduler.json"
        self._folder = folder
        self._processes = []
        self.scheduler = self._start(
            "scheduler", "--scheduler-file", str(self.file), "--host", "127.0.0.1", "--port", "0",
            "--dashboard-address", "127.0.0.1:0",
        )  # fmt: skip
        until(self.file.exists)
        self.workers = [self.add_worker(threads) for _ in range(workers)]

    def add_worker(self, threads: int = 1) -> subprocess.Popen[bytes]:
        """Starts one more worker."""
        return self._start(
            "worker",
            "--scheduler-file",
            str(self.file),
            "--nthreads",
            str(threads),
            "--no-dashboard",
            "--local-directory",
            str(self._folder / "scratch"),
            "--host",
            "127.0.0.1",
        )

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"dask-{words[0]}-{len(self._processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words],
            stdout=log,
            stderr=log,
            env=environment(),
            cwd=self._folder,
        )
        log.close()
        self._processes.append(process)
        return process

    @property
    def address(self) -> str:
        return json.loads(self.file.read_text())["address"]

    def dashboard(self, page: str = "/status") -> str:
        """A page of the scheduler's web server."""
        port = json.loads(self.file.read_text())["services"]["dashboard"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=PATIENCE) as answer:
            return answer.read().decode()

    def worker_children(self) -> list[psutil.Process]:
        """The processes below the workers that compute episodes, or will."""
        found = []
        for worker in self.workers:
            with suppress(psutil.NoSuchProcess):
                found += psutil.Process(worker.pid).children(recursive=True)
        return [child for child in found if "spawn_main" in command_line(child)]

    def close(self) -> None:
        """Ends everything that was started."""
        family = []
        for process in self._processes:
            if process.poll() is None:
                family += psutil.Process(process.pid).children(recursive=True)
                process.send_signal(signal.SIGKILL)
            process.wait()
        for child in family:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue


PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue")
CONFIGURATION = """
ClusterName=collide
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerParameters=sched_interval=1,requeue_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
    """Programs of Slurm and Munge that are not installed. Debian: slurmctld slurmd slurm-client
    munge."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def free_port() -> int:
    """A TCP port that nothing listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Slurm:
    """The three daemons, started now and ended by `close`. folder: short, as sockets have short
    paths."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._folder = folder
        self._daemons = []
        for name in ("state", "spool"):
            (folder / name).mkdir()
        folder.chmod(0o755)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        host = socket.gethostname().split(".")[0]
        configuration = folder / "slurm.conf"
        configuration.write_text(
            CONFIGURATION.format(
                host=host,
                user=os.environ.get("USER") or "root",
                folder=folder,
                controller=free_port(),
                node=free_port(),
            )
        )
        path = os.pathsep.join([variables["PATH"], "/usr/sbin", "/sbin"])
        self.variables = {**variables, "PATH": path, "SLURM_CONF": str(configuration)}
        files = [f"--{what}={folder}/munge.{ending}" for what, ending in _MUNGE]
        self._start("munged", "--foreground", "--force", f"--key-file={key}", *files)
        self._start("slurmctld", "-D", "-f", str(configuration))
        self._start("slurmd", "-D", "-f", str(configuration), "-N", host)
        end = time.monotonic() + PATIENCE
        while "idle" not in self.run("sinfo", "--noheader", "--format=%T", check=False):
            assert time.monotonic() < end, (folder / "slurmctld.log").read_text()
            time.sleep(0.5)

    def _start(self, *words: str) -> None:
        with (self._folder / f"{words[0]}.out").open("wb") as log:
            self._daemons.append(
                subprocess.Popen(words, env=self.variables, stdout=log, stderr=log)
            )

    def run(self, *words: str, check: bool = True) -> str:
        """Standard output of a program of Slurm."""
        done = subprocess.run(
            words, env=self.variables, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def state(self, job: str) -> list[str]:
        """States of a job, or of the tasks of an array."""
        found = self.run("scontrol", "show", "job", job)
        return [
            word.removeprefix("JobState=") for word in found.split() if word.startswith("JobState=")
        ]

    def close(self) -> None:
        """Cancels all jobs and ends the daemons."""
        self.run("scancel", "--state=PENDING", "--user=root", check=False)
        self.run("scancel", "--user=root", check=False)
        time.sleep(1)
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


_MUNGE = (("socket", "sock"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))


class Proxy:
    """Passes the connections of a port of this machine on to another one, until it is cut."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self._connections = target, list[socket.socket]()
        self._listener = self._listening(0)
        self.port = self._listener.getsockname()[1]

    def _listening(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                ours, _ = listener.accept()
                theirs = socket.create_connection(self._target)
                self._connections += (ours, theirs)
                for pair in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while block := source.recv(1 << 16):
                sink.sendall(block)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Ends all connections and refuses new ones."""
        for one in (self._listener, *self._connections):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._connections.clear()

    def restore(self) -> None:
        """Accepts connections again."""
        self._listener = self._listening(self.port)


class KillsOn:
    """`work_shard` whose process gets a signal where the episode with this key begins."""

    def __init__(self, key: str, number: int = signal.SIGKILL) -> None:
        self.key = key
        self.number = number

    def __call__(self, *arguments: Any) -> ShardReport:
        real = work_module.work_episode

        def work_episode(store: Store, plan: Plan, episode: Episode, *others: Any) -> Any:
            if episode.key == self.key:
                os.kill(os.getpid(), self.number)
            return real(store, plan, episode, *others)

        work_module.work_episode = work_episode
        return work_shard(*arguments)


@contextmanager
def two_mounts(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Two mounts of `folder/shared` by bindfs, which keeps locks to each mount. Skips where it
    cannot be mounted."""
    if shutil.which("bindfs") is None:
        pytest.skip("needs the program bindfs (Debian: bindfs)")
    shared, *mounts = (folder / name for name in ("shared", "mount_a", "mount_b"))
    shared.mkdir()
    with ExitStack() as stack:
        for path in mounts:
            path.mkdir()
            if subprocess.run(["bindfs", shared, path], check=False).returncode:
                pytest.skip("bindfs cannot mount")
            stack.callback(subprocess.run, ["umount", "-l", path], check=True)
        yield mounts[0], mounts[1]


URL = "s3://bucket/nightly"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The environment of a running object store with an empty bucket; yields its address."""
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("s3fs")
    running = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    running.start()
    host, port = running.get_host_and_port()
    address = f"http://{host}:{port}"
    keys = {"ACCESS_KEY_ID": "user", "SECRET_ACCESS_KEY": "secret"}
    for name, value in (
        keys | {"DEFAULT_REGION": "us-east-1", "MAX_ATTEMPTS": "1", "ENDPOINT_URL": address}
    ).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    urllib.request.urlopen(
        urllib.request.Request(f"{address}/moto-api/reset", method="POST")
    ).close()
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bucket")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    yield address
    running.stop()
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture
def proxy(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Between the command line and the server; a request has all attempts."""
    host, port = endpoint.removeprefix("http://").split(":")
    made = Proxy((host, int(port)))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{made.port}")
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    pytest.importorskip("fsspec").get_filesystem_class("s3").clear_instance_cache()
    yield made
    made.cut()
