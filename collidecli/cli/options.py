"""Options that verbs share, and where their values come from: flag, then variable, then collide.toml, then default."""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

from collidecli.cli.streams import Streams
from collidecli.errors import InputError
from collidecli.model.choices import BROAD_PHASES, COMPRESSIONS, GAP_RULES, NARROW_PHASES, PIPELINES

Group = TypeVar("Group")
CONFIG_FILE = "collide.toml"
PREFIX = "COLLIDE_"
_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
_UNITS |= {f"{letter}{end}": 1024**power for power, letter in enumerate("KMGT", 1) for end in ("IB", "I", "")}


class Setting(click.Option):
    """An option that several verbs share or that `run` has: set by COLLIDE_<NAME>, and by a key of its own in the file.

    An option of one verb alone is set by COLLIDE_<VERB>_<NAME>, and in the file under [<verb>].
    """

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if self.envvar is None and self.name:
            self.envvar = PREFIX + self.name.upper()


def setting(*names: str, **attributes: Any) -> Callable:
    """A decorator that adds a `Setting`."""
    return click.option(*names, cls=Setting, **attributes)


class Verb(click.Command):
    """A verb: its own options, and the ones that every verb has."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params += _common_options()

    def invoke(self, ctx: click.Context) -> Any:
        given = sorted(name for name in os.environ if name.startswith(PREFIX))
        known = {name for words, verb in _verbs(ctx).items() for name in _variables(verb, words)} if given else set()
        for name in given:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                streams_of(ctx).warn(
                    f"{name} sets no option" + (f"; did you mean {close[0]}?" if close else "; it is not used")
                )
        return super().invoke(ctx)


class WholeNumber(click.ParamType):
    """A whole number, at least `least`."""

    name = "number"

    def __init__(self, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or number < self._least:
            self.fail(f"{value} is not a whole number of at least {self._least}", param, ctx)
        return number


class Metres(click.ParamType):
    """A length, finite and not negative [m]."""

    name = "metres"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            length = float(value)
        except ValueError:
            self.fail(f"'{value}' is not a number of metres", param, ctx)
        if not (math.isfinite(length) and length >= 0.0):
            self.fail(f"{value} is not a length: it must be finite and at least 0", param, ctx)
        return length


class NameList(click.ParamType):
    """Names parted by commas, as a tuple."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return (
            value if isinstance(value, tuple) else tuple(name.strip() for name in str(value).split(",") if name.strip())
        )


class MemorySize(click.ParamType):
    """A size in bytes: a number and a unit, as in 512MiB, 4GiB, 4G (the same) or 4GB (4 000 000 000)."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        parts = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(value))
        unit = parts and _UNITS.get(parts[2].upper())
        if not parts or not unit:
            self.fail(f"'{value}' is not a memory size; write 512MiB or 4GiB", param, ctx)
        size = int(float(parts[1]) * unit)
        if size < 1:
            self.fail(f"'{value}' is no memory at all", param, ctx)
        return size


def streams_of(ctx: click.Context) -> Streams:
    """The streams that every verb of this call shares."""
    return ctx.ensure_object(Streams)


def motion_options(command: Callable) -> Callable:
    """Which motion moves the scene: trajectory, worlds, frames."""
    return _decorated(
        command,
        setting(
            "-t",
            "--trajectory",
            metavar="FILE",
            help="A recording of any known kind. [default: the scene's own motion]",
        ),
        setting("--worlds", type=WholeNumber(), metavar="N", help="Copies of the scene. [default: as recorded]"),
        setting("--frames", default="", metavar="A:B:S", help="A slice of the frames, as in Python. [default: all]"),
    )


def scene_options(command: Callable) -> Callable:
    """How scene files are read."""
    return _decorated(
        command,
        setting("--variants", type=NameList(), metavar="PRIM:SET=VALUE,...", help="USD variants to select."),
        setting("--environments", metavar="PATTERN", help="USD prims that are worlds of their own, or 'none'."),
        setting("--asset-map", type=NameList(), metavar="OLD=NEW,...", help="Look for assets elsewhere."),
        setting("--disabled-pairs", metavar="FILE", help="An SRDF file with pairs of links that may not touch."),
    )


def recording_options(command: Callable) -> Callable:
    """What a recording does not say of itself."""
    return _decorated(
        command,
        setting("--demos", type=NameList(), metavar="NAME,...", help="Demonstrations to take. [default: all]"),
        setting("--uneven-demos", type=click.Choice(("cut", "hold")), help="Ends of unequal demos. [default: refuse]"),
        setting("--joint-names", type=NameList(), metavar="NAME,...", help="Joints of the recorded columns."),
        setting("--body-names", type=NameList(), metavar="NAME,...", help="Bodies of the recorded poses."),
        setting("--quaternion-order", type=click.Choice(("wxyz", "xyzw")), help="Of a recording that does not say."),
        setting("--state-spec", metavar="NAME", help="MuJoCo's name of the layout of recorded states."),
        setting("--fps", type=float, help="Frames a second of a recording that does not say."),
    )


def contact_options(command: Callable) -> Callable:
    """Options that can change the contact set."""
    return _decorated(
        command,
        setting("--narrow-phase", type=click.Choice(NARROW_PHASES), default="gjk", show_default=True),
        setting("--gap", type=Metres(), help="Report contacts this far ahead, for every shape. [default: as authored]"),
        setting("--margin", type=Metres(), help="Inflate every shape by this. [default: as authored]"),
        setting("--gap-rule", type=click.Choice(GAP_RULES), help="How two gaps join. [default: the scene format's]"),
        setting("--static-pairs", is_flag=True, help="Find contacts between two static shapes too."),
        setting(
            "--max-contacts-per-pair",
            type=WholeNumber(),
            metavar="N",
            help="Keep the N that matter most. [default: all]",
        ),
    )


def device_options(command: Callable) -> Callable:
    """On what a run is done; never what it finds."""
    return _decorated(
        command,
        setting("--device", default="", metavar="NAME", help="cpu, cuda or cuda:1. [default: cuda if there is one]"),
        setting("--threads", type=WholeNumber(), metavar="N", help="CPU workers. [default: all cores]"),
        setting("--memory-limit", type=MemorySize(), metavar="SIZE", help="As 4GiB. [default: half of what is free]"),
        setting("--chunk-cells", type=WholeNumber(), metavar="N", help="Advanced: cells computed at a time."),
    )


def algorithm_options(command: Callable) -> Callable:
    """How pairs are found; never which."""
    return _decorated(
        command,
        setting("--pipeline", type=click.Choice(PIPELINES), default="unified", show_default=True),
        setting("--broad-phase", type=click.Choice(BROAD_PHASES), default="auto", show_default=True),
    )


def compression_option(command: Callable) -> Callable:
    """How the output file is compressed."""
    choice = click.Choice(COMPRESSIONS)
    return setting("--compression", type=choice, default="gzip", show_default=True)(command)


def force_option(command: Callable) -> Callable:
    """Whether an output that is there is replaced."""
    return click.option("--force", is_flag=True, help="Replace an output that is there.")(command)


def option_group(kind: type[Group], values: Mapping[str, Any]) -> Group:
    """ContactOptions, EngineOptions, SceneOptions or RecordingOptions of a verb's values."""
    names = inspect.signature(kind).parameters
    return kind(**{name: values[name] for name in names if values.get(name) is not None})


def named_after(scenes: Sequence[str], trajectory: str | None) -> str:
    """The input whose name a default output takes: the first scene, else the recording that carries it."""
    if not scenes and trajectory is None:
        raise click.UsageError("Missing argument 'SCENE...': only a trajectory that carries its scene needs none.")
    return scenes[0] if scenes else str(trajectory)


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
        return Setting(names, is_flag=True, expose_value=False, is_eager=eager, callback=store(stored), help=text)

    config = Setting(
        ["--config"],
        metavar="FILE",
        expose_value=False,
        is_eager=True,
        callback=_read_config,
        help=f"Read options from here. [default: {CONFIG_FILE} in this folder, if there is one]",
    )
    return [
        config,
        flag(["--json"], "json", "Print one JSON object in place of tables."),
        flag(["-q", "--quiet"], "quiet", "Print errors only (and with --json the object)."),
        flag(["-v", "--verbose"], "verbose", "Print a traceback with an error.", eager=True),
    ]


def _read_config(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    if ctx.resilient_parsing:
        return
    if path is None and not os.path.exists(CONFIG_FILE):
        return
    path = path or CONFIG_FILE
    verbs = _verbs(ctx)
    table = _by_verb(_toml(path), verbs)
    shared = {
        name for verb in verbs.values() for name, option in _settable(verb).items() if isinstance(option, Setting)
    }
    here = _settable(ctx.command)
    values: dict[str, str] = {}
    own: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            if key not in verbs:
                _refuse(path, f"[{key.replace(' ', '.')}] is no verb", key, [name.replace(" ", ".") for name in verbs])
            options = _settable(verbs[key])
            for name, entry in value.items():
                text = _entry(path, f"[{key}] {name}", name, entry, options)
                if verbs[key] is ctx.command:
                    own[_plain(name)] = text
        else:
            text = _entry(path, key, key, value, shared)
            if isinstance(here.get(_plain(key)), Setting):
                values[_plain(key)] = text
    ctx.default_map = {**values, **own}
    ctx.meta["collide.config"] = path


def _by_verb(table: dict[str, Any], verbs: Mapping[str, click.Command]) -> dict[str, Any]:
    """The table with [group.verb] under "group verb", as the verb is called."""
    groups = {name.split()[0] for name in verbs if " " in name}
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in groups and isinstance(value, dict):
            flat |= {f"{key} {name}" if isinstance(entry, dict) else key: entry for name, entry in value.items()}
        else:
            flat[key] = value
    return flat


def _toml(path: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # pyright: ignore[reportMissingImports]
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", path, "see --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML: {error}", path) from error


def _entry(path: str, shown: str, name: str, value: Any, options: Any) -> str:
    """A value as the command line would have it, so that both are checked alike."""
    if _plain(name) not in options:
        _refuse(path, f"'{shown}' is no option", _plain(name), [str(option) for option in options])
    if not isinstance(value, (str, int, float)):
        raise InputError(f"'{shown}' is neither a string, a number nor true or false", path)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse(path: str, what: str, name: str, known: list[str]) -> None:
    close = get_close_matches(name, known, n=1)
    names = ", ".join(sorted(n.replace("_", "-") for n in known))
    raise InputError(what, path, f"did you mean {close[0].replace('_', '-')}?" if close else f"known here: {names}")


def _plain(key: str) -> str:
    return key.replace("-", "_")


def _verbs(ctx: click.Context) -> dict[str, click.Command]:
    """Every verb by the words that call it: `run`, and of a group of verbs `traj convert`."""
    root = ctx.find_root()
    if not isinstance(root.command, click.Group):
        return {ctx.command.name or "": ctx.command}
    return dict(_verbs_of(root.command, root, ""))


def _verbs_of(group: click.Group, ctx: click.Context, before: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from _verbs_of(command, ctx, f"{before}{name} ")
        elif command is not None:
            yield before + name, command


def _settable(verb: click.Command) -> dict[str, click.Option]:
    """Options of a verb that a file may set, by name."""
    return {p.name: p for p in verb.params if isinstance(p, click.Option) and p.name and p.name != "config"}


def _variables(verb: click.Command, words: str) -> list[str]:
    options = [option for option in verb.params if isinstance(option, click.Option) and option.name]
    own = [f"{PREFIX}{words.replace(' ', '_').upper()}_{str(option.name).upper()}" for option in options]
    return own + [option.envvar for option in options if isinstance(option.envvar, str)]
