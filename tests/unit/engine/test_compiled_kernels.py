"""Which kernels a pipeline compiles and when, what primitives do not pay for, and the kernels in
the package."""

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

from collidecli.engine import pipeline_build
from collidecli.engine.cells import PoseBatch
from collidecli.engine.narrowphase import narrow_phase
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.pipeline_build import build_pipeline, find_device
from collidecli.engine.runtime.carried_kernels import carried_folder
from collidecli.engine.runtime.warp_internals import has_v3
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions
from tests.support.engine_runs import contacts_of

MEMORY = 1 << 26


def scene() -> tuple[Model, np.ndarray]:
    """Two spheres that touch, two boxes apart, a cylinder that touches a box in the second of two
    frames."""
    builder = ModelBuilder()
    for _ in range(2):
        builder.add_shape_sphere(builder.add_body(), radius=0.5)
    for _ in range(2):
        builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.5, hz=0.5)
    builder.add_shape_cylinder(builder.add_body(), radius=0.5, half_height=0.5)
    poses = np.zeros((2, 1, 5, 7))
    poses[..., 6] = 1.0
    poses[..., 0] = 0.0, 0.9, 5.0, 10.0, 20.0
    poses[1, 0, 4, 0] = 10.9
    return builder.finalize(), poses


def built(on_demand: bool, broad_phase: str = "explicit") -> tuple[CollisionPipeline, np.ndarray]:
    model, poses = scene()
    options = EngineOptions(broad_phase=broad_phase)
    sample = lambda: poses  # noqa: E731
    made = build_pipeline(
        model,
        ContactOptions(),
        options,
        find_device("cpu"),
        sample,
        np.dtype(np.float64),
        None,
        on_demand,
    )
    return made[0], poses


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", "explicit"])
def test_every_kernel_that_is_launched_is_compiled_before(monkeypatch, broad_phase):
    launched = set()
    launch = Workspace.launch

    def noted(self: Workspace, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None:
        launched.add(kernel)
        launch(self, kernel, count, arguments)

    monkeypatch.setattr(Workspace, "launch", noted)
    pipeline, poses = built(False, broad_phase)
    pipeline.collide(PoseBatch(0, 2, 0, poses), Workspace(pipeline.device_model.device, MEMORY))
    assert len(launched) > 8
    assert launched <= set(pipeline.kernels())


def test_colliders_are_compiled_when_they_have_candidates(monkeypatch):
    before = []
    during = []
    monkeypatch.setattr(
        pipeline_build, "load_kernels", lambda kernels, device: before.extend(kernels)
    )
    pipeline, poses = built(True)
    colliders = {
        collider.name: collider.kernel for collider in pipeline.narrow_phase.table.colliders
    }
    assert not set(before) & set(colliders.values())
    assert set(before) | set(colliders.values()) == set(pipeline.kernels())
    load = narrow_phase.load_kernels
    monkeypatch.setattr(
        narrow_phase,
        "is_loaded",
        lambda kernel, device: any(kernel in kernels for kernels in during),
    )
    monkeypatch.setattr(
        narrow_phase,
        "load_kernels",
        lambda kernels, device: (during.append(kernels), load(kernels, device)),
    )
    found = contacts_of(pipeline, poses, chunk=1)
    assert during == [[colliders["sphere_sphere"]], [colliders["convex_convex_gjk"]]]
    expected = contacts_of(built(False)[0], poses)
    np.testing.assert_array_equal(found.distance, expected.distance)
    np.testing.assert_array_equal(found.cell_start, expected.cell_start)
    assert len(expected.distance) > 2


def test_time_of_compilation_is_in_no_stage(monkeypatch):
    pipeline, poses = built(True)
    workspace = Workspace(pipeline.device_model.device, MEMORY)
    pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    monkeypatch.setattr(narrow_phase, "is_loaded", lambda *_: False)
    monkeypatch.setattr(narrow_phase, "load_kernels", lambda *_: (loads.append(1), time.sleep(0.5)))
    loads: list[int] = []
    before = time.perf_counter()
    _, report = pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    elapsed = time.perf_counter() - before
    assert loads
    ((begin, end),) = report.compiling
    assert end - begin >= 0.5
    assert sum(report.seconds.values()) <= elapsed - (end - begin)


# What a scene of primitives does not pay for: kernels of meshes, heightfields, fields and
# reduction.

CODE = """
import sys
import numpy as np
import collidecli
import collidecli.verbs.run.run
builder = collidecli.ModelBuilder()
builder.add_ground_plane()
builder.add_shape_sphere(builder.add_body(), radius=1.0)
builder.add_shape_box(builder.add_body(), hx=1.0, hy=1.0, hz=1.0)
builder.add_shape_cylinder(builder.add_body())
pose = np.zeros((1, 1, 3, 7))
pose[..., 6] = 1.0
assert len(collidecli.collide(builder.finalize(), pose).distance)
parts = [f"collidecli.engine.{name}" for name in (
    "narrowphase.triangles", "narrowphase.sdf", "geometry.signed_distance", "reduction",
    "geometry.clearance", "geometry.mesh_nearest", "narrowphase.sub_pairs",
)]
print("LOADED", [name for name in sys.modules if name.startswith((*parts, "scipy"))])
"""


@pytest.mark.rest
def test_a_scene_of_primitives_imports_no_collider_of_other_shapes():
    """Defining a kernel takes Warp some milliseconds, and there are hundreds of functions."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("LOADED []\n"), done.stdout


UNUSED = (
    "glfw",
    "rich",
    "scipy",
    "pxr",
    "collidecli.importers.mujoco.urdf.spec",
    "collidecli.engine.touching_pairs",
    "collidecli.engine.candidate_rows",
)


def test_a_quiet_run_imports_nothing_that_it_does_not_use(tmp_path):
    """No window library, no tables, no reader of other files, no kernels of other results."""
    code = "import sys; from collidecli.cli.main import main; main(sys.argv[1:])\n"
    code += f"print([name for name in {('mujoco', *UNUSED)} if name in sys.modules])"
    args = [
        "run",
        "samples/02_humanoid/humanoid.xml",
        *f"--frames 0 -o {tmp_path}/x.contacts.h5 --quiet".split(),
    ]
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("['mujoco']\n"), done.stdout


# The kernels that come with the package are those that a fresh compilation of the same sources
# gives, to the byte, but for names of functions: Warp numbers those of one name in the order in
# which it parses them, which threads decide.

BUILD = """
import sys
from collidecli.engine import build_kernels
from collidecli.engine.runtime import carried_kernels
carried_kernels.FOLDER = sys.argv[1]  # an empty one: nothing is copied
build_kernels.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not has_v3(), reason="kernels come for Linux on a processor of x86-64-v3 alone")
def test_the_package_has_what_an_empty_cache_compiles(tmp_path):
    variables = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], env=variables, check=True)
    built = files_of(next(tmp_path.glob("*-linux-x86_64-v3")))
    carried = files_of(Path(carried_folder()))
    objects = [name for name in built if name.endswith(".o")]
    assert len(objects) > 100
    different = [
        name
        for name in objects
        if name in carried and code_of(built[name]) != code_of(carried[name])
    ]
    assert not different
    missing = [name for name in objects if name not in carried]
    assert len(missing) < len(objects) / 2, (
        "most of the carried kernels are of other sources: make kernels"
    )


NAMES = (".strtab", ".symtab")
"""Sections of the names of functions."""


def code_of(content: bytes) -> dict[str, bytes]:
    """The sections of an ELF object, 64 bit and little-endian, by name: code, constants and
    relocations, but no names of functions."""
    assert content[:6] == b"\x7fELF\x02\x01"
    (headers,) = struct.unpack_from("<Q", content, 40)
    size, count, names = struct.unpack_from("<HHH", content, 58)
    sections = [struct.unpack_from("<IIQQQQ", content, headers + size * k) for k in range(count)]
    texts = content[sections[names][4] :]
    found = {}
    for name, kind, _, _, offset, length in sections:
        label = texts[name : texts.index(b"\0", name)].decode()
        if label not in NAMES:
            found[label] = bytes(length) if kind == NO_BITS else content[offset : offset + length]
    return found


NO_BITS = 8
"""Type of a section that is not in the file."""


def with_byte(content: bytes, at: int) -> bytes:
    """The content with another byte at a place."""
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_objects_of_other_code_are_told_apart():
    contents = (path.read_bytes() for path in sorted(Path(carried_folder()).rglob("*.o")))
    content = next(content for content in contents if b"_ZL" in content)
    sections = code_of(content)
    code = content.index(sections[".ltext"])
    assert code_of(with_byte(content, code + len(sections[".ltext"]) // 2)) != sections
    named = with_byte(content, content.rindex(b"_ZL") + 5)
    assert code_of(named) == sections


def files_of(folder: Path) -> dict[str, bytes]:
    """Contents of the files in a folder by their paths."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.skipif(sys.platform != "linux", reason="others name the processor by themselves")
def test_a_run_starts_no_other_process_to_name_the_processor(tmp_path):
    called = tmp_path / "called"
    uname = tmp_path / "uname"
    uname.write_text(f"#!/bin/sh\necho called > {called}\n")
    uname.chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    code = "import sys; from collidecli.cli.main import main; main(sys.argv[1:])"
    args = ["run", "samples/02_humanoid/humanoid.xml", "--frames", "0", "--json", "-o"]
    done = subprocess.run(
        [sys.executable, "-c", code, *args, f"{tmp_path}/x.contacts.h5"],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    assert json.loads(done.stdout)["device"] == "CPU"
    assert not called.exists()
