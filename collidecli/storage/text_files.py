"""TOML and JSON: configuration, the jobs of a batch, results of `--json`."""

from __future__ import annotations

import json
from typing import Any

from collidecli.errors import InputError
from collidecli.storage.regular_files import HDF5_SIGNATURE, open_input


def read_toml(path: str, fix: str = "") -> dict[str, Any]:
    """The values of a TOML file. fix: remedy in errors, such as the option that names the file.

    Raises InputError for a file that cannot be read or is not TOML.
    """
    import tomllib

    try:
        values = tomllib.loads(_text(path, fix))
        if _has_zero(values):
            raise InputError("a text has a zero character, which no name may have", path, fix)
        return values
    except ValueError as error:
        raise InputError(f"is not TOML: {error}", path, fix) from error
    except RecursionError:
        raise InputError("has values nested too deep to be read", path, fix) from None


def _has_zero(value: Any) -> bool:
    """Whether a text in a value of TOML has a zero character, at which the system ends a name."""
    if isinstance(value, dict):
        return any(map(_has_zero, value)) or any(map(_has_zero, value.values()))
    if isinstance(value, list):
        return any(map(_has_zero, value))
    return isinstance(value, str) and "\0" in value


def read_json(path: str, fix: str = "", what: str = "is not JSON") -> Any:
    """The value of a JSON file. Raises InputError: with `what` for a file that is not JSON."""
    try:
        return json.loads(_text(path, fix))
    except (ValueError, RecursionError) as error:
        with open_input(path, "rb") as file:
            is_hdf5 = file.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE
        raise InputError("is HDF5, not JSON" if is_hdf5 else what, path, fix) from error


def _text(path: str, fix: str) -> str:
    try:
        with open_input(path, "r", encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise InputError(
            f"cannot be read: {(error.strerror or str(error)).lower()}", path, fix
        ) from error
