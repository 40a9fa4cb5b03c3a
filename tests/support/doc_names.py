"""Names in texts, looked up in the tree and in the libraries: those in backticks of documentation
pages, and modules and files of the package in every text.

`python -m tests.support.doc_names` lists the names that are nowhere.
"""

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("collidecli", "docs", "samples", "tests", "typings")
GENERATED = {"__pycache__", "_build", "out", "html"}
SOURCE_ENDINGS = ("py", "h", "js", "css", "j2", "md", "sh")
OTHER_ENDINGS = (".css", ".j2", ".html", ".toml", ".usda", ".xml")
WORDS_IN_STRINGS = ("collidecli/", "samples/", "tests/gpu/")
"""Folders whose strings name columns and attributes; strings of tests also have wrong ones."""

WORD = re.compile(r"[A-Za-z_]\w*")
TOKEN = re.compile(r"(?<![\w<>.-])[A-Za-z_]\w*(?:[./]\w+)*/?")
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.S | re.M)
SPAN = re.compile(r"(`+)(.+?)\1", re.S)
COMMAND = re.compile(r"^(collide|make|pip|python|python3|git|pytest|\$) ", re.M)
ENDING = re.compile(r"_(?:\d+|[a-z]|list)$")
"""Ending of one of several: a component (`normal_x`), a shape (`contype_a`), a list of results."""

QUALIFIED = re.compile(r"(?<![\w./-])collidecli((?:\.[A-Za-z_]\w*)+)")
"""A module of the package or a name of one, from the package on."""
LOCATED = re.compile(r"(?<![\w.-])collidecli(?:/[A-Za-z_]\w*)+(?:\.\w+)?")
"""A file or folder of the package."""
TEXT_ENDINGS = (".py", ".h", ".md", ".toml", ".yml", ".j2", ".js", ".css", ".html", ".sh")

OF_ANOTHER_SYSTEM = "from-"
"""Beginning of the names of pages for readers of another system."""
FIRST_CELL = re.compile(r"^\|[^|\n]*\|", re.M)
"""First cell of a row of a table."""

VARIABLES = "COLLIDE_"
"""Beginning of the variables of options, which tests/unit/test_docs.py verifies."""

LONGEST_SYMBOL = 2
"""Letters of a symbol of a formula, which no source defines."""

LIBRARIES = ("builtins", "os", "resource", "mujoco", "warp")
"""Modules whose names stand in pages without the module."""

ALIASES = {"np": "numpy", "wp": "warp", "pd": "pandas"}


@dataclass(frozen=True)
class Tree:
    """What exists: words of the sources, modules of each top-level name, and paths."""

    words: frozenset[str]
    """Identifiers, words of strings of `WORDS_IN_STRINGS`, words of files of other languages."""
    modules_of: dict[str, frozenset[str]]
    """Names of the modules that define a name at their top level."""
    paths: frozenset[str]
    """Every run of folders and files, as `engine/geometry` and `geometry/hulls.py`."""
    folders: dict[str, frozenset[str]]
    """Every run of folders below each top folder, and of all below the empty name."""
    modules: frozenset[str]
    """`paths` of Python files without their ending."""


def _files() -> list[Path]:
    """Files of the tree, without what is generated."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    inside = [path.relative_to(ROOT) for path in found]
    return [path for path in inside if not GENERATED.intersection(path.parts)]


def _runs(path: Path) -> Iterator[str]:
    """Every run of components of a path."""
    parts = path.parts
    for end in range(1, len(parts) + 1):
        for start in range(end):
            yield "/".join(parts[start:end])


def _identifiers(nodes: list[ast.AST]) -> Iterator[str]:
    """Names that a module defines or uses, but for local variables."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Attribute():
                yield node.attr
            case ast.alias():
                yield from node.name.split(".")
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from _assigned(node.body)


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    """Constants of a module or fields of a class."""
    for node in body:
        match node:
            case ast.Assign():
                for target in node.targets:
                    yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def _words_of_strings(nodes: list[ast.AST]) -> Iterator[str]:
    """Words of a module's strings that are no docstrings."""
    lone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in lone:
            yield from WORD.findall(node.value)


def _top_level(module: ast.Module) -> Iterator[str]:
    """Functions, classes and constants that a module defines."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
    yield from _assigned(module.body)


@cache
def tree() -> Tree:
    """The names and paths of the working tree."""
    words: set[str] = set()
    modules_of: dict[str, set[str]] = {}
    files = _files()
    for path in files:
        if path.suffix == ".py":
            module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            nodes = list(ast.walk(module))
            words.update(_identifiers(nodes))
            if path.as_posix().startswith(WORDS_IN_STRINGS):
                words.update(_words_of_strings(nodes))
            for name in _top_level(module):
                modules_of.setdefault(name, set()).add(path.stem)
        elif path.suffix in (".h", ".js"):
            text = re.sub(r"//.*", "", (ROOT / path).read_text(encoding="utf-8"))
            words.update(WORD.findall(text))
        elif path.suffix in OTHER_ENDINGS or path.name == "Makefile":
            words.update(WORD.findall((ROOT / path).read_text(encoding="utf-8")))
    runs = frozenset(run for path in files for run in _runs(path))
    folders: dict[str, set[str]] = {"": set()}
    for parent in {path.parent for path in files}:
        for top in ("", parent.parts[0] if parent.parts else ""):
            folders.setdefault(top, set()).update(_runs(parent))
    return Tree(
        frozenset(words),
        {name: frozenset(modules) for name, modules in modules_of.items()},
        runs,
        {top: frozenset(below) for top, below in folders.items()},
        frozenset(run.removesuffix(".py") for run in runs if run.endswith(".py")),
    )


@cache
def schema_words() -> frozenset[str]:
    """Words of MJCF's schema, of MuJoCo's headers and of USD's own schemas."""
    import mujoco
    import pxr

    words = set(WORD.findall(mujoco.mj_printSchema(False, False)))  # pyright: ignore
    of_usd = Path(pxr.__file__).parent.rglob("generatedSchema.usda")
    for path in (*Path(mujoco.__file__).parent.rglob("*.h"), *of_usd):
        words.update(WORD.findall(path.read_text(encoding="utf-8")))
    return frozenset(words)


@cache
def is_of_a_library(name: str) -> bool:
    """Whether `name` is a builtin, or a dotted name that a library has."""
    first, *others = name.split(".")
    if not others:
        return any(hasattr(importlib.import_module(module), name) for module in LIBRARIES)
    try:
        value = importlib.import_module(ALIASES.get(first, first))
    except ImportError:
        value = getattr(builtins, first, None)
    for other in others:
        if not hasattr(value, other):
            return False
        value = getattr(value, other)
    return True


def _is_path(token: str) -> bool:
    """Whether a token is written as a source file or as a path from a folder of the tree."""
    first, *others = token.split("/")
    if token.rpartition(".")[2] in SOURCE_ENDINGS:
        return True
    return bool(others) and (first in FOLDERS or (ROOT / "collidecli" / first).is_dir())


def exists(token: str, own: frozenset[str]) -> bool:
    """Whether a token of a page is a path, a module, or a name of the sources or of a library.

    own: words of the page's examples, as of files that they write.
    """
    known = tree()
    path = token.rstrip("/")
    if path in (known.folders[""] if path != token else known.paths | known.modules):
        return True
    words = [word for word in WORD.findall(token) if len(word) > LONGEST_SYMBOL]
    if own.issuperset(words) or GENERATED.intersection(path.split("/")):
        return True
    if _is_path(token):
        return False
    first, *others = token.split(".")
    if others and "_" in first and first in known.modules and others[0] in known.modules_of:
        return first in known.modules_of[others[0]]
    return all(_is_word(word, own) for word in words) or is_of_a_library(token)


def _begins_a_name(token: str, own: frozenset[str]) -> bool:
    """Whether a name or path begins with a token, the part of a name before a placeholder."""
    if token.endswith("/"):
        return exists(token, own)
    known = tree()
    token = token.rpartition(".")[2]
    if _is_word(token.rstrip("_"), own):
        return True
    return any(name.startswith(token) for names in (known.words, known.paths) for name in names)


def _is_word(word: str, own: frozenset[str]) -> bool:
    """Whether a word is of the sources, of a schema, of a library, or of the page's examples."""
    for name in (word, ENDING.sub("", word)):
        if name in tree().words or name in tree().modules or name in own or is_of_a_library(name):
            return True
    if word in schema_words() or word.startswith(VARIABLES):
        return True
    parts = [(word[: at + 1], word[at + 1 :]) for at, letter in enumerate(word) if letter == "_"]
    return any(tree().words.issuperset(part) for part in parts)  # f"pair_{name}"


def _is_layout(language: str, body: str) -> bool:
    """Whether a block draws folders or the flow of data: neither commands nor a file."""
    has_folders = re.search(r"\w/( |$)", body, re.M) is not None
    return has_folders and not language and not COMMAND.search(body)


def own_words(text: str) -> frozenset[str]:
    """Words of a page's commands, files and outputs."""
    found = BLOCK.findall(text)
    bodies = [body for language, body in found if not _is_layout(language, body)]
    return frozenset(word for body in bodies for word in WORD.findall(body))


def _missing_of_prose(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of what is missing of the spans in backticks outside of blocks."""
    own = own_words(text)
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for span in SPAN.finditer(prose):
        if COMMAND.match(span[2]):
            continue
        line = prose.count("\n", 0, span.start()) + 1
        for token in TOKEN.finditer(re.sub(r'"[^"]*"', '""', span[2])):
            is_part = span[2][token.end() :].startswith(("<", "*"))
            is_there = _begins_a_name(token[0], own) if is_part else exists(token[0], own)
            if not is_there:
                yield line, token[0]


def _missing_of_layouts(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of what drawings of the tree have and the tree lacks."""
    for block in BLOCK.finditer(text):
        top = ""
        first = text.count("\n", 0, block.start(2)) + 1
        lines = block[2].splitlines() if _is_layout(block[1], block[2]) else []
        for number, line in enumerate(lines, first):
            folder = re.match(r"(\w+)/", line)
            top = folder[1] if folder else top
            for token in TOKEN.findall(line):
                is_folder = token.endswith("/")
                folders = tree().folders.get(top, frozenset[str]()).union(FOLDERS)
                is_name = re.search(r"[_/]|\.\w", token) is not None
                is_there = token[:-1] in folders if is_folder else exists(token, frozenset())
                if is_name and not is_there:
                    yield number, token


def missing(text: str) -> list[tuple[int, str]]:
    """Line and name of each name of a page's text that exists nowhere."""
    return sorted({*_missing_of_prose(text), *_missing_of_layouts(text)})


def without_other_systems(path: Path, text: str) -> str:
    """Text of a page; of one for readers of another system without the first cells of its tables,
    which have the names of that system."""
    return FIRST_CELL.sub("|", text) if path.name.startswith(OF_ANOTHER_SYSTEM) else text


def pages() -> list[Path]:
    """The pages of the documentation, the records, and those of the samples."""
    found = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for folder in ("docs", "samples"):
        found += sorted((ROOT / folder).rglob("*.md"))
    return [path for path in found if not GENERATED.intersection(path.relative_to(ROOT).parts)]


@cache
def _names_of(module: Path) -> frozenset[str]:
    """Names that a module has at its top level, imported ones included."""
    names: set[str] = set()
    nodes: list[ast.stmt] = [*ast.parse(module.read_text(encoding="utf-8")).body]
    for node in nodes:
        if isinstance(node, ast.If | ast.For | ast.With | ast.Try):
            nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    names.update(_top_level(ast.Module(nodes, [])))
    return frozenset(names)


def is_of_the_package(parts: list[str]) -> bool:
    """Whether a dotted name, from below the package on, is a module or a name of one."""
    place = ROOT / "collidecli"
    for at, part in enumerate(parts):
        if (place / part).is_dir():
            place = place / part
            continue
        is_module = (place / f"{part}.py").is_file()
        module = place / (f"{part}.py" if is_module else "__init__.py")
        names = _names_of(module)
        others = parts[at + is_module :]
        is_there = not others or others[0] in names or others[0].startswith("__")
        return is_there and tree().words.issuperset(others[1:])
    return True


def missing_of_package(text: str) -> list[tuple[int, str]]:
    """Line and name of each module, name of a module, or file of the package that a text names and
    that does not exist."""
    found = [
        match
        for match in QUALIFIED.finditer(text)
        if not is_of_the_package(match[1].removeprefix(".").split("."))
    ]
    paths = tree().paths | tree().modules
    found += [match for match in LOCATED.finditer(text) if match[0] not in paths]
    return sorted((text.count("\n", 0, match.start()) + 1, match[0]) for match in found)


def texts() -> list[Path]:
    """Every text of the project: sources, pages, settings."""
    inside = [ROOT / path for path in _files()]
    return [path for path in inside if path.suffix in TEXT_ENDINGS or path.name == "Makefile"]


if __name__ == "__main__":
    for page in pages():
        for number, name in missing(without_other_systems(page, page.read_text("utf-8"))):
            print(f"{page.relative_to(ROOT)}:{number}: {name}")
    for text in texts():
        for number, name in missing_of_package(text.read_text(encoding="utf-8")):
            print(f"{text.relative_to(ROOT)}:{number}: {name}")
