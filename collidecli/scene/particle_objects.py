"""The table of a contact set's particle objects: loose particles, cables, cloths, soft bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from collidecli.scene.particles import CABLE, CLOTH, EVERY_TEMPLATE, LOOSE, SOFT

if TYPE_CHECKING:
    from collidecli.scene.particles import Particles

OBJECT_KINDS = (LOOSE, CABLE, CLOTH, SOFT)


@dataclass(frozen=True)
class ParticleObjects:
    """The objects that particles of a contact set belong to, in the order of their particles.

    path: of each object. kind: "particles", "cable", "cloth" or "soft". template: int32[O], -1 in
    every world. first_particle, particle_count: int64[O].
    """

    path: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    template: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    first_particle: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    particle_count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of_scene(cls, particles: Particles) -> ParticleObjects:
        """The objects of a scene."""
        first = particles.first.astype(np.int64)
        return cls(
            particles.path,
            particles.kind,
            particles.template.astype(np.int32),
            first[:-1],
            np.diff(first),
        )

    def __len__(self) -> int:
        return len(self.path)

    @property
    def total(self) -> int:
        """Number of particles of all objects."""
        return int(self.particle_count.sum())

    @property
    def meet_each_other(self) -> bool:
        """Whether a world has two cables, cloths or soft bodies. Contacts between them are searched
        with --self-contacts alone."""
        templates = self.template[[kind != LOOSE for kind in self.kind]]
        everywhere = templates == EVERY_TEMPLATE
        _, counts = np.unique(templates[~everywhere], return_counts=True)
        return np.count_nonzero(everywhere) + counts.max(initial=0) > 1

    def of(self, particle: np.ndarray) -> np.ndarray:
        """int64[n]: the object of each particle, which must be one of `total`."""
        return np.searchsorted(self.first_particle + self.particle_count, particle, side="right")

    def faults(self, template_count: int) -> Iterator[tuple[str, int, str]]:
        """(column, row, rule) of the broken rules. template_count: templates of the worlds are
        below it."""
        end = np.concatenate(
            [
                np.zeros(min(1, len(self)), np.int64),
                (self.first_particle + self.particle_count)[:-1],
            ]
        )
        for column, rule, broken in (
            (
                "kind",
                f"is not {', '.join(OBJECT_KINDS[:-1])} or {OBJECT_KINDS[-1]}",
                ~np.isin(self.kind, OBJECT_KINDS),
            ),
            ("particle_count", "is less than 0", self.particle_count < 0),
            (
                "first_particle",
                "is not the end of the object before it",
                self.first_particle != end,
            ),
            ("template", "is below -1", self.template < EVERY_TEMPLATE),
            ("template", "is the template of no world", self.template >= template_count),
        ):
            if broken.any():
                yield column, int(np.argmax(broken)), rule
