"""Warp's built-in functions, registered when one of them is first read, not when Warp is imported.

The modules DEFERRED declare 3 600 overloads, in a fifth of the time of a run whose kernels are
cached, which uses none. In a process of the command line with a known Warp they are executed when
Warp's table of built-in functions, or an attribute that `warp` lacks, is first read: all, in the
order of an import, so that table and attributes are equal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

KNOWN_WARP = ("1.19.",)
"""Prefixes of the versions of Warp whose private names this package uses; the tests pass with these
versions. An empty tuple disables every use of a private name."""
_MODULES: dict[str, Any] = sys.modules
DEFERRED = BUILTINS, MATH = "warp._src.builtins", "warp._src.math"


class _Table(dict[str, Any]):
    """Warp's table of built-in functions. loads: execute the deferred modules, until this is
    done."""

    def __init__(self) -> None:
        self.lock = sys.modules["warp._src.codegen"]._codegen_lock  # `hashing_lock`
        self.loads: list[Callable[[], None]] = []

    def fill(self) -> None:
        """Executes the deferred modules; other threads wait."""
        with self.lock:
            loads = self.loads
            self.loads = []
            if loads:
                warp, builtins, math = (_MODULES[name] for name in ("warp", *DEFERRED))
                warp.__class__ = _Filling
                # may be that of deferred_functions
                func = warp.func
                warp.func = sys.modules["warp._src.context"].func
                del warp.static  # Warp replaces no attribute
                for load in loads:
                    load()
                vars(warp).update(
                    {name: vars(math)[name] for name in math.__all__},
                    func=func,
                    static=builtins.static,
                )
                warp.__class__ = ModuleType


def _filled(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda table, *arguments: (table.fill(), method(table, *arguments))[1]


for _name in (
    "__contains__",
    "__getitem__",
    "__iter__",
    "__len__",
    "get",
    "items",
    "keys",
    "values",
):
    setattr(_Table, _name, _filled(getattr(dict, _name)))


class _Warp(ModuleType):
    """The module `warp` without the attributes that the deferred modules set."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and "__version__" in vars(self):  # its import is complete
            sys.modules["warp._src.context"].builtin_functions.fill()
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"module 'warp' has no attribute {name!r}")


class _Filling(ModuleType):
    """The module `warp` while the table is filled: other threads wait, as a function may lack
    overloads."""

    def __getattribute__(self, name: str) -> Any:
        with sys.modules["warp._src.context"].builtin_functions.lock:
            return ModuleType.__getattribute__(self, name)


def static(expr: Any) -> Any:
    """`wp.static`, which Warp recognizes by the names of function and module."""
    return expr


static.__module__ = BUILTINS


class BuiltinsLoader(SourceFileLoader):
    """Finds the deferred modules, and executes them when the table is filled. For
    `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in DEFERRED or not sys.modules["warp.config"].version.startswith(KNOWN_WARP):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.origin:
            spec.loader = BuiltinsLoader(name, spec.origin)
        return spec

    def exec_module(self, module: Any) -> None:
        context = _MODULES["warp._src.context"]
        if self.name == BUILTINS:
            context.builtin_functions = _Table()
            module.static = static
            sys.modules["warp"].__class__ = _Warp
        context.builtin_functions.loads.append(partial(super().exec_module, module))
