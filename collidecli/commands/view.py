"""The verb `view`: a contact set with its scene and motion as a page, or as a recording of Rerun."""

from __future__ import annotations

import hashlib
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from collidecli.analysis.touches import Intervals
from collidecli.commands import scenes
from collidecli.commands.event_stream import EventOptions, EventStream
from collidecli.commands.results import Progress, Result
from collidecli.commands.scenes import LoadedScene
from collidecli.errors import InputError, OutputError
from collidecli.importers.scene_import import AssetMap, SceneImport
from collidecli.numerics import WXYZ_TO_XYZW, inverse_poses, moved_points
from collidecli.report.view.drawing import NO_COLOURS, ViewFrames, coarse_heightfields
from collidecli.report.view.page import first_worlds, view_page
from collidecli.report.view.stage import TouchList
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions, SceneOptions
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.field_cache import cache_folder
from collidecli.storage.input_files import ENDINGS, file_sha256
from collidecli.storage.process_activity import reading
from collidecli.texts import count, numbered

# Visual geometry of the bodies of a scene, which no contact set needs: what MJCF, URDF and USD draw beside shapes.

MAX_FACES = 1_000_000
"""Most triangles of the visual meshes of a scene; with more, none is drawn."""
UNMOVED = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
GREY = (0.7, 0.7, 0.7)
DRAWN_PURPOSES = ("default", "render")
HIDDEN_GROUPS = 3
"""First group of geoms that MuJoCo's viewer does not show at first."""


@dataclass(frozen=True)
class Visual:
    """A mesh or primitive of a body. pose: in the body's frame, of a static one in the world, xyzw. colour: 0 to 1."""

    name: str
    body: int
    kind: ShapeType
    pose: Sequence[float]
    size: Sequence[float] = (0.0, 0.0, 0.0)
    mesh: TriangleMesh | None = None
    colour: Sequence[float] = GREY


def with_visuals(
    model: Model, imports: Sequence[SceneImport], options: SceneOptions
) -> tuple[Model, np.ndarray, tuple[str, ...]]:
    """The model with its visual geometry as further shapes, their colours uint8[V, 3], and notes of what is left out.

    Only of one scene whose worlds have one origin.
    """
    notes: list[str] = []
    single = len(imports) == 1 and model.world_shift is None
    try:
        visuals = list(_visuals(imports[0], model, options, notes)) if single else []
    except (ValueError, LookupError, ElementTree.ParseError) as error:  # a run does not read what is only drawn
        visuals = []
        notes.append(f"visual meshes are not drawn: {error}")
    faces = sum(len(visual.mesh.face) for visual in visuals if visual.mesh is not None)
    if faces > MAX_FACES:
        notes.append(f"visual meshes are not drawn: they have {count(faces)} triangles, more than {count(MAX_FACES)}")
        visuals = []
    colours = np.rint(255.0 * np.array([visual.colour for visual in visuals]).reshape(-1, 3)).astype(np.uint8)
    if not visuals:
        return model, colours, tuple(notes)
    meshes = {id(visual.mesh): visual.mesh for visual in visuals if visual.mesh is not None}
    number = {key: len(model.meshes) + k for k, key in enumerate(meshes)}
    body, shapes = np.array([visual.body for visual in visuals], np.int32), model.shapes
    template = np.where(body < 0, int(model.world_template[0]), model.bodies.template[body] if len(model.bodies) else 0)
    extended = replace(
        shapes,
        path=(*shapes.path, *(visual.name for visual in visuals)),
        type=np.append(shapes.type, [visual.kind for visual in visuals]),
        body=np.append(shapes.body, body),
        template=np.append(shapes.template, template),
        pose=np.concatenate([shapes.pose, [visual.pose for visual in visuals]]),
        size=np.concatenate([shapes.size, [visual.size for visual in visuals]]),
        mesh=np.append(shapes.mesh, [number.get(id(visual.mesh), -1) for visual in visuals]),
    )
    return replace(model, shapes=extended, meshes=(*model.meshes, *meshes.values())), colours, tuple(notes)


def _visuals(imported: Any, model: Model, options: SceneOptions, notes: list[str]) -> Iterator[Visual]:
    from collidecli.importers.mujoco.compile import is_urdf

    if hasattr(imported, "stage"):
        return _of_usd(imported, model)
    text = imported.text.encode() if imported.text else Path(imported.path).read_bytes()
    return _of_urdf(imported, text, model, options, notes) if is_urdf(text) else _of_mjcf(imported)


def _mesh(vertex: np.ndarray, face: np.ndarray) -> TriangleMesh:
    return TriangleMesh(np.asarray(vertex, np.float64), np.zeros(3), np.asarray(face, np.int32), is_solid=False)


def _of_mjcf(imported: Any) -> Iterator[Visual]:
    """Geoms that collide with nothing, of the groups that MuJoCo's viewer shows."""
    from collidecli.importers.mujoco.scene import SHAPE_OF

    model, meshes = imported.mj_model, {}
    for geom in np.flatnonzero((imported.shape_row < 0) & (model.geom_group < HIDDEN_GROUPS)).tolist():
        kind, data = SHAPE_OF.get(int(model.geom_type[geom])), int(model.geom_dataid[geom])
        colour = model.mat_rgba[model.geom_matid[geom]] if model.geom_matid[geom] >= 0 else model.geom_rgba[geom]
        if kind in (None, ShapeType.PLANE, ShapeType.HEIGHTFIELD) or colour[3] == 0.0:
            continue
        pose = (*model.geom_pos[geom], *model.geom_quat[geom][WXYZ_TO_XYZW])
        body = int(imported.body_row[model.geom_bodyid[geom]])
        name = model.geom(geom).name or f"{model.body(model.geom_bodyid[geom]).name}/geom#{geom}"
        size, mesh = tuple(model.geom_size[geom]), None
        if kind == ShapeType.CONVEX_MESH:
            if data not in meshes:
                mesh_of_geom = model.mesh(data)
                vertex = model.mesh_vert[mesh_of_geom.vertadr[0] : mesh_of_geom.vertadr[0] + mesh_of_geom.vertnum[0]]
                face = model.mesh_face[mesh_of_geom.faceadr[0] : mesh_of_geom.faceadr[0] + mesh_of_geom.facenum[0]]
                meshes[data] = _mesh(vertex, face)
            kind, size, mesh = ShapeType.MESH, (0.0, 0.0, 0.0), meshes[data]
        yield Visual(name, body, kind, pose, size, mesh, colour[:3].tolist())


def _of_urdf(imported: Any, text: bytes, model: Model, options: SceneOptions, notes: list[str]) -> Iterator[Visual]:
    """The visual elements of links; MuJoCo reads none. trimesh reads their meshes, Collada with pycollada."""
    from collidecli.importers.mujoco.compile import euler_quaternions
    from collidecli.importers.mujoco.urdf import package_file

    folder, row = os.path.dirname(imported.path), {path: n for n, path in enumerate(model.bodies.path)}
    entries, unread = AssetMap(options.asset_map, imported.path), dict[str, str]()

    @cache
    def read(file: str) -> tuple[TriangleMesh, Sequence[float]] | None:
        file = file.removeprefix("file://")
        path = entries.replaced(file) or package_file(file, folder, options.package_path)
        try:
            import trimesh

            read_mesh: Any = trimesh.load(path or os.path.join(folder, file), force="mesh")
            return _mesh(read_mesh.vertices, read_mesh.faces), [
                item / 255.0 for item in read_mesh.visual.main_color[:3].tolist()
            ]
        except Exception as error:  # trimesh raises what its readers raise
            unread.setdefault(file, " ".join(str(error).split()) or type(error).__name__)
            return None

    root = ElementTree.fromstring(text)
    colours = {item.get("name", ""): item.find("color") for item in root.iter("material") if len(item)}
    for link in root.iter("link"):
        for number, visual in enumerate(link.iter("visual")):
            origin, geometry, material = (visual.find(name) for name in ("origin", "geometry", "material"))
            where = {} if origin is None else origin.attrib
            angles = np.array([_numbers(where.get("rpy", "0 0 0"))])
            pose = (*_numbers(where.get("xyz", "0 0 0")), *euler_quaternions(angles, ["XYZ"])[0][WXYZ_TO_XYZW])
            element = geometry[0] if geometry is not None and len(geometry) else None
            if element is None or link.get("name") not in row:
                continue
            painting = None if material is None else material.find("color")
            painting = colours.get(material.get("name", "")) if painting is None and material is not None else painting
            colour = GREY if painting is None else _numbers(painting.get("rgba", "0.7 0.7 0.7 1"), 4)[:3]
            place = f"{link.get('name')}/visual#{number}", row[str(link.get("name"))]
            radius, length = (float(element.get(name, 0.0)) for name in ("radius", "length"))
            if element.tag == "mesh" and (meshed := read(element.get("filename", ""))) is not None:
                mesh, painted = meshed
                scale = _numbers(element.get("scale", "1 1 1"))
                mesh = mesh if scale == [1.0, 1.0, 1.0] else _mesh(mesh.vertex * scale, mesh.face)
                yield Visual(*place, ShapeType.MESH, pose, mesh=mesh, colour=painted if painting is None else colour)
            elif element.tag == "box":
                size = [0.5 * item for item in _numbers(element.get("size", "0 0 0"))]
                yield Visual(*place, ShapeType.BOX, pose, size, colour=colour)
            elif element.tag in ("sphere", "cylinder"):
                kind = ShapeType.SPHERE if element.tag == "sphere" else ShapeType.CYLINDER
                yield Visual(*place, kind, pose, (radius, 0.5 * length, 0.0), colour=colour)
    if unread:
        file, reason = next(iter(unread.items()))
        notes.append(f"{len(unread)} visual meshes are not drawn: {file}: {reason}")


def _numbers(text: str, count: int = 3) -> list[float]:
    numbers = [float(word) for word in text.split()]
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise ValueError(f"'{text}' is not {count} numbers")
    return numbers


def _of_usd(imported: Any, model: Model) -> Iterator[Visual]:
    """Meshes below rigid bodies that are drawn and are no colliders, at the time of the bodies' resting poses."""
    from pxr import Usd, UsdGeom

    from collidecli.importers.usd.meshes import MeshContents

    time, meshes = Usd.TimeCode.EarliestTime(), MeshContents()
    placed, row = UsdGeom.XformCache(time), {path: n for n, path in enumerate(model.bodies.path)}
    colliders = {path.split("#")[0] for path in imported.shape_of}
    for prim in Usd.PrimRange(imported.stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()):
        path, body = str(prim.GetPath()), prim
        if not prim.IsA(UsdGeom.Mesh) or path in colliders:
            continue
        while body and str(body.GetPath()) not in row:
            body = body.GetParent()
        drawn = UsdGeom.Mesh(prim)
        if not body or drawn.ComputeVisibility(time) == "invisible" or drawn.ComputePurpose() not in DRAWN_PURPOSES:
            continue
        try:
            content = meshes.read(prim, path)
            triangle = content.triangle
        except InputError:  # a mesh that no collider has may be damaged
            continue
        matrix = np.array(placed.GetLocalToWorldTransform(prim)) * imported.metres_per_unit
        world = content.point @ matrix[:3, :3] + matrix[3, :3]
        number = row[str(body.GetPath())]
        local = moved_points(inverse_poses(model.bodies.pose[number]), world)
        painted = drawn.GetDisplayColorAttr().Get(time)
        colour = np.clip(tuple(painted[0]) if painted else GREY, 0.0, 1.0).tolist()
        yield Visual(path, number, ShapeType.MESH, UNMOVED, mesh=_mesh(local, triangle), colour=colour)


# Scene and motion of a contact set, found by name and by hash; poses and contacts of a view's frames.

MOTION_ENDINGS = sum(ENDINGS.values(), ())
MAX_BYTES = 4 << 30
"""Total size of the files that are read to find a motion by its hash."""
ANYWAY = "or draw it nevertheless with --allow-mismatch"
POINTS = "or draw only the contacts with --points-only"


@dataclass(frozen=True)
class Sources:
    """Scene and motion of a view. notes: warnings about them.

    scene: None if only the contacts are drawn. frame_of: int[F], frame of the motion for each frame of the contact set.
    """

    scene: LoadedScene | None
    motion: Motion | None
    scene_files: tuple[str, ...]
    motion_file: str
    frame_of: Sequence[int]
    notes: tuple[str, ...]

    def close(self) -> None:
        if self.motion is not None:
            self.motion.close()


def find_sources(contacts: ContactSet, scene: str, trajectory: str, allow_mismatch: bool, alone: bool) -> Sources:
    """Scene and motion of a contact set: the given files, else files in its folder or the current folder.

    The scene may also be in the folder above that of the contact set. scene, trajectory: files, or "" to search for
    them. alone: use neither.

    Raises InputError for a scene or motion with another hash, unless `allow_mismatch`, and for a scene or motion
    without the shapes, worlds or frames of the contact set.
    """
    if alone:
        return _without(contacts)
    folders = _folders(contacts.path)
    above = Path(contacts.path).resolve().parent.parent
    places = folders if above in map(Path.resolve, folders) else [*folders, above]
    files = (scene,) if scene else _named(contacts.scene, places)
    motion_file = trajectory or _recording(contacts, [*folders, *_folders(*files)[:-1]])
    carried = Path(contacts.scene).suffix.lower() not in (*scenes.USD_ENDINGS, *scenes.MUJOCO_ENDINGS)
    if carried and not scene:
        if not motion_file:
            return _without(contacts, f"{contacts.scene}, which carries the scene,", folders, "-t")
        files = ()
    elif not files:
        return _without(contacts, f"the scene {contacts.scene}", places, "--scene")
    if contacts.trajectory_sha256 and not motion_file:
        return _without(contacts, "the recording of the run", folders, "-t")
    loaded, notes = _loaded(contacts, files, motion_file, allow_mismatch)
    motion, more = _motion(contacts, loaded, motion_file, allow_mismatch)
    try:
        frame_of = _frames(contacts, motion, motion_file or loaded.name)
    except BaseException:
        motion.close()
        raise
    return Sources(loaded, motion, tuple(files), motion_file, frame_of, (*loaded.warnings, *notes, *more))


def _without(contacts: ContactSet, missing: str = "", folders: Sequence[Path] = (), option: str = "") -> Sources:
    """No scene. missing: what was not found in some folders, to be given by an option; "" if nothing was searched."""
    where = " nor in ".join("this folder" if str(folder) == "." else str(folder) for folder in folders)
    note = f"{missing} is not in {where}: give it with {option}; contacts are drawn without shapes"
    return Sources(None, None, (), "", range(contacts.frame_count), (note,) if missing else ())


def _folders(*files: str) -> list[Path]:
    folders: dict[str, Path] = {}
    for folder in (*(Path(file).parent for file in files), Path()):
        folders.setdefault(os.path.realpath(folder), folder)
    return list(folders.values())


def _named(name: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """The scene files of a contact set, in the first folder with all of them; their names are joined by spaces."""
    for folder in folders:
        for names in ([name], name.split(" ")):
            files = [folder / file_name for file_name in names if file_name]
            if files and all(file.is_file() for file in files):
                return tuple(str(file) for file in files)
    return ()


def _recording(contacts: ContactSet, folders: Iterable[Path]) -> str:
    """The file with the hash of the run's recording; "" without a recording, or if it is not found."""
    if not contacts.trajectory_sha256:
        return ""
    left, seen = MAX_BYTES, {os.path.realpath(contacts.path)}
    for folder in folders:
        # Small files first, as it takes seconds to read a large recording.
        files = [file for file in folder.iterdir() if file.suffix.lower() in MOTION_ENDINGS and file.is_file()]
        for size, file in sorted((file.stat().st_size, file) for file in files):
            if os.path.realpath(file) in seen or size > left or not os.access(file, os.R_OK):
                continue
            seen.add(os.path.realpath(file))
            left -= size
            if file_sha256(file) == contacts.trajectory_sha256:
                return str(file)
    return ""


def _loaded(
    contacts: ContactSet, files: Sequence[str], motion_file: str, allow_mismatch: bool
) -> tuple[LoadedScene, list[str]]:
    config = contacts.config
    worlds = config.get("worlds")
    scene = scenes.load_scene(
        files,
        worlds if isinstance(worlds, int) and len(files) < 2 else None,
        bool(config.get("static_pairs", False)),
        motion_file or None,
        scenes.recorded_options(contacts, SceneOptions),
        scenes.recorded_options(contacts, RecordingOptions),
    )
    model, where = scene.model, " ".join(files) or motion_file
    notes = []
    if scene.sha256 != contacts.scene_sha256:
        what = f"this is not the scene of {contacts.path}: its files differ"
        if not allow_mismatch:
            raise InputError(what, where, f"give the scene of the run with --scene, {ANYWAY}, {POINTS}")
        notes.append(f"{where}: {what}; what is drawn may be wrong")
    if model.shapes.path != contacts.shapes.path or model.world_count != contacts.world_count:
        ours, theirs = f"{len(model.shapes)} shapes", f"{len(contacts.shapes)}"
        what = f"it has {ours} in {model.world_count} worlds, and the contact set {theirs} in {contacts.world_count}"
        if len(model.shapes) == len(contacts.shapes) and model.world_count == contacts.world_count:
            what = "its shapes have other names than those of the contact set"
        raise InputError(what, where, f"give the scene of the run with --scene, {POINTS}")
    return scene, notes


def _motion(
    contacts: ContactSet, scene: LoadedScene, motion_file: str, allow_mismatch: bool
) -> tuple[Motion, list[str]]:
    options = scenes.recorded_options(contacts, RecordingOptions)
    may_ignore = scene.recording is not None and "ignore_particles" in scene.recording.OPTIONS
    ignored = may_ignore and (options.ignore_particles or not len(scene.model.particles))
    motion = scene.motion(replace(options, ignore_particles=ignored))
    sha256 = motion.sha256 if motion_file else ""
    if sha256 == contacts.trajectory_sha256:
        return motion, list(motion.warnings)
    what = f"this is not the recording of {contacts.path}: the hashes differ"
    if not contacts.trajectory_sha256:
        what = f"{contacts.path} is of the scene's own motion, not of a recording"
    if not allow_mismatch:
        motion.close()
        raise InputError(what, motion_file, f"give the recording of the run with -t, {ANYWAY}, {POINTS}")
    return motion, [*motion.warnings, f"{motion_file}: {what}; what is drawn may be wrong"]


def _frames(contacts: ContactSet, motion: Motion, where: str) -> Sequence[int]:
    """Frames of the motion with the steps and times of the contact set's frames, in its order."""
    if len(motion.time) == contacts.frame_count and (motion.time == contacts.time).all():
        return range(contacts.frame_count)
    frame_of_step = {step: n for n, step in reversed(list(enumerate(motion.step.tolist())))}
    frames = [frame_of_step.get(step, -1) for step in contacts.step.tolist()]
    wrong = [n for n, at in enumerate(frames) if at < 0 or motion.time[at] != contacts.time[n]]
    if wrong:
        what = f"it has no frame of step {contacts.step[wrong[0]]} at {contacts.time[wrong[0]]:g} s"
        raise InputError(what, where, f"give the recording of the run with -t, {POINTS}")
    return frames


FORMATS = {"page": (".html", ".htm"), "rerun": (".rrd",)}
"""Extensions of the files of a view, the default one first."""
VIEWS = "views"
"""Folder of views in the cache folder."""


@dataclass(frozen=True)
class ViewRequest:
    """Contact set, and scene and trajectory of its run; "" searches for them. frames: A:B:S, "" is all.

    against: a second contact set of the same shapes, frames and worlds, drawn in a colour of its own.
    allow_mismatch: draw a scene and a motion with other hashes. points_only: draw neither. to: one of FORMATS. export:
    the written file; "" is one in the cache folder. worlds: () is the first ones.
    """

    file: str
    scene: str = ""
    trajectory: str = ""
    frames: str = ""
    allow_mismatch: bool = False
    points_only: bool = False
    to: str = "page"
    export: str = ""
    worlds: Sequence[int] = ()
    against: str = ""
    force: bool = False

    @property
    def output(self) -> str:
        """The file that is written: for each contact set the same one in the cache folder, if none is named."""
        if self.export:
            return self.export
        name = f"{Path(self.file).stem}-{hashlib.sha256(os.path.realpath(self.file).encode()).hexdigest()[:8]}"
        return str(cache_folder().parent / VIEWS / f"{name}{FORMATS[self.to][0]}")


@dataclass(frozen=True)
class ViewResult(Result, schema="collide.view/1"):
    """Contents of a view. scene: its files; None without a scene. trajectory: None without a recording.

    shapes: drawn ones. group_rows: rows of each table beside /rigid_contacts, by name. touching_pairs: pairs that touch
    in any frame. written, written_bytes: the file of the view.
    """

    file: str
    scene: list[str] | None
    trajectory: str | None
    shapes: int
    frames: int
    worlds: int
    contacts: int
    group_rows: dict[str, int]
    touching_pairs: int
    notes: list[str]
    written: str = ""
    written_bytes: int = 0


@dataclass(frozen=True)
class View:
    """Frames and touches of an open contact set, for the viewer and for pages."""

    frames: ViewFrames
    touches: TouchList
    title: str
    up_axis: str
    result: ViewResult


@contextmanager
def opened_view(request: ViewRequest, progress: Progress = None) -> Iterator[View]:
    """Opens contact set, scene and motion. Raises InputError for files that cannot be used or do not fit together."""
    if request.points_only and (request.scene or request.trajectory):
        raise InputError("--points-only draws neither scene nor motion", "", "leave it out, or --scene and -t")
    with ExitStack() as stack:
        stack.enter_context(reading("contact set", request.file))
        contacts = stack.enter_context(ContactSet.open(request.file))
        if not contacts.cell_count:
            raise InputError("it has no frames", request.file)
        sources = find_sources(contacts, request.scene, request.trajectory, request.allow_mismatch, request.points_only)
        try:
            picked = scenes.parse_frames(request.frames, contacts.frame_count)
            model, colours, notes = None, NO_COLOURS, ()
            if sources.scene is not None:
                options = scenes.recorded_options(contacts, SceneOptions)
                model, colours, notes = with_visuals(sources.scene.model, sources.scene.imports, options)
            second = None
            if request.against:
                stack.enter_context(reading("contact set", request.against))
                second = stack.enter_context(ContactSet.open(request.against))
                check_same_cells(contacts, second)
            name = Path(request.against).name
            frames = ViewFrames(contacts, picked, model, colours, sources.motion, sources.frame_of, second, name)
            touches = touches_of([contacts, *([second] if second else [])], request.frames, progress)
            touches.deepest = max(touches.deepest, frames.depth_of_groups)
            notes = [*sources.notes, *notes]
            if frames.model is not None and (coarse := coarse_heightfields(frames.model)):
                notes.append(f"{coarse} of its heightfields are drawn with fewer rows and columns than they have")
            result = ViewResult(
                file=request.file,
                scene=list(sources.scene_files) if sources.scene else None,
                trajectory=sources.motion_file or None,
                shapes=frames.shape_count,
                frames=len(frames),
                worlds=contacts.world_count,
                contacts=contacts.contact_count,
                group_rows=contacts.group_rows,
                touching_pairs=len({pair.shapes for pair in touches}),
                notes=notes,
            )
            yield View(frames, touches, Path(request.file).name, contacts.up_axis, result)
        finally:
            sources.close()


def check_same_cells(contacts: ContactSet, second: ContactSet) -> None:
    """Raises InputError for a second set of other shapes, frames or worlds."""
    differs = {
        "shapes": second.shapes.path != contacts.shapes.path,
        "worlds": second.world_count != contacts.world_count,
        "frames": not np.array_equal(second.time, contacts.time),
    }
    for what in (what for what, is_other in differs.items() if is_other):
        fix = f"give a contact set of the same scene, motion and --frames as {contacts.path}"
        raise InputError(f"its {what} are not those of {contacts.path}", second.path, fix)


def touches_of(sets: Sequence[ContactSet], frames: str = "", progress: Progress = None) -> TouchList:
    """The touching pairs of contact sets of the same cells; intervals of a pair are those of the first set with it."""
    lists = []
    for contacts in sets:
        stream = EventStream(contacts, EventOptions(frames=frames, with_particles=False, by_name=False))
        lists.append(TouchList(Intervals.chained(*stream.batches(progress)), stream.keys))
    for other in lists[1:]:
        lists[0].add_missing(other)
    return lists[0]


def write_view(view: View, request: ViewRequest, progress: Progress = None) -> ViewResult:
    """Writes the view of one or more worlds. Raises InputError, OutputError."""
    worlds_text, output, notes = numbered(view.frames.world_count, "world"), request.output, []
    for world in request.worlds:
        if not world < view.frames.world_count:
            raise InputError(f"world {world} does not exist", "--world", f"the contact set has {worlds_text}")
    worlds = request.worlds or first_worlds(view.frames)
    if not request.worlds and len(worlds) < view.frames.world_count:
        notes.append(f"the view has {numbered(len(worlds), 'world')} of {worlds_text}: choose others with --world")
    if not request.export:
        try:
            os.makedirs(os.path.dirname(output), 0o700, exist_ok=True)
        except OSError as error:
            what = f"the folder cannot be created: {error.strerror}"
            raise OutputError(what, output, "give --export FILE") from error
    with AtomicOutput(output, request.force or not request.export) as stream:
        if request.to == "rerun":
            from collidecli.report.view.rerun import write_recording

            write_recording(stream, view.frames, view.touches, view.title, view.up_axis, worlds, progress)
        else:
            page = view_page(view.frames, view.touches, view.title, view.up_axis, worlds, progress)
            stream.write(page.encode())
        stream.commit()
    size = os.path.getsize(output)
    return replace(view.result, written=output, written_bytes=size, notes=[*view.result.notes, *notes])
