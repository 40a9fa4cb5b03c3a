"""Versions of installed packages."""

from __future__ import annotations

from importlib.metadata import distribution

VERSION = "Version: "


def installed_version(package: str) -> str:
    """Version of an installed package, read without the parser of mails of `importlib.metadata`,
    which takes some milliseconds.

    Raises importlib.metadata.PackageNotFoundError.
    """
    installed = distribution(package)
    for line in (installed.read_text("METADATA") or "").splitlines():
        if line.startswith(VERSION):
            return line.removeprefix(VERSION).strip()
    return installed.version
