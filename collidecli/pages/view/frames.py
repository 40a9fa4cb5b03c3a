"""Poses and contacts of the frames of a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from collidecli.numerics.poses import moved_points
from collidecli.pages.view.colours import NO_COLOURS
from collidecli.pages.view.groups import (
    FACES,
    PATCHES,
    SELF,
    depth_of_groups,
    rows_of_cell,
    self_contacts_of,
    surface_scale,
    with_missed_touches,
    with_soft_contacts,
)
from collidecli.pages.view.surfaces import Faces, Surfaces
from collidecli.scene.contact_columns import RIGID_CONTACTS
from collidecli.scene.episodes import shown_name
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion, recorded_particles
from collidecli.storage.contact_sets.readable_rows import (
    check_has_touches,
    check_shape_rows,
    is_touch_set,
)
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading

if TYPE_CHECKING:
    from collidecli.pages.view.contact_map import ViewMap
    from collidecli.pages.view.surfaces import SurfaceScale

COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
AHEAD = 16
"""Number of frames that are read together, as a recording is compressed in chunks of many
frames."""


class ViewFrames:
    """The selected frames of a contact set. number: int64[K], frame numbers. time: float64[K] [s].

    against: name of a second set, whose contacts are drawn too; "" is none.

    model: its shapes from row `shape_count` on are visual geometry, with `visual_colours`, uint8[V,
    3]. surface_scale: of hydroelastic surfaces; None in a contact set without them.
    contact_map: measured distances that colour shapes; None without a map.
    depth_of_groups: greatest depth of the contacts of particles and of touches between frames [m].
    has_particles: whether the scene has some. has_self_contacts: whether the set has contacts of
    cloths and soft bodies with themselves.

    Poses and contacts of a frame index are read in any order.
    """

    def __init__(
        self,
        contacts: ContactSet,
        picked: range,
        model: Model | None = None,
        visual_colours: np.ndarray = NO_COLOURS,
        motion: Motion | None = None,
        frame_of: Sequence[int] | None = None,
        second: ContactSet | None = None,
        against: str = "",
    ) -> None:
        """picked: frames of the set. frame_of: frame of the motion for each of the set. second: a
        set of the same shapes and cells, named `against`.
        """
        for one in filter(None, (contacts, second)):
            check_has_touches(one)
        self.against = against
        self._second = second
        self.number = np.arange(picked.start, picked.stop, picked.step)
        self.time = contacts.time[self.number]
        self.world_count = contacts.world_count
        self.model = model
        self.visual_colours = visual_colours
        self.shape_count = 0 if model is None else len(model.shapes) - len(visual_colours)
        self._contacts = contacts
        self._motion = motion
        self._frame_of = self.number if frame_of is None else np.asarray(frame_of, int)[self.number]
        self._read: dict[int, np.ndarray] = {}
        self.has_particles = model is not None and len(model.particles) > 0
        self.has_self_contacts = SELF in contacts.groups
        self.touch_only = all(one is None or is_touch_set(one) for one in (contacts, second))
        self._positions: dict[int, np.ndarray] = {}
        first, last = (
            (int(self.number.min()), int(self.number.max())) if len(self.number) else (0, -1)
        )
        self._cells = first * self.world_count, (last + 1) * self.world_count
        self.contact_map: ViewMap | None = None
        with reading("contact set", contacts.path):
            self.surface_scale: SurfaceScale | None = surface_scale(contacts, *self._cells)
            self.depth_of_groups = depth_of_groups(contacts, *self._cells)

    def __len__(self) -> int:
        return len(self.number)

    def contacts(self, index: int, world: int) -> dict[str, np.ndarray]:
        """COLUMNS of the contacts of a cell, of the touches that it and the next frame miss, and of
        the contacts of its particles, whose shape1 is the item of their object (`TouchingItems`);
        `second`, bool, is true for those of the second set.
        """
        cell = self._cell(index, world)
        parts = []
        for contacts in (self._contacts, self._second) if self._second else (self._contacts,):
            with reading("contact set", contacts.path):
                block = contacts.cells(cell, cell + 1, COLUMNS)
                check_shape_rows(contacts, block)
                parts.append(
                    with_soft_contacts(
                        contacts, cell, with_missed_touches(contacts, cell, block.columns)
                    )
                )
        joined = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
        return joined | {"second": np.arange(len(joined["distance"])) >= len(parts[0]["distance"])}

    def _cell(self, index: int, world: int) -> int:
        return int(self.number[index]) * self.world_count + world

    def surfaces(self, index: int, world: int) -> Surfaces:
        """The hydroelastic surfaces of a cell, with their faces if the view draws them."""
        with reading("contact set", self._contacts.path):
            tables = rows_of_cell(
                self._contacts,
                (PATCHES, FACES) if self.has_faces else (PATCHES,),
                self._cell(index, world),
            )
            if PATCHES not in tables:
                return Surfaces()
            patches = tables[PATCHES].columns
            pair = np.stack([patches["shape0"], patches["shape1"]], axis=1)
            faces = Faces()
            if FACES in tables:
                rows = tables[FACES]
                lengths, corner = rows.lists["vertices"]
                faces = Faces(
                    rows.columns["patch"], rows.columns["pressure"], lengths, corner.astype(float)
                )
            return Surfaces(pair, patches["center"].astype(float), patches["force"], faces)

    @property
    def has_faces(self) -> bool:
        """Whether the view draws faces of hydroelastic surfaces."""
        return self.surface_scale is not None and self.surface_scale.has_faces

    def self_contacts(self, index: int, world: int) -> dict[str, np.ndarray]:
        """The contacts of cloths and soft bodies with themselves in a cell, see
        `self_contacts_of`."""
        with reading("contact set", self._contacts.path):
            return self_contacts_of(self._contacts, self._cell(index, world))

    def counts(self, worlds: Sequence[int]) -> dict[str, int]:
        """Numbers of what some worlds have in all frames: poses of moving shapes, contacts, faces,
        particles, points of a contact map."""
        cells = (self.number[:, None] * self.world_count + np.asarray(worlds)).ravel()
        counts = {"pose": 0, "particle": 0}
        tables = self._contacts.tables
        with reading("contact set", self._contacts.path):
            for name, group in (
                ("contact", RIGID_CONTACTS.name),
                ("face", FACES),
                ("self-contact", SELF),
            ):
                start = (
                    tables[group].cell_start()
                    if group in tables
                    else np.zeros(cells.max(initial=0) + 2, int)
                )
                counts[name] = int((start[cells + 1] - start[cells]).sum())
            if self._second is not None:
                start = self._second.tables[RIGID_CONTACTS.name].cell_start()
                counts["contact"] += int((start[cells + 1] - start[cells]).sum())
        if (model := self.model) is not None:
            for world in worlds:
                counts["pose"] += len(self) * int((model.shapes.body[self.rows(world)] >= 0).sum())
                counts["particle"] += len(self) * len(
                    model.particles.of_template(int(model.world_template[world]))
                )
            if self.contact_map is not None:
                templates = [int(model.world_template[world]) for world in worlds]
                drawn = [self.contact_map.of_template(each) for each in templates]
                counts["map point"] = len(self) * sum(len(each.points) for each in drawn)
        return counts

    def particles(self, index: int, world: int) -> np.ndarray:
        """float64[P, 3]: world positions of the model's particles; those of other templates are
        anywhere."""
        model = self.model
        motion = self._motion
        assert model is not None
        assert motion is not None
        frame = int(self._frame_of[index])
        with reading("motion"):
            if frame not in self._positions:
                recorded = recorded_particles(motion, range(frame, frame + 1))
                resting = model.particles.position[None, None]
                if recorded is None and not (model.particles.body >= 0).any():
                    recorded = resting
                else:
                    poses = motion.read(range(frame, frame + 1))
                    recorded = model.with_attached_particles(
                        poses, resting if recorded is None else recorded
                    )
                self._positions = {frame: recorded[0]}
            positions = self._positions[frame]
        placed = positions[world if len(positions) > 1 else 0]
        if model.world_shift is None or len(positions) > 1:
            return placed
        shifted = moved_points(model.world_shift[world], placed)
        stays = model.particles.template[model.particles.owner] == GLOBAL_TEMPLATE
        return np.where(stays[:, None], placed, shifted)

    def ended(self, index: int, world: int) -> bool:
        """Whether a cell is outside every demonstration: it repeats the last recorded pose, and has
        no contacts."""
        episodes = self._contacts.episodes
        return episodes is not None and not episodes.name_at(world, int(self.number[index]))

    def world_name(self, world: int) -> str:
        """The demonstrations of a world, or its number with its environment, if it has one."""
        episodes = self._contacts.episodes
        names = () if episodes is None else episodes.of_worlds(np.array([world])).name
        if named := ", ".join(filter(None, map(shown_name, names))):
            return named
        environment = self.model.world_path[world] if self.model and self.world_count > 1 else ""
        return f"world {world}: {environment}" if environment else f"world {world}"

    def rows(self, world: int) -> np.ndarray:
        """Rows of the model's shapes in a world."""
        assert self.model is not None
        return self.model.template_shapes(int(self.model.world_template[world]))

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        """Poses float64[S, 7], xyzw, of all shapes in the world frame; shapes of other templates
        have any pose."""
        assert self.model is not None
        assert self._motion is not None
        frame = int(self._frame_of[index])
        if frame not in self._read:
            first = index - index % AHEAD
            wanted = self._frame_of[first : first + AHEAD]
            run = range(int(wanted[0]), int(wanted[0]) + len(wanted))
            many = bool(np.array_equal(wanted, np.arange(run.start, run.stop)))
            frames = run if many else range(frame, frame + 1)
            with reading("motion"):
                poses = self._motion.read(frames)
            self._read = dict(zip(frames, poses, strict=True))
        return self.model.placed_shapes(self._read[frame], world)
