"""Hashes of kernels from earlier runs: equal to Warp's, and unused wherever they might not be."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp
from warp._src import context

from collidecli.engine.narrowphase.closed_forms.boxes import collide_box_box
from collidecli.engine.narrowphase.closed_forms.spheres import (
    collide_sphere_capsule,
    collide_sphere_sphere,
)
from collidecli.engine.narrowphase.collider import closed_form_kernel
from collidecli.engine.runtime import carried_kernels, kernel_hashes, native_code, warp_internals
from collidecli.engine.runtime.deferred_functions import DeferredFunction
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_hashes import table_row
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.engine.runtime.owned_process import owned_process
from collidecli.engine.runtime.warp_internals import KernelHashes, hashes_of
from collidecli.engine.runtime.warp_start import initialize


@pytest.fixture(autouse=True)
def registered_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores Warp's modules at the end."""
    monkeypatch.setattr(context, "user_modules", dict(context.user_modules))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of compiled kernels, in a process of the command line that knows no
    hashes."""
    initialize()
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(carried_kernels, "FOLDER", str(tmp_path))
    with owned_process():
        new_process()
        yield tmp_path
    new_process()


def new_process() -> None:
    """Forgets kernels and hashes, as at the start of a process."""
    for name, module in list(context.user_modules.items()):
        if module.kernels and "." not in name:  # has a kernel of its own
            del context.user_modules[name]
    kernel_hashes.declared_kernels.clear()
    kernel_hashes._tables.clear()
    kernel_hashes._first_sources_hash.cache_clear()


def adder(number: int, module: str = "collidecli.engine.test") -> wp.Kernel:
    def add_number(values: wp.array[wp.int32]):
        values[wp.tid()] = values[wp.tid()] + number

    add_number.__module__ = module
    return kernel(add_number)


def tables(folder: Path) -> list[Path]:
    return list(folder.glob("collide_*.hashes"))


def hashed_again(declare: Callable[[], wp.Kernel]) -> tuple[wp.Kernel, wp.Kernel]:
    """A kernel that Warp hashes, and the same kernel with the hashes that were stored."""
    first = declare()
    kernel_hashes.save_hashes()
    new_process()
    return first, declare()


@pytest.mark.parametrize("collide", [collide_sphere_sphere, collide_box_box])
def test_a_stored_hash_is_warps(folder, monkeypatch, collide):
    first, second = hashed_again(lambda: closed_form_kernel(collide))
    assert second is not first
    assert hashes_of(second) == hashes_of(first)
    monkeypatch.setattr(warp_internals, "KNOWN_WARP", ())
    new_process()
    assert hashes_of(closed_form_kernel(collide)) == hashes_of(first)


@pytest.mark.rest
def test_kernels_with_stored_hashes_compute(folder):
    """The first finds no compiled file, the second the one of the first."""
    for number in (5, 6):
        hashed_again(lambda number=number: adder(number))
    device = wp.get_device("cpu")
    for _ in range(2):
        new_process()
        for number in (5, 6):
            declared = adder(number)
            load_kernels([declared], device)
            values = wp.array(np.arange(4, dtype=np.int32), device=device)
            wp.launch(declared, 4, [values], device=device)
            np.testing.assert_array_equal(values.numpy(), np.arange(4) + number)
    rows = tables(folder)[0].read_text().splitlines()
    assert len(rows) == 2
    assert all(" 1:" in row and " 256:" in row for row in rows)  # the CPU uses block size 1


def doubler(number: int) -> wp.Kernel:
    def double_number(values: wp.array[wp.int32]):
        values[wp.tid()] = values[wp.tid()] + wp.static(2 * number)

    double_number.__module__ = "collidecli.engine.test"
    return kernel(double_number)


@pytest.mark.parametrize("declare", [adder, doubler])
def test_a_kernel_with_stored_hashes_is_parsed_when_it_is_compiled(folder, declare):
    """Its tree, its lines and its static expressions are those of a kernel that Warp hashes."""
    first, second = hashed_again(lambda: declare(4))
    assert not warp_internals._OF_SOURCE & set(vars(second.adj))
    assert vars(second.adj)["arg_types"] == first.adj.arg_types
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = second.adj.no_such_name
    assert not warp_internals._OF_SOURCE & set(vars(second.adj))
    assert second.adj.source == first.adj.source
    assert ast.dump(second.adj.tree) == ast.dump(first.adj.tree)
    assert second.adj.fun_lineno == first.adj.fun_lineno
    assert second.adj.resolved_static_expressions == first.adj.resolved_static_expressions
    assert second.adj.fun_name == first.adj.fun_name
    assert hashes_of(second) == hashes_of(first)


@pytest.mark.rest
def test_a_kernel_with_stored_hashes_is_compiled_as_if_it_had_been_hashed(folder):
    declared = hashed_again(lambda: doubler(4))[1]
    device = wp.get_device("cpu")
    load_kernels([declared], device)
    values = wp.zeros(3, dtype=wp.int32, device=device)
    wp.launch(declared, 3, [values], device=device)
    assert values.numpy().tolist() == [8, 8, 8]


def test_a_kernel_with_stored_hashes_is_declared_once_without_hashing(folder, monkeypatch):
    adder(3)
    kernel_hashes.save_hashes()
    new_process()
    hashed = []
    monkeypatch.setattr(context.ModuleHasher, "hash_kernel", lambda *_: hashed.append(1))
    assert adder(3) is adder(3)
    assert not hashed


def test_keys_depend_on_what_a_hash_depends_on(folder, monkeypatch):
    def key(
        collide: Any = collide_sphere_sphere, kind: Any = wp.int32, **options: Any
    ) -> str | None:
        def narrow_phase(size: Any):
            collide()

        narrow_phase.__annotations__["size"] = kind
        narrow_phase.__module__ = "collidecli.engine.test"
        return kernel_hashes.kernel_key(narrow_phase, options)

    keys = [
        key(),
        key(collide_sphere_capsule),
        key(collide=3),
        key(kind=wp.array[wp.int32]),
        key(mode="debug"),
    ]
    keys += [
        key(kind=wp.array[wp.float32]),
        key(kind=wp.array2d[wp.int32]),
        key(kind=wp.vec3f),
        key(kind=wp.vec3d),
    ]
    monkeypatch.setattr(wp.config, "verify_fp", True)
    keys += [key()]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    monkeypatch.setattr(wp.config, "verify_fp", False)
    assert key() == keys[0]


def test_a_key_does_not_depend_on_whether_a_function_is_parsed(folder):
    """Earlier kernels of the process parse functions, unless their hashes are stored: later runs
    had other keys."""

    def add(a: float, b: float):
        return a + b

    add.__module__ = "collidecli.engine.test"
    called = DeferredFunction(add, wp.func(name="add_by_another_name"))

    def declared(values: wp.array[float]):
        values[0] = called(values[1], wp.min(values[2], values[3]))

    declared.__module__ = "collidecli.engine.test"
    before = kernel_hashes.kernel_key(declared, {})
    assert called.adj
    assert kernel_hashes.kernel_key(declared, {}) == before
    assert before is not None

    def key(function: Any) -> str | None:
        def declared(values: wp.array[float]):
            values[0] = function(values[1], values[2])

        declared.__module__ = "collidecli.engine.test"
        return kernel_hashes.kernel_key(declared, {})

    assert len({None, key(wp.min), key(wp.max)}) == 3  # builtin functions have different keys


@pytest.mark.parametrize(
    "module", ["tests.elsewhere", "collidecli.importers.usd", "is_owned", "is_known_warp"]
)
def test_hashes_are_for_code_of_the_engine_on_the_command_line_with_a_known_warp(
    folder, monkeypatch, module
):
    if module.startswith("is_"):
        monkeypatch.setattr(kernel_hashes, module, lambda: False)
    assert adder(3, module) if "." in module else adder(3)
    assert not kernel_hashes.declared_kernels


def test_other_sources_have_another_table(folder, monkeypatch, tmp_path):
    adder(3)
    kernel_hashes.save_hashes()
    new_process()
    monkeypatch.setattr(kernel_hashes, "_PACKAGE", str(tmp_path))
    assert kernel_hashes.known_hashes(next(iter(rows_of(tables(folder)[0])))) is None
    adder(3)
    kernel_hashes.save_hashes()
    assert len(tables(folder)) == 2


@pytest.mark.parametrize("name", ["engine/a.py", "engine/a.h", "numerics/a.py"])
def test_every_source_file_is_part_of_the_name_of_the_table(monkeypatch, tmp_path, name):
    monkeypatch.setattr(kernel_hashes, "_PACKAGE", str(tmp_path))
    empty = kernel_hashes._sources_hash()
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("1")
    assert kernel_hashes._sources_hash() != empty


def test_sections_of_native_code_take_values_by_name(tmp_path):
    (tmp_path / "a.h").write_text("// about\n// == A\nint a[${N}];\n// == B\n${A}b ${C[1]};\n")
    first = native_code.native(str(tmp_path / "a.py"), "A", N=4)
    assert first == "\nint a[4];\n"
    assert (
        native_code.native(str(tmp_path / "a.py"), "B", A=first, C=(1, 2.5))
        == "\n\nint a[4];\nb 2.5;\n"
    )
    with pytest.raises(KeyError, match="N"):
        native_code.native(str(tmp_path / "a.py"), "A")


def test_nothing_is_stored_if_a_source_changed_since_the_start(folder, monkeypatch):
    adder(3)
    monkeypatch.setattr(kernel_hashes, "_sources_hash", lambda: "0" * 16)
    kernel_hashes.save_hashes()
    assert not tables(folder)


def rows_of(path: Path) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in path.read_text().splitlines())


@pytest.mark.parametrize("damage", ["", "name", "name 12 1 1 1:ab", "name zz 1 1", b"\xff\xfe"])
def test_damaged_rows_are_replaced(folder, damage):
    first = adder(3)
    kernel_hashes.save_hashes()
    (path,) = tables(folder)
    (key,) = rows_of(path)
    expected = path.read_text()
    path.write_bytes(
        f"{key} ".encode() + damage if isinstance(damage, bytes) else f"{key} {damage}\n".encode()
    )
    new_process()
    assert kernel_hashes.known_hashes(key) is None
    assert hashes_of(adder(3)) == hashes_of(first)
    kernel_hashes.save_hashes()
    assert path.read_text() == expected


def test_rows_of_other_processes_stay(folder):
    adder(3)
    kernel_hashes.save_hashes()
    (path,) = tables(folder)
    new_process()
    adder(4)  # reads the table
    other = KernelHashes("other", bytes(32), 1, True, ((1, bytes(32)),))
    with path.open("a") as file:
        file.write(table_row("1" * 64, other))
    kernel_hashes.save_hashes()
    assert len(rows_of(path)) == 3
    new_process()
    assert kernel_hashes.known_hashes("1" * 64) == other


def test_a_folder_that_cannot_be_written_is_left_alone(folder, monkeypatch):
    def refused(*_: object) -> None:
        raise PermissionError

    adder(3)
    monkeypatch.setattr(kernel_hashes.os, "replace", refused)
    kernel_hashes.save_hashes()
    assert not list(folder.iterdir())
