"""The tree keeps its own rules: the direction of imports, sizes to be read in one sitting, words
for what is public."""

import ast
import re
from functools import cache
from pathlib import Path

import grimp
import numpy as np
import pytest
from importlinter.cli import lint_imports
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from collidecli.engine.runtime import carried_kernels, kernel_hashes
from tests.support.type_checks import compiled_lines

ROOT = Path(__file__).parents[2]
MOST_FILE_LINES = 950
"""At 100 columns and one assignment a line: 800 lines of 120 columns hold as much code."""
MOST_FUNCTION_LINES = 59
"""Without the docstring; kernels and functions of the engine too."""
PRIVATE_PLACE = re.compile(r"(?<![\w./~-])/(?:work|tmp|root|home)/\w")
"""A path of somebody's machine: absolute, and with something behind it."""
TEXT = (".py", ".h", ".md", ".toml", ".yml", ".yaml", ".xml", ".usda", ".cfg", ".txt", ".json", "")
FOLDERS = ("collidecli", "tests", "samples", "docs", ".github")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def files() -> list[Path]:
    """Every file of the project: what lies in its root, and in its folders at any depth."""
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    top = [path for path in ROOT.iterdir() if path.name != ".git"]
    found = [path for path in [*top, *inside] if path.is_file() and "__pycache__" not in path.parts]
    return sorted(found)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


SOURCES = [path for path in files() if path.suffix == ".py"]
PACKAGE = [path for path in SOURCES if name_of(path).startswith("collidecli/")]


@pytest.fixture(autouse=True, scope="module")
def _forget_trees():
    """A million nodes: each later search for cycles would pass over them."""
    yield
    tree_of.cache_clear()


def test_the_sources_are_found():
    assert len(PACKAGE) > 80
    assert Path(__file__) in SOURCES
    assert ROOT / "pyproject.toml" in files()


def test_imports_go_one_way(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(ROOT)
    code = lint_imports(no_cache=True, no_logo=True)
    assert code == 0, capsys.readouterr().out


def test_no_modules_import_each_other():
    graph = grimp.build_graph("collidecli", cache_dir=None)
    names = sorted(graph.modules)
    row = {name: k for k, name in enumerate(names)}
    edges = [
        (row[name], row[other])
        for name in names
        for other in graph.find_modules_directly_imported_by(name)
    ]
    matrix = coo_array(
        (np.ones(len(edges)), tuple(np.transpose(edges))), shape=(len(names), len(names))
    )
    count, label = connected_components(matrix, directed=True, connection="strong")
    cycles = [
        [name for name in names if label[row[name]] == k]
        for k in np.flatnonzero(np.bincount(label) > 1)
    ]
    assert len(edges) > 1000
    assert cycles == [], count


def test_files_can_be_read_in_one_sitting():
    long = {
        name_of(path): count
        for path in SOURCES
        if (count := len(path.read_text().splitlines())) > MOST_FILE_LINES
    }
    assert not long


def test_the_carried_kernels_are_of_these_sources():
    """Their table of hashes has the sources' hash in its name: a run without it parses all its
    kernels."""
    folder = Path(carried_kernels.carried_folder())
    table = f"collide_{kernel_hashes._sources_hash()}.hashes"
    is_current = not folder.exists() or (folder / table).exists()
    assert is_current, "sources of kernels changed: `make kernels`, then commit collidecli/kernels"


def line_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from its `def` on, without its docstring."""
    words = ast.get_docstring(function, clean=False)
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    return lines - (0 if words is None else words.count("\n") + 1)


def test_functions_can_be_read_at_a_glance():
    nodes = [
        (path, node)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, FUNCTION)
    ]
    long = {
        f"{name_of(path)}: {node.name}"
        for path, node in nodes
        if line_count(node) > MOST_FUNCTION_LINES
    }
    assert long == set(), "a function that is two things: find the seam"


STARTS = re.compile(r"subprocess\.(run|Popen|check_\w+|call)\(|\.Process\(|os\.fork\(")
STARTING = {
    "collidecli/cli/guard.py": "its child watches a pipe of its own, to end in order",
    "collidecli/adapters/processes.py": "end_at_hangup",
    "collidecli/verbs/batch/executors.py": "end_at_hangup",
    "collidecli/verbs/view/command.py": "a viewer that the user closes",
}
"""Modules that start processes, and how these end with a killed command."""


def test_every_started_process_ends_with_its_parent():
    texts = {name_of(path): path.read_text() for path in PACKAGE}
    found = {
        name
        for name, text in texts.items()
        if STARTS.search(text) and "psutil.Process(" not in text
    }
    assert found == STARTING.keys()
    assert all("end_at_hangup" in texts[n] for n, how in STARTING.items() if how == "end_at_hangup")


def test_every_temporary_folder_names_its_process():
    """The next run removes those of killed processes: `TemporaryFolder`."""
    calls = re.compile(r"(TemporaryDirectory|mkdtemp)\(")
    assert [name_of(path) for path in PACKAGE if calls.search(path.read_text())] == []


INDEXED = {"return_index", "return_inverse", "return_counts"}


def hashes_integers(node: ast.AST) -> bool:
    """Whether a call of NumPy puts integers into a hash table, which takes up to sixty times as
    long as a sort: `distinct` and `common` of `collidecli/scene/distinct_values.py` do not."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).startswith("np."):
        return False
    name = ast.unparse(node.func).removeprefix("np.")
    if name in ("intersect1d", "setxor1d"):
        return not any(word.arg == "assume_unique" for word in node.keywords)
    return name == "union1d" or (
        name == "unique" and not any(word.arg in INDEXED for word in node.keywords)
    )


def test_distinct_integers_are_sorted():
    assert [
        f"{name_of(path)}:{node.lineno}"
        for path in PACKAGE
        for node in ast.walk(tree_of(path))
        if hashes_integers(node)
    ] == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("np.unique(a)", True),
        ("np.unique(a, axis=0)", True),
        ("np.union1d(a, b)", True),
        ("np.intersect1d(a, b)", True),
        ("np.unique(a, return_inverse=True)", False),
        ("np.intersect1d(a, b, assume_unique=True)", False),
        ("distinct(a)", False),
    ],
)
def test_what_hashes_integers(line, is_found):
    assert hashes_integers(ast.parse(line, mode="eval").body) == is_found


def test_no_path_of_a_private_machine():
    texts = [
        path for path in files() if path.suffix in TEXT and not name_of(path).startswith("tests/")
    ]
    lines = [
        (path, *each)
        for path in texts
        for each in enumerate(path.read_text(errors="replace").splitlines(), 1)
    ]
    assert [
        f"{path}:{number}: {line}" for path, number, line in lines if PRIVATE_PLACE.search(line)
    ] == []


@pytest.mark.parametrize(
    ("line", "is_private"),
    [
        *((line, True) for line in ("open('/home/a/scene.usda')", "see /tmp/x", "cd /work/main")),
        *(
            (line, False)
            for line in ("docs/home/index.md", "https://host.org/work/main", "frames/work")
        ),
    ],
)
def test_what_a_private_path_is(line, is_private):
    assert bool(PRIVATE_PLACE.search(line)) == is_private


def test_public_code_says_what_it_does():
    silent = [
        f"{name_of(path)}: {getattr(node, 'name', '')}"
        for path in PACKAGE
        if path.read_text().strip()
        for node in (tree_of(path), *tree_of(path).body)
        if isinstance(node, (ast.Module, *FUNCTION))
        and not getattr(node, "name", "").startswith("_")
        if ast.get_docstring(node) is None
    ]
    assert not silent


COMPILED_SOURCE = """
@wp.func
def f(): ...
@partial(kernel, fuse_fp=False)
def g(): ...
def host():
    def passed(): ...
    def thread():
        index = wp.tid()
    def called(): ...
    return kernel(passed)
@wp.struct
class Row: ...
@dataclass
class Plan:
    def collide(self): ...
"""


def test_types_are_checked_but_of_what_warp_compiles():
    assert compiled_lines(COMPILED_SOURCE) == {2, 3, 4, 5, 7, 8, 9, 12, 13}
