"""Imports the libraries of the optional extra `meshes` on demand."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from collidecli.errors import InputError

EXTRA = "pip install 'collidecli[meshes]'"


def library(module: str, package: str, what: str, where: str) -> ModuleType:
    """The module. Raises InputError with the install command where it is missing. package: its name on the index."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{what} needs {package}, which is not installed", where, EXTRA) from None
