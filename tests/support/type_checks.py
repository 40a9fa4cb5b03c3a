"""Pyright over the package without what Warp compiles, whose types are Warp's: `make
lint-types`."""

import ast
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import copytree
from typing import Any

import warp

ROOT = Path(__file__).parents[2]
COMPILER = re.compile(r"\b(wp\.func|wp\.func_native|wp\.struct|kernel)\b")
STRUCT = "from warp._src.context import struct as struct"
CLASS = "_Class = TypeVar('_Class')\ndef struct(c: type[_Class]) -> type[_Class]: ..."
"""In place of STRUCT in Warp's stub, which does not say that a decorated class keeps its fields."""


def compiled_lines(source: str) -> set[int]:
    """Lines of what Warp compiles: decorated, passed to a decorator, or a function in a function
    with wp.tid()."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    passed = {
        ast.unparse(a)
        for call in calls
        if COMPILER.fullmatch(ast.unparse(call.func))
        for a in call.args
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner = {node for function in functions for node in ast.walk(function) if node is not function}
    lines: set[int] = set()
    for node in (*functions, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
        is_decorated = any(
            COMPILER.search(ast.unparse(decorator)) for decorator in node.decorator_list
        )
        if (
            is_decorated
            or node.name in passed
            or (node in inner and "wp.tid()" in ast.unparse(node))
        ):
            lines |= {
                *range(
                    min(n.lineno for n in (node, *node.decorator_list)), (node.end_lineno or 0) + 1
                )
            }
    return lines


def errors() -> list[dict[str, Any]]:
    """What pyright reports of code that Python runs, as its JSON has it."""
    with tempfile.TemporaryDirectory() as folder:
        stubs = copytree(ROOT / "typings", Path(folder, "typings"))
        installed = Path(warp.__file__).parent
        (stubs / "warp").mkdir()
        for module in installed.glob("[!_]*.py"):
            (stubs / "warp" / module.name).symlink_to(module)
        (stubs / "warp" / "__init__.pyi").write_text(
            (installed / "__init__.pyi").read_text().replace(STRUCT, CLASS)
        )
        options = {
            "extends": f"{ROOT}/pyproject.toml",
            "ignore": [f"{ROOT}/collidecli/adapters/engines"],
        }
        options |= {"stubPath": str(stubs), "extraPaths": [str(ROOT)]}
        Path(folder, "pyrightconfig.json").write_text(json.dumps(options))
        command = [
            str(Path(sys.executable).with_name("pyright")),
            "--pythonpath",
            sys.executable,
            "--outputjson",
        ]
        report = subprocess.run(
            [*command, "-p", folder], capture_output=True, text=True, check=False
        ).stdout
    reported = json.loads(report)["generalDiagnostics"]
    compiled = {
        path: compiled_lines(Path(path).read_text())
        for path in {error["file"] for error in reported}
    }
    return [
        error
        for error in reported
        if error["range"]["start"]["line"] + 1 not in compiled[error["file"]]
    ]


if __name__ == "__main__":
    for error in (remaining := errors()):
        print(
            f"{error['file']}:{error['range']['start']['line'] + 1}: {error['message']}"
            f" ({error.get('rule')})"
        )
    sys.exit(f"{len(remaining)} errors of types" if remaining else 0)
