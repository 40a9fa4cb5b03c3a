"""The files of samples/07_cluster/kubernetes: the schema of Kubernetes, command lines of `collide`, and `wait.sh`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from collidecli.cli.batch import verb
from tests.support.batches import REPOSITORY, write_programs

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


JOBS = [path for path in MANIFESTS if read(path)["kind"] == "Job"]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_each_job_is_a_command_of_collide_with_limits(path):
    held = container(path)
    values = {one["name"]: one.get("value", "3") for one in held.get("env", [])}
    words = [VARIABLE.sub(lambda found: values[found[1]], word) for word in held["args"]]
    assert words[0] == "batch"
    command = verb.commands[words[1]]
    command.make_context(path.stem, words[2:])
    assert set(held["resources"]["limits"]) == set(held["resources"]["requests"]) == {"cpu", "memory"}
    spec = read(path)["spec"]["template"]["spec"]
    assert {mount["name"] for mount in held["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
    assert "/tmp" in {mount["mountPath"] for mount in held["volumeMounts"]}
    assert held["image"] == "collide", "which the README replaces by registry, name and tag"
    pod, own = spec["securityContext"], held["securityContext"]
    assert pod["runAsNonRoot"], 'the "restricted" standard of pod security'
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["fsGroupChangePolicy"] == "OnRootMismatch"
    assert own == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def test_the_slots_are_the_completions():
    spec, held = read(FOLDER / "work.yaml")["spec"], container(FOLDER / "work.yaml")
    values = {one["name"]: one.get("value") for one in held["env"]}
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == spec["maxFailedIndexes"] == int(values["SLOTS"])
    assert held["args"][held["args"].index("--workers") + 1] == held["resources"]["limits"]["cpu"]
    (rule,) = (rule for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex")
    assert rule["onExitCodes"]["values"] == [1, 2, 3], "exit codes that a repetition would give again"


def wait(folder: Path, kubectl: str) -> subprocess.CompletedProcess[str]:
    """wait.sh with this `kubectl`, and a `sleep` that counts its calls in `slept`."""
    write_programs(folder, kubectl=kubectl, sleep=f"echo >> {folder}/slept")
    return subprocess.run(
        ["bash", FOLDER / "wait.sh", "collide-work"],
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("conditions", "code"), [("SuccessCriteriaMet Complete", 0), ("FailureTarget Failed", 1), ("Failed", 1)]
)
def test_waiting_ends_when_a_job_has_completed_or_failed(tmp_path, conditions, code):
    """First the server does not answer, then the Job has not ended and its last condition is only announced."""
    slept = tmp_path / "slept"
    done = wait(
        tmp_path,
        f"""case $(cat {slept} 2>/dev/null | wc -l) in
        0) echo refused >&2; exit 1 ;;
        1) echo -n "collide-work  " ;;
        2) echo -n "collide-work FailureTarget " ;;
        *) echo -n "collide-work {conditions} " ;;
        esac""",
    )
    assert (done.returncode, len(slept.read_text().splitlines())) == (code, 3)
    assert done.stderr.startswith("refused")


def test_waiting_for_no_job_is_refused(tmp_path):
    done = wait(tmp_path, "exit 0")
    assert (done.returncode, "collide-work: no Job of this name" in done.stderr) == (2, True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_prints_the_conditions_that_hold(tmp_path):
    job = read(FOLDER / "work.yaml")
    held = {"Suspended": "False", "FailureTarget": "True", "Failed": "True"}
    job["status"] = {"conditions": [{"type": name, "status": state} for name, state in held.items()]}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    template = re.search(r"^true_conditions='(.*)'$", (FOLDER / "wait.sh").read_text(encoding="utf-8"), re.M)
    assert template is not None
    local = ["kubectl", "patch", "--local", "-f", tmp_path / "job.yaml", "--type", "merge", "-p", '{"metadata": {}}']
    done = subprocess.run([*local, "-o", f"jsonpath={template[1]}"], capture_output=True, text=True, check=True)
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
