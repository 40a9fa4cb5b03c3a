"""Keyword arguments of Python's functions, from the declarations of options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from inspect import Parameter, signature
from typing import Any, TypeVar

from collidecli.scene.options import (
    ContactOptions,
    EngineOptions,
    Option,
    RecordingOptions,
    SceneOptions,
)

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = Mapping[str, Parameter]
NEWTONS = ("output_contact_surface", "buffer_fraction", "margin_contact_area")
"""Options that only have Newton's names, and which `collide` does not have."""
NAMES = "str | Sequence[str]"
MAPPED = f"Mapping[str, str] | {NAMES}"
PATH = "str | os.PathLike[str]"
FRAMES = "str | int | slice"
TYPES_OF_KINDS = {
    "length": "float | str",
    "count": "int",
    "whole": "int",
    "resolution": "int",
    "stiffness": "float",
    "share": "float",
    "area": "float",
    "rate": "float",
    "angle": "float",
    "duration": "float",
    "names": NAMES,
    "pairs": "str | Sequence[str | tuple[str, str]]",
    "numbers": "Sequence[float]",
    "seconds": "float",
    "size": "int",
    "limit": "int",
}
"""Types of values in Python, by `Option.kind`; lengths may be texts with a unit."""
TYPES_OF_NAMES = {"asset_map": MAPPED, "meshes": MAPPED}
"""Types of options that also take a mapping."""


def python_type(name: str, option: Option, default: Any) -> str:
    """The type of an option's values in Python, as an annotation."""
    if name in TYPES_OF_NAMES:
        return TYPES_OF_NAMES[name]
    if option.choices:
        values = dict.fromkeys((*option.choices, *([""] if default == "" else [])))
        text = f"Literal[{', '.join(map(repr, values))}]"
    elif option.kind:
        text = TYPES_OF_KINDS[option.kind]
    elif isinstance(default, bool):
        text = "bool"
    else:
        text = PATH if option.metavar == "FILE" else "str"
    return f"{text} | None" if default is None else text


def option_parameters(
    *kinds: type, names: Iterable[str] = (), without: Iterable[str] = ()
) -> Parameters:
    """The options of option classes as keyword arguments, by name and in the order of `--help`.

    names: these of them; () is all. without: not these.
    """
    chosen = set(names)
    left_out = set(without)
    found = {}
    for kind in kinds:
        for entry in fields(kind):
            option = entry.metadata.get("option")
            if option is None or entry.name in left_out or (chosen and entry.name not in chosen):
                continue
            found[entry.name] = keyword(
                entry.name, python_type(entry.name, option, entry.default), entry.default
            )
    return found


def field_parameters(
    kind: type, types: Mapping[str, str], without: Iterable[str] = ()
) -> Parameters:
    """The fields of a request as keyword arguments. types: of fields that Python also takes in
    other types than the request."""
    left_out = set(without)
    return {
        entry.name: keyword(entry.name, types.get(entry.name, str(entry.type)), entry.default)
        for entry in fields(kind)
        if entry.name not in left_out
    }


def keyword(name: str, annotation: str, default: Any) -> Parameter:
    """A keyword argument."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


POSES = "np.ndarray | None"
TIMES = "str | Sequence[float] | np.ndarray"
"""Types of the positions of particles of a model, and of `time`: of a recording the name of its
times, of an array of poses the times [s]."""
MOTION_PARAMETERS: Parameters = {
    "worlds": keyword("worlds", "int | None", None),
    "frames": keyword("frames", FRAMES, ""),
}
SOURCE_PARAMETERS: Parameters = {
    **MOTION_PARAMETERS,
    **option_parameters(RecordingOptions, SceneOptions),
}
"""Options of scene files and a recording."""
SCENE_PARAMETERS: Parameters = {
    **SOURCE_PARAMETERS,
    "particle_q": keyword("particle_q", POSES, None),
    "time": keyword("time", TIMES, ""),
}
"""Options of a scene and its motion: of files, or of a model and an array of poses."""
RUN_PARAMETERS: Parameters = {
    **SCENE_PARAMETERS,
    "columns": keyword("columns", NAMES, ()),
    **option_parameters(ContactOptions, EngineOptions),
}
"""Options of a run."""


def with_options(parameters: Parameters) -> Callable[[Function], Function]:
    """A decorator that gives a function with **options a signature with these arguments by name.

    `help`, editors, the stubs (tests/support/python_stubs.py) and the check of unknown arguments in
    `python_call`, which stands above it, follow the signature.
    """

    def decorate(function: Function) -> Function:
        own = signature(function)
        named = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        known = {each.name for each in named}
        added = [each for each in parameters.values() if each.name not in known]
        vars(function)["__signature__"] = own.replace(parameters=[*named, *added])
        return function

    return decorate
