"""Deferred methods of data classes behave as those that `dataclass` compiles at once."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from functools import partial
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from collidecli.cli import deferred_methods
from collidecli.cli.deferred_methods import COMPILED_ALONE, INSTANCES, defer_methods

KINDS = [
    {"frozen": frozen, "order": order, "slots": slots, "kw_only": kw_only}
    for frozen, order, slots, kw_only in product((False, True), repeat=4)
]


def data_class(**settings: Any) -> type:
    @dataclasses.dataclass(**settings)
    class Row:
        name: str
        count: int = 3
        others: list[int] = dataclasses.field(default_factory=list, hash=False, repr=False)

        def doubled(self) -> int:
            return 2 * self.count

    return Row


def answer(call: Any) -> Any:
    """The result of a call, or the error's class and text."""
    try:
        return call()
    except (AttributeError, TypeError) as error:
        return type(error), str(error)


def answers(row_type: Any) -> list[Any]:
    first = row_type(name="a")
    equal = row_type(name="a", count=3, others=[])
    other = row_type(name="b", count=4)
    return [
        repr(first),
        first == equal,
        first == other,
        first == "a",
        answer(lambda: first < other),
        answer(lambda: first >= other),
        answer(lambda: first < "a"),
        answer(lambda: hash(first) == hash(equal)),
        answer(lambda: hash(first) == hash(other)),
        answer(lambda: setattr(first, "count", 5)),
        answer(lambda: delattr(first, "count")),
        answer(lambda: first.count),
        first.doubled() if hasattr(first, "count") else None,
        dataclasses.asdict(other),
        repr(dataclasses.replace(other, count=7)),
        answer(row_type),
        answer(lambda: row_type(name="a", other=1)),
        answer(lambda: row_type()),
        answer(lambda: row_type(count=1)),
        answer(lambda: row_type("a", name="b")),
        answer(lambda: row_type("a", 1, [], 2)),
        answer(lambda: row_type("a", 1, [2])) == row_type(name="a", count=1, others=[2]),
        str(inspect.signature(row_type)),
        row_type.__match_args__,
        row_type.__repr__.__qualname__,
        row_type.__eq__.__name__,
    ]


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the methods that were compiled, with the methods deferred."""
    if not COMPILED_ALONE:
        pytest.skip("this Python compiles the methods of a data class together")
    create = dataclasses._create_fn
    names = []

    def counted(name: str, *arguments: Any, **settings: Any) -> Any:
        names.append(name)
        return create(name, *arguments, **settings)

    monkeypatch.setattr(dataclasses, "_create_fn", counted)
    monkeypatch.setattr(dataclasses, "_is_type", dataclasses._is_type)
    defer_methods()
    return names


@pytest.mark.parametrize("instances", [0, INSTANCES])
@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_deferred_methods_answer_as_others(
    settings: dict[str, bool], instances: int, created: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_methods, "INSTANCES", instances)
    deferred = answers(data_class(**settings))
    assert {"__init__", "__repr__", "__eq__"} <= set(created)
    assert len(created) == len(set(created))
    dataclasses._create_fn = dataclasses._create_fn.create
    assert deferred == answers(data_class(**settings))


def row_types() -> list[type]:
    """Data classes whose instances have more than their parameters."""

    @dataclasses.dataclass(frozen=True)
    class Base:
        KIND: ClassVar[str] = "row"
        name: str
        size: int = dataclasses.field(default=2, kw_only=True)

    @dataclasses.dataclass(frozen=True)
    class Checked(Base):
        count: int = 1

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", self.size + len(self.name))

    @dataclasses.dataclass
    class Scaled:
        name: str
        scale: dataclasses.InitVar[int] = 3
        sizes: list[int] = dataclasses.field(init=False, default_factory=list)

        def __post_init__(self, scale: int) -> None:
            self.sizes.append(scale)

        def __setattr__(self, name: str, value: object) -> None:
            object.__setattr__(self, name, [value] if name == "name" else value)

    return [Base, Checked, Scaled]


@pytest.mark.parametrize("index", range(3))
def test_first_instances_are_those_of_a_compiled_method(index: int, created: list[str]) -> None:
    deferred = row_types()[index]
    calls = [
        lambda row_type: vars(row_type("ab")),
        lambda row_type: vars(row_type(name="ab", size=4)),
        lambda row_type: vars(row_type("ab", 5)),
        lambda row_type: vars(row_type("ab", KIND="none")),
        lambda row_type: vars(type("Derived", (row_type,), {})("ab")),
    ]
    found = [answer(partial(call, deferred)) for call in calls]
    dataclasses._create_fn = dataclasses._create_fn.create
    compiled = row_types()[index]
    assert found == [answer(partial(call, compiled)) for call in calls]


@pytest.mark.parametrize("annotation", ["ClassVar[int]", "typing.ClassVar", "InitVar[int]", "int"])
@pytest.mark.parametrize("module", ["collidecli.scene.model", "other"])
def test_annotations_mean_what_they_mean_to_python(
    annotation: str, module: str, created: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As texts, which they are in modules that defer them."""
    space = ModuleType(module)
    vars(space).update(ClassVar=ClassVar, InitVar=dataclasses.InitVar, typing=typing)
    monkeypatch.setitem(sys.modules, module, space)
    row_type = type("Row", (), {"__module__": module, "__annotations__": {"a": annotation}})
    names = [field.name for field in dataclasses.fields(dataclasses.dataclass(row_type))]
    assert names == (["a"] if annotation == "int" else [])


def test_no_module_imports_a_special_annotation_by_another_name() -> None:
    other_name = re.compile(
        rf"\b({'|'.join(deferred_methods.SPECIAL)}) as\b|^import typing as", re.M
    )
    package = Path(deferred_methods.__file__).parents[1]
    assert [path for path in package.rglob("*.py") if other_name.search(path.read_text())] == []


def test_a_method_is_compiled_when_it_is_needed_alone(created: list[str]) -> None:
    row_type = data_class(frozen=True)
    assert created == []
    rows = [row_type(name=name) for name in "aab"]
    assert created == []
    assert [rows[0] == row for row in rows] == [True, True, False]
    assert created == ["__eq__"]
    rows = [row_type(name="a") for _ in range(INSTANCES + 3)]
    assert created == ["__eq__", "__init__"]
    assert len(set(map(repr, rows))) == 1


def test_a_compiled_method_replaces_the_deferred_one_in_its_class(
    created: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_methods, "INSTANCES", 0)
    row_type = data_class()
    derived = type("Derived", (row_type,), {})
    deferred = row_type.__init__
    assert (derived(name="a").name, row_type(name="b").name) == ("a", "b")
    assert created == ["__init__"]
    assert row_type.__init__ is derived.__init__ is not deferred
    assert "__init__" not in vars(derived)
    assert row_type.__init__.__qualname__ == deferred.__qualname__


def test_a_class_may_define_its_own_method(created: list[str]) -> None:
    @dataclasses.dataclass
    class Base:
        name: str

    class Derived(Base):
        def __init__(self) -> None:
            super().__init__("b")

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

        __hash__ = None

    assert Derived() == Derived()
    assert (Derived().name, Base("a").name) == ("b", "a")
    assert created == ["__eq__"]


def test_nothing_is_deferred_twice(created: list[str]) -> None:
    once = dataclasses._create_fn
    defer_methods()
    assert dataclasses._create_fn is once


def test_a_python_that_compiles_them_together_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deferred_methods, "COMPILED_ALONE", False)
    before = getattr(dataclasses, "_create_fn", None)
    defer_methods()
    assert getattr(dataclasses, "_create_fn", None) is before


def test_a_python_without_the_private_function_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(dataclasses, "_create_fn", raising=False)
    defer_methods()
    assert not hasattr(dataclasses, "_create_fn")
