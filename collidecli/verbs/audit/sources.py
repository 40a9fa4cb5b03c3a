"""What an audit measures: depths of a scene in motion or of a contact set."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import numpy as np

from collidecli.analysis.frame_texts import parse_frames
from collidecli.analysis.pair_selection import touch_notes
from collidecli.analysis.summary import TOUCH_COLUMNS
from collidecli.analysis.totals import TOUCHES
from collidecli.analysis.touch_intervals import Frames, Names
from collidecli.analysis.touching_rows import (
    COLUMNS_OF_GROUP,
    SWEPT_GROUPS,
    TouchingItems,
    touching_blocks,
)
from collidecli.engine.pipeline_build import find_device, load_ahead
from collidecli.errors import InputError
from collidecli.motions.collision import prepare_collision
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.motions.search_warnings import search_warnings
from collidecli.motions.timing import TimingReport
from collidecli.scene.chosen_pairs import trigger_notes, without_triggers
from collidecli.scene.contact_blocks import ContactBlock, GroupRows
from collidecli.scene.contact_columns import (
    HYDRO_PATCHES,
    RIGID_CONTACTS,
    SELF_CONTACTS,
    SOFT_CONTACTS,
    SWEEP,
)
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.options import ContactOptions
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.storage.contact_sets.readable_rows import (
    check_body_rows,
    check_group_rows,
    check_has_touches,
    has_unknown_touches,
    is_touch_set,
)
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import gap_range
from collidecli.storage.contact_sets.spans import BLOCK_ROWS
from collidecli.verbs.audit.limits import AuditedShapes
from collidecli.verbs.audit.option_names import OF_SELF_CONTACTS
from collidecli.verbs.audit.tunnels import COLUMNS, Tunnels

STEPS_LEFT_OUT = "tunnelling is not checked: the frames are not consecutive"
SELF_CONTACTS_LEFT_OUT = (
    "contacts of cloths and soft bodies with themselves and each other have no depth and are not"
    " audited, but for touches between frames: collide events lists them"
)
WITH_DEPTHS = (RIGID_CONTACTS.name, SOFT_CONTACTS.name)
"""Tables of a scene's contacts that have depths."""
OBJECTS_LEFT_OUT = (
    "overlaps of cables, cloths and soft bodies with each other are not audited: collide clearance"
    " measures them"
)
SELF_CONTACTS_IGNORED = (
    "--self-contacts has an effect with --sweep alone: contacts of cloths and soft bodies with"
    " themselves and each other have no depth"
)


@dataclass
class AuditSource:
    """Contacts to audit. name: for messages. scene, trajectory: names of files, or "".
    scene_sha256, trajectory_sha256: their hashes. frames: with numbers in the input; step:
    int64[F].

    shapes: the shapes, then the particle objects. contents: columns shape0, shape1, items of
    `shapes`, and distance of every cell from the first selected frame on; to be read once. loaded,
    motion: of a scene. notes: warnings, complete after the last block. swept: rows of contacts
    between frames, as of `TouchingItems.steps`, complete after the last block; None without a
    sweep. trigger: bool[items], shapes that are left out, or None. touch_only: the contacts of
    shapes are the pairs of a set of touches, whose depths are not known.
    """

    name: str
    scene: str
    scene_sha256: str
    trajectory: str
    trajectory_sha256: str
    shapes: AuditedShapes
    frames: Frames
    step: np.ndarray
    world_count: int
    contents: Generator[ContactBlock, None, None]
    notes: list[str]
    loaded: LoadedScene | None = None
    motion: Motion | None = None
    swept: list[dict[str, np.ndarray]] | None = None
    trigger: np.ndarray | None = None
    touch_only: bool = False

    def tunnels(self) -> Tunnels | None:
        """Steps of selected frames in which pairs tunnel; None without a sweep. To be called after
        `rows`."""
        if self.swept is None:
            return None
        none = [np.zeros(0, np.int64)] * 3 + [np.zeros(0)] * 2
        parts = [none]
        undecided = 0
        for columns in self.swept:
            undecided += int((columns["status"] != TOUCHES).sum())
            at = np.flatnonzero(
                (columns["tunnel"] == 1) & self._is_solid(columns["shape0"], columns["shape1"])
            )
            cell, kept = self._selected(columns["cell"][at])
            inside = np.flatnonzero(cell < (len(self.frames) - 1) * self.world_count)
            at = at[kept[inside]]
            values = (columns[name][at] for name in ("shape0", "shape1", "enter", "least"))
            parts.append([cell[inside], *values])
        return Tunnels.of_rows(*map(np.concatenate, zip(*parts, strict=True)), undecided=undecided)

    def _is_solid(self, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        """bool[n]: pairs without a trigger."""
        if self.trigger is None:
            return np.ones(len(shape0), bool)
        return ~(self.trigger[shape0] | self.trigger[shape1])

    def _selected(self, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells of the selected frames, and their rows among cells of the input."""
        start = int(self.frames.number[0]) if len(self.frames) else 0
        step = int(self.frames.number[1]) - start if len(self.frames) > 1 else 1
        frame, world = np.divmod(cell, self.world_count)
        index, between = np.divmod(frame - start, step)
        kept = np.flatnonzero((between == 0) & (index >= 0) & (index < len(self.frames)))
        return (index * self.world_count + world)[kept], kept

    def rows(self) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Frames done, and cell (of the selected frames), shape0, shape1, distance of contacts,
        block by block."""
        with closing(self.contents) as blocks:
            for block in blocks:
                cell = np.repeat(
                    block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts
                )
                cells, kept = self._selected(cell)
                if self.trigger is not None:
                    pair = (block.columns[name][kept] for name in ("shape0", "shape1"))
                    is_solid = self._is_solid(*pair)
                    cells = cells[is_solid]
                    kept = kept[is_solid]
                done = self._selected(np.arange(block.first_cell + len(block.cell_counts)))[0]
                shape0, shape1, distance = (block.columns[name][kept] for name in TOUCH_COLUMNS)
                yield len(done) // self.world_count, cells, shape0, shape1, distance


def _check_touches(contacts: ContactSet) -> None:
    """Raises InputError for a set of touches with pairs that may not touch, as they are within a
    gap, and for one of candidates."""
    check_has_touches(contacts)
    if not has_unknown_touches(contacts):
        return
    largest = gap_range(contacts)[1]
    if largest > 0.0:
        what = (
            "the contact set is of a run with --touch-only: the distance of its pairs is at most"
            f" their gap, up to {largest:g} m, and is not known"
        )
        raise InputError(what, contacts.path, "run with --gap 0, or without --touch-only")


def _notes(contacts: ContactSet) -> list[str]:
    """What a contact set has that is not audited, or not as in a scene."""
    notes = [*trigger_notes(contacts.shapes.is_trigger), *touch_notes(contacts)]
    if HYDRO_PATCHES.name in contacts.groups:
        what = "depths of hydroelastic pairs are those of their contact surfaces"
        notes.append(f"{what}: audit the scene for translations")
    if SELF_CONTACTS.name in contacts.groups:
        notes.append(SELF_CONTACTS_LEFT_OUT)
    elif contacts.particle_objects.meet_each_other:
        notes.append(OBJECTS_LEFT_OUT)
    return notes


def audited_contact_set(
    contacts: ContactSet, frames: str, self_bodies: Sequence[str]
) -> AuditSource:
    """The contacts of an open contact set, with a robot of the named bodies.

    Raises InputError for a set without contacts, and for unknown frames and bodies.
    """
    _check_touches(contacts)
    check_body_rows(contacts)
    picked = parse_frames(frames, contacts.frame_count)
    number = np.arange(picked.start, picked.stop, picked.step)
    episodes = None if contacts.episodes is None else contacts.episodes.sliced(picked)
    shapes = contacts.shapes
    bodies = ["" if row < 0 else contacts.body_path[row] for row in shapes.body.tolist()]
    names = Names.of(shapes.path, shapes.template)
    audited = AuditedShapes(shapes.path, names, bodies, shapes.body < 0, shapes.type)
    objects = contacts.particle_objects
    audited = audited.with_objects(objects, shapes.template)
    worlds = contacts.world_count
    notes = _notes(contacts)
    first, last = (
        (int(number[0]) * worlds, (int(number[-1]) + 1) * worlds) if len(number) else (0, 0)
    )
    swept = None
    if SWEEP.name in contacts.groups and picked.step > 1 and len(number) > 1:
        notes.append(STEPS_LEFT_OUT)
    elif SWEEP.name in contacts.groups:
        groups = {
            name: contacts.groups[name].rows(first, last, (*COLUMNS_OF_GROUP[name][:2], *COLUMNS))
            for name in SWEPT_GROUPS
            if name in contacts.groups
        }
        check_group_rows(contacts, groups, first, last)
        swept = [TouchingItems.of_set(contacts).steps(first, groups, names=COLUMNS)]
    return AuditSource(
        name=contacts.path,
        scene=contacts.scene,
        scene_sha256=contacts.scene_sha256,
        trajectory="",
        trajectory_sha256=contacts.trajectory_sha256,
        shapes=_with_named_robot(audited, self_bodies, contacts.path),
        frames=Frames(number, contacts.time[number], episodes),
        step=contacts.step[number],
        world_count=worlds,
        contents=touching_blocks(
            contacts,
            BLOCK_ROWS,
            first,
            last,
            with_particles=True,
            each_particle=False,
            with_self_contacts=False,
        ),
        notes=notes,
        swept=swept,
        trigger=_trigger_items(shapes.is_trigger, len(objects)),
        touch_only=is_touch_set(contacts),
    )


def _contact_options(options: ContactOptions) -> tuple[ContactOptions, list[str]]:
    """The options with which a scene is audited, and notes about those without effect."""
    contact = replace(options, gap=0.0, soft_gap=0.0, hydro="off").checked()
    if contact.sweep or not contact.self_contacts:
        return contact, []
    off = {name: getattr(ContactOptions, name) for name in OF_SELF_CONTACTS}
    return replace(contact, **off), [SELF_CONTACTS_IGNORED]


def _tables_of(block: ContactBlock, names: Iterable[str]) -> dict[str, GroupRows]:
    """The rows of those of the tables `names` that a block has."""
    tables = block.tables
    return {name: tables[name] for name in names if name in tables}


@contextmanager
def audited_scene(request: EngineRequest, self_bodies: Sequence[str]) -> Iterator[AuditSource]:
    """The contacts of a scene in motion, with point contacts and without gaps. Raises InputError
    as `run` does."""
    request.engine.checked()
    contact, ignored = _contact_options(request.contact)
    timing = TimingReport()
    device = find_device(request.engine.device)
    load_ahead(device)
    scene, motion = scene_in_motion(request, by_frames=True)
    with closing(motion):
        notes = [*scene.warnings, *motion.warnings, *ignored]
        notes += trigger_notes(scene.model.shapes.is_trigger)
        scene = replace(scene, model=without_triggers(scene.model))
        model = scene.model
        with scene.named():
            collision = prepare_collision(
                model, motion, contact, request.engine, device, timing, reads=TOUCH_COLUMNS
            )
        notes += collision.notes
        objects = ParticleObjects.of_scene(model.particles)
        if objects.meet_each_other:
            notes.append(OBJECTS_LEFT_OUT)
        items = TouchingItems(len(model.shapes), objects)
        swept: list[dict[str, np.ndarray]] | None = [] if contact.sweep else None

        def contents() -> Generator[ContactBlock, None, None]:
            with closing(collision.blocks(timing)) as blocks:
                for block in blocks:
                    if swept is not None:
                        groups = _tables_of(block, SWEPT_GROUPS)
                        swept.append(items.steps(block.first_cell, groups, names=COLUMNS))
                    yield items.touching(block.first_cell, _tables_of(block, WITH_DEPTHS))
            notes.extend(search_warnings(timing, model.shapes.path))

        frames = Frames(
            np.arange(len(motion.time)), motion.time, episodes_in(motion, model.world_count)
        )
        yield AuditSource(
            name=scene.name,
            scene=scene.name,
            scene_sha256=scene.sha256,
            trajectory=request.trajectory or "",
            trajectory_sha256=motion.sha256,
            shapes=_with_named_robot(
                _shapes_of(scene).with_objects(objects, model.shapes.template),
                self_bodies,
                scene.name,
            ),
            frames=frames,
            step=motion.step,
            world_count=model.world_count,
            contents=contents(),
            notes=notes,
            loaded=scene,
            motion=motion,
            swept=swept,
            # shapes do not touch triggers in this model, and particles do
            trigger=_trigger_items(model.shapes.is_trigger, len(objects)) if objects else None,
        )


def _trigger_items(is_trigger: np.ndarray, object_count: int) -> np.ndarray | None:
    """bool[items]: the triggers among the shapes and particle objects; None without any."""
    if not is_trigger.any():
        return None
    return np.append(is_trigger, np.zeros(object_count, bool))


def _shapes_of(scene: LoadedScene) -> AuditedShapes:
    shapes = scene.model.shapes
    names = Names.of(shapes.path, shapes.template)
    types = shapes.type_labels()
    return AuditedShapes(
        shapes.path, names, scene.shape_bodies, shapes.body < 0, types, scene.shape_trees
    )


def _with_named_robot(shapes: AuditedShapes, patterns: Sequence[str], where: str) -> AuditedShapes:
    """The shapes with one robot, of the bodies that match; with those of the joints without
    patterns."""
    if not patterns:
        return (
            shapes
            if len(shapes.robot)
            else replace(shapes, robot=np.full(len(shapes.path), -1, np.int64))
        )
    named = shapes.items(where).matching(patterns, "--self-bodies")
    named &= ~(shapes.is_ground | shapes.is_object)
    owners = {shapes.body_path[row] or shapes.path[row] for row in np.flatnonzero(named).tolist()}
    if len(owners) < 2 or shapes.is_static[named].all():
        what = f"{', '.join(patterns)} names no two bodies of {where} of which one moves"
        raise InputError(
            what, "--self-bodies", "name all bodies of the robot; the ground is none of them"
        )
    return replace(shapes, robot=np.where(named, 0, -1))
