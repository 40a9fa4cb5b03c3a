"""Built-ins, functions and Warp's private names that are deferred give what an import would."""

import contextlib
import copy
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from warp._src import codegen, context

import collidecli
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import deferred_functions, warp_internals
from collidecli.engine.runtime.deferred_functions import PARSING, DeferredFunction, defer_functions
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.engine.runtime.launch_queue import LaunchQueue
from collidecli.engine.runtime.owned_process import owned_process
from collidecli.engine.runtime.recorded_launches import RecordedLaunches
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import add_shapes, random_poses
from tests.support.waits import PATIENCE

IMPORT = """
import os, pathlib, sys
from collidecli.engine.runtime import deferred_builtins
from collidecli.engine.runtime.owned_process import owned_process
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
path = pathlib.Path(sys.argv[2])
for program in sys.argv[3:]:
    sys.stdout.flush()
    if not os.fork():
        exec(program)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0
    print("END OF PROGRAM")
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

THREADS = """
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
print(is_pending, context.builtin_functions.lock is _codegen_lock, counts == {len(wp.min.overloads)}, min(counts) > 40)
"""

FLAGS = "print(is_deferred, is_pending)"
OF_COMMAND_LINE = {
    FLAGS: "True True",
    THREADS: "True True True True",
    "print(is_pending, wp.dot(wp.vec3(1.0), wp.vec3(2.0)), hasattr(wp, 'no_such'))": (
        "True 6.0 False"
    ),
    "print(is_pending, *wp.vec3(1.0) + wp.vec3(2.0))": "True 3.0 3.0 3.0",
    "wp.func = wp.func_native; wp.dot; print(is_pending, wp.func is wp.func_native)": "True True",
    "from warp import norm_l2; print(is_pending, norm_l2 is math.norm_l2)": "True True",
    "print(is_pending, wp.static is builtins.static)": "True True",
}


def printed(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """told(process, program): what a program prints in a fork of a process that has imported Warp
    alone."""
    programs = {
        "owned": (TABLE, KERNEL, *OF_COMMAND_LINE),
        "api": (FLAGS, TABLE, KERNEL),
        "unknown": (FLAGS,),
    }
    answers = dict[tuple[str, str], str]()
    folder = tmp_path_factory.mktemp("kernel")
    for process, run in programs.items():
        texts = printed(IMPORT, process, f"{folder}/kernel_of_test.py", *run).split(
            "END OF PROGRAM"
        )
        answers |= {
            (process, program): text.strip() for program, text in zip(run, texts, strict=False)
        }
    return lambda process, program: answers[process, program]


@pytest.mark.rest
def test_only_processes_of_the_command_line_with_a_known_warp_defer(told):
    assert {program: told("owned", program) for program in OF_COMMAND_LINE} == OF_COMMAND_LINE
    assert [told(process, FLAGS) for process in ("api", "unknown")] == ["False False"] * 2


def test_what_is_deferred_is_that_of_an_ordinary_import(told):
    assert told("api", TABLE).count("\n") > 3000
    assert told("api", KERNEL).startswith("wp_fill_")
    assert "{'HALF': 0.5}" in told("api", KERNEL)
    for program in (TABLE, KERNEL):
        assert told("owned", program) == told("api", program)


# Deferred functions compute what functions of Warp's own decorator compute, and are parsed only if
# they are used.

func = deferred_functions._func


@func
def one_more(number: wp.int32) -> wp.int32:
    """One more."""
    return number + 1


@func
def one_more(number: wp.float32) -> wp.float32:  # noqa: F811
    return number + 1.5


@func(inline=False)
def three_more(number: wp.int32) -> wp.int32:
    return one_more(one_more(one_more(number)))


@deferred_functions._func_native("number[i] = 2 * number[i];")
def double_in_place(number: wp.array[wp.int32], i: int):
    """Doubles an element."""
    ...


@kernel
def add(integers: wp.array[wp.int32], numbers: wp.array[wp.float32]):
    i = wp.tid()
    integers[i] = three_more(integers[i])
    double_in_place(integers, i)
    numbers[i] = one_more(numbers[i])


def test_kernels_call_deferred_functions():
    device = wp.get_device("cpu")
    load_kernels([add], device)
    integers = wp.array(np.arange(5, dtype=np.int32), device=device)
    numbers = wp.array(np.arange(5, dtype=np.float32), device=device)
    wp.launch(add, 5, [integers, numbers], device=device)
    np.testing.assert_array_equal(integers.numpy(), 2 * np.arange(5) + 6)
    np.testing.assert_array_equal(numbers.numpy(), np.arange(5) + 1.5)


def test_only_functions_that_a_kernel_calls_are_parsed():
    @func
    def never_used(number: wp.int32) -> wp.int32:
        return number

    assert isinstance(one_more, DeferredFunction)
    assert len(one_more.user_overloads) == 2
    assert "adj" in vars(three_more)
    assert isinstance(double_in_place, DeferredFunction)
    assert "adj" not in vars(never_used)
    assert never_used.input_types == {"number": wp.int32}
    assert "adj" in vars(never_used)


def test_a_deferred_function_has_the_attributes_of_the_python_function():
    assert (one_more.__name__, one_more.__doc__, one_more.__module__) == (
        "one_more",
        "One more.",
        __name__,
    )
    with pytest.raises(AttributeError, match="no_such"):
        _ = one_more.no_such
    assert copy.copy(one_more).user_overloads is one_more.user_overloads


def test_an_overload_of_a_parsed_function():
    @func
    def twice(number: wp.int32) -> wp.int32:
        return number * 2

    assert len(twice.user_overloads) == 1
    first = twice

    @func
    def twice(number: wp.float32) -> wp.float32:
        return number * 2.0

    assert twice is first
    assert len(twice.user_overloads) == 2


def test_an_error_in_a_function_is_raised_where_it_is_used():
    @func
    def without_type(number):
        return number

    for _ in range(2):
        with pytest.raises(Exception, match="Incomplete argument annotations"):
            _ = without_type.adj


@pytest.mark.parametrize("condition", ["is_owned", "is_known_warp"])
def test_functions_are_deferred_only_where_it_is_known_to_work(monkeypatch, condition):
    monkeypatch.setattr(wp, "func", wp.func)  # restored at the end
    monkeypatch.setattr(wp, "func_native", wp.func_native)
    monkeypatch.setattr(deferred_functions, condition, lambda: False)
    before = wp.func, wp.func_native
    with owned_process():
        defer_functions()
        assert (wp.func, wp.func_native) == before
        monkeypatch.setattr(deferred_functions, condition, lambda: True)
        defer_functions()
        assert (wp.func, wp.func_native) == (
            deferred_functions._func,
            deferred_functions._func_native,
        )


def test_hashing_does_not_wait_for_a_thread_that_declares():
    @func
    def parsed_while_hashing(number: wp.int32) -> wp.int32:
        return number

    @kernel
    def declared(numbers: wp.array[wp.int32]):
        numbers[0] = 1

    holding = threading.Barrier(2, timeout=1.0)

    def meet():
        # the other thread waits for the lock, as it should
        with contextlib.suppress(threading.BrokenBarrierError):
            holding.wait()

    def hash_kernel():
        with codegen._codegen_lock:  # as Warp does
            meet()
            assert parsed_while_hashing.adj

    def declare_kernel():
        with PARSING:
            meet()
            declared.hash = declared.hash  # Warp's setter takes its lock

    threads = [threading.Thread(target=each, daemon=True) for each in (hash_kernel, declare_kernel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    assert not any(thread.is_alive() for thread in threads)


RUN_DEFERRED = """
import sys
from collidecli.cli.main import main
code = main(["run", "samples/02_humanoid/humanoid.xml", "--frames", "0", "-o", sys.argv[1], "--quiet"])
import warp as wp
from collidecli.engine.narrowphase.convex import epa
from collidecli.engine.runtime.deferred_functions import DeferredFunction
deferred = [value for value in vars(epa).values() if isinstance(value, DeferredFunction)]
print(code, "dot" in vars(wp), len(deferred) > 5, any("adj" in vars(function) for function in deferred))
"""


@pytest.mark.rest
def test_a_second_run_parses_no_function(tmp_path):
    printed(RUN_DEFERRED, str(tmp_path / "first.contacts.h5"))
    assert printed(RUN_DEFERRED, str(tmp_path / "second.contacts.h5")) == "0 False True False"


# Contacts without Warp's private names, and the module that alone uses them.

PRIVATE = re.compile(
    r"warp\._src|__ctype__|_pch_dirs|\.hooks\b|\.adj\b|\.params\b\[|\.bounds\.(shape|size)"
)


def test_only_two_modules_use_private_names_of_warp():
    package = Path(collidecli.__file__).parent
    users = {path.name for path in package.rglob("*.py") if PRIVATE.search(path.read_text())}
    assert users == {"deferred_builtins.py", "warp_internals.py"}


def test_an_unknown_warp_disables_every_use(monkeypatch):
    assert isinstance(Workspace(find_device("cpu"), 1 << 20)._launches, LaunchQueue)
    monkeypatch.setattr(warp_internals, "KNOWN_WARP", ())
    workspace = Workspace(find_device("cpu"), 1 << 20)
    assert isinstance(workspace._launches, RecordedLaunches)
    assert workspace._set_field is setattr
    assert not workspace._rebinds_host_arrays
    before = dict(context.runtime._pch_dirs)
    warp_internals.share_header_folder("folder")
    assert context.runtime._pch_dirs == before


def contacts_of_pile() -> dict[str, np.ndarray]:
    """Contacts of spheres and boxes above a plane, in chunks of one frame: structs and arrays are
    reused."""
    rng = np.random.default_rng(3)
    builder = collidecli.ModelBuilder()
    builder.add_shape_plane(-1)
    add_shapes(builder, rng, 24, types=(ShapeType.SPHERE, ShapeType.BOX))
    contacts = collidecli.collide(
        builder.finalize(), random_poses(rng, (6, 1, 24), 0.7), gap=0.05, chunk_cells=1
    )
    return {column.name: getattr(contacts, column.name) for column in RIGID_COLUMNS}


@pytest.mark.parametrize("known", [("0.",), ()])
def test_contacts_without_private_names_are_equal_to_the_bit(monkeypatch, known):
    expected = contacts_of_pile()
    assert len(expected["distance"]) > 50
    monkeypatch.setattr(warp_internals, "KNOWN_WARP", known)
    found = contacts_of_pile()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, name)


def test_the_numpy_type_of_a_struct_is_built_once_under_the_lock_of_warp(monkeypatch):
    built: list[str] = []

    def build(struct: str) -> dict:
        assert warp_internals.hashing_lock()._is_owned()
        built.append(struct)
        return {"names": ["a"], "formats": ["3f8"], "offsets": [8], "itemsize": 32}

    monkeypatch.setattr(codegen.Struct, "numpy_dtype", build)
    warp_internals.keep_struct_dtypes()
    first = codegen.Struct.numpy_dtype("one")
    assert first is codegen.Struct.numpy_dtype("one")
    assert first == np.dtype(
        {"names": ["a"], "formats": [(np.float64, 3)], "offsets": [8], "itemsize": 32}
    )
    assert built == ["one"]
    monkeypatch.setattr(warp_internals, "KNOWN_WARP", ())
    before = codegen.Struct.numpy_dtype
    warp_internals.keep_struct_dtypes()
    assert codegen.Struct.numpy_dtype is before
