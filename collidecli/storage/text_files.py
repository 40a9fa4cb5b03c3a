"""TOML and JSON: configuration, the jobs of a batch, results of `--json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collidecli.errors import InputError


def read_toml(path: str, fix: str = "") -> dict[str, Any]:
    """The values of a TOML file. fix: remedy in errors, such as the option that names the file.

    Raises InputError for a file that cannot be read or is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(_text(path, fix))
    except ValueError as error:
        raise InputError(f"is not TOML: {error}", path, fix) from error
    except RecursionError:
        raise InputError("has values nested too deep to be read", path, fix) from None


def read_json(path: str, fix: str = "", what: str = "is not JSON") -> Any:
    """The value of a JSON file. Raises InputError: with `what` for a file that is not JSON."""
    try:
        return json.loads(_text(path, fix))
    except (ValueError, RecursionError) as error:
        raise InputError(what, path, fix) from error


def _text(path: str, fix: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot be read: {(error.strerror or str(error)).lower()}", path, fix
        ) from error
