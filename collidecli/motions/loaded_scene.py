"""A scene that was loaded: its model, its imports and its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.motions.derived import MergedMotion
from collidecli.scene.motion import Motion, RestingMotion
from collidecli.scene.options import RecordingOptions
from collidecli.scene.shape_switches import refuse_switches
from collidecli.storage.process_activity import reading

if TYPE_CHECKING:
    from collidecli.importers.recordings.recording import Recording
    from collidecli.importers.scene_import import SceneImport
    from collidecli.scene.model import Model


@dataclass(frozen=True)
class LoadedScene:
    """One or several scene files as a model.

    name: file names, joined with a space; "" of a model that was given. files_sha256: of every
    file of the scene, in order; "" of a model that was given. imports: importer's result of each
    scene. world_import: index of each world's scene in `imports`. recording: open recording, which
    the motion closes; None for the scene's own animation or resting pose. ignores_particles: the
    scene has particles, which were taken from the model on request.
    """

    model: Model
    name: str
    files_sha256: str
    imports: tuple[SceneImport, ...]
    warnings: tuple[str, ...]
    world_import: tuple[int, ...] = ()
    recording: Recording | None = None
    ignores_particles: bool = False

    @property
    def sha256(self) -> str:
        """SHA-256 of the scene's files, or that of the model's values, at the first access."""
        return self.files_sha256 or self.model.sha256

    @cached_property
    def shape_bodies(self) -> tuple[str, ...]:
        """Path of the body of each shape, also of one that is fixed to the world; "" without a
        body."""
        shapes = self.model.shapes
        bodies = self.model.bodies.path
        fixed = [
            self.imports[source].fixed_links for source in self.template_import(shapes.template)
        ]
        rows = zip(shapes.path, shapes.body.tolist(), fixed, strict=True)
        return tuple(
            links.get(path, "") if body < 0 else bodies[body] for path, body, links in rows
        )

    @cached_property
    def shape_trees(self) -> np.ndarray:
        """int64[S]: number of the joint tree of each shape's body, which may be fixed to the world;
        -1 for a body that no joint connects with another one, and for the world."""
        of_path: dict[tuple[int, str], int] = {}
        number = 0
        for source, imported in enumerate(self.imports):
            articulated = imported.articulated
            for tree in articulated.articulations if articulated is not None else ():
                if len(tree.body_path) > 1:
                    of_path |= {(source, path): number for path in tree.body_path}
                    number += 1
        templates = self.template_import(self.model.shapes.template)
        rows = zip(templates, self.shape_bodies, strict=True)
        return np.array([of_path.get(row, -1) for row in rows], np.int64)

    def template_import(self, template: np.ndarray) -> list[int]:
        """Index in `imports` of the scene of each template."""
        of_world = self.world_import or (0,) * self.model.world_count
        known = dict(
            zip(reversed(self.model.world_template.tolist()), reversed(of_world), strict=True)
        )
        return [known.get(number, 0) for number in template.tolist()]

    @contextmanager
    def named(self) -> Iterator[None]:
        """Adds the scene's name to errors about a shape or body of the model: the engine has no
        file names."""
        try:
            yield
        except InputError as error:
            if not self.name or not error.where.startswith(("shape ", "body ")):
                raise
            raise InputError(error.what, f"{self.name}: {error.where}", error.fix) from error

    def motion(self, options: RecordingOptions | None = None) -> Motion:
        """The recording, or else the scene's own animation or keyframes, or else its resting pose.

        options: of the recording. A recording is opened as a motion once.
        """
        options = options or RecordingOptions()
        if self.recording is not None:
            from collidecli.importers.recordings.kinds import open_motion
            from collidecli.importers.recordings.recording import Target

            if self.recording.NAME != "usd-layer":
                switched = [path for scene in self.imports for path in scene.switched]
                refuse_switches(switched, self.name, "a recording has frames of its own")
            target = Target(
                self.model, self.imports, self.world_import or (0,) * self.model.world_count
            )
            with reading("recording", self.recording.content.path):
                return open_motion(self.recording, target, options)
        if options != RecordingOptions():
            from collidecli.importers.recordings.kinds import refuse_options

            refuse_options(options, "without a recording", self.name)
        if len(self.imports) > 1:
            switched = [path for scene in self.imports for path in scene.switched]
            refuse_switches(switched, self.name, "there are several scenes")
        with reading("motion", self.name):
            motions = [scene.motion(self.model) for scene in self.imports]
        moving = [motion for motion in motions if motion is not None]
        if not moving:
            return RestingMotion(self.model.bodies.pose[None])
        if len(motions) == 1:
            return moving[0]
        times = [motion.time for motion in motions if motion is not None]
        if any(not np.array_equal(times[0], time) for time in times[1:]):
            raise InputError(
                "the scenes move at different times",
                self.name,
                "record one trajectory and give it with -t",
            )
        return MergedMotion(motions, self.model)
