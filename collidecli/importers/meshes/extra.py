"""Libraries of the extra `meshes`, imported where they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from collidecli.errors import InputError

EXTRA = "pip install 'collidecli[meshes]'"


def library(module: str, package: str, what: str, where: str) -> ModuleType:
    """The module; raises InputError that says what needs it and how to get it. package: its name on the index."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{what} needs {package}, which is not installed", where, EXTRA) from None
