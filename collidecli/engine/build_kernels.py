"""python -m collidecli.engine.build_kernels: compiles the kernels for CPUs that come with this package.

Needs Linux on a processor of x86-64-v3. Kernels that Warp's cache or the archive in `collidecli/kernels` has are
not compiled again; all of them take five minutes of a core. Equal sources give equal bytes.
"""

from __future__ import annotations

import importlib
import io
import lzma
import os
import pkgutil
import sys
import tarfile
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import warp as wp

from collidecli.engine.runtime import kernel
from collidecli.engine.runtime.deferred_builtins import owned_process
from collidecli.engine.runtime.kernel import initialize, load_kernels
from collidecli.engine.runtime.warp_internals import compiled_files, has_v3


def kernels() -> Iterator[wp.Kernel]:
    """Every kernel that a run may launch: of pairs of types first, as they take longest; then those of modules."""
    from collidecli.engine.compaction import RowWriter
    from collidecli.engine.distances import point_kernel
    from collidecli.engine.hydroelastic.voxels import voxel_kernels
    from collidecli.engine.narrowphase.dispatch import METHODS, collider
    from collidecli.engine.narrowphase.sub_pairs import SubPairKernels
    from collidecli.scene.shape_types import ShapeType

    for type_a, type_b in combinations_with_replacement(ShapeType, 2):
        if type_b != ShapeType.PLANE:
            for method in METHODS:
                yield from collider(type_a, type_b, method).kernels
    yield from collider(ShapeType.BOX, ShapeType.BOX, "gjk", has_field=True).kernels
    for surfaces in product((True, False), repeat=2):
        yield from voxel_kernels(*surfaces)
    yield from map(point_kernel, (True, False))
    for package in kernel.SOURCES:
        path = os.path.join(os.path.dirname(__file__), "..", package)
        for module in pkgutil.walk_packages([path], f"collidecli.{package}."):
            for value in vars(importlib.import_module(module.name)).values():
                for item in value.values() if isinstance(value, dict) else [value]:
                    yield from [item] if isinstance(item, wp.Kernel) else []
                    yield from item.kernels if isinstance(item, SubPairKernels) else []
                    yield from [item.kernel] if isinstance(item, RowWriter) else []


def build(path: str) -> int:
    """Writes the archive with all kernels, compiled where they are not yet; returns their number."""
    device = wp.get_device("cpu")
    declared = list(dict.fromkeys(kernels()))
    load_kernels(declared, device)
    names = {
        name
        for declared_kernel in declared
        for name in compiled_files(declared_kernel.module, device)
    }
    names.add(os.path.basename(kernel.table_path()))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in sorted(names):
            with open(os.path.join(str(wp.config.kernel_cache_dir), name), "rb") as file:
                member = tarfile.TarInfo(name)
                member.size = os.fstat(file.fileno()).st_size
                archive.addfile(member, file)
    content = lzma.compress(
        packed.getvalue(), check=lzma.CHECK_SHA256, preset=9 | lzma.PRESET_EXTREME
    )
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.partial", "wb") as file:
        file.write(content)
    os.replace(f"{path}.partial", path)
    return len(declared)


def main() -> None:
    """Compiles in this process, as in one of the command line, so that the table of hashes is written."""
    if not has_v3():
        sys.exit(
            "error: kernels that come with the package are for Linux on a processor of x86-64-v3"
        )
    path = kernel.archive_path()
    with owned_process():
        initialize()
        count = build(path)
    print(f"{path}: {count} kernels, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
