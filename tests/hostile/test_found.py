"""What hostile inputs brought to light, each with its smallest input: collide must answer, and
answer this."""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.cli.conftest import CommandLine, arrays, collide
from tests.hostile.seeds import PART_USDA, PILE_USDA, ROBOT_XML, assets, usdz
from tests.support.attribute_scenes import SCENES

__all__ = ["collide"]
RUN = ("-o", "out.h5", "--device", "cpu", "--threads", "1", "--quiet", "--force")


@pytest.fixture
def here(tmp_path: Path, collide: CommandLine) -> Path:
    (tmp_path / "robot.xml").write_text(ROBOT)
    (tmp_path / "part.usda").write_text(PART_USDA)
    return tmp_path


def told(collide: CommandLine, *words: str) -> str:
    """The message of a refusal, of one or two lines."""
    message = collide.refused(*words, *(RUN if words[0] == "run" else ()))
    assert len(message.splitlines()) <= 2
    return message


def test_a_package_of_several_layers_runs(here, collide):
    (here / "x").mkdir()
    (here / "pile.usdz").write_bytes(usdz(here / "x"))
    (here / "pile.usda").write_text(PILE_USDA)
    distances = []
    for scene in ("pile.usdz", "pile.usda"):
        collide.ok("run", scene, *RUN)
        distances.append(arrays("out.h5")["rigid_contacts/distance"].tolist())
    assert distances[0] == distances[1] != []


CLOTH = """<mujoco><worldbody>
<flexcomp name="cloth" type="grid" count="4 4 1" spacing="0.1 0.1 0.1" radius="0.01" dim="2" pos="0 0 1"/>
</worldbody></mujoco>"""


def test_a_scene_without_shapes_is_a_good_contact_set(here, collide):
    """A cloth alone can collide, if only with itself."""
    (here / "cloth.xml").write_text(CLOTH)
    collide.ok("run", "cloth.xml", *RUN)
    collide.ok("check", "out.h5", "--quiet")


ROBOT = ROBOT_XML.replace('<include file="part.xml"/>', "")
UNCLOSED = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4".ljust(117) + b"\n"
SCALED = PILE_USDA.replace("translate = (0.3, 0, 0.3)", "scale = (1e308, 1, 1)").replace(
    '["xformOp:translate"]\n        def "block"', '["xformOp:scale"]\n        def "block"'
)
DOUBLED = "#usda 1.0\n" + "".join(
    f'def Xform "a{k + 1}" {{\n'
    + "".join(f'def "{name}" (references = </a{k}>) {{}}\n' for name in "xy")
    + "}\n"
    for k in range(24)
)
ATTRIBUTES_OF = {name: f"#usda 1.0\n{text}" for name, text in SCENES.items()}
REFUSED = {
    **{
        f"a keyframe at {time}": (
            "robot.xml",
            ROBOT.replace('time="1"', f'time="{time}"'),
            "keyframe 1 (''): the time is",
        )
        for time in ("-inf", "nan", "inf")
    },
    "frames at no time": (
        "pile.usda",
        PILE_USDA.replace("timeCodesPerSecond = 10", "timeCodesPerSecond = 5e-324"),
        "time codes over timeCodesPerSecond",
    ),
    "text that is not UTF-8": (
        "pile.usda",
        PILE_USDA.encode().replace(b"</World/Rubber>", b"</World/Rub\xffber>"),
        "",
    ),
    "an axis of its own": (
        "pile.usda",
        PILE_USDA.replace('upAxis = "Z"', 'upAxis = "W"'),
        "upAxis is 'W'\n",
    ),
    "a pose too far off": (
        "pile.usda",
        PILE_USDA.replace("(0.3, 0, 0.3)", "(1e13, 0, 0)"),
        "body '/World/cart': a pose is not finite",
    ),
    "a transform that overflows": (
        "pile.usda",
        PILE_USDA.replace("(0.3, 0, 0.3)", "(1e308, 0, 0)"),
        "",
    ),
    "a scale that overflows": ("pile.usda", SCALED, "a scale beyond 1e+100"),
    "indices that are fractions": (
        "pile.usda",
        ATTRIBUTES_OF["instances"].replace("int[] protoIndices", "float[] protoIndices"),
        "protoIndices has the type float[]\n",
    ),
    "a radius of particles that is a text": (
        "pile.usda",
        ATTRIBUTES_OF["particles"].replace(
            "float[] widths = [0.1, 0.2]", 'custom string collide:particleRadius = "x"'
        ),
        "collide:particleRadius is 'x', and has the type string\n",
    ),
    "references that multiply": ("pile.usda", DOUBLED, "composes to over 2,000,000 prims"),
    "links without end": (
        "robot.urdf",
        '<robot name="r">' + "".join(f'<link name="l{k}"/>' for k in range(50_001)) + "</robot>",
        "the scene has 50,001 bodies",
    ),
    "a header that does not close": (
        "states.npy",
        b"\x93NUMPY\x01\x00" + len(UNCLOSED).to_bytes(2, "little") + UNCLOSED,
        "",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_by_name(here, collide, name):
    file, content, said = REFUSED[name]
    (here / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    message = told(collide, "inspect" if file.endswith("npy") or "UTF-8" in name else "run", file)
    assert message.startswith(f"error: {file}")
    assert said in message


@pytest.mark.filterwarnings("error")
def test_time_codes_that_no_step_can_hold(here, collide):
    (here / "pile.usda").write_text(PILE_USDA.replace("3: (0, 0, 0.1)", "1e300: (0, 0, 0.1)"))
    collide.ok("run", "pile.usda", *RUN)
    assert arrays("out.h5")["time/step"].tolist() == [0, 1, 2]


def test_a_real_crash_is_answered_for(here):
    """MuJoCo 4.0 dies of a scene that attaches itself."""
    asset = '<asset><model name="m" file="ring.xml"/></asset>'
    (here / "ring.xml").write_text(
        f'<mujoco>{asset}<worldbody><attach model="m" prefix="a"/></worldbody></mujoco>'
    )
    command = [sys.executable, "-m", "collidecli.cli.guard", "inspect", "ring.xml"]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "error: ring.xml: reading the scene crashed the library that reads it (SIGSEGV)\n"
    )
    assert len(done.stderr.splitlines()) == 2


def test_an_include_of_a_pipe(here, collide):
    os.mkfifo(here / "pipe.xml")
    (here / "robot.xml").write_text('<mujoco><include file="pipe.xml"/></mujoco>')
    assert "pipe.xml, which is not a regular file" in told(collide, "inspect", "robot.xml")


@pytest.mark.parametrize(
    "how",
    [
        {"data": h5py.Empty("f8")},
        {"shape": (1, 4, 29), "dtype": np.complex128},
        {"shape": (1, 4, 29), "dtype": h5py.string_dtype()},
        {"shape": (1, 4, 29), "dtype": h5py.ref_dtype},
        {"shape": (1, 4, 29), "dtype": np.dtype("V16")},
    ],
    ids=["nothing", "complex", "text", "references", "opaque"],
)
def test_states_that_are_no_numbers(here, collide, how):
    with h5py.File("states.h5", "w") as file:
        file.create_dataset("states", **how)
    with h5py.File("demos.hdf5", "w") as file:
        file.create_dataset("data/demo_0/states", **how)
    with h5py.File("ours.h5", "w") as file:
        file.attrs["format"], file.attrs["format_version"] = (
            "collide-trajectory",
            np.array((1, 0), np.int32),
        )
        file.create_dataset("joint_q", **how)
    for name in ("states.h5", "demos.hdf5", "ours.h5"):
        assert told(collide, "run", "robot.xml", "-t", name).startswith(f"error: {name}")
        assert told(collide, "inspect", name).startswith(f"error: {name}")


@pytest.mark.parametrize(
    "value",
    [np.zeros(1000), "x" * 30_000, "\x1b[2J\n\r", np.bytes_(b"\xff"), 7.5, h5py.Empty("f8")],
)
def test_a_format_of_any_kind(here, collide, value):
    with h5py.File("x.h5", "w") as file:
        file.attrs["format"] = value
        file["body_q"] = np.zeros((1, 1, 1, 7))
    for verb in ("inspect", "check"):
        said = told(collide, verb, "x.h5")
        assert said.startswith("error: x.h5: ")
        assert len(said) < 4000
        assert said.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "text", ["[" * 60_000, "[" * 100_000, '{"sim_args": ' * 20_000, "7", "null", '{"sim_args": 7}']
)
def test_arguments_of_isaac_lab_that_are_none(here, collide, text):
    """The rate is then unknown: --fps is needed to run it, and nothing to inspect it."""
    with h5py.File("isaac.hdf5", "w") as file:
        assets(file)
        file["data"].attrs.create("env_args", text, dtype=h5py.string_dtype())
    assert "--fps" in collide.ok("inspect isaac.hdf5").out
    assert "--fps" in told(collide, "run", "robot.xml", "-t", "isaac.hdf5")
    collide.ok("run", "robot.xml", "-t", "isaac.hdf5", "--fps", "50", *RUN)


@pytest.mark.parametrize("name", ["points", "faceVertexCounts", "holeIndices"])
@pytest.mark.parametrize("value", ["nothing[] {} = [(0, 0, 0)]", "float {} = 1", 'string {} = "x"'])
def test_a_mesh_whose_arrays_are_none(here, collide, name, value):
    lines = {
        "points": "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]",
        "faceVertexCounts": "int[] faceVertexCounts = [3, 3, 3, 3]",
        "holeIndices": "int[] holeIndices = []",
        "": "int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]",
    } | {name: value.format(name)}
    apis = '["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]'
    text = "\n".join(
        ["#usda 1.0", f'def Mesh "m" (prepend apiSchemas = {apis})', "{", *lines.values(), "}", ""]
    )
    (here / "mesh.usda").write_text(text)
    assert told(collide, "run", "mesh.usda").startswith("error: mesh.usda </m>: ")


def test_attributes_of_a_contact_set_to_merge_that_cannot_be_listed(here, collide):
    """An attribute's name that ends early: HDF5 opens the file, and says so where attributes are
    gone through."""
    for name in ("first.h5", "second.h5"):
        collide.ok("run", "robot.xml", "-o", name, "--device", "cpu", "--quiet")
    data = (here / "second.h5").read_bytes()
    (here / "second.h5").write_bytes(data.replace(b"candidate_count", b"candi\0ate_count"))
    message = told(collide, "merge", "first.h5", "second.h5", "--worlds", "-o", "out.h5")
    assert "second.h5" in message
