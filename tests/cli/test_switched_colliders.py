"""Colliders of USD that are enabled and disabled over time: contacts of each frame, held against
stages of one frame."""

import numpy as np
import pytest
from pxr import Usd, UsdPhysics

import collidecli
from collidecli.errors import InputError
from tests.cli.conftest import arrays, attributes
from tests.support.usd_scenes import at, moving, sphere, write_usda

HEADER = 'metersPerUnit = 1\nupAxis = "Z"\ntimeCodesPerSecond = 10'
SAMPLED = "bool physics:collisionEnabled.timeSamples = {{ {} }}\n"
SWITCHED = {"a": "1: 0, 4: 1, 6: 0", "b": "2: 1, 5: 0", "c": "3: 0, 9: 1"}
CODES = [0, 1, 2, 3, 4, 5, 6, 9, 10]
FRAMES = range(9)
TABLES = ("rigid_contacts", "touches", "candidates", "hydro_faces", "hydro_patches")


def balls(inside=lambda name: ""):
    """Four balls of radius 1 that overlap each other, of which one moves."""
    text = "".join(
        sphere(name, at(0.3 * k, 0, 0) + inside(name)) for k, name in enumerate(("a", "b", "c"))
    )
    return text + sphere("d", moving("0: (0, 0.5, 0), 10: (0, 1.5, 0)"))


def worlds(text):
    """Two environments with the content."""
    return (
        f'def Xform "World" {{\ndef Xform "envs" {{\ndef Xform "env_0" {{\n{text}}}\n'
        f'def Xform "env_1" (inherits = </World/envs/env_0>) {{\n{at(0, 50, 0)}}}\n}}\n}}\n'
    )


@pytest.fixture
def stages(here):
    write_usda(here, balls(lambda name: SAMPLED.format(SWITCHED[name])), HEADER, "sw.usda")
    # a body without a collider has a sample at each time, so that both have the same frames
    times = ", ".join(f"{code}: (9, 9, 9)" for code in CODES)
    always = (
        balls()
        + f'def Xform "clock" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{\n{moving(times)}}}\n'
    )
    write_usda(here, always, HEADER, "always.usda")
    return here


def enabled(file, frame):
    """Names of the balls that pxr finds enabled at a frame's time code."""
    stage = Usd.Stage.Open(str(file))
    prims = {name: stage.GetPrimAtPath(f"/{name}") for name in "abcd"}
    return {
        name
        for name, prim in prims.items()
        if UsdPhysics.CollisionAPI(prim).GetCollisionEnabledAttr().Get(CODES[frame])
    }


def rows(found, table, frames=FRAMES):
    """{(frame, shape, shape): distances} of a table, by names."""
    path = found["model/shape/path"]
    result = {}
    counts = np.diff(found[f"{table}/cell_start"])
    cell = np.repeat(np.arange(len(counts)), counts)
    values = found.get(f"{table}/distance", np.zeros(len(cell)))
    for k, where in enumerate(cell.tolist()):
        names = (path[found[f"{table}/{side}"][k]].strip("/") for side in ("shape0", "shape1"))
        result.setdefault((frames[where], *sorted(names)), []).append(float(values[k]))
    return result


def test_each_frame_has_the_contacts_of_its_colliders(stages, collide):
    collide.ok("run always.usda -o always.h5 --device cpu")
    answer = collide.ok("run sw.usda -o sw.h5 --device cpu")
    assert "warning: </a> and 2 more: physics:collisionEnabled changes over time" in answer.err
    every, found = arrays("always.h5"), arrays("sw.h5")
    assert found["time/time"].tolist() == [code / 10 for code in CODES]
    kept = {
        key: values
        for key, values in rows(every, "rigid_contacts").items()
        if set(key[1:]) <= enabled("sw.usda", key[0])
    }
    assert rows(found, "rigid_contacts") == kept
    assert 0 < len(kept) < len(rows(every, "rigid_contacts"))
    assert {"".join(key[1:]) for key in kept} == {"ab", "ad", "bd", "cd"}


@pytest.mark.parametrize(
    "options", ["--broad-phase nxn", "--broad-phase sap", "--chunk-cells 1", "--threads 1"]
)
def test_contacts_are_the_same_however_they_are_found(stages, collide, options):
    collide.ok("run sw.usda -o a.h5 --device cpu")
    collide.ok("run sw.usda -o b.h5 --device cpu", *options.split())
    assert attributes("a.h5")["content_sha256"] == attributes("b.h5")["content_sha256"]


@pytest.mark.parametrize(
    "options", ["--touch-only", "--candidates-only", "--hydro all --hydro-surface"]
)
def test_every_table_is_by_frames(stages, collide, options):
    more = (
        "--device",
        "cpu",
        *options.split(),
        *(["--hydro-resolution", "8"] if "hydro" in options else ()),
    )
    found = {}
    for name in ("always", "sw"):
        collide.ok(f"run {name}.usda -o {name}.h5", *more)
        found[name] = arrays(f"{name}.h5")
    collide.ok("check sw.h5")
    of_pairs = {"--touch-only": "touches", "--candidates-only": "candidates"}
    table = of_pairs.get(options, "hydro_patches")
    if f"{table}/shape0" not in found["sw"]:
        table = "rigid_contacts"
    counts = {
        key: len(values)
        for key, values in rows(found["always"], table).items()
        if set(key[1:]) <= enabled("sw.usda", key[0])
    }
    assert counts
    assert {key: len(values) for key, values in rows(found["sw"], table).items()} == counts


def test_selected_frames_have_their_own_colliders(stages, collide):
    collide.ok("run sw.usda -o all.h5 --device cpu")
    collide.ok("run sw.usda -o some.h5 --device cpu --frames 1::3")
    frames = range(len(CODES))[1::3]
    every = rows(arrays("all.h5"), "rigid_contacts")
    expected = {key: values for key, values in every.items() if key[0] in frames}
    assert rows(arrays("some.h5"), "rigid_contacts", frames) == expected


def test_environments_have_their_colliders_by_frames(stages, collide):
    text = worlds(balls(lambda name: SAMPLED.format(SWITCHED[name])))
    write_usda(stages, text, HEADER, "envs.usda")
    collide.ok("run sw.usda -o one.h5 --device cpu")
    collide.ok("run envs.usda -o two.h5 --device cpu")
    one, two = arrays("one.h5"), arrays("two.h5")
    assert len(two["rigid_contacts/distance"]) == 2 * len(one["rigid_contacts/distance"])


def test_a_value_block_is_the_fallback_of_the_schema(here, collide):
    blocked = "bool physics:collisionEnabled = 0\n" + SAMPLED.format("1: 0, 4: None, 6: 0, 9: None")
    once = "bool physics:collisionEnabled = 0\n" + SAMPLED.format("3: None")
    times = ", ".join(f"{code}: (0, 0.5, 0)" for code in CODES)
    balls_of = sphere("a", blocked) + sphere("b", once) + sphere("d", moving(times))
    write_usda(here, balls_of, HEADER, "blocked.usda")
    stage = Usd.Stage.Open("blocked.usda")

    def of_pxr(name, code):
        prim = stage.GetPrimAtPath(f"/{name}")
        value = UsdPhysics.CollisionAPI(prim).GetCollisionEnabledAttr().Get(code)
        fallback = prim.GetPrimDefinition().GetAttributeFallbackValue("physics:collisionEnabled")
        return fallback if value is None else value

    expected = {
        (frame, *pair)
        for frame, code in enumerate(CODES)
        for pair in (("a", "b"), ("a", "d"), ("b", "d"))
        if all(of_pxr(name, code) for name in pair)
    }
    assert (CODES.index(4), "a", "d") in expected
    collide.ok("run blocked.usda -o out.h5 --device cpu")
    assert set(rows(arrays("out.h5"), "rigid_contacts")) == expected


def test_who_takes_no_colliders_by_frames_refuses_them(stages, collide):
    for words in (
        "clearance sw.usda",
        "run sw.usda --sweep -o x.h5",
        "run sw.usda always.usda -o x.h5",
    ):
        collide.refused(words, told="physics:collisionEnabled of </a> changes over time")
    collide.ok("traj convert always.usda --scene always.usda -o poses.h5")
    collide.refused("run sw.usda -t poses.h5 -o x.h5", told="a recording has frames of its own")
    with pytest.raises(InputError, match="a model has no frames"):
        collidecli.ModelBuilder().add_usd("sw.usda")
