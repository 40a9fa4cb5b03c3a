"""A real Slurm of one node under a configuration of its own: munged, slurmctld and slurmd."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

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
    """Programs of Slurm and Munge that are not installed. Debian: slurmctld slurmd slurm-client munge."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Slurm:
    """The three daemons, started now and ended by `close`. folder: short, as sockets have short paths."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._folder, self._daemons = folder, []
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
                controller=_free_port(),
                node=_free_port(),
            )
        )
        path = os.pathsep.join([variables["PATH"], "/usr/sbin", "/sbin"])
        self.variables = {**variables, "PATH": path, "SLURM_CONF": str(configuration)}
        files = [f"--{what}={folder}/munge.{ending}" for what, ending in _MUNGE]
        self._start("munged", "--foreground", "--force", f"--key-file={key}", *files)
        self._start("slurmctld", "-D", "-f", str(configuration))
        self._start("slurmd", "-D", "-f", str(configuration), "-N", host)
        end = time.monotonic() + 60
        while "idle" not in self.run("sinfo", "--noheader", "--format=%T", check=False):
            assert time.monotonic() < end, (folder / "slurmctld.log").read_text()
            time.sleep(0.5)

    def _start(self, *words: str) -> None:
        with (self._folder / f"{words[0]}.out").open("wb") as log:
            self._daemons.append(subprocess.Popen(words, env=self.variables, stdout=log, stderr=log))

    def run(self, *words: str, check: bool = True) -> str:
        """Standard output of a program of Slurm."""
        done = subprocess.run(words, env=self.variables, capture_output=True, text=True, timeout=60, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def state(self, job: str) -> list[str]:
        """States of a job, or of the tasks of an array."""
        found = self.run("scontrol", "show", "job", job)
        return [word.removeprefix("JobState=") for word in found.split() if word.startswith("JobState=")]

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
