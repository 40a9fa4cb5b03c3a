"""Compiled kernels that come with this package, for one version of Warp on Linux and x86-64-v3.

An archive, written by `collidecli.engine.build_kernels`, has files of Warp's cache and a table of `kernel_hashes`. A
kernel that Warp's cache lacks is copied into it, or compiled if it is not there. The names of the files have hashes of
the kernel's source, of its options and of the compiler, so that those of another program are never used by mistake; the
name of the archive has what these hashes lack (docs/adr/0117-start-and-carried-kernels.md).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

import warp as wp

from collidecli.engine.runtime.kernel_cache import UNWRITABLE, note, replace_folder

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "kernels"))


def archive_path() -> str:
    """The archive for the installed version of Warp."""
    return os.path.join(FOLDER, f"{wp.config.version}-linux-x86_64-v3.tar.xz")


def add_to_cache(names: Sequence[str]) -> bool:
    """Adds files to Warp's cache in this order; False if one is not carried.

    Where the cache cannot be written, they go to a temporary one. Raises OutputError for a full disk.
    """
    files = _files(archive_path())
    if not names or not files.keys() >= set(names):
        return False
    folder = str(wp.config.kernel_cache_dir)
    try:
        for name in names:
            write_file(os.path.join(folder, name), files[name])
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        replace_folder(folder, error, initialized=True)
        return add_to_cache(names)
    return True


@cache
def _files(path: str) -> dict[str, bytes]:
    """The files of an archive by name; none where there is none, or where it is damaged."""
    if not os.path.exists(path):
        return {}
    import io  # most runs need none of these
    import lzma
    import tarfile

    try:
        with open(path, "rb") as compressed:
            content = lzma.decompress(compressed.read())  # compares the hash of the whole
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            return {one.name: file.read() for one in archive if (file := archive.extractfile(one))}
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        note(f"{path}: is damaged ({error}), so kernels are compiled; install collidecli again")
        return {}


def write_file(path: str, content: bytes) -> None:
    """Writes a complete file or none: other processes may load it at any time."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(partial, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except OSError:
        with suppress(OSError):
            os.unlink(partial)
        raise
