"""Every table of a scene in another unit of length is the same to the last bit.

Lengths times a power of two are exact in floating point, and so is all that is computed of them,
unless a tolerance or a limit is a length of its own. What holds at one size then holds from 1 mm to
1 km.
"""

from itertools import chain

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import RIGID_CONTACTS, TABLES_BY_NAME
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.property.test_agreement import CLASSES
from tests.support.answers import forms, model_of, placed, random_case
from tests.support.engine_runs import MEMORY, pipeline_of
from tests.support.hydroelastic import soft
from tests.support.particle_oracle import overlapping_poses, pressure_solids, solids
from tests.support.swept_motions import OnBody, random_triangles

UNITS = (2.0**-10, 2.0**10)
"""Of scenes of about unit size."""
POWERS = {"": 0, "m": 1, "m^2": 2, "Pa/m": 0, "Pa": 1, "N/m": 2, "N": 3, "N m": 4}
"""Of the unit of length, by a column's unit; a stiffness is in Pa/m."""
PAIRS = 3
CONFIGURATIONS = 6
"""Pairs of each class of shapes, and configurations of each, of which the first one moves."""
DRAWS = 4
"""Of hydroelastic pairs, in which every solid comes up."""
MIDDLE = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def tables_of(
    model,
    poses: np.ndarray,
    unit: float,
    positions: np.ndarray | None = None,
    has_step: np.ndarray | None = None,
    **options,
) -> dict:
    """Values of all columns and lists by (table, name), those of a unit in powers of `unit`.
    options: of contacts."""
    pipeline = pipeline_of(model, poses, ContactOptions(**options).checked())
    cells = len(poses) * model.world_count
    workspace = Workspace(pipeline.device_model.device, MEMORY)
    block, _ = pipeline.collide(PoseBatch(0, cells, 0, poses, positions, has_step), workspace)
    values = {}
    for name, rows in {RIGID_CONTACTS.name: block, **block.groups}.items():
        table = TABLES_BY_NAME[name]
        for column in table.columns:
            if column.name in rows.columns:
                values[name, column.name] = rows.columns[column.name] / np.float32(
                    unit ** POWERS[column.unit]
                )
        for entries in table.lists:
            values[name, f"lengths of {entries.column.name}"], entry = rows.lists[
                entries.column.name
            ]
            values[name, entries.column.name] = entry / unit ** POWERS[entries.column.unit]
        values[name, "cells"] = rows.cell_counts
    return values


def scaled(poses: np.ndarray, unit: float) -> np.ndarray:
    return poses * [unit, unit, unit, 1.0, 1.0, 1.0, 1.0]


def check(scene, tables: set[str]) -> None:
    """scene(unit): the arguments of `tables_of`. tables: those that have rows."""
    small, large = (tables_of(**scene(unit)) for unit in UNITS)
    assert {
        name for (name, column), values in small.items() if column == "cells" and values.any()
    } == tables
    assert small.keys() == large.keys()
    for place, values in small.items():
        np.testing.assert_array_equal(large[place], values, err_msg=str(place))


@pytest.mark.share(5)
@pytest.mark.usefixtures("own_cache")
@pytest.mark.filterwarnings("ignore::UserWarning")  # repairs of the meshes
@pytest.mark.parametrize("name", CLASSES)
def test_moving_pairs_of_shapes(name):
    rng = np.random.default_rng([*name.encode()])
    first, second = (forms()[kind] for kind in CLASSES[name])
    pairs = [
        (first[rng.integers(len(first))], second[rng.integers(len(second))]) for _ in range(PAIRS)
    ]

    def scene(unit: float) -> dict:
        rng = np.random.default_rng(1)
        cases = [random_case(rng, *pair, unit, CONFIGURATIONS) for pair in pairs]
        begin = placed(cases)
        end = begin + scaled(rng.normal(scale=0.2, size=begin.shape), unit)
        end[..., 3:] /= np.linalg.norm(end[..., 3:], axis=-1, keepdims=True)
        moves = np.arange(begin.shape[1]) % CONFIGURATIONS == 0
        end[:, ~moves] = begin[:, ~moves]
        options = {
            "sweep": True,
            "sweep_tolerance": 1e-6 * unit,
            "contact_ids": True,
            "has_step": np.stack([moves] * 2),
        }
        return {
            "model": model_of(cases, 0.1),
            "poses": np.concatenate([begin, end]),
            "unit": unit,
            **options,
        }

    check(scene, {"rigid_contacts", "sweep"})


@pytest.mark.share(4)
@pytest.mark.parametrize("solid", solids(), ids=lambda solid: solid.name)
def test_moving_cloths(solid):
    rng = np.random.default_rng(7)
    count = 24
    body_q, positions = random_triangles(rng, solid, 1.0, count)
    corners = positions.reshape(2, 1, -1, 3) + 0.01 * rng.normal(size=(2, 1, 3 * count, 3))
    radius = rng.uniform(0.0, 0.05, 3 * count)

    def scene(unit: float) -> dict:
        builder = ModelBuilder()
        solid.add(
            OnBody(builder, builder.add_body()), MIDDLE, unit, ShapeConfig(margin=0.02 * unit)
        )
        faces = np.arange(3 * count)
        builder.add_cloth_mesh(
            vertices=unit * corners[0, 0], indices=faces, particle_radius=unit * radius
        )
        model = builder.finalize()
        poses = scaled(body_q, unit)
        lengths = {"sweep_tolerance": 1e-6, "soft_gap": 0.15, "self_contacts": 0.1}
        options = {name: unit * value for name, value in lengths.items()}
        return {
            "model": model,
            "poses": poses,
            "unit": unit,
            "positions": unit * corners,
            "sweep": True,
            **options,
        }

    check(scene, {"soft_contacts", "soft_sweep", "self_contacts", "self_sweep"})


@pytest.mark.share(4)
@pytest.mark.parametrize("draw", range(DRAWS))
def test_hydroelastic_surfaces(draw):
    rng = np.random.default_rng(draw)
    kinds = pressure_solids()
    pairs = [(kinds[rng.integers(len(kinds))], kinds[k]) for k in range(draw, len(kinds), DRAWS)]
    poses = np.concatenate(
        [overlapping_poses(*pair, rng, rng.uniform(0.05, 0.3)) for pair in pairs]
    )
    poses[:, 0] += 20.0 * np.repeat(np.arange(len(pairs)), 2)

    def scene(unit: float) -> dict:
        builder = ModelBuilder()
        for solid in chain(*pairs):
            solid.add(OnBody(builder, builder.add_body()), MIDDLE, unit, soft(1e7))
        options = {"hydro_surface": True, "hydro_reduce": True, "gap": 0.01 * unit}
        return {
            "model": builder.finalize(),
            "poses": scaled(poses, unit)[None, None],
            "unit": unit,
            **options,
        }

    check(scene, {"rigid_contacts", "hydro_patches", "hydro_faces"})
