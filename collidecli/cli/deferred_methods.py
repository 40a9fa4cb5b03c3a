"""Methods of data classes, compiled when one is first needed, not when the class is defined.

Before version 3.13, Python compiles each method that `dataclass` adds to a class on its own. A run
defines hundreds of such classes, creates one or two instances of most, prints and compares few of
them, and never assigns to a frozen one. In a process of the command line these methods are
functions that compile themselves, and take the place of themselves in the class. The first
instances of a class are created without its compiled `__init__`. Until then `inspect.signature`
does not tell the parameters of such a class; its fields are those of `dataclasses.fields`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any

COMPILED_ALONE = sys.version_info < (3, 13)
"""Whether `dataclass` compiles each method on its own, by the private `_create_fn`."""
INSTANCES = 16
"""Instances of a class that are created without a compiled `__init__`; to compile it takes as long
as 25 of them."""
SPECIAL = "ClassVar", "InitVar", "KW_ONLY"
"""Annotations that `dataclass` recognizes by name."""


def defer_methods() -> None:
    """Defers the methods of classes that are defined later; without effect where Python has no such
    functions."""
    create = getattr(dataclasses, "_create_fn", None)
    if not COMPILED_ALONE or create is None or isinstance(create, _DeferringCreator):
        return
    dataclasses._create_fn = _DeferringCreator(create)  # pyright: ignore[reportAttributeAccessIssue]
    is_type = getattr(dataclasses, "_is_type", None)
    if is_type is not None:
        dataclasses._is_type = _SpecialType(is_type)  # pyright: ignore[reportAttributeAccessIssue]


class _SpecialType:
    """`dataclasses._is_type`, which matches an expression with each annotation up to three times;
    in this package for annotations that contain one of SPECIAL alone, which no module of it imports
    by another name."""

    def __init__(self, is_type: Callable[..., bool]) -> None:
        self.is_type = is_type

    def __call__(self, annotation: str, cls: type, *of: Any) -> bool:
        if cls.__module__.startswith("collidecli.") and not any(
            map(annotation.__contains__, SPECIAL)
        ):
            return False
        return self.is_type(annotation, cls, *of)


class _DeferringCreator:
    """`dataclasses._create_fn`, whose functions are created when they are needed."""

    def __init__(self, create: Callable[..., Callable[..., Any]]) -> None:
        self.create = create

    def __call__(self, name: str, *arguments: Any, **settings: Any) -> Callable[..., Any]:
        created: Callable[..., Any] | None = None
        instances = 0 if name == "__init__" else INSTANCES

        def method(instance: Any, *values: Any, **named: Any) -> Any:
            nonlocal created, instances
            if instances < INSTANCES:
                instances += 1
                if _is_initialized(method, instance, values, named):
                    return None
            instances = INSTANCES
            if created is None:
                created = self.create(name, *arguments, **settings)
                created.__qualname__ = method.__qualname__
            for owner in type(instance).__mro__:
                if vars(owner).get(name) is method:
                    setattr(owner, name, created)
            return created(instance, *values, **named)

        method.__name__ = name
        return method


def _is_initialized(
    method: Callable[..., Any], instance: Any, values: Sequence[Any], named: Mapping[str, Any]
) -> bool:
    """Does what the compiled `__init__` would do. False, without effect, for a class whose fields
    are not all parameters, and for arguments that are refused.

    method: that is in place of it, in the class of the instance or in one of its bases.
    """
    owners = (each for each in type(instance).__mro__ if vars(each).get("__init__") is method)
    owner = next(owners, None)
    if owner is None:
        return False
    fields = dataclasses.fields(owner)
    if len(fields) < len(owner.__dataclass_fields__) or not all(field.init for field in fields):
        return False
    positional = [field.name for field in fields if not field.kw_only]
    given = dict(zip(positional, values, strict=False))
    if len(given) < len(values) or not given.keys().isdisjoint(named):
        return False
    given.update(named)
    missing = [field for field in fields if field.name not in given]
    if len(given) + len(missing) > len(fields) or any(
        field.default is MISSING is field.default_factory for field in missing
    ):
        return False
    is_frozen = owner.__dataclass_params__.frozen
    assign = object.__setattr__ if is_frozen else setattr
    for field in fields:
        if field.name in given:
            value = given[field.name]
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        else:
            value = field.default
        assign(instance, field.name, value)
    if hasattr(owner, "__post_init__"):
        instance.__post_init__()
    return True
