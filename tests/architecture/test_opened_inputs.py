"""Input files are opened by one function, which refuses pipes and devices."""

import ast

from tests.architecture.test_architecture import PACKAGE, name_of, tree_of

READERS = {"read_text", "read_bytes"}
LIBRARIES = {
    "h5py.is_hdf5",
    "trimesh.load_scene",
    "trimesh.load",
    "np.load",
    "ZipFile",
    "from_file",
    "Stage.Open",
    "OpenMasked",
    "FindOrOpen",
    "read_table",
    "fromfile",
    "memmap",
}
"""Functions of libraries that open a file by its name."""
CHECKS = {
    "check_assets",
    "open_asset",
    "open_input",
    "open_reached_layers",
    "refuse_special_file",
    "require_regular_file",
    "storage_of",
    "isfile",
}
NO_INPUT = {
    "adapters/engines/adapter.py": "an engine's process reads what this program has written",
    "adapters/repros.py": "a table of the package",
    "exporters/arrays.py": "an output",
    "exporters/usd_layer.py": "a layer in memory",
    "motions/machine.py": "files of the system",
    "pages/parts.py": "styles and scripts of the package",
    "pages/view/legend.py": "styles and scripts of the package",
    "pytest_plugin/regression.py": "a contact set that the fixture has written",
    "storage/array_files.py": "an output",
    "storage/atomic_output.py": "an output",
    "storage/field_cache.py": "entries of a cache, for which links are refused too",
    "storage/regular_files.py": "the function itself",
    "system.py": "files of the system",
    "temporary_folders.py": "files of the system",
    "verbs/batch/plan.py": "a file that the store has opened",
}
"""Files of the package that open no file of a user for reading, and why."""


def test_inputs_are_opened_by_one_function():
    """Python's own functions are not called; a library's only in a module that checks the path."""
    opened = []
    for path in PACKAGE:
        name = name_of(path).removeprefix("collidecli/")
        if name.startswith("engine/") or name in NO_INPUT:
            continue
        calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
        names = {ast.unparse(call.func) for call in calls}
        is_checked = any(called.rpartition(".")[2] in CHECKS for called in names)
        for call in calls:
            called = ast.unparse(call.func)
            is_of_library = any(
                called == known or called.endswith(f".{known}") for known in LIBRARIES
            )
            if _reads_by_python(call) or (is_of_library and not is_checked):
                opened.append(f"{name}:{call.lineno} {ast.unparse(call)}")
    assert not opened, "\n".join(["open by storage.regular_files:", *opened])


def _reads_by_python(call: ast.Call) -> bool:
    """Whether a call is of `open` for reading, or of a method of a path that reads the file."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in READERS and not call.args
    if not isinstance(call.func, ast.Name) or call.func.id != "open":
        return False
    mode = call.args[1] if len(call.args) > 1 else None
    text = mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else "r"
    return not set(text) & set("wax")


def test_every_exception_is_needed():
    names = {name_of(path).removeprefix("collidecli/") for path in PACKAGE}
    assert set(NO_INPUT) <= names
