"""TOML files: the configuration file of the command line and the job file of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collidecli.errors import InputError


def read_toml(path: str, fix: str = "") -> dict[str, Any]:
    """The values of a TOML file. fix: remedy in errors, such as the option that names the file.

    Raises InputError for a file that cannot be read or is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", path, fix) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML: {error}", path, fix) from error
    except RecursionError:
        raise InputError("has values nested too deep to be read", path, fix) from None
