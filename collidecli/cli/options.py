"""Options that several verbs share, in groups by their heading in `--help`."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from collidecli.cli.option_types import AREA, METRES, RATE, SHARE, MemorySize, NameList, Number, NumberList, WholeNumber
from collidecli.cli.settings import (
    CONFIG_FILE,
    PREFIX,
    Setting,
    VerbOption,
    option,
    read_config,
    repeated_setting,
    setting,
    variables_of,
    verbs_of,
)
from collidecli.cli.streams import Streams, variable_of
from collidecli.errors import InputError
from collidecli.scene.options import (
    BROAD_PHASES,
    COMPRESSIONS,
    CONTACT_FORMATS,
    DEFAULT_BETAS,
    GAP_RULES,
    HYDRO_CHOICES,
    HYDRO_FALLBACKS,
    NARROW_PHASES,
    PIPELINES,
    REDUCE_PAIRS,
    SELF_COLLISIONS,
    SOFT_ELEMENTS,
)
from collidecli.scene.shape_config import LEAST_RESOLUTION, RESOLUTION_LIMIT

Group = TypeVar("Group")
SPEED = "Speed; no effect on contacts"
COMMON = "Every verb"
BETAS = ",".join(f"{beta:g}" for beta in DEFAULT_BETAS)
REDUCED = "Pairs to reduce."
FORMAT = "Version of the contact set format; 2 has a content hash by blocks."
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
WIDEST_TERM = 30
"""Width of an option and its value up to which its help begins on the same line of `--help` [characters]."""


class Verb(click.Command):
    """A verb: its own options, and the options that every verb has."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params += _common_options()

    def make_parser(self, ctx: click.Context) -> Any:
        """Click's parser, which uses the last value of a repeated option; this one refuses it."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            found = parse(args)
            times = Counter(parameter for parameter in found[2] if isinstance(parameter, click.Option))
            for parameter, number in times.items():
                if number > 1 and not (parameter.multiple or parameter.is_flag):
                    raise click.UsageError(f"{parameter.opts[-1]} is given {number} times and takes one value.", ctx)
            return found

        parser.parse_args = parse_once
        return parser

    def invoke(self, ctx: click.Context) -> Any:
        given = sorted(name for name in os.environ if name.startswith(PREFIX))
        verbs = verbs_of(ctx) if given else {}
        known = {name for words, verb in verbs.items() for name in variables_of(verb, words)}
        for name in given:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                streams_of(ctx).warn(
                    f"{name} sets no option" + (f"; did you mean {close[0]}?" if close else "; it is ignored")
                )
        try:
            return super().invoke(ctx)
        except InputError as error:
            source = _source(error, ctx)
            if not source:
                raise
            raise InputError(error.what, ", ".join(filter(None, (source, error.where))), error.fix) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options under the headings of their sections, in the order of declaration, common options last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and row is not None:
                section = parameter.section if isinstance(parameter, VerbOption) else COMMON
                sections.setdefault(section, []).append(row)
        common = sections.pop(COMMON)
        width = max(len(term) for rows in (*sections.values(), common) for term, _ in rows if len(term) <= WIDEST_TERM)
        for heading, rows in (*sections.items(), (COMMON, common)):
            with formatter.section(heading):
                formatter.write_dl([(term.ljust(width), words) for term, words in rows], WIDEST_TERM)


def _source(error: InputError, ctx: click.Context) -> str:
    """The configuration file or variable that set the option of a refused value; "" for a flag, or no named option.

    Errors about options are located at "options" or at the flag, and name the option.
    """
    if not error.where.startswith(("options", "--")):
        return ""
    words = set(re.findall(r"[a-z_]+", f"{error.where} {error.what}".replace("--", "").replace("-", "_")))
    for parameter in ctx.command.params:
        if parameter.name in words:
            source = ctx.get_parameter_source(parameter.name)
            if source == click.core.ParameterSource.DEFAULT_MAP:
                return str(ctx.meta.get("collide.config", CONFIG_FILE))
            if source == click.core.ParameterSource.ENVIRONMENT:
                return variable_of(parameter, ctx)
    return ""


def streams_of(ctx: click.Context) -> Streams:
    """The streams of this call of `collide`."""
    return ctx.ensure_object(Streams)


def motion_options(command: Callable) -> Callable:
    """Adds options of the motion: trajectory, worlds, frames."""
    add = partial(setting, section="Motion")
    trajectory = "A recording of any known kind. [default: the scene's own motion, else its resting pose]"
    return _decorated(command, add("-t", "--trajectory", metavar="FILE", help=trajectory), world_options)


def several_motion_options(command: Callable) -> Callable:
    """Adds options of the motion, of several recordings: trajectories, worlds, frames."""
    trajectory = (
        "A recording of any known kind; a folder, a pattern such as 'demos/*.h5' or several -t: a run for each. "
    )
    trajectory += "[default: the scene's own motion, else its resting pose]"
    add = repeated_setting("-t", "--trajectory", metavar="FILE", section="Motion", help=trajectory)
    return _decorated(command, add, world_options)


def world_options(command: Callable) -> Callable:
    """Adds options of the worlds and frames."""
    add = partial(setting, section="Motion")
    return _decorated(
        command,
        add("--worlds", type=WholeNumber(), help="Copies of the scene. [default: as recorded, else 1]"),
        add("--frames", default="", metavar="A:B:S", help="A slice as in Python, or one number. [default: all]"),
    )


def recording_options(command: Callable) -> Callable:
    """Adds options for information that a recording may lack."""
    add = partial(setting, section="Recording")
    return _decorated(
        command,
        add(
            "--demos",
            type=NameList(),
            metavar="NAME,...",
            help="Demonstrations to use, one world each: names, patterns such as demo_1*, ranges such as "
            "demo_0..demo_9, masks. [default: all]",
        ),
        add(
            "--uneven-demos",
            type=click.Choice(("cut", "hold")),
            help="Cut all to the shortest, or keep (hold) all frames of each. [default: refuse them]",
        ),
        add(
            "--joint-names",
            type=NameList(),
            metavar="NAME,...",
            help="Joint names of the recorded positions, in order.",
        ),
        add("--joint-units", type=click.Choice(("radians", "degrees")), help="Unit of the recorded joint angles."),
        add("--body-names", type=NameList(), metavar="NAME,...", help="Body names of the recorded poses, in order."),
        add("--quaternion-order", type=click.Choice(("wxyz", "xyzw")), help="Order of the recorded quaternions."),
        add("--state-spec", metavar="NAME", help="Layout of MuJoCo states, such as FULLPHYSICS or time,qpos,qvel."),
        add("--fps", type=RATE, metavar="RATE", help="Frame rate, in frames per second."),
        add("--ignore-particles", is_flag=True, help="Warn of recorded particles instead of refusing them."),
    )


def robot_options(command: Callable) -> Callable:
    """Adds options that complete a robot's scene: other folders of assets, a floating base, a ground."""
    add = partial(setting, section="Scene")
    return _decorated(
        command,
        add(
            "--asset-map",
            type=NameList(),
            metavar="OLD=NEW,...",
            help="Replace the prefix OLD of asset paths.",
        ),
        add("--floating-base", is_flag=True, help="Add a free joint to the root link of a URDF."),
        add("--ground", is_flag=True, help="Add a static plane through the origin, normal to the up axis."),
    )


def scene_options(command: Callable) -> Callable:
    """Adds options for reading scene files."""
    add = partial(setting, section="Scene")
    return _decorated(
        command,
        add("--variants", type=NameList(), metavar="PRIM:SET=VALUE,...", help="USD variants. [default: as authored]"),
        add(
            "--environments",
            metavar="PATTERN",
            help="USD prims that are one world each, or 'none'. [default: /World/envs/env_0 etc.]",
        ),
        add("--ignore-missing", is_flag=True, help="Leave out USD references to missing files, with a warning each."),
        robot_options,
        add("--disabled-pairs", metavar="FILE", help="SRDF file with pairs of links that may not touch."),
        add(
            "--self-collisions",
            type=click.Choice(SELF_COLLISIONS),
            help="Whether bodies of one articulation may touch each other. [default: as authored]",
        ),
        add("--strict-meshes", is_flag=True, help="Refuse triangle meshes that need repairs."),
    )


def margin_option(command: Callable) -> Callable:
    """Adds the option of the margin of every shape."""
    text = "Inflate every shape by this length. [default: as authored]"
    return setting("--margin", type=METRES, section="Contacts", help=text)(command)


def static_pairs_option(command: Callable) -> Callable:
    """Adds the option for pairs of two static shapes."""
    text = "Find contacts between two static shapes too."
    return setting("--static-pairs", is_flag=True, section="Contacts", help=text)(command)


def contact_options(command: Callable) -> Callable:
    """Adds options that can change the contact set."""
    add = partial(setting, section="Contacts")
    return _decorated(
        command,
        add("--gap", type=METRES, help="Report contacts up to this distance, for every shape. [default: as authored]"),
        margin_option,
        add(
            "--gap-rule",
            type=click.Choice(GAP_RULES),
            help="How the two gaps of a pair combine. [default: the scene format's]",
        ),
        static_pairs_option,
        add("--max-contacts-per-pair", type=WholeNumber(), help="Keep the N deepest contacts. [default: all]"),
        add(
            "--reduce-contacts/--no-reduce-contacts",
            help="Reduce the contacts of each mesh or hull pair to the relevant ones.",
        ),
        add("--reduce-pairs", type=click.Choice(REDUCE_PAIRS), default="meshes", help=REDUCED),
        add(
            "--betas", type=NumberList(), metavar="B,...", help=f"Weights of depth against position. [default: {BETAS}]"
        ),
        add(
            "--normal-matching",
            is_flag=True,
            help="Rotate the kept normals so that their total force is that of all contacts.",
        ),
        add("--moment-matching", is_flag=True, help="Add an anchor contact, and a column friction_scale."),
        add("--anchor-contact", is_flag=True, help="Add a contact that represents all contacts of a pair."),
        add("--soft-gap", type=METRES, help="Report contacts of particles up to this distance. [default: 0.01]"),
        add(
            "--soft-elements",
            type=click.Choice(SOFT_ELEMENTS),
            default="all",
            help="Contacts of the vertices of cloths and soft bodies with shapes, or of edges and faces too.",
        ),
        add("--self-contacts", type=METRES, help="Find contacts of cloths and soft bodies up to this distance."),
        add("--self-contact-rings", type=WholeNumber(least=0), help="Skip elements within N edges. [default: 1]"),
        add(
            "--self-contact-rest",
            type=METRES,
            help="Skip elements nearer than this at rest. [default: as --self-contacts]",
        ),
        add("--sticky-contacts", type=METRES, help="Keep the previous position of contacts that moved less than this."),
        add("--touch-only", is_flag=True, help="Find which pairs of shapes touch, without their contacts."),
        add("--contact-ids", is_flag=True, help="Add a column of ids that persist from frame to frame."),
        add(
            "--narrow-phase",
            type=click.Choice(NARROW_PHASES),
            default="gjk",
            help="Method for convex pairs without a closed form.",
        ),
    )


def hydro_options(command: Callable) -> Callable:
    """Adds options of hydroelastic contacts."""
    add = partial(setting, section="Hydroelastic contacts")
    stiffness = Number("K", "number", "stiffness: it must be above zero", lambda x: x > 0.0)
    return _decorated(
        command,
        add(
            "--hydro",
            type=click.Choice(HYDRO_CHOICES),
            default="authored",
            help="Shapes with a pressure field: those that the scene marks, or all.",
        ),
        add(
            "--hydro-stiffness",
            type=stiffness,
            help="Of shapes without their own, in N/m^3; inf is rigid. [default: 1e10]",
        ),
        add(
            "--hydro-resolution",
            type=WholeNumber(LEAST_RESOLUTION, RESOLUTION_LIMIT),
            help="Voxels along the longest side of a shape, 4 to 512. [default: 64]",
        ),
        add("--hydro-surface", is_flag=True, help="Write the faces of the contact surfaces, /hydro_faces."),
        add("--hydro-reduce", is_flag=True, help="Write contacts with the total force of each surface too."),
        add(
            "--hydro-fallback",
            type=click.Choice(HYDRO_FALLBACKS),
            default="point",
            help="Open meshes have point contacts, or are refused.",
        ),
        add("--output-contact-surface", is_flag=True, help="Newton's name of --hydro-surface."),
        add("--buffer-fraction", type=SHARE, help="Option of Newton; no effect."),
        add("--margin-contact-area", type=AREA, help="Option of Newton; no effect."),
    )


def algorithm_options(command: Callable) -> Callable:
    """Adds options of the broad phase, which do not change the contacts."""
    add = partial(setting, section=SPEED)
    broad_phase = "Algorithm of the broad phase."
    return _decorated(
        command,
        add("--broad-phase", type=click.Choice(BROAD_PHASES), default="auto", help=broad_phase),
        add(
            "--pipeline",
            type=click.Choice(PIPELINES),
            default="unified",
            help="'standard' uses --broad-phase explicit.",
        ),
    )


def device_options(command: Callable) -> Callable:
    """Adds options of the device, which do not change the contacts."""
    add = partial(setting, section=SPEED)
    return _decorated(
        command,
        add("--device", default="", metavar="NAME", help="cpu, cuda or cuda:1. [default: cpu]"),
        add("--threads", type=WholeNumber(), help="Number of CPU workers. [default: one per core or by CPU quota]"),
        add(
            "--memory-limit",
            type=MemorySize(),
            metavar="SIZE",
            help="Memory limit, such as 4GiB. [default: half of the free memory]",
        ),
        add("--chunk-cells", type=WholeNumber(), help="Cells per chunk. [default: automatic]"),
    )


def cache_options(command: Callable) -> Callable:
    """Adds options of the cache of signed distance fields, hulls and convex parts."""
    add = partial(setting, section="Cache of signed distance fields, hulls and convex parts")
    size = MemorySize(least=0)
    return _decorated(
        command,
        add("--cache-dir", metavar="FOLDER", help="Folder of the cache. [default: the cache folder of the platform]"),
        add("--cache-limit", type=size, metavar="SIZE", help="Size of the cache; 0B disables it. [default: 1GiB]"),
    )


def compression_option(command: Callable) -> Callable:
    """Adds the option for the compression of the output file."""
    add = partial(setting, section="Output", default="gzip")
    return add("--compression", type=click.Choice(COMPRESSIONS), help="Compression of the file.")(command)


def format_option(command: Callable) -> Callable:
    """Adds the option for the version of the contact set format."""
    add = partial(setting, section="Output", type=click.IntRange(CONTACT_FORMATS[0], CONTACT_FORMATS[-1]))
    return add("--format", metavar="VERSION", default=CONTACT_FORMATS[0], help=FORMAT)(command)


def trace_option(command: Callable) -> Callable:
    """Adds the option for a trace of the run."""
    text = "Write a trace of threads, chunks and stages, for Perfetto (.json)."
    return option("--trace", default="", metavar="FILE", section="Output", help=text)(command)


def force_option(command: Callable) -> Callable:
    """Adds --force; `run` has a setting of that name instead."""
    return option("--force", is_flag=True, section="Output", help="Replace an existing output.")(command)


def option_group(kind: type[Group], values: Mapping[str, Any]) -> Group:
    """ContactOptions, EngineOptions, SceneOptions or RecordingOptions from the values of a verb's options."""
    names = inspect.signature(kind).parameters
    return kind(**{name: values[name] for name in names if values.get(name) is not None})


def default_output(scenes: Sequence[str], trajectory: str | None, ending: str) -> str:
    """Name of the output that is not given: of the scene, else of the trajectory, with another ending.

    Raises UsageError for neither, and for several scenes, none of which names the output of all.
    """
    if not scenes and trajectory is None:
        raise click.UsageError(
            "Missing argument 'SCENE...': it is optional only with a trajectory that contains a scene."
        )
    if len(scenes) > 1:
        raise click.UsageError(f"{len(scenes)} scenes have no default output: name it with -o.")
    return f"{Path(scenes[0] if scenes else str(trajectory)).stem}{ending}"


def scenes_and_recording(scenes: Sequence[str], trajectory: str | None) -> tuple[tuple[str, ...], str | None]:
    """The scenes and the trajectory; a single HDF5 file in place of a scene is the trajectory, which has its scene."""
    if trajectory is None and len(scenes) == 1 and is_hdf5(scenes[0]):
        return (), scenes[0]
    return tuple(scenes), trajectory


def is_hdf5(path: str) -> bool:
    """Whether a path is an HDF5 file, by its first bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE


def _decorated(command: Callable, *decorators: Callable) -> Callable:
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _common_options() -> list[click.Parameter]:
    def store(name: str) -> Callable:
        def callback(ctx: click.Context, _: click.Parameter, value: bool) -> None:
            setattr(streams_of(ctx), name, value)

        return callback

    def flag(names: list[str], stored: str, text: str, eager: bool = False) -> Setting:
        return Setting(
            names, is_flag=True, expose_value=False, is_eager=eager, callback=store(stored), help=text, section=COMMON
        )

    config = Setting(
        ["--config"],
        metavar="FILE",
        expose_value=False,
        is_eager=True,
        callback=read_config,
        section=COMMON,
        help=f"Read options from this file. [default: {CONFIG_FILE} in this folder, if it exists]",
    )
    return [
        config,
        flag(["--json"], "json", "Print one JSON object instead of tables."),
        flag(["-q", "--quiet"], "quiet", "Print only errors, and with --json the object."),
        flag(["-v", "--verbose"], "verbose", "Print a traceback with an error.", eager=True),
    ]


# Options of contacts between frames.


def sweep_options(command: Callable) -> Callable:
    """Adds the options of contacts between frames."""
    add = partial(setting, section="Contacts between frames")
    tolerance = "They touch at this distance or less. [default: 1e-6]"
    decorators = (
        add("--sweep", is_flag=True, help="Find the shapes, particles and elements that touch between two frames too."),
        add("--sweep-tolerance", type=METRES, help=tolerance),
    )
    for decorate in reversed(decorators):
        command = decorate(command)
    return command
