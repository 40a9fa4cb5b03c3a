"""Attributes of trajectories and profiles are tested at every open (of contact sets: contact_sets/test_check)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.result_files import read_profile, write_json, write_profile_h5
from collidecli.storage.trajectories.check import check_trajectory
from collidecli.storage.trajectories.motion import read_header
from collidecli.storage.trajectories.writer import TrajectoryWriter
from tests.support.contact_edits import made_up

PROFILE: dict[str, Any] = {"schema": "collide.profile/1", "scene": "a.xml", "scene_sha256": "5" * 64, "repeats": 1}
PROFILE |= {"versions": {"numpy": "2"}, "auto": {"choice": "nxn"}, "phases": [{"name": "nxn", "skipped": "too many"}]}


def write_trajectory(path: Path) -> None:
    poses = np.zeros((2, 1, 1, 7))
    poses[..., 6] = 1.0
    with TrajectoryWriter(path, body_names=("a",)) as writer:
        writer.append(np.arange(2.0), np.arange(2), body_q=poses)


def write_profile(path: Path) -> None:
    write_profile_h5(path, PROFILE, False)


def write_contacts(path: Path) -> None:
    made_up().write(path)


def open_contacts(path: Path) -> None:
    ContactSet.open(path).close()


Kind = tuple[Callable[[Path], object], Callable[[Path], object]]
TRAJECTORY: Kind = (write_trajectory, read_header)
PROFILES: Kind = (write_profile, read_profile)
CONTACTS: Kind = (write_contacts, open_contacts)
NOT_UTF8 = b"a\xff"
CASES = [
    (TRAJECTORY, "", "creator", NOT_UTF8, "the root attribute creator is not UTF-8"),
    (TRAJECTORY, "", "creator", 7.5, "the root attribute creator is not a string"),
    (TRAJECTORY, "", "creator", np.bytes_(NOT_UTF8), "the root attribute creator is not UTF-8"),
    (TRAJECTORY, "/time", "unit", "ms", "/time: the attribute unit is 'ms'; known values: 's'"),
    (TRAJECTORY, "/body_q", "unit", "mm", "/body_q: the attribute unit is 'mm'; known values: 'm'"),
    (TRAJECTORY, "/body_q", "unit", 1, "/body_q: the attribute unit is not a string; known values: 'm'"),
    (PROFILES, "", "creator", NOT_UTF8, "the root attribute creator is not UTF-8"),
    (PROFILES, "", "scene", NOT_UTF8, "the root attribute scene is not UTF-8"),
    (PROFILES, "", "scene_sha256", "0" * 64, "the root attribute scene_sha256 is no SHA-256"),
    (PROFILES, "", "scene_sha256", None, "the root attribute scene_sha256 is missing"),
    (PROFILES, "", "versions", "{", "the root attribute versions is not JSON"),
    (PROFILES, "", "versions", "[" * 30_000, "the root attribute versions is not JSON"),
    (PROFILES, "", "auto", "7", "the root attribute auto is no JSON object"),
    (PROFILES, "", "format_version", np.array([2, 0]), "the root attribute format_version is 2.0; this program reads"),
    (PROFILES, "", "format_version", "1.0", "the root attribute format_version is not two integers"),
    (PROFILES, "/compute_seconds", "unit", "ms", "/compute_seconds: the attribute unit is 'ms'"),
    (CONTACTS, "", "scene", NOT_UTF8, "the root attribute scene is not UTF-8"),
]


def refused(path: Path, kind: Kind) -> str:
    with pytest.raises(InputError) as refusal:
        kind[1](path)
    assert refusal.value.where.startswith(str(path))
    assert refusal.value.fix
    return str(refusal.value)


@pytest.mark.parametrize("kind", [TRAJECTORY, PROFILES, CONTACTS])
def test_what_collide_writes_is_good(tmp_path: Path, kind: Kind):
    kind[0](tmp_path / "a.h5")
    kind[1](tmp_path / "a.h5")


@pytest.mark.parametrize(("kind", "path", "name", "value", "message"), CASES)
def test_an_attribute_that_breaks_its_rule_is_refused(tmp_path: Path, kind: Kind, path, name, value, message):
    kind[0](tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        held = file[path or "/"].attrs
        if value is None:
            del held[name]
        elif value is NOT_UTF8:
            held.create(name, value, dtype=h5py.string_dtype())
        else:
            held[name] = value
    assert message in refused(tmp_path / "a.h5", kind)


def test_check_finds_an_attribute_of_a_trajectory(tmp_path: Path):
    write_trajectory(tmp_path / "a.h5")
    assert check_trajectory(tmp_path / "a.h5") == []
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["time"].attrs["unit"] = "ms"
    (found,) = check_trajectory(tmp_path / "a.h5")
    assert str(found) == f"{tmp_path / 'a.h5'}: /time: the attribute unit is 'ms'; known values: 's'"


def test_attributes_of_other_programs_are_accepted(tmp_path: Path):
    """Strings of fixed length, none at all, and unknown ones."""
    write_trajectory(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.attrs["creator"] = np.bytes_("recorder")
        file["time"].attrs["unit"] = np.bytes_("s")
        file.attrs["robot"] = 7
    assert read_header(tmp_path / "a.h5").creator == "recorder"
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        del file.attrs["creator"], file["time"].attrs["unit"]
    assert read_header(tmp_path / "a.h5").creator == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scene_sha256": "zz"}, "the value of scene_sha256 is no SHA-256"),
        ({"scene_sha256": 7}, "the value of scene_sha256 is not a string"),
        ({"scene": None}, "the value of scene is not a string"),
        ({"scene": "\ud800"}, "the value of scene is not UTF-8"),
    ],
)
def test_a_profile_as_json_has_the_rules_of_the_other(tmp_path: Path, change, message):
    write_json(tmp_path / "a.json", PROFILE, False)
    read_profile(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps(PROFILE | change))
    assert message in refused(tmp_path / "a.json", PROFILES)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        *((kind, "/") for kind in (TRAJECTORY, PROFILES, CONTACTS)),
        *((TRAJECTORY, "time"), (PROFILES, "compute_seconds"), (CONTACTS, "rigid_contacts")),
    ],
)
def test_attributes_that_cannot_be_listed_are_refused(tmp_path: Path, kind: Kind, where):
    """The name of an attribute ends early: HDF5 opens the object and fails where its attributes are listed."""
    kind[0](tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file[where].attrs["name_of_no_use"] = 1
    data = (tmp_path / "a.h5").read_bytes()
    assert data.count(b"name_of_no_use\0") == 1
    (tmp_path / "a.h5").write_bytes(data.replace(b"name_of_no_use\0", b"name\0of_no_use\0"))
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(RuntimeError):
        list(file[where].attrs)
    assert "the file is damaged" in refused(tmp_path / "a.h5", kind)
