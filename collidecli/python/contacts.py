"""Contacts in memory, computed by the engine of `collide run`."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast, overload

import numpy as np

from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.motions.collision import Collision, contact_writer, prepare_collision
from collidecli.motions.columns import check_no_columns, run_columns
from collidecli.motions.pose_arrays import PoseArray, checked_particles, frame_times
from collidecli.motions.scenes import check_worlds
from collidecli.motions.timing import TimingReport
from collidecli.python.contact_set import Contacts, ContactSet
from collidecli.python.option_parameters import NEWTONS, option_parameters, with_options
from collidecli.python.progress import ShowProgress, reported_blocks, shown_progress
from collidecli.results.result import Progress
from collidecli.scene import contact_blocks
from collidecli.scene.arguments import python_call
from collidecli.scene.contact_blocks import ContactBlock, GroupRows, no_columns
from collidecli.scene.contact_columns import PAIR_TABLES, RIGID_COLUMNS, Column, ContactGroup
from collidecli.scene.model import Model
from collidecli.scene.model_source import SourceOfSet
from collidecli.scene.motion import Motion, RestingMotion
from collidecli.scene.options import ContactOptions, EngineOptions, declared_options
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.patterns import listed

if TYPE_CHECKING:
    from collidecli.python.device_contacts import DeviceContacts
    from collidecli.storage.contact_sets.writer import ContactWriter


Other = TypeVar("Other")
"""Type of an argument that is not `Contacts`."""


@overload
def collide(
    model: Model,
    body_q: np.ndarray | Motion | None = None,
    *,
    keep_on_device: Literal[False] = False,
    **options: Any,
) -> Contacts:
    """Contacts in the host's memory."""


@overload
def collide(
    model: Model,
    body_q: np.ndarray | Motion | None = None,
    *,
    keep_on_device: Literal[True] | Sequence[str],
    **options: Any,
) -> DeviceContacts[Contacts]:
    """Contacts in the device's memory."""


@python_call
@with_options(option_parameters(ContactOptions, EngineOptions, without=["static_pairs", *NEWTONS]))
def collide(
    model: Model,
    body_q: np.ndarray | Motion | None = None,
    *,
    particle_q: np.ndarray | None = None,
    time: Sequence[float] | np.ndarray | None = None,
    fps: float | None = None,
    columns: str | Sequence[str] = (),
    progress: ShowProgress = False,
    keep_on_device: bool | str | Sequence[str] = False,
    **options: Any,
) -> Contacts | DeviceContacts[Contacts]:
    """Every contact of a model in motion, in memory; bit-identical to the contacts that `collide
    run` writes.

    Args:
        model: a result of `ModelBuilder.finalize`.
        body_q: poses float32 or float64[frames, worlds, bodies, 7], x y z then qx qy qz qw, in the
            order of the model's bodies; one world moves all worlds. If the worlds of all templates
            have n bodies, also [frames, worlds, n, 7], of each world those of its template. Or a
            `Motion`. None is the model's resting pose.
        time: of each frame of an array of poses, not decreasing [s]; or fps: frames a second, the
            first at 0 s. Without them times are unknown: every `time` of the results is the number
            of its frame, and columns and results in seconds, such as `slip`, are refused.
        narrow_phase: "gjk" or "mpr".
        gap, margin: in place of every shape's own. All lengths are in metres, or texts such as
            "2cm".
        gap_rule: "max" or "sum", in place of the model's.
        max_contacts_per_pair: number of deepest contacts to keep; 0 keeps all.
        reduce_contacts: reduce the contacts of each pair (docs/howto/reduce-contacts.md).
            reduce_pairs: "meshes", which includes hulls, or "all". reduce_by: "shapes" or
            "bodies". betas, normal_matching, moment_matching, anchor_contact: options of the
            reduction.
        sticky_contacts: contacts that moved less than this keep their previous position [m].
            contact_ids: add a column of persistent ids (docs/howto/follow-contacts.md).
            contact_id_angle: degrees by which the normal of a matched contact may turn.
        hydro: "off", "authored" or "all"; hydro_stiffness [N/m^3], hydro_resolution [voxels],
            hydro_surface, hydro_reduce, hydro_fallback: of hydroelastic contacts
            (docs/explanation/hydroelastic.md).
        particle_q: positions of the model's particles [frames, worlds or 1, particles, 3], of as
            many frames as body_q [m]; None lets them rest. soft_gap, soft_elements, self_contacts,
            self_contact_rings, self_contact_rest: of contacts of particles, in `groups`
            (docs/explanation/particles.md).
        sweep: find the pairs that touch between frames too, in `groups`
            (docs/howto/find-missed-contacts.md). sweep_tolerance: they touch at this distance or
            less [m].
        touch_only: the pairs of shapes that have a contact, as the group `touches`, in place of
            their contacts. candidates_only: the pairs that the broad phase finds, as the group
            `candidates`, without a narrow phase (docs/howto/list-candidates.md).
        progress: show a bar, or a function of the frames done and of all.
        columns: names of optional columns, such as ["friction", "slip"] or "friction,slip"; see
        docs/reference/file-formats.md.
        keep_on_device: return `DeviceContacts`, whose columns stay in the device's memory; names of
            columns, such as ["shape0", "shape1", "distance"], keep these alone.
        pipeline, broad_phase, threads, memory_limit [bytes], chunk_cells: affect the speed, not the
            contacts; 0 is the engine's choice.
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU. Between devices contacts differ by
        rounding.
        cache_dir, cache_limit [bytes]: cache of signed distance fields; 0 bytes disables it.
    Returns:
        The contacts in host memory, or with `keep_on_device` in that of the device: positions and
            normals in world, in the scene's own axes, lengths in metres.
    Raises:
        InputError: body_q does not fit the model or has an invalid pose, or an option is unknown or
            has an invalid value.
    """
    if "betas" in options:
        options["betas"] = tuple(options["betas"])
    of_contacts = declared_options(ContactOptions)
    contact = contact_options(
        **{name: value for name, value in options.items() if name in of_contacts}
    )
    engine = EngineOptions(
        **{name: value for name, value in options.items() if name not in of_contacts}
    ).checked()
    motion = motion_of(model, body_q, particle_q, time, fps)
    with shown_progress(progress, "colliding") as advance:
        if keep_on_device is False:
            return contacts_in_memory(model, motion, contact, engine, listed(columns), advance)
        from collidecli.python.device_contacts import contacts_on_device

        names = True if keep_on_device is True else listed(keep_on_device)
        kept = names, contacts_of_columns
        return contacts_on_device(model, motion, contact, engine, listed(columns), *kept, advance)


def contact_options(**options: Any) -> ContactOptions:
    """The checked options of contacts; lengths are in metres, or texts with a unit."""
    return ContactOptions(**options).checked()


class SceneFiles(NamedTuple):
    """The files of a scene, as a contact set names them. config: JSON of the options of the run."""

    name: str
    sha256: str
    config: str


def contacts_in_memory(
    model: Model,
    motion: Motion,
    contact: ContactOptions,
    engine: EngineOptions,
    columns: Sequence[str],
    progress: Progress = None,
    scene: SceneFiles | None = None,
) -> Contacts:
    """See `collide`. scene: see `of_collision`."""
    check_no_columns(columns, contact)
    timing = TimingReport()
    optional = run_columns(contact, model, motion, columns, find_device(engine.device))
    collision = prepare_collision(
        model, motion, contact, engine, find_device(engine.device), timing
    )
    for note in collision.pipeline.notes:
        warnings.warn(note, RuntimeWarning, stacklevel=4)
    with closing(collision.blocks(timing)) as blocks:
        shown = reported_blocks(blocks, len(motion.time), model.world_count, progress)
        merged = merged_contacts(map(optional.added, shown), len(motion.time), model.world_count)
    for note in timing.missed_surfaces(model.shapes.path):
        warnings.warn(note, RuntimeWarning, stacklevel=4)
    groups = optional.groups(collision.pipeline.groups)
    return of_collision(merged, model, collision, optional.columns, groups, scene)


def contacts_of_columns(
    model: Model, collision: Collision, counts: np.ndarray, values: Mapping[str, np.ndarray]
) -> Contacts:
    """The contacts of a collision of a model from the values of their columns, or of the columns of
    its pairs where these are found alone. counts: int64[cells], rows of each."""
    columns = dict(values)
    groups = {}
    if found := collision.contact.finds_pairs_alone:
        groups[PAIR_TABLES[found].name] = GroupRows(counts, columns)
        columns = no_columns(RIGID_COLUMNS, collision.motion.float_type)
        counts = np.zeros_like(counts)
    block = ContactBlock(0, counts, columns, groups)
    merged = merged_contacts([block], len(collision.motion.time), model.world_count)
    return of_collision(merged, model, collision)


def of_collision(
    merged: Contacts,
    model: Model,
    collision: Collision,
    optional: Sequence[Column] = (),
    groups: Sequence[ContactGroup] | None = None,
    scene: SceneFiles | None = None,
) -> Contacts:
    """The contacts of a collision of a model, with the names of its shapes and objects, and what
    `contact_set` writes. optional: optional columns that they have besides those of options.
    groups: their further tables; None is those of the pipeline. scene: its files; None of a
    model."""
    motion = collision.motion
    contact = collision.contact
    writer = partial(
        _writer_of,
        source=model,
        scene=scene,
        model=collision.pipeline.device_model.model,
        motion=motion,
        config=json.dumps(contact.stored),
        columns=(*RIGID_COLUMNS, *optional, *contact.columns),
        groups=collision.pipeline.groups if groups is None else groups,
        compression="none",
    )
    objects = ParticleObjects.of_scene(model.particles)
    paths = tuple(model.shapes.path)
    return replace(
        merged, shape_path=paths, particle_objects=objects, time=motion.time, _writer=writer
    )


def _writer_of(
    path: str, source: Model, scene: SceneFiles | None, config: str, **options: Any
) -> ContactWriter:
    """A writer of contacts. scene: of `of_collision`; a model is hashed only here. config: options
    of the contacts, for a model."""
    if scene is None:
        found = SourceOfSet.of("", source.sha256, source)
    else:
        found = SourceOfSet.of(scene.name, scene.sha256, source)
        config = scene.config
    return contact_writer(path, scene=found, config=config, **options)


def set_of(contacts: Other | Contacts) -> Other | ContactSet:
    """The contact set of `Contacts`; another argument as it is."""
    return contacts.contact_set if isinstance(contacts, Contacts) else contacts


@python_call
def open_contacts(path: str | os.PathLike[str]) -> ContactSet:
    """A contact set file, open for reading, as `ContactSet.open` returns it; a context manager.

    Raises InputError for a file that is not a finished contact set of a supported version.
    """
    return ContactSet.open(path)


def entry_texts(entries: Mapping[str, str] | str | Sequence[str]) -> tuple[str, ...]:
    """Entries of an asset map or of `meshes` as texts "KEY=VALUE"; a text is one, or several with
    commas, as on the command line."""
    if isinstance(entries, Mapping):
        return tuple(f"{key}={value}" for key, value in entries.items())
    return listed(entries)


def check_extension(
    path: str | os.PathLike[str], endings: tuple[str, ...], what: str, method: str
) -> None:
    """Raises InputError for a path with one of the extensions `endings`, which `method` reads."""
    if os.path.splitext(path)[1].lower() in endings:
        raise InputError(f"is {what} by its extension", os.fspath(path), f"{method} reads it")


def motion_of(
    model: Model,
    body_q: np.ndarray | Motion | None,
    particle_q: np.ndarray | None = None,
    time: Any = None,
    fps: Any = None,
) -> Motion:
    """The motion of the arguments of `collide`. Raises InputError if they do not fit the model or
    each other."""
    for name, values in (("body_q", body_q), ("particle_q", particle_q)):
        if hasattr(values, "__cuda_array_interface__"):
            what = "is an array on a device: poses are checked in the host's memory"
            raise InputError(what, name, "give a NumPy array, such as tensor.cpu().numpy()")
    has_own_times = hasattr(body_q, "read") or (body_q is None and particle_q is None)
    if has_own_times and (time is not None or fps is not None):
        what = (
            "there are no poses to give times to"
            if body_q is None
            else "body_q is a motion, which has its own times"
        )
        raise InputError(what, "fps" if time is None else "time", "give the poses as an array")
    if particle_q is not None:
        if hasattr(body_q, "read"):
            raise InputError("body_q is a motion", "particle_q", "give the poses as an array")
        particles = checked_particles(particle_q, model)
        rest = np.tile(model.bodies.pose, (len(particles), 1, 1, 1))
        poses = rest if body_q is None else np.asarray(body_q)
        body_q = PoseArray(poses, model, particles, frame_times(len(particles), time, fps))
    if body_q is None:
        return RestingMotion(model.bodies.pose[None])
    if hasattr(body_q, "read"):
        motion = cast("Motion", body_q)
    else:
        poses = np.asarray(body_q)
        times = frame_times(len(poses) if poses.ndim else 0, time, fps)
        motion = PoseArray(poses, model, time=times)
    check_worlds(motion, model, "body_q", "give the poses of one world, or of each")
    if not len(motion.time):
        raise InputError("the motion has no frames", "body_q", "give one frame at least")
    return motion


def merged_contacts(blocks: Iterable[ContactBlock], frame_count: int, world_count: int) -> Contacts:
    """Contacts of all cells from blocks in the order of cells; the blocks are consumed."""
    kept = list(blocks)
    groups = contact_blocks.consecutive_groups([block.groups for block in kept])
    counts = np.concatenate([block.cell_counts for block in kept])
    columns = {}
    for name in list(kept[0].columns):
        # Columns are removed from the blocks one by one, so that at most one column is in memory
        # twice.
        columns[name] = np.concatenate([block.columns.pop(name) for block in kept])
    required = {column.name: columns[column.name] for column in RIGID_COLUMNS}
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Contacts(frame_count, world_count, starts, **required, columns=columns, groups=groups)
