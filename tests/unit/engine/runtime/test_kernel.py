"""Every kernel is declared and compiled the same way: what is compiled by two ways would be compiled twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import warp as wp

import collidecli
from collidecli.engine.cells import transform_shapes
from collidecli.engine.contacts.reduction import reduce_contacts
from collidecli.engine.narrowphase.dispatch import collider
from collidecli.engine.runtime import kernel as kernel_module
from collidecli.engine.runtime import warp_internals
from collidecli.engine.runtime.kernel import HEADER_FLAGS, SEPARATE_OPERATIONS, kernel, target_flags
from collidecli.engine.runtime.warp_internals import PARSING, V3, has_v3
from collidecli.scene.shape_types import ShapeType
from tests.support import convex_runner

TARGET = ["-target-cpu", "x86-64-v3"] if has_v3() else ["-march=native"]
OURS = (*HEADER_FLAGS, *SEPARATE_OPERATIONS)
PACKAGES = (Path(collidecli.__file__).parent, Path(convex_runner.__file__).parents[1])


def test_kernels_are_declared_in_one_place():
    declared = re.compile(r"@wp\.kernel|wp\.kernel\(")
    sources = [path for package in PACKAGES for path in package.rglob("*.py") if path != Path(__file__)]
    assert [path.name for path in sources if declared.search(path.read_text())] == ["kernel.py"]


@pytest.mark.parametrize(
    "declared", [transform_shapes, reduce_contacts, collider(ShapeType.SPHERE, ShapeType.SPHERE, "gjk").kernel]
)
def test_a_kernel_is_compiled_by_warps_flags_and_ours(declared):
    module = declared.module
    assert module.options["cpu_compiler_flags"].split() == [*TARGET, *wp.config.cpu_compiler_flags.split()[1:], *OURS]
    assert list(module.kernels.values()) == [declared]


@pytest.mark.parametrize(("flags", "first"), [("", []), (None, TARGET), ("-march=native -g", [*TARGET, "-g"])])
def test_what_the_user_sets_for_all_of_warp_stays(monkeypatch, flags, first):
    monkeypatch.setattr(wp.config, "cpu_compiler_flags", flags)

    def nothing(number: int):
        pass

    declared = kernel(nothing)
    assert declared.module.options["cpu_compiler_flags"].split() == [*first, *OURS]


class Compiler:
    """A compiler library that sees these features of a processor."""

    def __init__(self, features: set[str]) -> None:
        self.wp_get_host_cpu_features = type("function", (), {"__call__": lambda _: ",".join(features).encode()})()


@pytest.mark.parametrize(("features", "found"), [(V3 | {"avx512f"}, True), (V3 - {"fma"}, False), (set(), False)])
def test_x86_64_v3_is_for_processors_that_have_all_of_it(monkeypatch, features, found):
    monkeypatch.setattr(warp_internals.ctypes, "CDLL", lambda path: Compiler(features))
    monkeypatch.setattr(warp_internals.sys, "platform", "linux")
    monkeypatch.setattr(warp_internals.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(warp_internals, "is_known_warp", lambda: True)
    assert has_v3.__wrapped__() == found
    monkeypatch.setattr(warp_internals, "is_known_warp", lambda: False)
    assert not has_v3.__wrapped__()


@pytest.mark.parametrize("found", [True, False])
def test_the_processor_at_hand_gives_way_to_x86_64_v3(monkeypatch, found):
    monkeypatch.setattr(kernel_module, "has_v3", lambda: found)
    monkeypatch.setattr(wp.config, "cpu_compiler_flags", "-g -march=native")
    assert target_flags() == ("-g -target-cpu x86-64-v3" if found else "-g -march=native")


def test_no_two_threads_parse(monkeypatch):
    """Python 3.11 may raise SystemError if a second thread parses meanwhile."""
    declare, held = wp.kernel, []

    def noted(*args, **options):
        held.append(PARSING._is_owned())
        return declare(*args, **options)

    monkeypatch.setattr(wp, "kernel", noted)

    @kernel
    def parsed(values: wp.array[wp.int32]):
        values[wp.tid()] = 1

    assert held == [True]
    assert isinstance(parsed, wp.Kernel)
