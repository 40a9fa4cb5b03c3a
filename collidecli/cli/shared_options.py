"""Options that several verbs share, by their heading in `--help`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.settings import option, repeated, repeated_names, repeated_setting, setting
from collidecli.cli.value_types import KINDS, WORLDS, WholeNumber
from collidecli.errors import InputError
from collidecli.scene import option_values
from collidecli.scene import options as declarations
from collidecli.scene.options import (
    ContactOptions,
    EngineOptions,
    RecordingOptions,
    SceneOptions,
)

if TYPE_CHECKING:
    from collidecli.cli.commands import Group

FORMAT = "Version of the contact set format; 2 has a content hash by blocks."
RECORDED = "A recording of any known kind"
AT_REST = "[default: the scene's own motion, else its resting pose]"
SEVERAL = (
    f"{RECORDED}; a folder, a pattern such as 'demos/*.h5' or several -t: a run for each. {AT_REST}"
)
FRAMES = "A slice as in Python, or one number. [default: all]"
_motion = partial(setting, section="Motion")
_output = partial(option, section="Output")


def together(*decorators: Callable) -> Callable:
    """A decorator that adds options, in the order of `--help`."""

    def decorate(command: Callable) -> Callable:
        for add in reversed(decorators):
            command = add(command)
        return command

    return decorate


world_options = together(
    _motion(
        "--worlds", type=WholeNumber(), help="Copies of the scene. [default: as recorded, else 1]"
    ),
    _motion("--frames", default="", metavar="A:B:S", help=FRAMES),
)
motion_options = together(
    _motion("-t", "--trajectory", metavar="FILE", help=f"{RECORDED}. {AT_REST}"), world_options
)
several_motion_options = together(
    repeated_setting("-t", "--trajectory", metavar="FILE", section="Motion", help=SEVERAL),
    world_options,
)


def declared(kind: type, *names: str, section: str = "") -> Callable:
    """A decorator that adds options of `kind`, a class of scene.options: those of `names`, of
    `section`, or all."""

    chosen = {
        name: entry
        for name, entry in declarations.declared_options(kind).items()
        if name in names or (not names and section in ("", entry.section))
    }
    return together(
        *(_setting_of(entry, name, getattr(kind, name)) for name, entry in chosen.items())
    )


def _setting_of(entry: declarations.Option, name: str, default: Any) -> Callable:
    """The setting of a declared option. Only a choice has a default: `option_group` leaves out what
    is not given."""
    attributes: dict[str, Any] = {
        "metavar": entry.metavar,
        "section": entry.section,
        "help": entry.help,
    }
    if isinstance(default, bool):
        attributes["is_flag"] = True
    elif entry.choices:
        attributes |= {"type": click.Choice(entry.choices), "default": default or None}
    elif entry.kind:
        attributes["type"] = KINDS[entry.kind]
    if entry.without_value:
        attributes |= {"is_flag": False, "flag_value": entry.without_value}
    declare = setting
    if entry.is_repeated:
        declare = repeated_names if entry.kind == "names" else repeated_setting
    return declare(
        *((entry.flags, name) if entry.flags else (f"--{name.replace('_', '-')}",)), **attributes
    )


recording_options = declared(RecordingOptions)
scene_options = declared(SceneOptions)
robot_options = declared(SceneOptions, "asset_map", "package_path", "floating_base", "ground")
contact_options = declared(ContactOptions, section=declarations.CONTACTS)
hydro_options = declared(ContactOptions, section=declarations.HYDRO)
sweep_options = declared(ContactOptions, section=declarations.STEPS)
source_options = together(motion_options, recording_options, scene_options)
"""The options of a scene and one recording."""
problem_options = together(
    source_options, declared(ContactOptions, "gap", "margin", "gap_rule", "static_pairs")
)
"""The options of a problem for other engines."""
algorithm_options = declared(EngineOptions, "broad_phase", "pipeline")
device_options = declared(EngineOptions, "device", "threads", "memory_limit", "chunk_cells")
cache_options = declared(EngineOptions, section=declarations.CACHE)
_COMPRESSIONS = click.Choice(option_values.COMPRESSIONS)
_FORMATS = option_values.CONTACT_FORMATS
_TRACE = "Write a trace of threads, chunks and stages, for Perfetto (.json)."
compression_option = setting(
    "--compression",
    type=_COMPRESSIONS,
    section="Output",
    default="gzip",
    help="Compression of the file.",
)
format_option = partial(
    setting,
    "--format",
    type=click.IntRange(_FORMATS[0], _FORMATS[-1]),
    metavar="VERSION",
    section="Output",
)
trace_option = _output("--trace", default="", metavar="FILE", help=_TRACE)
force_option = _output("--force", is_flag=True, help="Replace an existing output.")
verdict_options = together(
    _output("--junit-xml", metavar="FILE", help="Write a report as JUnit XML."),
    _output("--markdown", metavar="FILE", help="Write a report as Markdown, for a step summary."),
    _output("--github", is_flag=True, help="Print annotations for GitHub Actions to stderr."),
)


def frames_option(section: str) -> Callable:
    """A decorator that adds the frames of a contact set."""
    return option("--frames", default="", metavar="A:B:S", section=section, help=FRAMES)


def world_option(*names: str, section: str, **attributes: Any) -> Callable:
    """A decorator that adds the worlds of a contact set."""
    attributes = {"help": "Only these worlds. [default: all]", **attributes}
    return option("--world", *names, type=WORLDS, metavar="N,...", section=section, **attributes)


def pattern_options(section: str) -> Callable:
    """A decorator that adds the patterns of the pairs of a contact set."""
    matching = "pairs with a shape, particle object or body whose path matches."
    return together(
        repeated("--include", metavar="PATTERN,...", section=section, help=f"Only {matching}"),
        repeated("--exclude", metavar="PATTERN,...", section=section, help=f"No {matching}"),
    )


COMPARED_SOURCES = ("scene_a", "scene_b", "trajectory_a", "trajectory_b")


def compared_source_options(a: str, b: str, section: str) -> Callable:
    """--scene-a, --scene-b, --trajectory-a and --trajectory-b: where the scenes and recordings of
    two contact sets are, by the words `a` and `b`."""
    of_a = f"Scene of {a}, or a folder with it, to find what changed. [default: searched beside it]"
    of_b = f"Scene of {b}, or a folder with it. [default: searched beside it]"
    moving_a = f"Recording of {a}, or a folder with it, to find which bodies move otherwise."
    moving_b = f"Recording of {b}, or a folder with it. [default: searched beside it]"
    declared = partial(option, default="", metavar="FILE", section=section)
    return together(
        declared("--scene-a", help=of_a),
        declared("--scene-b", help=of_b),
        declared("--trajectory-a", help=f"{moving_a} [default: searched beside it]"),
        declared("--trajectory-b", help=moving_b),
    )


def check_compared_sources(values: Mapping[str, Any]) -> None:
    """Raises InputError for an option of `compared_source_options` that names no file or
    folder."""
    for name in COMPARED_SOURCES:
        if values[name] and not os.path.exists(values[name]):
            what = "there is no such file or folder"
            raise InputError(what, values[name], f"correct --{name.replace('_', '-')}")


def body_option(section: str) -> Callable:
    """A decorator that adds the patterns of bodies."""
    return repeated(
        "--body",
        metavar="PATTERN,...",
        section=section,
        help="Only pairs with a body whose path matches.",
    )


def option_group(kind: type[Group], values: Mapping[str, Any]) -> Group:
    """ContactOptions, EngineOptions, SceneOptions or RecordingOptions from the values of a verb's
    options."""
    return _from_values(kind, values, {})


def request_of(kind: type[Group], values: Mapping[str, Any], **given: Any) -> Group:
    """A verb's request, of class `kind`, from the values of its options, groups of options
    included.

    given: fields that no option has, or in place of its value.
    """
    groups = {
        name: option_group(group, values) for name, group in declarations.OPTION_GROUPS.items()
    }
    return _from_values(kind, values, {**groups, **given})


def _from_values(kind: type[Group], values: Mapping[str, Any], given: Mapping[str, Any]) -> Group:
    known = {
        name: value
        for name, value in {**values, **given}.items()
        if value is not None or name in given
    }
    declared: Any = kind
    names = (field.name for field in fields(declared))
    return kind(**{name: known[name] for name in names if name in known})


written = partial(option, section="Output")
