"""A USD layer of time samples over a USD scene; it is composed with the scene when that is loaded."""

from __future__ import annotations

import hashlib

from collidecli.errors import InputError
from collidecli.importers.recordings.content import USD, Content
from collidecli.importers.recordings.description import RecordingFacts
from collidecli.importers.recordings.target import Target
from collidecli.importers.usd.motion_layer import layer_files, read_motion_layer
from collidecli.importers.usd.stage import diagnostics
from collidecli.scene.motion import Motion, RestingMotion
from collidecli.scene.run_options import RecordingOptions
from collidecli.storage.file_hash import file_sha256

NAME = "usd-layer"
LABEL = "a USD layer of time samples (.usd, .usda, .usdc)"
OPTIONS = ()


def recognise(content: Content) -> bool:
    """Any USD file: as a recording it is a layer, complete scenes too."""
    return content.storage == USD


def describe(path: str) -> RecordingFacts:
    """See `RecordingKind.describe`."""
    with diagnostics(path):
        layer = read_motion_layer(path)
    return RecordingFacts(
        frames=layer.sample_count,
        worlds=1,
        start=layer.first / layer.rate,
        end=layer.last / layer.rate,
        bodies=tuple(layer.animated),
        quaternion_order="wxyz",
        needs=("the USD scene that it lies over",),
        details=(("time codes a second", f"{layer.rate:g}"),),
    )


def world_count(path: str, options: RecordingOptions) -> int | None:
    """None: the layer moves what it names, in whichever world of the scene that is."""
    return None


def open_motion(path: str, target: Target, options: RecordingOptions) -> Motion:
    """The scene's animation, which the layer is the strongest part of. Raises InputError for a scene that is not USD.

    A layer of a single time poses the scene: its motion is one frame.
    """
    scene = target.imports[0]
    if len(target.imports) != 1 or not hasattr(scene, "stage"):
        raise InputError("a USD layer moves one USD scene", path, "run it with the USD scene that it lies over")
    motion = scene.motion(target.model) or RestingMotion(target.model.bodies.pose[None])
    motion.sha256 = _sha256(path)
    return motion


def _sha256(path: str) -> str:
    """Of the file's bytes; of a layer with layers of its own, of the hashes of all."""
    with diagnostics(path):
        files = layer_files(path)
    hashes = [file_sha256(file) for file in files]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
