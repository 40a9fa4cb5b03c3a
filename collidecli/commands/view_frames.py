"""Shape poses and contacts of the frames of a view, read on demand."""

from __future__ import annotations

import threading

import numpy as np

from collidecli.commands.motions import parse_frames
from collidecli.commands.view_sources import Sources
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.placement import compose
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_shape_rows
from collidecli.storage.process_activity import reading

COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
AHEAD = 16
"""Number of frames that are read together, as a recording is compressed in chunks of many frames."""
KEPT = 8
"""Number of such groups of frames in memory."""


class ViewFrames:
    """The selected frames of a contact set. number: int64[K], frame numbers. time: float64[K] [s].

    Poses and contacts of a frame index are read in any order; the methods are thread-safe.
    """

    def __init__(self, contacts: ContactSet, sources: Sources, frames: str = "") -> None:
        picked = parse_frames(frames, contacts.frame_count) if frames else range(contacts.frame_count)
        self.number = np.arange(picked.start, picked.stop, picked.step)
        self.time = contacts.time[self.number]
        self.model: Model | None = sources.scene.model if sources.scene else None
        self.world_count = contacts.world_count
        self._contacts, self._motion = contacts, sources.motion
        self._frame_of = np.asarray(sources.frame_of, int)[self.number]
        self._read: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.number)

    def contacts(self, index: int, world: int) -> dict[str, np.ndarray]:
        """COLUMNS of the contacts of a cell."""
        cell = int(self.number[index]) * self.world_count + world
        with self._lock, reading("contact set", self._contacts.path):
            block = self._contacts.cells(cell, cell + 1, COLUMNS)
        check_shape_rows(self._contacts, block)
        return block.columns

    def rows(self, world: int) -> np.ndarray:
        """Rows of the model's shapes in a world."""
        assert self.model is not None
        return self.model.template_shapes(int(self.model.world_template[world]))

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        """Poses float64[S, 7], xyzw, of all shapes in the world frame; shapes of other templates have any pose."""
        model = self.model
        assert model is not None
        bodies = self._bodies(index)
        bodies = bodies[0] if len(bodies) == 1 else bodies[world]
        body, pose = model.shapes.body, model.shapes.pose
        if not len(bodies):
            placed = pose.copy()
        else:
            placed = np.where((body < 0)[:, None], pose, compose(bodies[body], pose))
        if model.world_shift is None:
            return placed
        shifted = compose(model.world_shift[world], placed)
        # Bodies with a pose per world are already at the position of their world.
        own = (body < 0) if len(self._bodies(index)) > 1 else np.ones(len(body), bool)
        stays = ~own | (model.shapes.template == GLOBAL_TEMPLATE)
        return np.where(stays[:, None], placed, shifted)

    def _bodies(self, index: int) -> np.ndarray:
        """Body poses float64[recorded worlds, B, 7]."""
        assert self._motion is not None
        frame = int(self._frame_of[index])
        with self._lock:
            if frame not in self._read:
                first = index - index % AHEAD
                wanted = self._frame_of[first : first + AHEAD]
                run = range(int(wanted[0]), int(wanted[0]) + len(wanted))
                many = bool(np.array_equal(wanted, np.arange(run.start, run.stop)))
                frames = run if many else range(frame, frame + 1)
                with reading("motion"):
                    poses = self._motion.read(frames)
                while len(self._read) > KEPT * AHEAD:
                    del self._read[next(iter(self._read))]
                self._read.update(zip(frames, poses, strict=True))
            return self._read[frame]
