"""Matching of recorded body names to a model's bodies."""

from __future__ import annotations

from collections import Counter

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.environment_names import environment_root, local_path
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.poses import first_worlds, is_identity, shift_between
from collidecli.wording import some_names


def find_bodies(names: list[str], model: Model, where: str) -> dict[int, int]:
    """Index into `names` by row of each named body of the model, rows ascending.

    In a model of several templates a name matches the body of that name in each of them. A body of
    an environment has two names: its path from the environment's root, and its whole path in any
    one environment. Raises InputError for a duplicate name, a name of no body, or whole paths of
    one body in several environments of one template.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"body '{twice[0]}' is named twice", where, "every recorded body needs its own name"
        )
    roots = _roots(model)
    named: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        named.setdefault(local_path(name, roots), []).append(column)
    column_of_body: dict[int, int] = {}
    locals_known = set()
    for row, path in enumerate(model.bodies.path):
        local = local_path(path, roots)
        locals_known.add(local)
        columns = named.get(local, [])
        exact = [column for column in columns if names[column] == path]
        if exact or len(columns) == 1:
            column_of_body[row] = (exact or columns)[0]
    used = set(column_of_body.values())
    left = [name for column, name in enumerate(names) if column not in used]
    several = [name for name in left if local_path(name, roots) in locals_known]
    if several:
        fix = "name it once and record each environment as a world, or run with --environments none"
        raise InputError(
            f"'{several[0]}' and others are one body in several environments of one template",
            where,
            fix,
        )
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        bodies = some_names(model.bodies.path)
        fix = f"its bodies are {bodies}; one renamed there must be renamed in the recording"
        raise InputError(
            f"the scene has no body '{left[0]}'{more}", where, fix if bodies else "it has no bodies"
        )
    return column_of_body


def shift_of_named(
    names: list[str], column_of_body: dict[int, int], model: Model
) -> np.ndarray | None:
    """float64[found, 7]: transform of each body from its recorded world to the first world of its
    template.

    The recorded world of a whole path is the world of its environment, that of another name world
    0. None if all transforms are the identity.
    """
    roots = _roots(model)
    if not column_of_body or not roots:
        return None
    world_of = {path: world for world, path in reversed(list(enumerate(model.world_path)))}
    recorded = [environment_root(names[column], roots) for column in column_of_body.values()]
    start = np.array([world_of.get(root, 0) for root in recorded])
    template = model.bodies.template[list(column_of_body)]
    first_of = dict(
        zip(model.world_template.tolist(), first_worlds(model.world_template).tolist(), strict=True)
    )
    goal = [
        first_of.get(t, s) if t != GLOBAL_TEMPLATE else s
        for t, s in zip(template.tolist(), start, strict=True)
    ]
    shift = shift_between(model.world_pose[goal], model.world_pose[start])
    return None if is_identity(shift).all() else shift


def local_names(model: Model) -> tuple[str, ...]:
    """Path of each body from its environment's root, which bodies of other environments of the
    template share."""
    roots = _roots(model)
    return tuple(local_path(path, roots) for path in model.bodies.path)


def _roots(model: Model) -> frozenset[str]:
    return frozenset(model.world_path) - {""}
