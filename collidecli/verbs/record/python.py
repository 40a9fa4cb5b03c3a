"""The Python function `record`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal

from collidecli.errors import InputError
from collidecli.python.contacts import entry_texts
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.outputs import check_output
from collidecli.results.result import PathLike
from collidecli.scene.argument_types import is_integer
from collidecli.scene.arguments import python_call
from collidecli.verbs.record.record import RecordResult
from collidecli.verbs.record.record import record as simulate


@python_call
def record(
    scene: PathLike,
    output: PathLike,
    frames: int,
    *,
    control: str = "zero",
    seed: int = 0,
    every: int = 1,
    worlds: int = 1,
    keyframe: str | int | None = None,
    noise: float = 0.0,
    joint: bool = False,
    asset_map: Mapping[str, str] | str | Sequence[str] = (),
    package_path: str | Sequence[str] = (),
    floating_base: bool = False,
    ground: bool = False,
    float_type: Literal["float64", "float32"] = "float64",
    compression: Literal["gzip", "none", "lzf", "zstd"] = "none",
    force: bool = False,
    progress: ShowProgress = False,
) -> RecordResult:
    """Simulates an MJCF or URDF scene in MuJoCo and writes its motion as a trajectory.

    Frame 0 is the initial state; each later frame is `every` simulation steps after the previous
    one. Equal arguments give equal motions.

    Args:
        frames: number of recorded frames, including the initial one.
        control: "zero", "random", or a .npy or .csv file with a row of numbers for each frame but
            the last. seed: world w uses seed + w for its control and noise.
        keyframe: name or number of the initial state; None is the scene's own. noise: largest
            random offset of the initial configuration along each degree of freedom [m or rad].
        joint: write generalized coordinates instead of body poses.
        asset_map, package_path, floating_base, ground: of the scene, as of `run`.
        float_type: of body poses. progress: show a bar, or a function of the frames done and of
            all.
    Returns:
        `output`, the trajectory, and counts.
    Raises:
        InputError, OutputError: as `collide record` does. Its warnings are `UserWarning`.
    """
    if not is_integer(frames):
        raise InputError(f"frames is {frames!r}", "record", "give a number of frames")
    check_output(output, force, (scene,), HDF5_ENDINGS, "a trajectory")
    with shown_progress(progress, "recording") as advance:
        result = simulate(
            scene,
            output,
            frames,
            control=control,
            seed=seed,
            every=every,
            worlds=worlds,
            keyframe=keyframe,
            noise=noise,
            joint=joint,
            asset_map=entry_texts(asset_map),
            package_path=entry_texts(package_path),
            floating_base=floating_base,
            ground=ground,
            float_type=float_type,
            compression=compression,
            force=force,
            progress=None if advance is None else lambda done: advance(done, frames),
        )
    for text in result.warnings:
        warnings.warn(text, stacklevel=3)
    return result
