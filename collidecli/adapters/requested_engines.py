"""Engines of a request."""

from __future__ import annotations

import os

from collidecli.adapters.processes import adapter_of
from collidecli.errors import InputError
from collidecli.motions.requests import EnginesRequest
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.storage.regular_files import require_regular_file


def check_engines(
    request: EnginesRequest, with_files: bool = True
) -> dict[str, tuple[str, str, list[str]]]:
    """The adapter or file, the interpreter and the options of each engine by its name. Raises
    InputError.

    with_files: rows and contact sets may be given.
    """
    known: dict[str, tuple[str, str, list[str]]] = {}
    if not request.engines:
        raise InputError(
            "no engine is given", "--engines", "give names, as mujoco,coal, or NAME=adapter.py"
        )
    python = dict(
        _named(text, "--engine-python", True) for text in request.engine_python if "=" in text
    )
    of_all = next((text for text in request.engine_python if "=" not in text), "")
    options: dict[str, list[str]] = {}
    for text in request.engine_option:
        key, value = _named(text, "--engine-option", True)
        name, dot, key = key.rpartition(".")
        if not dot:
            raise InputError(
                f"'{text}' is not NAME.KEY=VALUE",
                "--engine-option",
                f"write {request.engines[0]}.{text}",
            )
        options.setdefault(name, []).append(f"{key}={value}")
    for text in request.engines:
        name, source = _named(text, "--engines", False)
        if name in known:
            raise InputError(
                f"'{name}' is given twice", "--engines", f"name one of them: other={source}"
            )
        is_file = with_files and source.endswith((".npz", *HDF5_ENDINGS))
        if not is_file:
            adapter_of(source)
        else:
            fix = "give rows, or a contact set of an engine"
            require_regular_file(source, "table of rows", fix)
        known[name] = source, python.pop(name, of_all), [] if is_file else options.pop(name, [])
    for option, left in (("--engine-python", python), ("--engine-option", options)):
        if left:
            what = f"no engine to run has the name '{next(iter(left))}'"
            raise InputError(what, option, f"one of: {', '.join(known)}")
    return known


def _named(text: str, option: str, both: bool) -> tuple[str, str]:
    """Name and value of NAME=VALUE; of a text without a name it is the engine, or the file's
    stem."""
    name, equals, value = text.partition("=")
    if not (name and (value or not equals)) or (both and not equals):
        raise InputError(
            f"'{text}' is not NAME=VALUE", option, "write a name, an equals sign and a value"
        )
    return (name, value) if equals else (os.path.splitext(os.path.basename(name))[0], name)
