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
from collidecli.engine.runtime.deferred_functions import PARSING
from collidecli.engine.runtime.kernel import HEADER_FLAGS, SEPARATE_OPERATIONS, kernel
from collidecli.scene.shape_types import ShapeType
from tests.support import convex_runner

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
    assert module.options["cpu_compiler_flags"].split() == [*wp.config.cpu_compiler_flags.split(), *OURS]
    assert list(module.kernels.values()) == [declared]


@pytest.mark.parametrize(
    ("flags", "first"), [("", []), (None, ["-march=native"]), ("-march=native -g", ["-march=native", "-g"])]
)
def test_what_the_user_sets_for_all_of_warp_stays(monkeypatch, flags, first):
    monkeypatch.setattr(wp.config, "cpu_compiler_flags", flags)

    def nothing(number: int):
        pass

    declared = kernel(nothing)
    assert declared.module.options["cpu_compiler_flags"].split() == [*first, *OURS]


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
