"""The values of a run's options, separate from `run_options` so that the command line lists them without NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.arguments import is_integer
from collidecli.scene.model import Model
from collidecli.scene.shape_config import (
    DEFAULT_RESOLUTION,
    DEFAULT_STIFFNESS,
    LEAST_RESOLUTION,
    RESOLUTION_LIMIT,
    check_length,
    check_stiffness,
)
from collidecli.scene.tables import CONTACT_ID, FRICTION_SCALE, REDUCED_COLUMNS, Column

BROAD_PHASES = ("auto", "nxn", "sap", "explicit")
PIPELINES = ("standard", "unified")
NARROW_PHASES = ("gjk", "mpr")
GAP_RULES = ("max", "sum")
CONTACT_FORMATS = (1, 2)
"""Major versions of the contact set format; the first is the default."""
COMPRESSIONS = ("gzip", "none", "lzf", "zstd")
FRAME_MATCHES = ("step", "time", "index")
EVENT_THINGS = ("shapes", "bodies", "particles")
EVENT_COLUMNS = {"shapes": ("shape0", "shape1"), "bodies": ("body0", "body1"), "particles": ("shape", "particle")}
"""Names of the columns that hold the two paths of a pair, by member of EVENT_THINGS."""
LABEL_THINGS = ("bodies", "shapes")
CLEARANCE_THINGS = ("pair", "body", "all")
EVENT_ORDERS = ("begin", "end", "duration", "depth", "contacts")
EXPORT_FORMATS = ("usd", "csv", "parquet", "npz", "newton", "genesis", "dart", "raisim", "mujoco", "jacobian")
GROUP_NAMES = (
    "hydro_patches", "hydro_faces", "soft_contacts", "self_contacts", "sweep", "soft_sweep", "self_sweep", "touches"
)  # fmt: skip
"""Tables of a contact set beside /rigid_contacts."""
SELF_COLLISIONS = ("on", "off")
REDUCE_PAIRS = ("meshes", "all")
DEFAULT_BETAS = (10.0, -0.5)
MOST_BETAS = 8
CHART_KINDS = (
    "contacts", "depth", "pairs", "pair-depths", "depths", "areas", "forces", "pressures", "particles", "stages",
    "phases", "differences", "deviations",
)  # fmt: skip
CHART_FORMATS = ("png", "svg")
CHART_THEMES = ("light", "dark")
HYDRO_CHOICES = ("off", "authored", "all")
HYDRO_FALLBACKS = ("point", "refuse")
SOFT_ELEMENTS = ("vertices", "all")


# Options of a run, apart from its files.

REDUCTION_DEFAULTS = {
    "reduce_pairs": "meshes",
    "betas": DEFAULT_BETAS,
    "normal_matching": False,
    "moment_matching": False,
    "anchor_contact": False,
}
"""Fields of ContactOptions that apply only with reduce_contacts, and their defaults."""
HYDRO_NAMES = (
    "hydro", "hydro_stiffness", "hydro_resolution", "hydro_surface", "hydro_reduce", "sweep", "hydro_fallback",
    "output_contact_surface", "buffer_fraction", "margin_contact_area",
)  # fmt: skip
"""Fields of ContactOptions for hydroelastic contacts; the configuration of a set has those that are not default."""
GROUND = "ground"
"""Name of the plane that the option `ground` adds."""
DEFAULT_CACHE_LIMIT = 1 << 30
DEFAULT_SOFT_GAP = 0.01
DEFAULT_RINGS = 1
MOST_RINGS = 16
PARTICLE_NAMES = ("soft_gap", "soft_elements", "self_contacts", "self_contact_rings", "self_contact_rest")
"""Fields of ContactOptions that apply only to particles."""
DEFAULT_SWEEP_TOLERANCE = 1e-6
SWEEP_NAMES = ("sweep", "sweep_tolerance")
"""Fields of ContactOptions for contacts between frames; the configuration of a set has those that are not default."""


CONTACT_NAMES = (
    "narrow_phase", "max_contacts_per_pair", "reduce_contacts", "sticky_contacts", "contact_ids", "hydro",
    "hydro_surface", "hydro_reduce", "sweep",
)  # fmt: skip
"""Fields of ContactOptions that touch_only excludes."""


@dataclass(frozen=True)
class ContactOptions:
    """The options that can change the contact set.

    gap, margin: replace the scene's values of every shape [m]; None keeps those. gap_rule: replaces the scene's rule;
    None keeps it. max_contacts_per_pair: number of deepest contacts kept after the reduction; 0 keeps all.
    reduce_contacts: keep a subset of each pair's contacts; the options below configure it.
    reduce_pairs: pairs of "meshes", hulls included, or "all". betas: weights of depth against position, one kept set
    for each. normal_matching: rotate the kept normals so that their net force has the direction of all contacts'.
    anchor_contact: add a contact that represents all contacts of a pair. moment_matching: add the anchor contact, and
    a column that scales friction.
    sticky_contacts: a contact keeps its points of the frame before if they moved no farther than this [m]; 0 disables.
    contact_ids: a column of ids that persist over frames; sticky_contacts writes it too.
    hydro: "off", the shapes that are marked as hydroelastic ("authored"), or "all". hydro_stiffness: of shapes without
    their own [N/m^3]. hydro_resolution: voxels along the longest side of a shape. hydro_surface: write /hydro_faces;
    output_contact_surface is Newton's name of it. hydro_reduce: write contacts of the surfaces to /rigid_contacts.
    hydro_fallback: open meshes have point contacts ("point"), or are refused ("refuse"). buffer_fraction,
    margin_contact_area: options of Newton without effect.
    soft_gap: largest distance of a contact of a particle with a shape [m]. soft_elements: contacts of the "vertices" of
    cloths and soft bodies with shapes, or of "all", edges and triangles too.
    self_contacts: largest distance of a contact of cloths and soft bodies with themselves and each other [m]; 0 finds
    none. self_contact_rings: elements within this number of edges of each other have none. self_contact_rest: elements
    of one object that are nearer than this at rest have none [m]; None is self_contacts.
    sweep: find the shapes and particles that touch between frames. sweep_tolerance: they touch at this distance or less
    [m]. touch_only: the pairs of shapes that have a contact, in the group `touches`, and no contacts of shapes.
    Hydroelastic shapes are tested as others.
    """

    narrow_phase: str = "gjk"
    gap: float | None = None
    margin: float | None = None
    gap_rule: str | None = None
    static_pairs: bool = False
    max_contacts_per_pair: int = 0
    reduce_contacts: bool = False
    reduce_pairs: str = "meshes"
    betas: tuple[float, ...] = DEFAULT_BETAS
    normal_matching: bool = False
    moment_matching: bool = False
    anchor_contact: bool = False
    sticky_contacts: float = 0.0
    contact_ids: bool = False
    hydro: str = "authored"
    hydro_stiffness: float = DEFAULT_STIFFNESS
    hydro_resolution: int = DEFAULT_RESOLUTION
    hydro_surface: bool = False
    hydro_reduce: bool = False
    hydro_fallback: str = "point"
    output_contact_surface: bool = False
    buffer_fraction: float | None = None
    margin_contact_area: float | None = None
    soft_gap: float = DEFAULT_SOFT_GAP
    soft_elements: str = "all"
    self_contacts: float = 0.0
    self_contact_rings: int = DEFAULT_RINGS
    self_contact_rest: float | None = None
    sweep: bool = False
    sweep_tolerance: float = DEFAULT_SWEEP_TOLERANCE
    touch_only: bool = False

    def checked(self) -> ContactOptions:
        """These options. Raises InputError for an unknown choice, an invalid length or an invalid count."""
        _check_choice("narrow_phase", self.narrow_phase, NARROW_PHASES)
        if self.gap_rule is not None:
            _check_choice("gap_rule", self.gap_rule, GAP_RULES)
        for name in ("gap", "margin"):
            if getattr(self, name) is not None:
                check_length(name, getattr(self, name), "options")
        _check_count("max_contacts_per_pair", self.max_contacts_per_pair)
        self._check_reduction()
        check_length("sticky_contacts", self.sticky_contacts, "options")
        self._check_hydro()
        self._check_particles()
        self._check_sweep()
        self._check_touches()
        return self

    @property
    def rest_distance(self) -> float:
        """Elements of one object that are nearer than this at rest have no contact with each other [m]."""
        return self.self_contacts if self.self_contact_rest is None else self.self_contact_rest

    def _check_sweep(self) -> None:
        check_sweep_tolerance(self.sweep_tolerance)
        if not self.sweep and self.sweep_tolerance != DEFAULT_SWEEP_TOLERANCE:
            fix = "give --sweep (in Python sweep=True) too"
            raise InputError("sweep_tolerance applies to contacts between frames, which are off", "options", fix)

    def _check_touches(self) -> None:
        if not self.touch_only:
            return
        for name in CONTACT_NAMES:
            if getattr(self, name) != getattr(ContactOptions, name):
                what = f"{name} applies to contacts, and touch_only finds pairs alone"
                raise InputError(what, "options", "leave one of the two out")

    def _check_particles(self) -> None:
        _check_choice("soft_elements", self.soft_elements, SOFT_ELEMENTS)
        for name in ("soft_gap", "self_contacts", "self_contact_rest"):
            if getattr(self, name) is not None:
                check_length(name, getattr(self, name), "options")
        _check_count("self_contact_rings", self.self_contact_rings)
        if self.self_contact_rings > MOST_RINGS:
            raise InputError(
                f"self_contact_rings is {self.self_contact_rings}", "options", f"give {MOST_RINGS} at most"
            )
        if not self.self_contacts and (self.self_contact_rings != DEFAULT_RINGS or self.self_contact_rest is not None):
            name = "self_contact_rest" if self.self_contact_rest is not None else "self_contact_rings"
            fix = "give --self-contacts METRES (in Python self_contacts=METRES) too"
            raise InputError(f"{name} applies to contacts of objects with themselves, which are off", "options", fix)

    def _check_hydro(self) -> None:
        _check_choice("hydro", self.hydro, HYDRO_CHOICES)
        _check_choice("hydro_fallback", self.hydro_fallback, HYDRO_FALLBACKS)
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
        _check_choice("reduce_pairs", self.reduce_pairs, REDUCE_PAIRS)
        if not (0 < len(self.betas) <= MOST_BETAS and all(math.isfinite(beta) for beta in self.betas)):
            raise InputError(f"betas are {self.betas}", "options", f"give 1 to {MOST_BETAS} finite numbers")
        if self.reduce_contacts or self.hydro_reduce:
            return
        for name, default in REDUCTION_DEFAULTS.items():
            if getattr(self, name) != default:
                raise InputError(
                    f"{name} applies to the reduction of contacts, which is off",
                    "options",
                    "give --reduce-contacts (in Python reduce_contacts=True) too",
                )

    @property
    def columns(self) -> tuple[Column, ...]:
        """The optional columns that these options add."""
        columns = (FRICTION_SCALE,) if self.moment_matching and self.reduce_contacts else ()
        columns += (CONTACT_ID,) if self.tracks_contacts else ()
        return (*columns, *REDUCED_COLUMNS) if self.hydro_reduce else columns

    @property
    def tracks_contacts(self) -> bool:
        """Whether contacts are tracked from frame to frame."""
        return self.contact_ids or self.sticky_contacts > 0.0

    def apply(self, model: Model) -> Model:
        """The model with these options' gap, margin and gap rule."""
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
    """Options of the execution, which never change the contacts, but that devices round differently.

    device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
    threads: CPU workers; 0 is one a core. memory_limit: bytes for the scratch memory of all workers, and for the
    process while it reads; 0 is half of the free memory. chunk_cells: cells of a chunk; 0 is the engine's choice.
    cache_dir: folder of the signed distance fields, hulls and convex parts kept between runs; "" is the platform's.
    cache_limit: its bytes; 0 keeps none.
    """

    pipeline: str = "unified"
    broad_phase: str = "auto"
    device: str = ""
    threads: int = 0
    memory_limit: int = 0
    chunk_cells: int = 0
    cache_dir: str = ""
    cache_limit: int = DEFAULT_CACHE_LIMIT

    def checked(self) -> EngineOptions:
        """These options. Raises InputError for an invalid value and for two options that contradict each other."""
        _check_choice("pipeline", self.pipeline, PIPELINES)
        _check_choice("broad_phase", self.broad_phase, BROAD_PHASES)
        for name in ("threads", "memory_limit", "chunk_cells", "cache_limit"):
            _check_count(name, getattr(self, name))
        if self.pipeline == "standard" and self.broad_phase not in ("auto", "explicit"):
            raise InputError(
                f"--pipeline standard works on explicit pairs, not on --broad-phase {self.broad_phase}",
                fix="use --pipeline unified, or leave --broad-phase out",
            )
        return self


@dataclass(frozen=True)
class SceneOptions:
    """Options of the scene importers.

    variants: USD variant selections, each `prim:set=value`. environments: pattern of the USD prims that are separate
    worlds; "" is the importer's default, "none" reads the stage as one world. asset_map: each `OLD=NEW`, the start of
    an asset's path and its replacement. disabled_pairs: an SRDF file whose `disable_collisions` apply.
    motion_layer: a USD layer composed with the scene, where the recording is one. strict_meshes: refuse a triangle
    mesh that needs repairs. floating_base: a free joint of the root link of a URDF. ground: a static plane through
    the origin, normal to the up axis. ignore_missing: leave out USD references to what does not exist.
    self_collisions: "on" or "off" for the bodies of each articulation; "" is as authored.
    """

    variants: tuple[str, ...] = ()
    environments: str = ""
    asset_map: tuple[str, ...] = ()
    disabled_pairs: str = ""
    motion_layer: str = ""
    strict_meshes: bool = False
    floating_base: bool = False
    ground: bool = False
    ignore_missing: bool = False
    self_collisions: str = ""

    def __post_init__(self) -> None:
        if self.self_collisions not in ("", *SELF_COLLISIONS):
            raise InputError(f"self_collisions is {self.self_collisions!r}", fix=f"give {' or '.join(SELF_COLLISIONS)}")


@dataclass(frozen=True)
class RecordingOptions:
    """Properties of a recording that its file lacks; empty where the file has them.

    demos: names of the demonstrations to read, in order, one world each; () is all. joint_names: of the columns of
    joint positions. joint_units: of recorded angles, "radians" (also "") or "degrees". body_names: of the recorded
    bodies. quaternion_order: "wxyz" or "xyzw". state_spec: MuJoCo's name of the state's layout. fps: frames a second.
    uneven_demos: demonstrations of unequal lengths are refused (""), "cut" to the shortest, or kept whole ("hold"),
    without contacts after their ends. ignore_particles: warn of recorded particles instead of refusing them.
    """

    demos: tuple[str, ...] = ()
    uneven_demos: str = ""
    joint_names: tuple[str, ...] = ()
    joint_units: str = ""
    body_names: tuple[str, ...] = ()
    quaternion_order: str = ""
    state_spec: str = ""
    fps: float | None = None
    ignore_particles: bool = False


def recorded_option(config: Mapping[str, object], name: str) -> object:
    """An option of a run from its contact set's configuration, in JSON's types; the default if it is missing.

    None for a missing option that this version does not have.
    """
    value = config.get(name, _DEFAULTS.get(name))
    return list(value) if isinstance(value, tuple) else value


def recorded_number(config: Mapping[str, object], name: str) -> float | None:
    """An option of a run as a number; None for another value, and for "" in place of a name."""
    value = recorded_option(config, name) if name else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def changed_options(config: Mapping[str, object]) -> dict[str, object]:
    """The options of a run, from its contact set's configuration, that differ from their defaults."""
    return {name: value for name, value in config.items() if recorded_option(config, name) != recorded_option({}, name)}


_DEFAULTS = {
    "frames": "",
    "columns": (),
    **{each.name: each.default for kind in (ContactOptions, SceneOptions, RecordingOptions) for each in fields(kind)},
}


def check_sweep_tolerance(tolerance: float) -> None:
    """Raises InputError for a tolerance of a sweep that is no positive length."""
    check_length("sweep_tolerance", tolerance, "options")
    if tolerance == 0.0:
        raise InputError("sweep_tolerance is 0", "options", "give a length above 0 m, such as 1e-6")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}", "options", f"give one of: {', '.join(choices)}")


def _check_count(name: str, value: int) -> None:
    if not hasattr(value, "__index__") or isinstance(value, bool) or value < 0:
        raise InputError(f"{name} is {value!r}", "options", "give an integer of at least zero; zero sets no limit")
