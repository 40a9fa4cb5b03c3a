"""In a process of the command line Warp's built-in functions are registered on first use, as an import would do it."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT = """
import sys
from collidecli.engine.runtime import deferred_builtins
from collidecli.engine.runtime.deferred_builtins import owned_process
if sys.argv[1] == "unknown":
    deferred_builtins.KNOWN_WARP = ("0.",)
if sys.argv[1] == "api":
    import warp as wp
else:
    with owned_process():
        import warp as wp
from warp._src import builtins, context, math
is_deferred = type(context.builtin_functions) is not dict
is_pending = "dot" not in vars(wp)
wp.config.log_level = wp.LOG_ERROR
"""

TABLE = """
import re
rows = [f"{key} {function.func is None}" for key, function in context.builtin_functions.items()]
for function in context.builtin_functions.values():
    for one in getattr(function, "overloads", ()):
        rows.append(f"{one.key} {one.input_types} {one.value_type} {one.mangled_name} {one.native_func}{one.signature}")
for module in (wp, builtins, math):
    names = sorted(name for name in vars(module) if name[0] != "_")
    rows += [f"{name} {type(vars(module)[name])} {getattr(vars(module)[name], '__module__', None)}" for name in names]
    assert type(module).__name__ == "module"
print(re.sub("0x[0-9a-f]+", "", "\\n".join(rows)))
"""

KERNEL = """
from pathlib import Path
path = Path(sys.argv[2])
path.write_text('''
import warp as wp
from collidecli.engine.runtime.kernel import kernel
HALF = 0.5
@wp.func
def scaled(v: wp.vec3):
    return wp.static(HALF) * wp.normalize(v) + vec3(wp.norm_l1(v))
@kernel
def fill(out: wp.array[wp.vec3]):
    out[wp.tid()] = scaled(wp.vec3(3.0, 4.0, wp.sqrt(wp.float32(wp.tid()))))
''')
sys.path.insert(0, str(path.parent))
import kernel_of_test
out = wp.zeros(3, dtype=wp.vec3, device="cpu")
wp.launch(kernel_of_test.fill, 3, [out], device="cpu")
print(kernel_of_test.fill.module.get_module_identifier(1), out.numpy().tolist())
print(kernel_of_test.scaled.adj.resolved_static_expressions)
"""


def printed(program: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("process", "expected"), [("owned", "True True"), ("api", "False False")])
def test_only_processes_of_the_command_line_defer(process, expected):
    assert printed(IMPORT + "print(is_deferred, is_pending)", process) == expected


def test_an_unknown_warp_is_imported_as_usual():
    assert printed(IMPORT + "print(is_deferred, is_pending)", "unknown") == "False False"


def test_table_and_attributes_are_those_of_an_ordinary_import():
    expected = printed(IMPORT + TABLE, "api")
    assert expected.count("\n") > 3000
    assert printed(IMPORT + TABLE, "owned") == expected


def test_a_kernel_has_the_hash_and_the_result_of_an_ordinary_import(tmp_path):
    path = str(tmp_path / "kernel_of_test.py")
    expected = printed(IMPORT + KERNEL, "api", path)
    assert expected.startswith("wp_fill_")
    assert "{'HALF': 0.5}" in expected
    assert printed(IMPORT + KERNEL, "owned", path) == expected


def test_functions_called_from_python():
    calls = (
        "print(is_pending, wp.dot(wp.vec3(1.0), wp.vec3(2.0)), *wp.vec3(1.0) + wp.vec3(2.0), hasattr(wp, 'no_such'))"
    )
    assert printed(IMPORT + calls, "owned") == "True 6.0 3.0 3.0 3.0 False"
    decorator = "wp.func = wp.func_native; wp.dot; print(is_pending, wp.func is wp.func_native)"
    assert printed(IMPORT + decorator, "owned") == "True True"
    names = "from warp import norm_l2; print(is_pending, norm_l2 is math.norm_l2, wp.static is builtins.static)"
    assert printed(IMPORT + names, "owned") == "True True True"


def test_threads_read_the_complete_table():
    threads = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
start = Barrier(8)
def overloads(i):
    start.wait()
    table = context.builtin_functions
    return len((wp.min if i % 2 else table["min"]).overloads)
sys.setswitchinterval(1e-5)
with ThreadPoolExecutor(8) as pool:
    counts = set(pool.map(overloads, range(8)))
from warp._src.codegen import _codegen_lock
table = context.builtin_functions
print(is_pending, table.lock is _codegen_lock, counts == {len(table["min"].overloads)}, min(counts) > 40)
"""
    assert printed(IMPORT + threads, "owned") == "True True True True"


RUN = """
import sys
from collidecli.cli.main import main
code = main(["run", "samples/02_humanoid/humanoid.xml", "--frames", "0", "-o", sys.argv[1], "--quiet"])
import warp
print(code, "dot" in vars(warp))
"""


def test_a_second_run_registers_no_function(tmp_path):
    printed(RUN, str(tmp_path / "first.contacts.h5"))
    assert printed(RUN, str(tmp_path / "second.contacts.h5")) == "0 False"
