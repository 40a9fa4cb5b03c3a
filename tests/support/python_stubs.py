"""Stubs of the modules whose functions take options by name, with every option written out.

`python -m tests.support.python_stubs` writes them beside the modules. A stub has what its module
has, without bodies and texts; of a function with **options it has the signature that `with_options`
makes of the declarations of the options.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import collidecli

ROOT = Path(collidecli.__file__).parent
HEAD = "# Made by `python -m tests.support.python_stubs`: do not edit.\n"
IMPORTS = """import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
"""
DECORATORS_OF_SOURCE = ("python_call", "with_options")


def modules() -> list[Path]:
    """The modules with a function that `with_options` decorates."""
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if "@with_options(" in path.read_text(encoding="utf-8")
    ]


def stub(path: Path) -> str:
    """The text of the stub of a module."""
    name = "collidecli." + path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    module = import_module(name)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = _declarations(tree.body, partial(getattr, module))
    text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    return _formatted(f"{HEAD}\n{IMPORTS}\n{text}\n")


def _declarations(
    statements: list[ast.stmt], found: Callable[[str], Any], of_class: bool = False
) -> list[ast.stmt]:
    """The declarations of a module or class. found: the object of a name in it."""
    listed: list[ast.stmt] = []
    overloaded = {
        one.name for one in statements if isinstance(one, ast.FunctionDef) and _is_overload(one)
    }
    for one in statements:
        if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING":
            listed += one.body
        elif isinstance(one, (ast.Import, ast.ImportFrom)):
            listed.append(one)
        elif isinstance(one, ast.AnnAssign):
            if one.value is not None:
                one.value = ast.Constant(...)
            listed.append(one)
        elif isinstance(one, ast.Assign) and not of_class:
            is_type = "TypeVar(" in ast.unparse(one.value)
            constant = ast.parse(f"{ast.unparse(one.targets[0])}: Any").body[0]
            listed.append(one if is_type else constant)
        elif isinstance(one, ast.ClassDef):
            own = found(one.name)
            inner = _declarations(one.body, partial(getattr, own), True)
            one.body = inner or [ast.Expr(ast.Constant(...))]
            listed.append(one)
        # a caller does not see the implementation of overloads
        elif isinstance(one, ast.FunctionDef) and (_is_overload(one) or one.name not in overloaded):
            listed.append(_function(one, found))
    return listed


def _is_overload(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in function.decorator_list)


def _function(one: ast.FunctionDef, found: Callable[[str], Any]) -> ast.FunctionDef:
    """A function without its body, and with its options by name."""
    one.decorator_list = [
        decorator
        for decorator in one.decorator_list
        if ast.unparse(decorator).split("(")[0] not in DECORATORS_OF_SOURCE
    ]
    one.body = [ast.Expr(ast.Constant(...))]
    if one.args.kwarg is None or one.name.startswith("_"):
        return one
    own = {each.arg for each in (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs)}
    added = [
        each
        for name, each in inspect.signature(found(one.name)).parameters.items()
        if name not in own and each.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if not added:
        return one
    one.args.kwarg = None
    for each in added:
        annotation = ast.parse(str(each.annotation), mode="eval").body
        one.args.kwonlyargs.append(ast.arg(each.name, annotation))
        one.args.kw_defaults.append(ast.parse(repr(each.default), mode="eval").body)
    return one


def _formatted(text: str) -> str:
    """The text as the project's formatter has it, without imports that it does not use."""
    for words in (["check", "--fix", "-q", "--select", "F401,F811,I"], ["format", "-q"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--stdin-filename", str(ROOT / "a.pyi"), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    for path in modules():
        path.with_suffix(".pyi").write_text(stub(path), encoding="utf-8")
        print(path.with_suffix(".pyi").relative_to(ROOT))
