"""Sources of an option's value, by precedence: flag, environment variable, collide.toml,
default."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from collidecli.cli.value_types import NAMES
from collidecli.errors import InputError
from collidecli.storage.text_files import read_toml
from collidecli.wording import did_you_mean

CONFIG_FILE = "collide.toml"
PATHS = {"FILE", "FOLDER", "PATH"}
"""Words for a path in the `metavar` of an option."""
PREFIX = "COLLIDE_"
MOST_PLACES = 3
"""Tables of verbs that a message names."""


class VerbOption(click.Option):
    """An option of one verb: set by COLLIDE_<VERB>_<NAME>, and in the file under [<verb>].

    section: its heading in `--help`, which shows a default that is not empty. starts_programs:
    whether its value names a program, a module or a server whose code runs; a file that is only
    found must not set it.
    """

    def __init__(
        self,
        *args: Any,
        section: str = "Options",
        starts_programs: bool = False,
        **attributes: Any,
    ) -> None:
        attributes.setdefault("show_default", attributes.get("default") not in (None, ""))
        super().__init__(*args, **attributes)
        self.section = section
        self.starts_programs = starts_programs

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Refuses an empty path, as of a variable of a shell that is not set: without it, the verb
        would do as if the option was not given."""
        value, source = super().consume_value(ctx, opts)
        is_given = source is not ParameterSource.DEFAULT and not ctx.resilient_parsing
        if is_given and PATHS & set((self.metavar or "").split("|")):
            values = value if isinstance(value, tuple | list) else (value,)
            if "" in values:
                raise click.BadParameter("the path is empty; name a file, or omit the option", ctx)
        return value, source


class Setting(VerbOption):
    """An option of several verbs or of `run`: set by COLLIDE_<NAME>, and by a top-level key in the
    file."""

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

    Raises InputError for a file that cannot be read, for an unknown key, verb or value, and for an
    option that starts programs in a file that is not named by --config.
    """
    if ctx.resilient_parsing:
        return
    if path is None and not os.path.exists(CONFIG_FILE):
        return
    is_named = path is not None
    path = path or CONFIG_FILE
    verbs = verbs_of(ctx)
    table = _by_verb(read_toml(path, "see --config"), verbs)
    shared = {
        name: option
        for verb in verbs.values()
        for name, option in _settable(verb).items()
        if isinstance(option, Setting)
    }
    settable = _settable(ctx.command)
    values: dict[str, str | tuple[str, ...]] = {}
    given: dict[str, str | tuple[str, ...]] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            if key not in verbs:
                _refuse(
                    path,
                    f"[{key.replace(' ', '.')}] is no verb",
                    key,
                    [name.replace(" ", ".") for name in verbs],
                )
            options = _settable(verbs[key])
            for name, entry in value.items():
                if _plain(name) not in options:
                    fix = f"collide {key} --help lists its options"
                    _refuse(path, f"'[{key}] {name}' is no option", _plain(name), options, fix)
                text = _entry(path, f"[{key}] {name}", name, entry, options)
                if not is_named:
                    _check_starts_nothing(path, key, options[_plain(name)])
                if verbs[key] is ctx.command:
                    given[_plain(name)] = text
        else:
            if _plain(key) not in shared:
                _refuse_top_level(path, key, shared, verbs)
            text = _entry(path, key, key, value, shared)
            if not is_named and _plain(key) in settable:
                _check_starts_nothing(path, ctx.command.name or "", settable[_plain(key)])
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
            flat |= {
                f"{key} {name}" if isinstance(entry, dict) else key: entry
                for name, entry in value.items()
            }
        else:
            flat[key] = value
    return flat


def _entry(
    path: str, shown: str, name: str, value: Any, options: Mapping[str, click.Option]
) -> str | tuple[str, ...]:
    """A value of one of `options` as text, so that it is checked as a value on the command line
    is; of a repeatable option the texts of a list too."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        if options[_plain(name)].multiple:
            return tuple(value)
        raise InputError(f"'{shown}' is a list, and the option takes one value", path)
    if not isinstance(value, (str, int, float)):
        raise InputError(f"'{shown}' is neither a string, a number nor true or false", path)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_starts_nothing(path: str, verb: str, option: click.Option) -> None:
    """Raises InputError for an option that starts programs: who works in a folder of others has not
    asked for theirs."""
    if isinstance(option, VerbOption) and option.starts_programs:
        flag = option.opts[0]
        raise InputError(
            f"[{verb}] {flag.removeprefix('--')} starts a program, which this file may not: it was"
            " only found in the folder",
            path,
            f"give {flag}, or name the file: --config {path}",
        )


def _refuse_top_level(
    path: str, key: str, shared: Mapping[str, click.Option], verbs: Mapping[str, click.Command]
) -> None:
    """Raises InputError for a key outside of tables that no option of several verbs has, with the
    verb of an option of one."""
    tables: dict[str, list[str]] = {}
    for verb, command in verbs.items():
        for name in _settable(command).keys() - shared.keys():
            tables.setdefault(name, []).append(f"[{verb.replace(' ', '.')}]")
    # imported only for a message, as the command line starts without it
    from difflib import get_close_matches

    name = _plain(key)
    if name in tables:
        fix = f"write it in the table of its verb, {_places(tables[name])}"
        raise InputError(f"'{key}' is an option of single verbs", path, fix)
    fix = "options of several verbs stand here, those of one in its table, such as [diff]"
    for similar in get_close_matches(name, [*shared, *tables], n=1):
        place = f" in {_places(tables[similar])}" if similar in tables else ""
        fix = f"did you mean {similar.replace('_', '-')}{place}?"
    raise InputError(f"'{key}' is no option", path, fix)


def _places(tables: list[str]) -> str:
    """The names of some tables, of many the first ones."""
    shown = sorted(tables)[:MOST_PLACES]
    return ", ".join(shown) + ", …" if len(shown) < len(tables) else " or ".join(shown)


def _refuse(
    path: str, what: str, name: str, known: Iterable[str], otherwise: str | None = None
) -> None:
    words = [word.replace("_", "-") for word in known]
    raise InputError(what, path, did_you_mean(name.replace("_", "-"), words, otherwise))


def _plain(key: str) -> str:
    return key.replace("-", "_")


def verbs_of(ctx: click.Context) -> dict[str, click.Command]:
    """Every verb by its words on the command line: `run`, or in a group `traj convert`."""
    root = ctx.find_root()
    if not isinstance(root.command, click.Group):
        return {ctx.command.name or "": ctx.command}
    return dict(_verbs_in(root.command, root, ""))


def _verbs_in(
    group: click.Group, ctx: click.Context, before: str
) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from _verbs_in(command, ctx, f"{before}{name} ")
        elif command is not None:
            yield before + name, command


def _settable(verb: click.Command) -> dict[str, click.Option]:
    return {
        p.name: p
        for p in verb.params
        if isinstance(p, click.Option) and p.name and p.name != "config"
    }


def variables_of(verb: click.Command, words: str) -> list[str]:
    """Names of the variables that set a verb's options. words: a key of `verbs_of`."""
    options = [option for option in verb.params if isinstance(option, click.Option) and option.name]
    names = [
        f"{PREFIX}{words.replace(' ', '_').upper()}_{str(option.name).upper()}"
        for option in options
    ]
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


class _RepeatedSetting(_Repeated, Setting):
    pass


repeated_setting = partial(click.option, cls=_RepeatableSetting, multiple=True)
"""A decorator that adds a repeatable `Setting`; its value is a tuple of texts, one from a variable
or file."""
repeated_names = partial(click.option, cls=_RepeatedSetting, type=NAMES, multiple=True)
"""A decorator that adds a repeatable `Setting` with lists of texts; its value is a tuple of all."""
repeated_values = partial(click.option, cls=_Repeatable, multiple=True)
"""A decorator that adds a repeatable option of one verb; its value is a tuple of values, one from a
variable or file."""
repeated = partial(click.option, cls=_Repeated, type=NAMES, multiple=True)
"""A decorator that adds a repeatable option of one verb; its value is a tuple of texts."""
