"""Options of the command line: types of their values, sources of their values, and groups that several verbs share."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from collidecli.cli.streams import Streams, source_of
from collidecli.errors import InputError
from collidecli.scene import options as declarations
from collidecli.scene.options import ContactOptions, EngineOptions, RecordingOptions, SceneOptions
from collidecli.storage.input_files import bag_format, read_toml
from collidecli.texts import did_you_mean, metres

# Types of option values.

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
_UNITS |= {f"{letter}{end}": 1024**power for power, letter in enumerate("KMGT", 1) for end in ("IB", "I", "")}


class WholeNumber(click.ParamType):
    """A whole number, at least `least` and, if `most` is given, at most that."""

    name = "n"

    def __init__(self, least: int = 1, most: int | None = None) -> None:
        self._least, self._most = least, most
        self._range = f"of at least {least}" if most is None else f"from {least} to {most}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or number < self._least or (self._most is not None and number > self._most):
            self.fail(f"{value} is not a whole number {self._range}", param, ctx)
        return number


class Number(click.ParamType):
    """A number of a range. name: its metavar. noun, rule: for messages. fits: whether a number is in the range. unit:
    that may follow it.
    """

    def __init__(self, name: str, noun: str, rule: str, fits: Callable[[float], bool], unit: str = "") -> None:
        self.name, self._noun, self._rule, self._fits, self._unit = name, noun, rule, fits, unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(str(value).removesuffix(self._unit))
        except ValueError:
            self.fail(f"'{value}' is not a {self._noun}", param, ctx)
        if not self._fits(number):
            self.fail(f"{value} is not a {self._rule}", param, ctx)
        return number


RATE = Number(
    "rate", "number of frames per second", "rate: it must be finite and above zero", lambda x: 0.0 < x < math.inf
)
DURATION = Number(
    "seconds", "number of seconds", "duration: it must be finite and above zero", lambda x: 0.0 < x < math.inf
)
AREA = Number(
    "area", "number of square metres", "area: it must be finite and at least 0", lambda x: 0.0 <= x < math.inf
)
DEGREES = Number("angle", "number of degrees", "number of degrees of at least 0", lambda x: 0.0 <= x < math.inf, "deg")
SHARE = Number("share", "number", "fraction: it must be from 0 to 1", lambda x: 0.0 <= x <= 1.0)


class ListOf(click.ParamType):
    """Values separated by commas, as a tuple. name: its metavar. item: a value from its text, or ValueError; fault: of
    a text with one that is none."""

    def __init__(self, name: str, item: Callable[[str], Any], fault: str = "") -> None:
        self.name, self._item, self._fault = name, item, fault

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(self._item(text.strip()) for text in str(value).split(",") if text.strip() or self._fault)
        except ValueError:
            self.fail(f"'{value}' is no list of {self._fault}", param, ctx)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _world(text: str) -> int:
    if not text.isdecimal():
        raise ValueError
    return int(text)


NAMES = ListOf("names", str)
NUMBERS = ListOf("numbers", _finite, "numbers that are finite")
WORLDS = ListOf("numbers", _world, "worlds: write their numbers with commas, as 0,3")


class PatternPair(click.ParamType):
    """Two patterns "A,B", as a tuple. "A B" is of earlier versions, and gives a note."""

    name = "glob,glob"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        is_old = isinstance(value, str) and "," not in value
        parts = value.split(None if is_old else ",") if isinstance(value, str) else value
        parts = tuple(part.strip() for part in parts if part.strip())
        if len(parts) != 2:
            self.fail(f"'{value}' is not two patterns; write 'A,B'", param, ctx)
        if is_old and param is not None and ctx is not None:
            streams_of(ctx).warn(f"{param.opts[-1]}: write '{','.join(parts)}'; the next version refuses a space")
        return parts


class MemorySize(click.ParamType):
    """A size in bytes: a number and a unit, as in 512MiB, 4GiB, 4G (equal to 4GiB) or 4GB (4 000 000 000)."""

    name = "size"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        parts = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(value))
        unit = parts and _UNITS.get(parts[2].upper())
        if not parts or not unit:
            self.fail(f"'{value}' is not a memory size; write 512MiB or 4GiB", param, ctx)
        size = int(float(parts[1]) * unit)
        if size < self._least:
            self.fail(f"'{value}' is too small", param, ctx)
        return size


SECONDS = (("ms", 1e-3), ("us", 1e-6), ("s", 1.0))
"""Units of time and their values [s]; ms and us precede s, as they end with it."""


class Length(click.ParamType):
    """A finite number of metres, or a length with a unit: 2mm, 0.5cm, 20µm, 0.002. least: None for any sign. fix: of a
    text that is no length."""

    name = "length"

    def __init__(self, least: float | None = None, fix: str = "write metres, as 0.002, or a unit, as 2mm") -> None:
        self._least, self._fix = least, fix

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            length = metres(value)
        except ValueError:
            self.fail(f"'{value}' is not a length: {self._fix}", param, ctx)
        if self._least is not None and length < self._least:
            self.fail(f"'{value}' is a length below {self._least:g}", param, ctx)
        return length


class Threshold(Length):
    """A finite distance of any sign in metres or with a unit, or "any", which is infinity."""

    name = "distance"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return math.inf if value in ("any", math.inf) else super().convert(value, param, ctx)


METRES = Length(0.0)


class Pause(click.ParamType):
    """A number of frames, as 3, or a time, as 0.05s or 50ms; becomes (frames, seconds), of which one is None."""

    name = "pause"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, float | None]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        if text.isdecimal():
            return int(text), None
        ending, unit = next((known for known in SECONDS if text.endswith(known[0])), ("", 0.0))
        try:
            seconds = float(text.removesuffix(ending)) * unit if ending else math.nan
        except ValueError:
            seconds = math.nan
        if not (math.isfinite(seconds) and seconds >= 0.0):
            self.fail(f"'{text}' is neither a number of frames, as 3, nor a time of at least 0 s, as 0.05s", param, ctx)
        return None, seconds


KINDS: dict[str, click.ParamType] = {
    "length": METRES,
    "count": WholeNumber(),
    "whole": WholeNumber(least=0),
    "resolution": WholeNumber(declarations.LEAST_RESOLUTION, declarations.RESOLUTION_LIMIT),
    "stiffness": Number("K", "number", "stiffness: it must be above zero", lambda x: x > 0.0),
    "share": SHARE,
    "area": AREA,
    "rate": RATE,
    "duration": DURATION,
    "names": NAMES,
    "numbers": NUMBERS,
    "seconds": Number("seconds", "number of seconds", "time: it must be at least 0", lambda x: 0.0 <= x < math.inf),
    "size": MemorySize(),
    "limit": MemorySize(least=0),
}
"""Types of the values of declared options, by `Option.kind`."""


# Sources of an option's value, by precedence: flag, environment variable, collide.toml, default.

CONFIG_FILE = "collide.toml"
PREFIX = "COLLIDE_"


class VerbOption(click.Option):
    """An option of one verb: set by COLLIDE_<VERB>_<NAME>, and in the file under [<verb>].

    section: its heading in `--help`, which shows a default that is not empty.
    """

    def __init__(self, *args: Any, section: str = "Options", **attributes: Any) -> None:
        attributes.setdefault("show_default", attributes.get("default") not in (None, ""))
        super().__init__(*args, **attributes)
        self.section = section


class Setting(VerbOption):
    """An option of several verbs or of `run`: set by COLLIDE_<NAME>, and by a top-level key in the file."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if self.envvar is None and self.name:
            self.envvar = PREFIX + self.name.upper()


option = partial(click.option, cls=VerbOption)
"""A decorator that adds a `VerbOption`."""
setting = partial(click.option, cls=Setting)
"""A decorator that adds a `Setting`."""


def read_config(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Callback of --config: the values in the file become the defaults of the called verb.

    Raises InputError for a file that cannot be read, and for an unknown key, verb or value.
    """
    if ctx.resilient_parsing:
        return
    if path is None and not os.path.exists(CONFIG_FILE):
        return
    path = path or CONFIG_FILE
    verbs = verbs_of(ctx)
    table = _by_verb(read_toml(path, "see --config"), verbs)
    shared = {
        name for verb in verbs.values() for name, option in _settable(verb).items() if isinstance(option, Setting)
    }
    settable = _settable(ctx.command)
    values: dict[str, str] = {}
    given: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            if key not in verbs:
                _refuse(path, f"[{key.replace(' ', '.')}] is no verb", key, [name.replace(" ", ".") for name in verbs])
            options = _settable(verbs[key])
            for name, entry in value.items():
                text = _entry(path, f"[{key}] {name}", name, entry, options)
                if verbs[key] is ctx.command:
                    given[_plain(name)] = text
        else:
            text = _entry(path, key, key, value, shared)
            if isinstance(settable.get(_plain(key)), Setting):
                values[_plain(key)] = text
    ctx.default_map = {**values, **given}
    ctx.meta["collide.config"] = path


def _by_verb(table: dict[str, Any], verbs: Mapping[str, click.Command]) -> dict[str, Any]:
    """The table with the key "group verb" in place of [group.verb]."""
    groups = {name.split()[0] for name in verbs if " " in name}
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in groups and isinstance(value, dict):
            flat |= {f"{key} {name}" if isinstance(entry, dict) else key: entry for name, entry in value.items()}
        else:
            flat[key] = value
    return flat


def _entry(path: str, shown: str, name: str, value: Any, options: Any) -> str:
    """A value as text, so that it is checked as a value on the command line is."""
    if _plain(name) not in options:
        _refuse(path, f"'{shown}' is no option", _plain(name), [str(option) for option in options])
    if not isinstance(value, (str, int, float)):
        raise InputError(f"'{shown}' is neither a string, a number nor true or false", path)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse(path: str, what: str, name: str, known: list[str]) -> None:
    raise InputError(what, path, did_you_mean(name.replace("_", "-"), [word.replace("_", "-") for word in known]))


def _plain(key: str) -> str:
    return key.replace("-", "_")


def verbs_of(ctx: click.Context) -> dict[str, click.Command]:
    """Every verb by its words on the command line: `run`, or in a group `traj convert`."""
    root = ctx.find_root()
    if not isinstance(root.command, click.Group):
        return {ctx.command.name or "": ctx.command}
    return dict(_verbs_in(root.command, root, ""))


def _verbs_in(group: click.Group, ctx: click.Context, before: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from _verbs_in(command, ctx, f"{before}{name} ")
        elif command is not None:
            yield before + name, command


def _settable(verb: click.Command) -> dict[str, click.Option]:
    return {p.name: p for p in verb.params if isinstance(p, click.Option) and p.name and p.name != "config"}


def variables_of(verb: click.Command, words: str) -> list[str]:
    """Names of the variables that set a verb's options. words: a key of `verbs_of`."""
    options = [option for option in verb.params if isinstance(option, click.Option) and option.name]
    names = [f"{PREFIX}{words.replace(' ', '_').upper()}_{str(option.name).upper()}" for option in options]
    return names + [option.envvar for option in options if isinstance(option.envvar, str)]


class _Repeatable(VerbOption):
    """The text of a variable or of the file is one of its values, with its spaces."""

    def value_from_envvar(self, ctx: click.Context) -> str | None:
        return self.resolve_envvar_value(ctx)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        return super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)


class _RepeatableSetting(_Repeatable, Setting):
    pass


class _Repeated(_Repeatable):
    def type_cast_value(self, ctx: click.Context, value: Any) -> tuple[str, ...]:
        values = super().type_cast_value(ctx, value)
        if values and not all(values):
            raise click.BadParameter("a value names nothing: it is empty", ctx, self)
        return tuple(name for names in values or () for name in names)


repeated_setting = partial(click.option, cls=_RepeatableSetting, multiple=True)
"""A decorator that adds a repeatable `Setting`; its value is a tuple of texts, one from a variable or file."""
repeated = partial(click.option, cls=_Repeated, type=NAMES, multiple=True)
"""A decorator that adds a repeatable option of one verb; its value is a tuple of texts."""


# Verbs, and options that several verbs share, in groups by their heading in `--help`.

Group = TypeVar("Group")
COMMON = "Every verb"
FORMAT = "Version of the contact set format; 2 has a content hash by blocks."
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
WIDEST_TERM = 30
"""Width of an option and its value up to which its help begins on the same line of `--help` [characters]."""


class Verb(click.Command):
    """A verb: its own options, and the options that every verb has."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)

        def store(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
            setattr(streams_of(ctx), str(parameter.name), value)

        common = partial(Setting, expose_value=False, section=COMMON)
        flag = partial(common, is_flag=True, callback=store)
        file = f"Read options from this file. [default: {CONFIG_FILE} in this folder, if it exists]"
        self.params += [
            common(["--config"], metavar="FILE", is_eager=True, callback=read_config, help=file),
            flag(["--json"], help="Print one JSON object instead of tables."),
            flag(["-q", "--quiet"], help="Print only errors, and with --json the object."),
            flag(["-v", "--verbose"], is_eager=True, help="Print a traceback with an error."),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Joins the two values that a `PatternPair` had in earlier versions."""
        pairs = {name for param in self.params if isinstance(param.type, PatternPair) for name in param.opts}
        for at in reversed(range(len(args) - 2)):
            one, other = args[at + 1 : at + 3]
            if args[at] in pairs and not set(one) & {",", " "} and other[:1] != "-":
                args = [*args[: at + 1], f"{one} {other}", *args[at + 3 :]]
        return super().parse_args(ctx, args)

    def make_parser(self, ctx: click.Context) -> Any:
        """Click's parser, which uses the last value of a repeated option; this one refuses it."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            parsed = parse(args)
            times = Counter(parameter for parameter in parsed[2] if isinstance(parameter, click.Option))
            for parameter, number in times.items():
                if number > 1 and not (parameter.multiple or parameter.is_flag):
                    raise click.UsageError(f"{parameter.opts[-1]} is given {number} times and takes one value.", ctx)
            return parsed

        parser.parse_args = parse_once
        return parser

    def invoke(self, ctx: click.Context) -> Any:
        given = sorted(name for name in os.environ if name.startswith(PREFIX))
        verbs = verbs_of(ctx) if given else {}
        known = {name for words, verb in verbs.items() for name in variables_of(verb, words)}
        for name in given:
            if name not in known:
                streams_of(ctx).warn(f"{name} sets no option; {did_you_mean(name, known, 'it is ignored')}")
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
        if parameter.name in words and (source := source_of(parameter, ctx)):
            return source
    return ""


def streams_of(ctx: click.Context) -> Streams:
    """The streams of this call of `collide`."""
    return ctx.ensure_object(Streams)


RECORDED = "A recording of any known kind"
AT_REST = "[default: the scene's own motion, else its resting pose]"
SEVERAL = f"{RECORDED}; a folder, a pattern such as 'demos/*.h5' or several -t: a run for each. {AT_REST}"
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
    _motion("--worlds", type=WholeNumber(), help="Copies of the scene. [default: as recorded, else 1]"),
    _motion("--frames", default="", metavar="A:B:S", help=FRAMES),
)
motion_options = together(_motion("-t", "--trajectory", metavar="FILE", help=f"{RECORDED}. {AT_REST}"), world_options)
several_motion_options = together(
    repeated_setting("-t", "--trajectory", metavar="FILE", section="Motion", help=SEVERAL), world_options
)


def declared(kind: type, *names: str, section: str = "") -> Callable:
    """A decorator that adds options of `kind`, a class of scene.options: those of `names`, of `section`, or all."""

    chosen = {
        name: entry
        for name, entry in declarations.declared_options(kind).items()
        if name in names or (not names and section in ("", entry.section))
    }
    return together(*(_setting_of(entry, name, getattr(kind, name)) for name, entry in chosen.items()))


def _setting_of(entry: declarations.Option, name: str, default: Any) -> Callable:
    """The setting of a declared option. Only a choice has a default: `option_group` leaves out what is not given."""
    attributes: dict[str, Any] = {"metavar": entry.metavar, "section": entry.section, "help": entry.help}
    if isinstance(default, bool):
        attributes["is_flag"] = True
    elif entry.choices:
        attributes |= {"type": click.Choice(entry.choices), "default": default or None}
    elif entry.kind:
        attributes["type"] = KINDS[entry.kind]
    return setting(*((entry.flags, name) if entry.flags else (f"--{name.replace('_', '-')}",)), **attributes)


recording_options = declared(RecordingOptions)
scene_options = declared(SceneOptions)
robot_options = declared(SceneOptions, "asset_map", "package_path", "floating_base", "ground")
contact_options = declared(ContactOptions, section=declarations.CONTACTS)
hydro_options = declared(ContactOptions, section=declarations.HYDRO)
sweep_options = declared(ContactOptions, section=declarations.STEPS)
source_options = together(motion_options, recording_options, scene_options)
"""The options of a scene and one recording."""
problem_options = together(source_options, declared(ContactOptions, "gap", "margin", "gap_rule", "static_pairs"))
"""The options of a problem for other engines."""
algorithm_options = declared(EngineOptions, "broad_phase", "pipeline")
device_options = declared(EngineOptions, "device", "threads", "memory_limit", "chunk_cells")
cache_options = declared(EngineOptions, section=declarations.CACHE)
_COMPRESSIONS, _FORMATS = click.Choice(declarations.COMPRESSIONS), declarations.CONTACT_FORMATS
_TRACE = "Write a trace of threads, chunks and stages, for Perfetto (.json)."
compression_option = setting(
    "--compression", type=_COMPRESSIONS, section="Output", default="gzip", help="Compression of the file."
)
format_option = partial(
    setting, "--format", type=click.IntRange(_FORMATS[0], _FORMATS[-1]), metavar="VERSION", section="Output"
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
        repeated("--include", metavar="GLOB,...", section=section, help=f"Only {matching}"),
        repeated("--exclude", metavar="GLOB,...", section=section, help=f"No {matching}"),
    )


def body_option(section: str) -> Callable:
    """A decorator that adds the patterns of bodies."""
    return repeated("--body", metavar="GLOB,...", section=section, help="Only pairs with a body whose path matches.")


def option_group(kind: type[Group], values: Mapping[str, Any]) -> Group:
    """ContactOptions, EngineOptions, SceneOptions or RecordingOptions from the values of a verb's options."""
    return _from_values(kind, values, {})


def request_of(kind: type[Group], values: Mapping[str, Any], **given: Any) -> Group:
    """A verb's request, of class `kind`, from the values of its options, groups of options included.

    given: fields that no option has, or in place of its value.
    """
    groups = {name: option_group(group, values) for name, group in declarations.OPTION_GROUPS.items()}
    return _from_values(kind, values, {**groups, **given})


def _from_values(kind: type[Group], values: Mapping[str, Any], given: Mapping[str, Any]) -> Group:
    known = {name: value for name, value in {**values, **given}.items() if value is not None or name in given}
    return kind(**{name: known[name] for name in inspect.signature(kind).parameters if name in known})


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
    """The scenes and the trajectory; one HDF5 file or ROS bag in place of a scene is the trajectory with its scene."""
    if trajectory is None and len(scenes) == 1 and (is_hdf5(scenes[0]) or bag_format(scenes[0])):
        return (), scenes[0]
    return tuple(scenes), trajectory


def is_hdf5(path: str) -> bool:
    """Whether a path is an HDF5 file, by its first bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE
