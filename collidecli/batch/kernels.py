"""Compiled kernels in the store of a batch, so that not every worker with an empty cache compiles them again.

The plan's process has compiled the kernels of each job to estimate it. It adds an archive of them, which every worker
process reads before its first shard. Without one, or with one for other processors, workers compile as `run` does.
"""

from __future__ import annotations

from collidecli import __version__
from collidecli.batch.store import Store
from collidecli.engine.runtime.kernel_archive import (
    DamagedArchiveError,
    kernel_target,
    packed_kernels,
    unpack_kernels,
)

_read: set[str] = set()
"""Locations of stores whose kernels this process has."""


def kernels_name() -> str:
    """Name in a store of the archive for this program and this processor."""
    return f"kernels/{__version__}-{kernel_target()}.zip"


def has_kernels(store: Store) -> bool:
    """Whether a store has the archive for this program and this processor."""
    return store.files.exists(kernels_name())


def add_kernels(store: Store) -> None:
    """Writes the kernels that this process has loaded into the store. Raises OutputError."""
    content = packed_kernels()
    if content:
        store.files.write(kernels_name(), content)


def use_kernels(store: Store) -> tuple[str, ...]:
    """Adds the kernels in a store to Warp's cache, once in a process; a warning where they are damaged."""
    if store.location in _read:
        return ()
    _read.add(store.location)
    name = kernels_name()
    try:
        unpack_kernels(store.files.read(name))
    except FileNotFoundError:
        return ()
    except DamagedArchiveError as error:
        where = f"{store.location.rstrip('/')}/{name}"
        return (
            f"{where}: is damaged ({error}), so every worker compiles its kernels; "
            "write it again with collide batch plan --force",
        )
    return ()
