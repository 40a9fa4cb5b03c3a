"""Methods of data classes, compiled when one is first called, not when the class is defined.

Before version 3.13, Python compiles each method that `dataclass` adds to a class on its own. A run
defines hundreds of such classes, creates instances of some, prints and compares few of them, and
never assigns to a frozen one. In a process of the command line these methods are functions that
compile themselves, and take the place of themselves in the class. Until then `inspect.signature`
does not tell the parameters of such a class; its fields are those of `dataclasses.fields`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

COMPILED_ALONE = sys.version_info < (3, 13)
"""Whether `dataclass` compiles each method on its own, by the private `_create_fn`."""


def defer_methods() -> None:
    """Defers the methods of classes that are defined later; without effect where Python has no such
    function."""
    create = getattr(dataclasses, "_create_fn", None)
    if not COMPILED_ALONE or create is None or isinstance(create, _DeferringCreator):
        return
    dataclasses._create_fn = _DeferringCreator(create)  # pyright: ignore[reportAttributeAccessIssue]


class _DeferringCreator:
    """`dataclasses._create_fn`, whose functions are created by their first call."""

    def __init__(self, create: Callable[..., Callable[..., Any]]) -> None:
        self.create = create

    def __call__(self, name: str, *arguments: Any, **settings: Any) -> Callable[..., Any]:
        created: Callable[..., Any] | None = None

        def method(instance: Any, *values: Any, **named: Any) -> Any:
            nonlocal created
            if created is None:
                created = self.create(name, *arguments, **settings)
                created.__qualname__ = method.__qualname__
            for owner in type(instance).__mro__:
                if vars(owner).get(name) is method:
                    setattr(owner, name, created)
            return created(instance, *values, **named)

        method.__name__ = name
        return method
