"""Rows of the groups of contact sets beside /rigid_contacts that obey every rule, made up rather than computed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from collidecli.scene.model import Model
from collidecli.scene.tables import GROUPS, OF_STEPS, Column, ContactBlock, ContactGroup, GroupRows
from tests.support.contact_sets import made_up_block, write_contact_set

OF_CELLS = tuple(group for group in GROUPS if group.name not in OF_STEPS)
"""The groups of contacts in a frame."""


def with_groups(block: ContactBlock, model: Model, seed: int = 11, groups: tuple[ContactGroup, ...] = OF_CELLS):
    """The block with rows of `groups`; some cells have none of a group."""
    made = made_up_groups(model, len(block.cell_counts), block.columns["point0"].dtype, seed)
    return replace(block, groups={group.name: made[group.name] for group in groups})


def block_with_groups(
    model: Model,
    frame_count: int,
    float_type: str = "float64",
    seed: int = 5,
    groups: tuple[ContactGroup, ...] = OF_CELLS,
) -> ContactBlock:
    """All cells in one block, with rows of `groups`."""
    return with_groups(made_up_block(model, frame_count, float_type=float_type, seed=seed), model, seed, groups)


def made_up_groups(model: Model, cell_count: int, float_type: np.dtype, seed: int) -> dict[str, GroupRows]:
    rng = np.random.default_rng(seed)
    shape_count = len(model.shapes)
    pairs = np.array([(a, b) for a in range(shape_count) for b in range(a + 1, shape_count)])
    patches = _keys(rng, cell_count, pairs, 3)
    face_counts = rng.integers(0, 4, sum(map(len, patches)))
    faces_of = np.split(face_counts, np.cumsum([len(rows) for rows in patches])[:-1])
    total, (cloth, _) = int(model.particles.first[-1]), np.diff(model.particles.first)
    soft = np.array([(0, p, -1, -1, s, f) for p in range(total) for s in range(shape_count) for f in (-1, 2)])
    triples = [(1, p, p + 1, -1, s, 4) for p in range(cloth - 1) for s in range(shape_count)]
    soft = np.concatenate([soft, triples])
    faces = [(0, p, cloth, cloth + 1, cloth + 2) for p in range(cloth)]
    self_keys = np.array([*faces, *((1, p, p + 1, cloth + 1, cloth + 2) for p in range(cloth - 1))])
    soft_rows, self_rows = _keys(rng, cell_count, soft, 5), _keys(rng, cell_count, self_keys, 2)
    touches = _keys(np.random.default_rng(seed), cell_count, pairs, 3)
    shapes, soft_key, self_key = np.concatenate(patches), np.concatenate(soft_rows), np.concatenate(self_rows)
    given = {
        "hydro_patches": {"shape0": shapes[:, 0], "shape1": shapes[:, 1], "face_count": face_counts},
        "hydro_faces": {"patch": np.repeat(np.arange(len(shapes)), face_counts)},
        "soft_contacts": {
            "kind": soft_key[:, 0], "indices": soft_key[:, 1:4], "shape": soft_key[:, 4], "feature": soft_key[:, 5]
        },
        "self_contacts": {"kind": self_key[:, 0], "indices": self_key[:, 1:5]},
        "touches": dict(zip(("shape0", "shape1"), np.concatenate(touches).T, strict=True)),
    }  # fmt: skip
    swept = _keys(np.random.default_rng(seed + 1), max(0, cell_count - model.world_count), pairs, 2)
    swept += [pairs[:0]] * (cell_count - len(swept))
    pair = np.concatenate(swept)
    given["sweep"] = {"shape0": pair[:, 0], "shape1": pair[:, 1]} | _swept(np.random.default_rng(seed + 2), len(pair))
    of_steps = np.random.default_rng(seed + 3)
    soft_swept = _keys(of_steps, max(0, cell_count - model.world_count), soft[soft[:, 5] >= 0], 4)
    soft_swept += [soft[:0]] * (cell_count - len(soft_swept))
    key = np.concatenate(soft_swept)
    given["soft_sweep"] = {"kind": key[:, 0], "indices": key[:, 1:4], "shape": key[:, 4]} | _swept(of_steps, len(key))
    of_selves = np.random.default_rng(seed + 4)
    self_swept = _keys(of_selves, max(0, cell_count - model.world_count), self_keys, 3)
    self_swept += [self_keys[:0]] * (cell_count - len(self_swept))
    key = np.concatenate(self_swept)
    given["self_sweep"] = {"kind": key[:, 0], "indices": key[:, 1:5]} | _swept(of_selves, len(key), least=1.0)
    counts = {
        "hydro_patches": [len(rows) for rows in patches],
        "hydro_faces": [int(rows.sum()) for rows in faces_of],
        "soft_contacts": [len(rows) for rows in soft_rows],
        "self_contacts": [len(rows) for rows in self_rows],
        "sweep": [len(rows) for rows in swept],
        "soft_sweep": [len(rows) for rows in soft_swept],
        "self_sweep": [len(rows) for rows in self_swept],
        "touches": [len(rows) for rows in touches],
    }
    return {
        group.name: _rows(rng, group, np.array(counts[group.name], np.int64), given[group.name], float_type)
        for group in GROUPS
    }


def _swept(rng: np.random.Generator, count: int, least: float = -np.inf) -> dict[str, np.ndarray]:
    """Columns of rows of steps: some are in contact at the begin of the step, some at its end, some are undecided.

    least: of the least distances [m].
    """
    times = np.sort(np.clip(rng.uniform(-0.5, 1.5, (count, 2)), 0.0, 1.0), axis=1)
    status, found = rng.integers(1, 3, count), np.maximum(rng.normal(size=count), least)
    tunnel = (status == 1) & (times[:, 0] > 0.0) & (times[:, 1] < 1.0)
    return {
        "status": status, "tunnel": tunnel, "enter": times[:, 0],
        "leave": times[:, 1], "least": found, "least_bound": found - rng.uniform(0.0, 1.0, count),
    }  # fmt: skip


def _keys(rng: np.random.Generator, cell_count: int, keys: np.ndarray, most: int) -> list[np.ndarray]:
    """Up to `most` different rows of `keys` for each cell, in ascending order."""
    keys = keys[np.lexsort(keys.T[::-1])]
    return [keys[np.sort(rng.choice(len(keys), rng.integers(0, most + 1), replace=False))] for _ in range(cell_count)]


def _rows(
    rng: np.random.Generator,
    group: ContactGroup,
    counts: np.ndarray,
    given: dict[str, np.ndarray],
    float_type: np.dtype,
) -> GroupRows:
    count = int(counts.sum())

    def values(column: Column, rows: int) -> np.ndarray:
        found = rng.normal(size=(rows, column.width))
        if column.name == "normal":
            found /= np.linalg.norm(found, axis=1, keepdims=True)
        elif column.name == "barycentric":
            found = np.abs(found) / np.abs(found).sum(axis=1, keepdims=True)
        elif column.name in ("area", "pressure", "gradient"):
            found = np.abs(found)
        return (found if column.width > 1 else found[:, 0]).astype(column.dtype_for(float_type))

    if group.name in ("soft_contacts", "soft_sweep"):  # weights of as many particles as the kind has
        held = (given["indices"] >= 0) * rng.uniform(0.1, 1.0, (count, 3))
        given = {**given, "barycentric": held / held.sum(axis=1, keepdims=True)}
    columns = {
        column.name: given[column.name].astype(column.dtype_for(float_type))
        if column.name in given
        else values(column, count)
        for column in group.columns
    }
    lists = {}
    for held in group.lists:
        lengths = rng.integers(3, 7, count)
        lists[held.column.name] = lengths, values(held.column, int(lengths.sum()))
    return GroupRows(counts, columns, lists)


def changed(block, group, column, row, amount):
    """The block with an amount added to one row of a column of a group."""
    rows = block.groups[group]
    values = rows.columns[column].copy()
    values[row] += amount
    other = replace(rows, columns={**rows.columns, column: values})
    return replace(block, groups={**block.groups, group: other})


def differences_from(path: Path, model: Model, collide: Callable[..., Any]):
    """A function that returns (exit code, result, result by group) of diff of `path` and a changed block.

    The changed set is b.h5 in the same folder. collide: calls the command line.
    """

    def call(other: ContactBlock, *options: str, model: Model = model) -> tuple[int, dict, dict]:
        write_contact_set(path.parent / "b.h5", model, other, force=True)
        answer = collide("diff", str(path), str(path.parent / "b.h5"), "--json", *options)
        assert answer.code in (0, 1), answer.err
        result = json.loads(answer.out)
        assert result["equal"] == (answer.code == 0)
        return answer.code, result, {one["name"]: one for one in result["groups"]}

    return call
