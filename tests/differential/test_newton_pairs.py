"""Who may touch whom, against Newton's own importer of USD: its assets, and a scene of ours for
each filter rule.

Newton's pairs are those of its finalized model, with its resolvers of Newton's and PhysX's
attributes.
"""

import re
from pathlib import Path

import pytest

from collidecli.errors import InputError
from collidecli.importers.usd.scene import UsdImport, add_usd
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from tests.support.filter_scenes import REFUSED, SCENES, newton_assets, newton_facts
from tests.support.usd_scenes import pairs, write_usda

pytestmark = pytest.mark.rest

COMPARED = 30
"""Assets of Newton 1.8 that have colliders, meshes only as hulls; fewer would be a comparison that
is not made."""

ENVIRONMENT = re.compile(r"/World/envs/env_\d+")

OURS = {
    "tests/assets/kamino/basics/box_on_plane.usda": {
        "box_geom plane": (
            "its group filters one that is not there, which pxr's table takes for the first one"
        )
    }
}
"""Pairs that we allow, UsdPhysics too, and Newton does not, with the reason."""


def load(path: Path) -> tuple[UsdImport, Model]:
    builder = ModelBuilder()
    return add_usd(builder, path), builder.finalize()


def our_pairs(model: Model) -> set[frozenset[str]]:
    """By path of the prim: Newton, which makes a mesh's convex parts later, has one shape of it."""
    paths = [path.split("#")[0] for path in model.shapes.path]
    templates = range(int(model.world_template.max()) + 1)
    return {frozenset((paths[a], paths[b])) for t in templates for a, b in allowed_pairs(model, t)}


def last_names(found: set[frozenset[str]]) -> set[str]:
    return {" ".join(sorted(path.rsplit("/", 1)[-1] for path in pair)) for pair in found}


def in_one_environment(found: set[frozenset[str]]) -> set[frozenset[str]]:
    """Pairs without those of two environments, which are two worlds here, one in Newton; all named
    as in the first."""
    kept = set()
    for pair in found:
        environments = {match[0] for path in pair if (match := ENVIRONMENT.match(path))}
        if len(environments) < 2:
            kept.add(frozenset(ENVIRONMENT.sub("/World/envs/env_0", path) for path in pair))
    return kept


@pytest.fixture(scope="module")
def assets() -> dict[str, tuple[Path, Model]]:
    """Newton's assets that we can load, by path in its wheel. The others have no collider, or
    meshes that collide."""
    found = {}
    for path in newton_assets():
        try:
            _, model = load(path)
        except InputError as error:
            said = str(error)
            assert any(
                words in said for words in ("no collider", "Mesh collides as", "type BasisCurves")
            ), said
            continue
        found[path.as_posix().split("/newton/", 1)[1]] = (path, model)
    return found


@pytest.mark.slow
def test_newtons_assets(assets):
    """Equal to the pair, apart from `OURS`: humanoid with 147 pairs, ant, whose self-collision is
    off, and more."""
    newton = newton_facts(path for path, _ in assets.values())
    for name, (path, model) in assets.items():
        ours = our_pairs(model)
        theirs = in_one_environment(newton[path]["pairs"])
        assert not theirs - ours, name
        assert last_names(ours - theirs) == set(OURS.get(name, ())), name
    counts = {
        name: len(our_pairs(assets[name][1]))
        for name in ("examples/assets/humanoid.usda", "examples/assets/ant.usda")
    }
    assert list(counts.values()) == [147, 0]
    assert len(assets) >= COMPARED


def test_rules_in_newton(tmp_path):
    """Each scene of a rule is in Newton as it is here, or as the scene says it differs."""
    newton_assets()
    files = {
        name: write_usda(tmp_path, s.text, name=f"{i}.usda")
        for i, (name, s) in enumerate(SCENES.items())
    }
    newton = newton_facts(files.values())
    for name, scene in SCENES.items():
        facts = newton[files[name]]
        if scene.newton == REFUSED:
            assert "error" in facts, name
            continue
        assert "error" not in facts, (name, facts)
        expected = scene.allowed if scene.newton is None else scene.newton
        assert last_names(facts["pairs"]) == pairs(expected), name
        assert bool(scene.why) == (pairs(expected) != pairs(scene.allowed)), name
