"""Device functions that Warp parses when a kernel that calls them is hashed or compiled, not when
they are imported.

A run whose kernels are cached uses none of the parsed functions, and Warp takes half a second for
those of a scene.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.runtime.owned_process import is_owned
from collidecli.engine.runtime.warp_internals import hashing_lock, is_known_warp

PARSING = hashing_lock()
"""Held while Warp parses a function: Python 3.11 raises SystemError if two threads convert syntax
trees in turn, as a finalizer lets another thread run (CPython issue 106905). Warp's own lock, since
Warp parses while it hashes a kernel: with two locks, two threads may wait for each other."""
_warp_func: Callable[..., Any] = wp.func
_warp_func_native: Callable[..., Any] = wp.func_native


class DeferredFunction(wp.Function):
    """A function of Warp that Warp's own decorator declares when an attribute of the declaration is
    first read.

    func: the Python function. declare: that decorator.
    """

    def __init__(self, func: Callable[..., Any], declare: Callable[..., Any]) -> None:
        self.func = func
        self._overloads = [(func, declare)]
        self._is_declaring = False
        functools.update_wrapper(self, func)

    def overload(self, func: Callable[..., Any], declare: Callable[..., Any]) -> None:
        """Adds a function of the same name whose arguments have other types."""
        with PARSING:
            if "adj" in self.__dict__:
                self.add_overload(declare(func))
            else:
                self._overloads.append((func, declare))

    def __getattr__(self, name: str) -> Any:
        """An attribute of the declaration; only called for a name that this object does not
        have."""
        state = self.__dict__
        if name.startswith("__") or "_is_declaring" not in state:
            raise AttributeError(name)
        with PARSING:
            if "adj" not in state and not self._is_declaring:
                self._declare()
        try:
            return state[name]
        except KeyError:
            raise AttributeError(name) from None

    def _declare(self) -> None:
        self._is_declaring = True
        try:
            declared, *others = (declare(func) for func, declare in self._overloads)
            for other in others:
                declared.add_overload(other)
            self.__dict__.update(declared.__dict__)
        finally:
            self._is_declaring = False


def _deferred(
    func: Callable[..., Any], declare: Callable[..., Any], scope: dict[str, Any]
) -> DeferredFunction:
    """A deferred function; a second one of a name in a scope is an overload of the first."""
    first = scope.get(func.__name__)
    if isinstance(first, DeferredFunction):
        first.overload(func, declare)
        return first
    return DeferredFunction(func, declare)


def _func(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`wp.func`, deferred."""
    if func is None:
        return functools.partial(_func, **options)
    return _deferred(func, functools.partial(_warp_func, **options), sys._getframe(1).f_locals)


def _func_native(*snippets: str, **options: Any) -> Any:
    """`wp.func_native`, deferred."""
    return lambda func: _deferred(
        func, lambda func: _warp_func_native(*snippets, **options)(func), sys._getframe(1).f_locals
    )


def defer_functions() -> None:
    """Defers the functions that Warp declares from now on, in a process of the command line with a
    known Warp."""
    if is_owned() and is_known_warp():
        wp.func = _func
        wp.func_native = _func_native


def are_deferred() -> bool:
    """Whether functions are deferred, and so parsed under PARSING alone."""
    return wp.func is _func
