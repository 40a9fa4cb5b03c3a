"""The interface of a recording: its description, its motion, and the scenes that are embedded in
it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from collidecli.errors import InputError
from collidecli.importers.scene_import import SceneImport
from collidecli.scene.kinematics import ArticulatedScene, Kinematics
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions

if TYPE_CHECKING:
    from collidecli.importers.recordings.content import Content


@dataclass(frozen=True)
class RecordingDescription:
    """Content of a recording without a scene, for `inspect`.

    frames, worlds: counts. start, end: times [s]; None where the recording has none. bodies: their
    names. coordinates: generalized coordinates of one world in one frame; 0 for body poses.
    quaternion_order: "xyzw", "wxyz", or "" where the recording does not define it. needs: options
    that must be given, for example "--fps". details: further entries as name and text, in order.
    """

    frames: int
    worlds: int
    start: float | None = None
    end: float | None = None
    bodies: tuple[str, ...] = ()
    coordinates: int = 0
    quaternion_order: str = ""
    needs: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class EmbeddedScene:
    """A scene that is stored in a recording. text: its MJCF. location: file and attribute, for
    messages."""

    text: str
    location: str


@dataclass(frozen=True)
class EmbeddedScenes:
    """The distinct scenes of a recording, in order of first use. world_scene: index of each world's
    scene."""

    scenes: tuple[EmbeddedScene, ...]
    world_scene: tuple[int, ...]


@dataclass(frozen=True)
class Target:
    """The loaded scene that a recording moves.

    imports: result of each scene importer. world_import: index of each world's scene in `imports`.
    """

    model: Model
    imports: tuple[SceneImport, ...]
    world_import: tuple[int, ...]

    def find_kinematics(self) -> Kinematics | None:
        """The forward kinematics of the one scene of all worlds; None for several scenes, or
        without kinematics."""
        scene = self._only_scene()
        return None if scene is None else scene.kinematics

    def articulated(self, where: str) -> ArticulatedScene:
        """The articulations and free bodies of the one scene of all worlds. Raises InputError for
        none, or several."""
        scene = self._only_scene()
        articulated = None if scene is None else scene.articulated
        if articulated is None:
            reason = "there are several scenes" if scene is None else "this scene has none"
            what = f"the recording names articulations and joints, and {reason}"
            raise InputError(what, where, "use the one scene that was recorded")
        return articulated

    def _only_scene(self) -> SceneImport | None:
        used = set(self.world_import)
        return self.imports[used.pop()] if len(used) == 1 else None


class Recording(Protocol):
    """An open file of one kind of recording. Each kind is a class that implements this protocol.

    NAME: identifier in `--json` output. LABEL: name in messages. OPTIONS: fields of
    `RecordingOptions` that this kind uses; all others are refused. content: the open file. kept:
    `close` leaves it open, for the next motion of it. clock_start: time of second 0 of its last
    motion [ns since the epoch]; 0 where its times have no epoch.
    """

    NAME: ClassVar[str]
    LABEL: ClassVar[str]
    OPTIONS: ClassVar[tuple[str, ...]]
    content: Content
    kept: bool = False
    clock_start: int = 0

    def __init__(self, content: Content) -> None:
        """Scans the file's structure. Raises InputError for a malformed file."""

    @staticmethod
    def recognise(content: Content) -> bool:
        """Whether the content is of this kind, well formed or not: this kind then reports the
        error."""
        ...

    def describe(self) -> RecordingDescription:
        """The content without a scene. Raises InputError for a malformed file."""
        ...

    def describe_state(self, state: str) -> RecordingDescription:
        """The content with the array of joint positions that --state names. Raises InputError for
        a kind whose description needs none."""
        what = f"--state changes nothing about the description of {self.LABEL}"
        raise InputError(what, self.content.path, "leave it out")

    def world_count(self, options: RecordingOptions) -> int | None:
        """Number of recorded worlds; None where the recording moves whichever worlds the scene
        has."""

    def demos(self, options: RecordingOptions) -> tuple[str, ...]:
        """Names of the demonstrations that --demos selects, all without it; () for a kind without
        demonstrations."""
        return ()

    def embedded_scenes(self, options: RecordingOptions) -> EmbeddedScenes | None:
        """The scenes of the recorded worlds; None for a kind that contains no scenes."""
        return None

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """The motion of the target's bodies; the motion then owns the open file and closes it.

        Raises InputError for a malformed file, a file that does not fit the scene, or a missing
        option.
        """
        ...

    def close(self) -> None:
        if not self.kept:
            self.content.close()
