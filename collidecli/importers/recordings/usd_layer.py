"""USD layers of time samples, which are composed over a USD scene when that is loaded."""

from __future__ import annotations

import hashlib

from collidecli.errors import InputError
from collidecli.importers.recordings.content import USD, Content
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.importers.usd.scene import UsdImport
from collidecli.importers.usd.stage import diagnostics, layer_files, read_motion_layer
from collidecli.scene.motion import Motion, RestingMotion
from collidecli.scene.options import RecordingOptions
from collidecli.storage.input_files import file_sha256


class UsdLayerRecording(Recording):
    """A layer of time samples over a USD scene."""

    NAME = "usd-layer"
    LABEL = "a USD layer of time samples (.usd, .usda, .usdc)"
    OPTIONS = ()

    def __init__(self, content: Content) -> None:
        self.content = content

    @staticmethod
    def recognise(content: Content) -> bool:
        """Any USD file: a complete scene too is a layer when it is given as a recording."""
        return content.storage == USD

    def describe(self) -> RecordingDescription:
        path = self.content.path
        with diagnostics(path):
            layer = read_motion_layer(path)
        return RecordingDescription(
            frames=layer.sample_count,
            worlds=1,
            start=layer.first / layer.rate,
            end=layer.last / layer.rate,
            bodies=tuple(layer.animated),
            quaternion_order="wxyz",
            needs=("the USD scene that it animates",),
            details=(("time codes a second", f"{layer.rate:g}"),),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        """None: the layer moves prims by path, in whichever world of the scene they are."""
        return None

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """The animation of the composed scene, in which the layer is the strongest.

        A layer with one time poses the scene: its motion is one frame. Raises InputError for a scene that is not USD.
        """
        path, scene = self.content.path, target.imports[0]
        if len(target.imports) != 1 or not isinstance(scene, UsdImport):
            raise InputError("a USD layer moves one USD scene", path, "run it with the USD scene that it animates")
        motion = scene.motion(target.model) or RestingMotion(target.model.bodies.pose[None])
        motion.sha256 = _sha256(path)
        return motion


def _sha256(path: str) -> str:
    """SHA-256 of the file's bytes; of a layer with sublayers, of the hashes of all files."""
    with diagnostics(path):
        files = layer_files(path)
    hashes = [file_sha256(file) for file in files]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
