"""Archives of compiled kernels: what one process has compiled, for Warp's caches on other machines.

An archive is a line with the SHA-256 of what follows, and a zip file with the objects of Warp's cache. Warp's names of
objects contain hashes of the source and of the target, so an archive of another program, Warp or processor is never
used by mistake.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import zipfile
from contextlib import suppress

import warp as wp

from collidecli.engine.runtime.compilation import loaded_kernel_files
from collidecli.engine.runtime.initialization import initialize
from collidecli.engine.runtime.kernel import target_flags
from collidecli.engine.runtime.kernel_cache import UNWRITABLE, replace_folder

_NAME = re.compile(r"wp_\w+/wp_[\w.]+")
_HASH_LENGTH = 64


class DamagedArchiveError(ValueError):
    """The content is not a complete archive of compiled kernels."""


def kernel_target() -> str:
    """Version of Warp, system and instruction set for which the CPU kernels of this process are compiled."""
    initialize()
    return wp.get_cpu_kernel_cache_key(cpu_compiler_flags=target_flags())


def packed_kernels() -> bytes:
    """An archive of all kernels that this process has loaded; b"" where there are none."""
    folder = str(wp.config.kernel_cache_dir)
    names = [name for name in loaded_kernel_files() if os.path.exists(os.path.join(folder, name))]
    if not names:
        return b""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(os.path.join(folder, name), name)
    packed = content.getvalue()
    return hashlib.sha256(packed).hexdigest().encode() + b"\n" + packed


def unpack_kernels(content: bytes) -> int:
    """Adds the kernels of an archive that Warp's cache lacks; returns the number of files.

    Where the cache cannot be written, they go to a temporary one, as compiled kernels do. Raises DamagedArchiveError
    before anything is written, OutputError for a full disk.
    """
    digest, packed = content[:_HASH_LENGTH], content[_HASH_LENGTH + 1 :]
    if hashlib.sha256(packed).hexdigest().encode() != digest:
        raise DamagedArchiveError("its content does not have the SHA-256 that it states")
    initialize()
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            names = archive.namelist()
            if not all(_NAME.fullmatch(name) for name in names):
                raise DamagedArchiveError("it has files that are no compiled kernels")
            return sum(_added(name, archive) for name in names)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise DamagedArchiveError(f"it is no zip file: {error}") from error


def _added(name: str, archive: zipfile.ZipFile) -> bool:
    """Whether a file was missing in Warp's cache, to which it is added."""
    folder = str(wp.config.kernel_cache_dir)
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return False
    try:
        _write(path, archive.read(name))
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        replace_folder(folder, error, initialized=True)
        return _added(name, archive)
    return True


def _write(path: str, content: bytes) -> None:
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
