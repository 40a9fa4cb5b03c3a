"""Matching of the particles of two contact sets: objects by path, particles by their number within
the object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.model_alignment import ShapeDifference, renamed_path
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.particles import EVERY_TEMPLATE

MINUS_ONE = np.array([-1], np.int64)


@dataclass(frozen=True)
class ParticleAlignment:
    """Common numbers of the particle objects and particles of both files.

    names: path of each object number. objects: of A and of B, int64[O]. numbers: of the particles
    of A and of B, int64[P + 1]; the last is -1, of the particle -1.
    """

    names: list[str]
    objects: tuple[np.ndarray, np.ndarray]
    numbers: tuple[np.ndarray, np.ndarray]
    differences: list[ShapeDifference]


def align_particles(
    a: ParticleObjects, b: ParticleObjects, renames: Sequence[tuple[str, str]] = ()
) -> ParticleAlignment:
    """Matches particle objects by path, and compares kind, number of particles, and whether they
    are in every world.

    Objects of one path in different worlds share numbers. renames: (start of a path in A, its
    replacement in B).
    """
    names_a = [renamed_path(path, renames) for path in a.path]
    names_b = list(b.path)
    sizes: dict[str, int] = {}
    for names, objects in ((names_a, a), (names_b, b)):
        for name, count in zip(names, objects.particle_count.tolist(), strict=True):
            sizes[name] = max(sizes.get(name, 0), count)
    first = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    numbers = [
        np.concatenate(
            [
                *(np.arange(n) + first[name] for name, n in zip(names, counts, strict=True)),
                MINUS_ONE,
            ]
        )
        for names, counts in (
            (names_a, a.particle_count.tolist()),
            (names_b, b.particle_count.tolist()),
        )
    ]
    properties = [_properties(names, objects) for names, objects in ((names_a, a), (names_b, b))]
    differences = []
    for name in sizes:
        was, now = (object_names.get(name) for object_names in properties)
        if was is None or now is None:
            kind = "added" if was is None else "removed"
            texts = [
                None if object_names is None else "; ".join(object_names)
                for object_names in (was, now)
            ]
            differences.append(ShapeDifference(kind, name, a=texts[0], b=texts[1]))
        elif was != now:
            differences.append(
                ShapeDifference("changed", name, "particles", "; ".join(was), "; ".join(now))
            )
    row_of = {name: row for row, name in enumerate(sizes)}
    rows = [np.array([row_of[name] for name in names], np.int64) for names in (names_a, names_b)]
    return ParticleAlignment(list(sizes), (rows[0], rows[1]), (numbers[0], numbers[1]), differences)


def _properties(names: Sequence[str], objects: ParticleObjects) -> dict[str, list[str]]:
    """Kind, number of particles and worlds of the objects of each name, as sorted texts."""
    texts_of: dict[str, set[str]] = {}
    for row, name in enumerate(names):
        where = "in every world" if objects.template[row] == EVERY_TEMPLATE else "in its own worlds"
        texts_of.setdefault(name, set()).add(
            f"{objects.kind[row]} of {objects.particle_count[row]}, {where}"
        )
    return {name: sorted(texts) for name, texts in texts_of.items()}
