"""The manifests of samples/07_cluster/kubernetes: Kubernetes' own schema, and command lines that `collide` accepts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from collidecli.cli.batch import verb
from tests.support.batches import REPOSITORY

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
    assert {mount["name"] for mount in held["volumeMounts"]} <= {volume["name"] for volume in spec["volumes"]}


def test_the_slots_are_the_completions():
    spec, held = read(FOLDER / "work.yaml")["spec"], container(FOLDER / "work.yaml")
    values = {one["name"]: one.get("value") for one in held["env"]}
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == spec["maxFailedIndexes"] == int(values["SLOTS"])
    assert held["args"][held["args"].index("--workers") + 1] == held["resources"]["limits"]["cpu"]
    (rule,) = (rule for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex")
    assert rule["onExitCodes"]["values"] == [1, 2, 3], "exit codes that a repetition would give again"


@pytest.mark.slow
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_manifests_follow_the_schema_of_kubernetes(path):
    validate = pytest.importorskip("kubernetes_validate")
    validate.validate(read(path), "1.30", strict=True)
    broken = read(path)
    broken["spec"]["nonsense"] = 1
    with pytest.raises(validate.ValidationError):
        validate.validate(broken, "1.30", strict=True)
