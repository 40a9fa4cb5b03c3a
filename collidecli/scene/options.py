"""Options of a run, each declared once, with the choices that options of verbs have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

from collidecli.errors import InputError
from collidecli.scene.name_patterns import split_patterns
from collidecli.scene.option_values import (
    BROAD_PHASES,
    DEFAULT_BETAS,
    DEFAULT_CACHE_LIMIT,
    DEFAULT_RESOLUTION,
    DEFAULT_RINGS,
    DEFAULT_STIFFNESS,
    DEFAULT_SWEEP_TOLERANCE,
    GAP_RULES,
    HYDRO_CHOICES,
    HYDRO_FALLBACKS,
    LEAST_RESOLUTION,
    MJCF_MARGINS,
    MOST_BETAS,
    MOST_RINGS,
    RESOLUTION_LIMIT,
    SELF_COLLISIONS,
)

if TYPE_CHECKING:  # the help of a verb imports no NumPy
    from collidecli.scene.contact_columns import Column
    from collidecli.scene.model import Model

EULER_ORDERS = tuple(
    f"{frame}-{axes}"
    for frame in ("fixed", "body")
    for axes in ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx")
)
"""Axes of the world, or of the body as it is turned so far."""
CONTACTS = "Contacts"
HYDRO = "Hydroelastic contacts"
STEPS = "Contacts between frames"
RECORDING = "Recording"
SCENE = "Scene"
SPEED = "Speed; no effect on contacts"
CACHE = "Cache of signed distance fields, hulls and convex parts"


@dataclass(frozen=True)
class Option:
    """The declaration of an option, metadata of a field of an option class.

    The command line, `collide.toml`, variables, the Python signatures, the checks and the
    configuration of a contact set follow from it. help: its line in `--help`, under the heading
    `section`. kind: of its value, a key of `cli.options.KINDS`; "" is a flag, a choice or a text.
    choices: values of a choice. metavar: of its value. flags: names on the command line, if not of
    the field. is_stored: whether a configuration has its default value too. of_reduction: it
    applies only to reduced contacts. without_value: its value where the command line gives none; ""
    requires one. is_repeated: it may be given several times, and its values are a tuple.
    """

    help: str
    section: str
    kind: str = ""
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    flags: str = ""
    is_stored: bool = False
    of_reduction: bool = False
    without_value: str = ""
    is_repeated: bool = False


def _declared(section: str, default: Any, help: str, **attributes: Any) -> Any:
    return field(default=default, metadata={"option": Option(help, section, **attributes)})


_contact = partial(_declared, CONTACTS)
_stored = partial(_contact, is_stored=True)
_reduction = partial(_stored, of_reduction=True)
_hydro = partial(_declared, HYDRO)
_between = partial(_declared, STEPS)
_speed = partial(_declared, SPEED)
_scene = partial(_declared, SCENE)
_recording = partial(_declared, RECORDING)
_names = partial(_scene, (), kind="names")
_pairs = partial(_scene, (), kind="pairs", is_repeated=True, metavar="A,B")
_recorded_names = partial(_recording, (), kind="names", metavar="NAME,...")


def declared_options(kind: type) -> dict[str, Option]:
    """The options of an option class by name, in the order of `--help`."""
    return {
        attribute.name: attribute.metadata["option"]
        for attribute in fields(kind)
        if attribute.metadata
    }


OF_CONTACTS = (
    "narrow_phase",
    "max_contacts_per_pair",
    "reduce_contacts",
    "sticky_contacts",
    "contact_ids",
    "contact_id_angle",
    "hydro",
    "hydro_surface",
    "hydro_reduce",
    "sweep",
)
"""Options of contacts of shapes, which do not go with those that find pairs alone."""
OF_PARTICLES = ("soft_gap", "soft_elements", "self_contacts")
"""Options of contacts of particles, which do not go with `candidates_only`."""


def _check_length(name: str, value: float) -> None:
    from collidecli.scene.shape_config import check_length

    check_length(name, value, "options")


def _check_declared(options: ContactOptions | EngineOptions) -> None:
    """Raises InputError for an unknown choice, an invalid length or an invalid count."""
    for name, option in declared_options(type(options)).items():
        value = getattr(options, name)
        if option.choices and value is not None:
            if value not in option.choices:
                raise InputError(
                    f"{name} is {value!r}", "options", f"give one of: {', '.join(option.choices)}"
                )
        elif option.kind == "length" and value is not None:
            _check_length(name, value)
        elif option.kind not in ("count", "whole", "size", "limit"):
            continue
        elif (
            value is None or not hasattr(value, "__index__") or isinstance(value, bool) or value < 0
        ):
            fix = "give an integer of at least zero; zero sets no limit"
            raise InputError(f"{name} is {value!r}", "options", fix)


@dataclass(frozen=True)
class ContactOptions:
    """The options that can change the contact set; lengths [m].

    gap, margin: replace the scene's values of every shape; None keeps those. gap_rule: replaces the
    scene's rule; None keeps it. max_contacts_per_pair: number of deepest contacts kept after the
    reduction; 0 keeps all. reduce_pairs: pairs of "meshes", hulls included, or "all". betas:
    weights of depth against position, one kept set for each. self_contacts: 0 finds none.
    self_contact_rest: None is self_contacts. sticky_contacts: 0 disables; it adds ids too.
    contact_id_angle: degrees, None is any.
    touch_only: the pairs are the group `touches`; hydroelastic shapes are tested as others.
    candidates_only: the pairs are the group `candidates`; no contact is computed.
    """

    gap: float | None = _stored(
        None,
        "Report contacts up to this distance, for every shape. [default: as authored]",
        kind="length",
    )
    margin: float | None = _stored(
        None, "Inflate every shape by this length. [default: as authored]", kind="length"
    )
    gap_rule: str | None = _stored(
        None, "How the two gaps of a pair combine. [default: the scene format's]", choices=GAP_RULES
    )
    static_pairs: bool = _stored(False, "Find contacts between two static shapes too.")
    max_contacts_per_pair: int = _stored(
        0, "Keep the N deepest contacts. [default: 0, all]", kind="count"
    )
    reduce_contacts: bool = _stored(
        False,
        "Reduce the contacts of each mesh or hull pair to the relevant ones.",
        flags="--reduce-contacts/--no-reduce-contacts",
    )
    reduce_pairs: str = _reduction("meshes", "Pairs to reduce.", choices=("meshes", "all"))
    reduce_by: str = _declared(
        CONTACTS,
        "shapes",
        "Reduce the contacts of a pair of shapes, or of a pair of bodies, together.",
        choices=("shapes", "bodies"),
        of_reduction=True,
    )
    betas: tuple[float, ...] = _reduction(
        DEFAULT_BETAS,
        "Weights of depth against position. [default:"
        f" {','.join(f'{beta:g}' for beta in DEFAULT_BETAS)}]",
        kind="numbers",
        metavar="B,...",
    )
    normal_matching: bool = _reduction(
        False, "Rotate the kept normals so that their total force is that of all contacts."
    )
    moment_matching: bool = _reduction(False, "Add an anchor contact, and a column friction_scale.")
    anchor_contact: bool = _reduction(
        False, "Add a contact that represents all contacts of a pair."
    )
    soft_gap: float = _contact(
        0.01, "Report contacts of particles up to this distance. [default: 0.01]", kind="length"
    )
    soft_elements: str = _contact(
        "all",
        "Contacts of the vertices of cables, cloths and soft bodies with shapes, or of edges and"
        " faces too; or the nearest contact of each object and shape alone.",
        choices=("vertices", "all", "nearest"),
    )
    self_contacts: float = _contact(
        0.0, "Find contacts of cables, cloths and soft bodies up to this distance.", kind="length"
    )
    self_contact_rings: int = _contact(
        DEFAULT_RINGS, "Skip elements within N edges. [default: 1]", kind="whole"
    )
    self_contact_rest: float | None = _contact(
        None, "Skip elements nearer than this at rest. [default: as --self-contacts]", kind="length"
    )
    sticky_contacts: float = _stored(
        0.0, "Keep the previous position of contacts that moved less than this.", kind="length"
    )
    touch_only: bool = _contact(False, "Find which pairs of shapes touch, without their contacts.")
    candidates_only: bool = _contact(
        False, "Write the pairs of shapes that the broad phase finds, without a narrow phase."
    )
    contact_ids: bool = _stored(False, "Add a column of ids that persist from frame to frame.")
    contact_id_angle: float | None = _contact(
        None,
        "Match no contacts whose normals turn by more than this from frame to frame, in degrees."
        " [default: any angle]",
        kind="angle",
    )
    narrow_phase: str = _stored(
        "gjk", "Method for convex pairs without a closed form.", choices=("gjk", "mpr")
    )

    hydro: str = _hydro(
        "authored",
        "Shapes with a pressure field: those that the scene marks, or all.",
        choices=HYDRO_CHOICES,
    )
    hydro_stiffness: float = _hydro(
        DEFAULT_STIFFNESS,
        "Of shapes without their own, in N/m^3; inf is rigid. [default: 1e10]",
        kind="stiffness",
    )
    hydro_resolution: int = _hydro(
        DEFAULT_RESOLUTION,
        "Voxels along the longest side of a shape, 4 to 512. [default: 64]",
        kind="resolution",
    )
    hydro_surface: bool = _hydro(False, "Write the faces of the contact surfaces, /hydro_faces.")
    hydro_reduce: bool = _hydro(False, "Write contacts with the total force of each surface too.")
    hydro_fallback: str = _hydro(
        "point", "Open meshes have point contacts, or are refused.", choices=HYDRO_FALLBACKS
    )
    output_contact_surface: bool = _hydro(False, "Newton's name of --hydro-surface.")
    buffer_fraction: float | None = _hydro(None, "Option of Newton; no effect.", kind="share")
    margin_contact_area: float | None = _hydro(None, "Option of Newton; no effect.", kind="area")

    sweep: bool = _between(
        False, "Find the shapes, particles and elements that touch between two frames too."
    )
    sweep_tolerance: float = _between(
        DEFAULT_SWEEP_TOLERANCE,
        "They touch at this distance or less. [default: 1e-6]",
        kind="length",
    )

    def checked(self) -> ContactOptions:
        """These options; lengths may be texts with a unit, and become metres. Raises InputError for
        an unknown choice, an invalid length or an invalid count."""
        lengths = [
            name
            for name, option in declared_options(ContactOptions).items()
            if option.kind == "length"
        ]
        texts = {name: value for name in lengths if isinstance(value := getattr(self, name), str)}
        if texts:
            from collidecli.scene.arguments import checked_metres  # late: it imports numpy

            return replace(
                self, **{name: checked_metres(value, name) for name, value in texts.items()}
            ).checked()
        _check_declared(self)
        self._check_reduction()
        self._check_bodies()
        self._check_hydro()
        self._check_particles()
        self._check_sweep()
        self._check_pairs()
        self._check_tracking()
        return self

    @property
    def rest_distance(self) -> float:
        """Elements of one object that are nearer than this at rest have no contact with each other
        [m]."""
        return self.self_contacts if self.self_contact_rest is None else self.self_contact_rest

    def _check_sweep(self) -> None:
        check_sweep_tolerance(self.sweep_tolerance)
        if not self.sweep and self.sweep_tolerance != DEFAULT_SWEEP_TOLERANCE:
            fix = "give --sweep (in Python sweep=True) too"
            raise InputError(
                "sweep_tolerance applies to contacts between frames, which are off", "options", fix
            )

    def _check_tracking(self) -> None:
        angle = self.contact_id_angle
        if angle is None:
            return
        from collidecli.scene.argument_types import is_number

        if not (is_number(angle) and 0.0 <= angle <= 180.0):
            fix = "give a number of degrees from 0 to 180"
            raise InputError(f"contact_id_angle is {angle!r}", "options", fix)
        if not self.tracks_contacts:
            what = "contact_id_angle applies to the matching of contacts, which is off"
            fix = "give --contact-ids or --sticky-contacts (in Python contact_ids=True) too"
            raise InputError(what, "options", fix)

    @property
    def finds_pairs_alone(self) -> str:
        """The option by which pairs of shapes are found in place of their contacts, or ""."""
        if self.touch_only:
            return "touch_only"
        return "candidates_only" if self.candidates_only else ""

    def _check_pairs(self) -> None:
        """Raises InputError for an option of contacts where pairs alone are found."""
        given = self.finds_pairs_alone
        if not given:
            return
        if self.touch_only and self.candidates_only:
            what = "touch_only tests the candidates, and candidates_only does not"
            raise InputError(what, "options", "leave one of the two out")
        of_particles = OF_PARTICLES if self.candidates_only else ()
        for name in (*OF_CONTACTS, *of_particles):
            if getattr(self, name) != getattr(ContactOptions, name):
                what = f"{name} applies to contacts, and {given} finds pairs alone"
                raise InputError(what, "options", "leave one of the two out")

    def _check_particles(self) -> None:
        if self.self_contact_rings > MOST_RINGS:
            what = f"self_contact_rings is {self.self_contact_rings}"
            raise InputError(what, "options", f"give {MOST_RINGS} at most")
        if not self.self_contacts and (
            self.self_contact_rings != DEFAULT_RINGS or self.self_contact_rest is not None
        ):
            name = (
                "self_contact_rest" if self.self_contact_rest is not None else "self_contact_rings"
            )
            fix = "give --self-contacts METRES (in Python self_contacts=METRES) too"
            raise InputError(
                f"{name} applies to contacts of objects with themselves, which are off",
                "options",
                fix,
            )

    def _check_hydro(self) -> None:
        from collidecli.scene.argument_types import is_integer
        from collidecli.scene.shape_config import check_stiffness

        check_stiffness("hydro_stiffness", self.hydro_stiffness, "options")
        resolution = self.hydro_resolution
        if not (is_integer(resolution) and LEAST_RESOLUTION <= resolution <= RESOLUTION_LIMIT):
            fix = f"give an integer from {LEAST_RESOLUTION} to {RESOLUTION_LIMIT}"
            raise InputError(f"hydro_resolution is {resolution!r}", "options", fix)

    @property
    def writes_surface(self) -> bool:
        """Whether the faces of hydroelastic surfaces are written."""
        return self.hydro_surface or self.output_contact_surface

    def _check_reduction(self) -> None:
        if not (
            0 < len(self.betas) <= MOST_BETAS and all(math.isfinite(beta) for beta in self.betas)
        ):
            raise InputError(
                f"betas are {self.betas}", "options", f"give 1 to {MOST_BETAS} finite numbers"
            )
        if self.reduce_contacts or self.hydro_reduce:
            return
        for name, option in declared_options(ContactOptions).items():
            if option.of_reduction and getattr(self, name) != getattr(ContactOptions, name):
                what = f"{name} applies to the reduction of contacts, which is off"
                raise InputError(
                    what, "options", "give --reduce-contacts (in Python reduce_contacts=True) too"
                )

    def _check_bodies(self) -> None:
        """Raises InputError for options that are of a pair of shapes alone."""
        if not self.reduces_bodies:
            return
        for name in ("normal_matching", "moment_matching", "anchor_contact", "hydro_reduce"):
            if getattr(self, name):
                what = f"{name} is of a pair of shapes, and reduce_by is bodies"
                raise InputError(what, "options", "leave one of the two out")

    @property
    def reduces_bodies(self) -> bool:
        """Whether the contacts of each pair of bodies are reduced together."""
        return self.reduce_contacts and self.reduce_by == "bodies"

    @property
    def stored(self) -> dict[str, Any]:
        """The options in the configuration of a contact set; those of the reduction only if
        contacts are reduced."""
        return {
            name: getattr(self, name)
            for name, option in declared_options(ContactOptions).items()
            if (option.is_stored or getattr(self, name) != getattr(ContactOptions, name))
            and (self.reduce_contacts or not option.of_reduction)
        }

    @property
    def columns(self) -> tuple[Column, ...]:
        """The optional columns that these options add."""
        from collidecli.scene.contact_columns import CONTACT_ID, FRICTION_SCALE, REDUCED_COLUMNS

        columns = (FRICTION_SCALE,) if self.moment_matching and self.reduce_contacts else ()
        columns += (CONTACT_ID,) if self.tracks_contacts else ()
        return (*columns, *REDUCED_COLUMNS) if self.hydro_reduce else columns

    @property
    def tracks_contacts(self) -> bool:
        """Whether contacts are tracked from frame to frame."""
        return self.contact_ids or self.sticky_contacts > 0.0

    def apply(self, model: Model) -> Model:
        """The model with these options' gap, margin and gap rule."""
        import numpy as np

        shapes = model.shapes
        if self.gap is not None:
            shapes = replace(shapes, gap=np.full(len(shapes), float(self.gap)))
        if self.margin is not None:
            shapes = replace(shapes, margin=np.full(len(shapes), float(self.margin)))
        # The override applies to forced pairs too: their own gap and margin are authored values.
        nothing = np.full(len(model.pair_filter.forced), np.nan)
        return replace(
            model,
            shapes=shapes,
            gap_rule=self.gap_rule or model.gap_rule,
            forced_gap=model.forced_gap if self.gap is None else nothing,
            forced_margin=model.forced_margin if self.margin is None else nothing,
        )


@dataclass(frozen=True)
class EngineOptions:
    """Options of the execution, which never change the contacts, but that devices round
    differently.

    device: "" is the CPU. threads: 0 is one a core. memory_limit: bytes for the scratch memory of
    all workers, and for the process while it reads; 0 is half of the free memory. chunk_cells: 0 is
    the engine's choice. cache_dir: "" is the platform's. cache_limit: bytes; 0 keeps none.
    """

    broad_phase: str = _speed("auto", "Algorithm of the broad phase.", choices=BROAD_PHASES)
    pipeline: str = _speed(
        "unified", "'standard' uses --broad-phase explicit.", choices=("standard", "unified")
    )
    device: str = _speed("", "cpu, cuda or cuda:1. [default: cpu]", metavar="NAME")
    threads: int = _speed(
        0, "Number of CPU workers. [default: 0, one per core or by CPU quota]", kind="count"
    )
    memory_limit: int = _speed(
        0,
        "Memory limit, such as 4GiB. [default: 0, half of the free memory]",
        kind="size",
        metavar="SIZE",
    )
    chunk_cells: int = _speed(0, "Cells per chunk. [default: 0, automatic]", kind="count")
    cache_dir: str = _declared(
        CACHE,
        "",
        "Folder of the cache. [default: the cache folder of the platform]",
        metavar="FOLDER",
    )
    cache_limit: int = _declared(
        CACHE,
        DEFAULT_CACHE_LIMIT,
        "Size of the cache; 0B disables it. [default: 1GiB]",
        kind="limit",
        metavar="SIZE",
    )

    def checked(self) -> EngineOptions:
        """These options. Raises InputError for an invalid value and for two options that contradict
        each other."""
        _check_declared(self)
        if self.pipeline == "standard" and self.broad_phase not in ("auto", "explicit"):
            what = (
                "--pipeline standard works on explicit pairs, not on --broad-phase"
                f" {self.broad_phase}"
            )
            raise InputError(what, fix="use --pipeline unified, or leave --broad-phase out")
        return self


@dataclass(frozen=True)
class SceneOptions:
    """Options of the scene importers.

    triggers: patterns of shapes and bodies. include, exclude: each two patterns "A,B"; in Python
    also ("A", "B"). variants: each `prim:set=value`. environments: "" is the importer's default,
    "none" reads the stage as one world. meshes: each "PATTERN=KIND", see `mesh_choices`.
    motion_layer: a USD layer composed with the scene, where the recording is one.
    """

    variants: tuple[str, ...] = _names(
        "USD variants. [default: as authored]", metavar="PRIM:SET=VALUE,..."
    )
    environments: str = _scene(
        "",
        "USD prims that are one world each, or 'none'. [default: /World/envs/env_0 etc.]",
        metavar="PATTERN",
    )
    ignore_missing: bool = _scene(
        False, "Leave out USD references to missing files, with a warning each."
    )
    asset_map: tuple[str, ...] = _names(
        "Replace the prefix OLD of asset paths.", metavar="OLD=NEW,..."
    )
    package_path: tuple[str, ...] = _names(
        "Folders with ROS packages, for package:// paths.", metavar="FOLDER,..."
    )
    floating_base: bool = _scene(False, "Add a free joint to the root link of a URDF.")
    ground: bool = _scene(False, "Add a static plane through the origin, normal to the up axis.")
    include: tuple[str, ...] = _pairs(
        "Only pairs of a shape or body of each of two patterns may touch, where the scene allows"
        " them."
    )
    exclude: tuple[str, ...] = _pairs(
        "Pairs of a shape or body of each of two patterns may not touch; it beats every other rule."
    )
    pairs_file: str = _scene(
        "",
        "File of all pairs that may touch, in place of the scene's filters: lines 'A B', or SRDF.",
        metavar="FILE",
    )
    triggers: tuple[str, ...] = _names(
        "Shapes that are not solid: they touch others, and no depth counts them.",
        metavar="PATTERN,...",
    )
    disabled_pairs: str = _scene(
        "", "SRDF file with pairs of links that may not touch.", metavar="FILE"
    )
    self_collisions: str = _scene(
        "",
        "Whether bodies of one articulation may touch each other. [default: as authored]",
        choices=SELF_COLLISIONS,
    )
    mjcf_margin: str = _scene(
        "",
        "MuJoCo's margin includes the surface, as since 3.9, or is legacy, as before. [default:"
        " included]",
        choices=MJCF_MARGINS,
    )
    meshes: tuple[str, ...] = _names(
        "How meshes collide: exact (their triangles), hull, parts (convex ones), sdf or"
        " sdf:RESOLUTION; the last match counts. [default: hulls in MJCF and URDF, as authored in"
        " USD]",
        metavar="PATTERN=KIND,...",
        is_repeated=True,
    )
    strict_meshes: bool = _scene(False, "Refuse triangle meshes that need repairs.")
    visuals_as_colliders: tuple[str, ...] = _names(
        "Visual meshes and shapes that collide too, by path or body; without patterns all.",
        metavar="[PATTERN,...]",
        without_value="*",
    )
    motion_layer: str = ""

    def __post_init__(self) -> None:
        from collidecli.scene.mesh_choices import mesh_choices

        mesh_choices(self.meshes)
        if self.self_collisions not in ("", *SELF_COLLISIONS):
            raise InputError(
                f"self_collisions is {self.self_collisions!r}",
                fix=f"give {' or '.join(SELF_COLLISIONS)}",
            )
        if self.mjcf_margin not in ("", *MJCF_MARGINS):
            raise InputError(
                f"mjcf_margin is {self.mjcf_margin!r}", fix=f"give {' or '.join(MJCF_MARGINS)}"
            )
        for name in ("include", "exclude"):
            object.__setattr__(self, name, pair_texts(name, getattr(self, name)))
        other = "disabled_pairs" if self.disabled_pairs else "self_collisions"
        if self.pairs_file and getattr(self, other):
            what = f"--{other.replace('_', '-')} changes filters that --pairs-file replaces"
            raise InputError(what, "options", "leave one of the two out")

    @property
    def included(self) -> tuple[tuple[str, str], ...]:
        """The pairs of patterns of `include`."""
        return split_pairs(self.include)

    @property
    def excluded(self) -> tuple[tuple[str, str], ...]:
        """The pairs of patterns of `exclude`."""
        return split_pairs(self.exclude)


def pair_texts(name: str, given: Any) -> tuple[str, ...]:
    """Pairs of patterns as texts "A,B". Raises InputError for another number of patterns."""
    pairs = (given,) if isinstance(given, str) else given
    texts = tuple(pair if isinstance(pair, str) else ",".join(pair) for pair in pairs)
    for text in texts:
        patterns = split_patterns(text)
        if len(patterns) != 2 or not all(patterns):
            raise InputError(f"{name} is {text!r}", "options", "give two patterns, as 'A,B'")
    return texts


def split_pairs(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The pairs of patterns of `pair_texts`."""
    return tuple((first, second) for first, second in map(split_patterns, texts))


@dataclass(frozen=True)
class RecordingOptions:
    """Properties of a recording that its file lacks; empty where the file has them.

    demos: in order, one world each; () is all. joint_units: "" is that of the file, else radians.
    uneven_demos: demonstrations of unequal lengths are refused (""), "cut" to the shortest, or kept
    whole ("hold"), without contacts after their ends.
    """

    demos: tuple[str, ...] = _recorded_names(
        "Demonstrations to use, one world each: names, patterns such as demo_1*, ranges such as"
        " demo_0..demo_9, masks. [default: all]"
    )
    uneven_demos: str = _recording(
        "",
        "Cut all to the shortest, or keep (hold) all frames of each. [default: refuse them]",
        choices=("cut", "hold"),
    )
    state: str = _recording(
        "",
        "Array or columns of the measured joint positions; * is any text.",
        metavar="ARRAY",
    )
    root: str = _recording("", "Array of the root's poses, where --state is used.", metavar="ARRAY")
    time: str = _recording(
        "", "Array of the times, where --state is used; column of a table.", metavar="ARRAY"
    )
    joint_names: tuple[str, ...] = _recorded_names(
        "Joint names of the recorded positions, in order; - leaves a column out."
    )
    ignore_joints: tuple[str, ...] = _recorded_names(
        "Recorded joints to leave out, which the scene lacks; * is any text."
    )
    joint_units: str = _recording(
        "",
        "Unit of the recorded joint angles; normalised is -100 to 100 of the joint's limits.",
        choices=("radians", "degrees", "normalised"),
    )
    length_units: str = _recording(
        "", "Unit of the recorded lengths. [default: m]", choices=("m", "cm", "mm")
    )
    euler_order: str = _recording(
        "",
        "Order of recorded Euler angles, about fixed axes or those of the body.",
        choices=EULER_ORDERS,
    )
    up_axis: str = _recording(
        "",
        "Up axis of a recorded skeleton's world. [default: y of BVH, z of AMASS]",
        choices=("y", "z"),
    )
    root_offset: str = _recording(
        "",
        "Pelvis of a motion of AMASS in the body model at rest [m]. [default: the scene's]",
        metavar="X,Y,Z",
    )
    joint_scale: tuple[str, ...] = _recording(
        (),
        "Position of a joint = recorded value * SCALE + OFFSET, in rad or m.",
        kind="names",
        metavar="NAME=SCALE[:OFFSET],...",
    )
    body_names: tuple[str, ...] = _recorded_names("Body names of the recorded poses, in order.")
    strict_bodies: bool = _recording(
        False, "Refuse recorded bodies that the scene lacks. [default: warn, leave them out]"
    )
    prefer: str = _recording(
        "",
        "Which poses to use where bodies and joints are recorded. [default: bodies]",
        choices=("bodies", "joints"),
    )
    quaternion_order: str = _recording(
        "", "Order of the recorded quaternions.", choices=("wxyz", "xyzw")
    )
    state_spec: str = _recording(
        "", "Layout of MuJoCo states, such as FULLPHYSICS or time,qpos,qvel.", metavar="NAME"
    )
    first_axis: str = _recording(
        "",
        "First axis of states of several worlds. [default: by their times]",
        choices=("worlds", "frames"),
    )
    fps: float | None = _recording(None, "Frame rate, in frames per second.", kind="rate")
    ignore_particles: bool = _recording(
        False, "Warn of recorded particles instead of refusing them."
    )
    joint_topics: tuple[str, ...] = _recorded_names(
        "Topics of joint states of a ROS bag. [default: all]"
    )
    trajectory_topic: str = _recording(
        "", "Topic of planned joint trajectories of a ROS bag.", metavar="TOPIC"
    )
    base_from: str = _recording(
        "", "Pose of the root in a ROS bag: tf:FRAME, odom:TOPIC or none.", metavar="SOURCE"
    )
    body_from: tuple[str, ...] = _recording(
        (),
        "Poses of other bodies: BODY=ARRAY, where --state is used; in a ROS bag BODY=tf:FRAME or"
        " BODY=pose:TOPIC.",
        kind="names",
        metavar="BODY=SOURCE,...",
    )
    rate: float | None = _recording(
        None, "Frames a second of a ROS bag. [default: one a message]", kind="rate"
    )
    on_message: str = _recording(
        "", "Topic of a ROS bag with a message a frame. [default: joint states]", metavar="TOPIC"
    )
    clock: str = _recording(
        "", "Times of a ROS bag. [default: header]", choices=("header", "receive")
    )
    max_gap: float | None = _recording(
        None, "Longest gap in an episode of a ROS bag. [default: 1]", kind="duration"
    )
    from_time: float | None = _recording(
        None, "First time of a ROS bag.", kind="seconds", flags="--from"
    )
    to_time: float | None = _recording(
        None, "Last time of a ROS bag.", kind="seconds", flags="--to"
    )


OPTION_GROUPS: dict[str, type] = {
    "contact": ContactOptions,
    "engine": EngineOptions,
    "scene_options": SceneOptions,
    "recording": RecordingOptions,
}
"""Classes of options by the fields of requests that have their values."""


def recorded_option(config: Mapping[str, object], name: str) -> object:
    """An option of a run from its contact set's configuration, in JSON's types; the default if it
    is missing.

    None for a missing option that this version does not have.
    """
    value = config.get(name, _DEFAULTS.get(name))
    return list(value) if isinstance(value, tuple) else value


def recorded_number(config: Mapping[str, object], name: str) -> float | None:
    """An option of a run as a number; None for another value, and for "" in place of a name."""
    value = recorded_option(config, name) if name else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def changed_options(config: Mapping[str, object]) -> dict[str, object]:
    """The options of a run, from its contact set's configuration, that differ from their
    defaults."""
    return {
        name: value
        for name, value in config.items()
        if recorded_option(config, name) != recorded_option({}, name)
    }


_DEFAULTS = {
    "frames": "",
    "columns": (),
    **{
        each.name: each.default
        for kind in (ContactOptions, SceneOptions, RecordingOptions)
        for each in fields(kind)
    },
}


def check_sweep_tolerance(
    tolerance: float, name: str = "sweep_tolerance", where: str = "options"
) -> None:
    """Raises InputError for a tolerance of a sweep that is no positive length. name, where: of the
    argument, in the message."""
    from collidecli.scene.shape_types import LENGTH_LIMIT

    is_number = isinstance(tolerance, Real)
    if not is_number or not 0.0 < tolerance <= LENGTH_LIMIT:
        what = f"{name} is {tolerance:g}" if is_number else f"{name} is {tolerance!r}"
        fix = f"give a length above 0 m and at most {LENGTH_LIMIT:g} m, such as 1e-6"
        raise InputError(what, where, fix)
