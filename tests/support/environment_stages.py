"""Stages of a few environments, changed in a test, and each of their environments by itself."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import re

import numpy as np
from pxr import Sdf, Usd

import collidecli
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import SceneOptions
from tests.support.environments import ENVIRONMENTS, write_environments, write_robot

COUNT = 5
DOUBLE3 = Sdf.ValueTypeNames.Double3
HOW = ("reference", "inherit", "copy")


def env(k: int, below: str = "") -> str:
    return f"{ENVIRONMENTS}/env_{k}{below}"


def stage_writer(folder):
    """Writes a stage of COUNT environments; `change` is given its layer before it is saved."""
    robot = write_robot(folder, links=3)

    def write(change=None, how="copy"):
        path = write_environments(folder, robot, COUNT, how, name=f"{how}.usda")
        if change is not None:
            layer = Sdf.Layer.FindOrOpen(str(path))
            change(layer)
            layer.Save()
        return path

    return write


def load(path, **options):
    builder = ModelBuilder()
    scene = add_usd(builder, path, SceneOptions(**options))
    return scene, builder.finalize()


def flattened_alone(path, root, folder):
    """A file with one environment only, at its place, and all that is outside."""
    flat = Usd.Stage.Open(str(path)).Flatten()
    environments = flat.GetPrimAtPath(ENVIRONMENTS).nameChildren
    for name in list(environments.keys()):
        if name != root.rpartition("/")[2]:
            del environments[name]
    target = folder / f"alone_{root.rpartition('/')[2]}.usda"
    flat.Export(str(target))
    return target


def rows(contacts, model):
    """Contacts in an order that does not depend on that of the shapes: two names, then distance and a point.

    Names are without the environment; the point is that on the shape whose name comes first.
    """
    local = [re.sub(rf"^{ENVIRONMENTS}/[^/]*/", "", path) for path in model.shapes.path]
    names = [(local[a], local[b]) for a, b in zip(contacts.shape0, contacts.shape1, strict=True)]
    swapped = np.array([first > second for first, second in names], bool)
    point = np.where(swapped[:, None], contacts.point1, contacts.point0)
    order = sorted(range(len(names)), key=lambda k: (*sorted(names[k]), *point[k].round(5)))
    return [sorted(names[k]) for k in order], np.concatenate([contacts.distance[:, None], point], axis=1)[order]


def check_against_alone(path, folder, roots=None):
    _, model = load(path)
    together = collidecli.collide(model, device="cpu")
    assert model.world_path == tuple(roots or (env(k) for k in range(COUNT)))
    found = []
    for world, root in enumerate(model.world_path):
        single = load(flattened_alone(path, root, folder), environments="none")[1]
        expected = collidecli.collide(single, device="cpu")
        ours, theirs = rows(together.cell(0, world), model), rows(expected, single)
        assert ours[0] == theirs[0], root
        # Poses are composed in float64 from the first environment's; distance is a float32 column.
        np.testing.assert_allclose(ours[1], theirs[1], rtol=0.0, atol=2e-7)
        found.append(len(ours[0]))
    assert min(found) > 0
    return model, found


def attribute(path, name, value, kind=Sdf.ValueTypeNames.Double):
    def change(layer):
        spec = Sdf.CreatePrimInLayer(layer, path)
        held = spec.attributes.get(name) or Sdf.AttributeSpec(spec, name, kind)
        held.default = value

    return change
