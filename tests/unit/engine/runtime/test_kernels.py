"""Kernels: declared one way, loaded by threads, their folder, and those that come with the
package."""

import errno
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import warp as wp
from warp._src import context

import collidecli
from collidecli.engine.cells import transform_shapes
from collidecli.engine.narrowphase.collider_factory import collider
from collidecli.engine.pipeline import ALWAYS
from collidecli.engine.pipeline_build import find_device, load_ahead
from collidecli.engine.reduction import reduce_contacts
from collidecli.engine.runtime import (
    carried_kernels,
    kernel_cache,
    kernel_digests,
    kernel_hashes,
    kernel_loader,
    warp_internals,
)
from collidecli.engine.runtime import kernel as kernel_declaration
from collidecli.engine.runtime.carried_kernels import add_to_cache, carried_folder
from collidecli.engine.runtime.deferred_functions import PARSING
from collidecli.engine.runtime.kernel import (
    HEADER_FLAGS,
    SEPARATE_OPERATIONS,
    Occupancy,
    kernel,
    target_flags,
)
from collidecli.engine.runtime.kernel_digests import digest, digest_name
from collidecli.engine.runtime.kernel_hashes import table_row
from collidecli.engine.runtime.kernel_loader import (
    begin_loading,
    is_compiled,
    load_kernels,
    reported_compilation,
)
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.warp_internals import V3, KernelHashes, compiled_files, has_v3
from collidecli.errors import OutputError
from collidecli.scene.shape_types import ShapeType
from collidecli.temporary_folders import TemporaryFolder
from tests.support import pair_runner
from tests.support.waits import PATIENCE

# Python warns of what happens to the cache; the tests look at the notes, and one at the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*kernels:RuntimeWarning")

TARGET = ["-target-cpu", "x86-64-v3"] if has_v3() else ["-march=native"]
OURS = (*HEADER_FLAGS, *SEPARATE_OPERATIONS)
PACKAGES = (Path(collidecli.__file__).parent, Path(pair_runner.__file__).parents[1])


def test_kernels_are_declared_in_one_place():
    declared = re.compile(r"@wp\.kernel|wp\.kernel\(")
    sources = [
        path for package in PACKAGES for path in package.rglob("*.py") if path != Path(__file__)
    ]
    assert [path.name for path in sources if declared.search(path.read_text())] == ["kernel.py"]


@pytest.mark.parametrize(
    "declared",
    [transform_shapes, reduce_contacts, collider(ShapeType.SPHERE, ShapeType.SPHERE, "gjk").kernel],
)
def test_flags_of_a_kernel_are_ours_after_warps(declared):
    module = declared.module
    assert module.options["cpu_compiler_flags"].split() == [
        *TARGET,
        *wp.config.cpu_compiler_flags.split()[1:],
        *OURS,
    ]
    assert list(module.kernels.values()) == [declared]


@pytest.mark.parametrize("is_known", [False, True])
def test_limits_for_a_gpu_are_those_that_are_declared(monkeypatch, is_known):
    """Also of a kernel whose hashes are of an earlier run; a row of their table is of one limit."""
    keys = []

    def nothing(number: int):
        pass

    def key_of(function, options):
        keys.append(repr(sorted(options.items())))
        return None

    monkeypatch.setattr(kernel_declaration, "kernel_key", key_of)
    hashes = KernelHashes("limited_kernel", b"\0" * 32, 1, False, ())
    monkeypatch.setattr(
        kernel_declaration, "known_hashes", lambda key: hashes if is_known else None
    )
    monkeypatch.setattr(warp_internals, "_with_hashes", lambda declared, found: declared)
    declared = [kernel(nothing, limits) for limits in (Occupancy(96, 64), Occupancy(96, 32), None)]
    assert [each.options.get("cuda_max_registers") for each in declared] == [96, 96, None]
    assert [each.module.options["block_dim"] for each in declared] == [64, 32, 256]
    kernel(nothing, Occupancy(128, 64))
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    ("flags", "first"), [("", []), (None, TARGET), ("-march=native -g", [*TARGET, "-g"])]
)
def test_what_the_user_sets_for_all_of_warp_stays(monkeypatch, flags, first):
    monkeypatch.setattr(wp.config, "cpu_compiler_flags", flags)

    def nothing(number: int):
        pass

    declared = kernel(nothing)
    assert declared.module.options["cpu_compiler_flags"].split() == [*first, *OURS]


def compiler(features: set[str]) -> SimpleNamespace:
    """A compiler library that sees these features of a processor."""
    return SimpleNamespace(wp_get_host_cpu_features=Mock(return_value=",".join(features).encode()))


@pytest.mark.parametrize(
    ("features", "found"), [(V3 | {"avx512f"}, True), (V3 - {"fma"}, False), (set(), False)]
)
def test_x86_64_v3_is_for_processors_that_have_all_of_it(monkeypatch, features, found):
    monkeypatch.setattr(warp_internals.ctypes, "CDLL", lambda path: compiler(features))
    monkeypatch.setattr(warp_internals.sys, "platform", "linux")
    monkeypatch.setattr(warp_internals.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(warp_internals, "is_known_warp", lambda: True)
    assert has_v3.__wrapped__() == found
    monkeypatch.setattr(warp_internals, "is_known_warp", lambda: False)
    assert not has_v3.__wrapped__()


@pytest.mark.parametrize("found", [True, False])
def test_the_processor_at_hand_gives_way_to_x86_64_v3(monkeypatch, found):
    monkeypatch.setattr(kernel_declaration, "has_v3", lambda: found)
    monkeypatch.setattr(wp.config, "cpu_compiler_flags", "-g -march=native")
    assert target_flags() == ("-g -target-cpu x86-64-v3" if found else "-g -march=native")


def test_no_two_threads_parse(monkeypatch):
    """Python 3.11 may raise SystemError if a second thread parses meanwhile."""
    declare = wp.kernel
    held = []
    monkeypatch.setattr(
        wp, "kernel", lambda *a, **o: (held.append(PARSING._is_owned()), declare(*a, **o))[1]
    )

    @kernel
    def parsed(values: wp.array[wp.int32]):
        values[wp.tid()] = 1

    assert held == [True]
    assert isinstance(parsed, wp.Kernel)


# Threads that load kernels: what is begun ahead is loaded once, what fails is said, headers are
# made for all.


@kernel
def first(number: wp.array[wp.int32]):
    number[0] = 1


@kernel
def second(number: wp.array[wp.int32]):
    number[0] = 2


@kernel
def third(number: wp.array[wp.int32]):
    number[0] = 3


@pytest.fixture
def loaded(monkeypatch):
    """The modules that Warp was asked for, and by which thread; a fresh set of threads."""
    asked: list[tuple[wp.Module, int]] = []

    def note(device, modules, max_workers):
        asked.extend((module, threading.get_ident()) for module in modules)

    monkeypatch.setattr(wp, "force_load", note)
    monkeypatch.setattr(kernel_loader, "_compile", lambda module, device, folder: None)
    monkeypatch.setattr(kernel_loader, "is_in_memory", lambda module, device: False)
    monkeypatch.setattr(kernel_cache, "full_disk", lambda: None)
    # as in a process of the command line
    monkeypatch.setattr(kernel_loader, "are_deferred", lambda: True)
    kernel_loader._loaders.clear()
    yield asked
    kernel_loader._loaders.clear()


def test_what_is_begun_ahead_is_loaded_once_by_one_thread(loaded):
    device = find_device("cpu")
    begin_loading([first], device)
    begin_loading([second], device)
    load_kernels([third, second, first], device)
    assert sorted(module.name for module, _ in loaded) == sorted(
        one.module.name for one in (first, second, third)
    )
    assert len({thread for module, thread in loaded if module is not third.module}) == 1
    load_kernels([first, first], device)  # later ones are for Warp to look up
    assert [module for module, _ in loaded[3:]] == [first.module]


def test_every_run_needs_what_is_loaded_while_the_scene_is_read(loaded, monkeypatch, tmp_path):
    device = find_device("cpu")
    load_ahead(device)
    always = [execute_steps, *ALWAYS]
    load_kernels(always, device)
    assert [module for module, _ in loaded] == [one.module for one in always]
    # Nothing is loaded ahead where functions are parsed when they are imported.
    loaded.clear()
    kernel_loader._loaders.clear()
    monkeypatch.setattr(kernel_loader, "are_deferred", lambda: False)
    begin_loading([first], device)
    assert not kernel_loader._loader(os.getpid())._latest
    load_kernels([second], device)
    assert sorted(module.name for module, _ in loaded) == sorted(
        one.module.name for one in (first, second)
    )
    # The cache tells what is compiled.
    monkeypatch.undo()
    load_kernels([first], device)
    assert is_compiled(first.module, device)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    assert not is_compiled(first.module, device)


@kernel
def linked_ahead(values: wp.array[wp.int32]):
    """Adds one."""
    values[wp.tid()] += 1


def test_a_loaded_kernel_is_linked_before_its_first_launch():
    cpu = wp.get_device("cpu")
    load_kernels([linked_ahead], cpu)
    executables = list(linked_ahead.module.execs.values())
    assert [len(executable.kernel_hooks) for executable in executables] == [1]
    values = wp.zeros(3, dtype=wp.int32, device=cpu)
    wp.launch(linked_ahead, 3, [values], device=cpu)
    assert values.numpy().tolist() == [1, 1, 1]


def test_what_does_not_compile_is_said(loaded, monkeypatch):
    device = find_device("cpu")

    def refuse(device, modules, max_workers):
        if first.module in modules:
            raise RuntimeError("no such thing")

    monkeypatch.setattr(wp, "force_load", refuse)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no such thing"):
            load_kernels([second, first], device)
    begin_loading([first], device)
    with pytest.raises(RuntimeError, match="no such thing"):
        load_kernels([second], device)


def test_threads_share_the_precompiled_headers_that_the_first_has_written_alone(
    loaded, monkeypatch
):
    folders = set()
    under_way = []
    together = []
    both = threading.Barrier(2)

    def meet(module, device, folder):
        under_way.append(module.name)
        if len(under_way) == 1:  # of any thread
            time.sleep(0.2)  # long enough for another to begin
            together.extend(under_way)
        else:
            both.wait(PATIENCE)
        folders.add((threading.get_ident(), context.runtime.get_clang_pch_dir()))

    monkeypatch.setattr(kernel_loader, "_compile", meet)
    monkeypatch.setattr(kernel_loader, "is_found", lambda module, device: False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    load_kernels([first, second, third], find_device("cpu"))
    assert together == under_way[:1]
    assert len({thread for thread, _ in folders}) == 2
    assert len({folder for _, folder in folders}) == 1


def test_two_threads_load_a_module_once_at_a_time(loaded, monkeypatch):
    under_way = 0
    most = 0
    device = find_device("cpu")
    lock = threading.Lock()
    all_asked = threading.Barrier(8)

    def slow(device, modules, max_workers):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.05)
        with lock:
            under_way -= 1

    def ask() -> None:
        all_asked.wait(PATIENCE)
        begin_loading([first], device)
        load_kernels([first], device)

    monkeypatch.setattr(wp, "force_load", slow)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert most == 1


def test_kernels_that_are_compiled_are_counted(loaded, monkeypatch):
    reports = []
    device = find_device("cpu")
    monkeypatch.setattr(kernel_loader, "is_compiled", lambda module, device: module is first.module)
    with reported_compilation(lambda done, total: reports.append((done, total))):
        load_kernels([first, second, third], device)
    assert reports[0] == (0, 2)
    assert max(reports) == (2, 2)
    assert {total for _, total in reports} == {2}
    count = len(reports)
    with reported_compilation(lambda done, total: reports.append((done, total))):
        load_kernels([first], device)
    load_kernels([second], device)
    assert len(reports) == count


# The folder of compiled kernels: one that cannot be written, one on a full disk, one with
# unfinished kernels.

BODIES = "<geom type='plane' size='1 1 1'/><body pos='0 0 .4'><geom size='.5'/></body>"
SCENE = f"<mujoco><worldbody>{BODIES}</worldbody></mujoco>"
COMMAND = [sys.executable, "-m", "collidecli.cli.guard"]
NOT_CARRIED = (
    "from collidecli.engine.runtime import carried_kernels; carried_kernels.FOLDER = '/no/folder'\n"
)


@kernel
def own(number: wp.array[wp.int32]):
    number[0] = 7


@pytest.fixture
def carried_cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of kernels, no replacement of it yet, and a package that carries none."""
    find_device("cpu")
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(carried_kernels, "FOLDER", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "cache_notes", [])
    monkeypatch.setattr(kernel_cache, "_warned", [])
    monkeypatch.setattr(kernel_cache, "_unkept", [])
    monkeypatch.setattr(kernel_cache, "_temporary", TemporaryFolder("collide_kernels_"))
    return tmp_path / "cache"


@pytest.fixture
def cache(carried_cache, monkeypatch) -> Path:
    """That cache, in which nothing is compiled whatever is loaded."""
    monkeypatch.setattr(kernel_loader, "is_compiled", lambda module, device: False)
    return carried_cache


@pytest.mark.rest
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_replaced_once(cache: Path, monkeypatch, number):
    (cache / "wp_compiled_before").mkdir()
    asked = []

    def load(device, modules, max_workers):
        asked.append(str(wp.config.kernel_cache_dir))
        if len(asked) == 1:
            raise OSError(number, os.strerror(number), str(cache))

    monkeypatch.setattr(wp, "force_load", load)
    load_kernels([own], find_device("cpu"))
    assert asked[0] == str(cache)
    assert asked[1] == str(wp.config.kernel_cache_dir) != str(cache)
    assert os.path.samefile(
        os.path.join(asked[1], "wp_compiled_before"), cache / "wp_compiled_before"
    )
    (note,) = kernel_cache.kernel_cache_notes()
    assert note.startswith(f"{cache}: compiled kernels cannot be kept")
    assert "WARP_CACHE_PATH" in note
    denied = PermissionError(errno.EACCES, "Permission denied", str(cache))
    monkeypatch.setattr(wp, "force_load", Mock(side_effect=denied))
    with pytest.raises(OutputError, match="compiled kernels cannot be written: permission denied"):
        load_kernels([own], find_device("cpu"))


@pytest.mark.parametrize("when", ["before", "while compiling"])
def test_a_full_disk_is_named(cache: Path, monkeypatch, when):
    free = [0] if when == "before" else [1 << 30, 1 << 30, 0]

    def usage(folder):
        return shutil._ntuple_diskusage(1 << 30, 0, free.pop(0) if len(free) > 1 else free[0])

    def load(device, modules, max_workers):
        assert when != "before"
        raise Exception("CPU kernel build failed with error code -1")

    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr(wp, "force_load", load)
    with pytest.raises(OutputError) as caught:
        load_kernels([own], find_device("cpu"))
    assert str(caught.value).splitlines() == [
        f"{cache}: compiled kernels cannot be written: no space left on device",
        "  free some space, or set WARP_CACHE_PATH and TMPDIR to folders on another disk",
    ]
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC, errno.EFBIG])
def test_an_exhausted_quota_is_named_though_the_disk_has_space(cache: Path, monkeypatch, number):
    monkeypatch.setattr(
        os, "posix_fallocate", Mock(side_effect=OSError(number, os.strerror(number)))
    )
    with pytest.raises(OutputError, match="compiled kernels cannot be written: ") as caught:
        load_kernels([own], find_device("cpu"))
    assert os.strerror(number).lower() in str(caught.value)
    assert caught.value.exit_code == 3


def test_folders_of_killed_compilations_are_removed_after_an_hour(cache: Path, monkeypatch):
    now = time.time()
    unfinished = "wp_pose_tree_d094f93c_ed885bb_p812_t140433739105984"
    finished = "wp_p1_pairs_t2_d094f93c_ed885bb"
    ages = {unfinished: 3700.0, f"{unfinished}1": 3500.0, finished: 1e6, "other_p1_t2": 1e6}
    for name, age in ages.items():
        (cache / name).mkdir()
        (cache / name / "kernel.cpp").touch()
        os.utime(cache / name, (now - age, now - age))
    elsewhere = cache.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kernel.cpp").touch()
    os.utime(elsewhere, (0.0, 0.0))
    link = cache / f"{unfinished}2"
    link.symlink_to(elsewhere)
    os.utime(link, (0.0, 0.0), follow_symlinks=False)
    # Loading ahead removes what is unfinished.
    monkeypatch.setattr(wp, "force_load", lambda device, modules, max_workers: None)
    monkeypatch.setattr(kernel_loader, "_compile", lambda module, device, folder: None)
    monkeypatch.setattr(kernel_loader, "_loaders", {})
    monkeypatch.setattr(kernel_loader, "are_deferred", lambda: True)
    begin_loading([own], find_device("cpu"))
    load_kernels([own], find_device("cpu"))
    assert sorted(path.name for path in cache.iterdir()) == sorted([*list(ages)[1:], link.name])
    assert (elsewhere / "kernel.cpp").exists()
    shutil.rmtree(cache)
    kernel_cache.remove_unfinished()  # a missing folder has nothing unfinished


def test_a_limit_of_file_sizes_is_found(tmp_path: Path, monkeypatch):
    code = f"""
import resource
import warp as wp
wp.config.kernel_cache_dir = {str(tmp_path)!r}
from collidecli.engine.runtime.kernel_cache import full_disk
assert full_disk() is None
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
print(full_disk())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{tmp_path}: compiled kernels cannot be written: file too large" in done.stdout


@pytest.mark.slow
def test_a_home_that_cannot_be_written(tmp_path: Path):
    """Compiles the kernels of a small scene."""
    (tmp_path / "scene.xml").write_text(SCENE)
    (tmp_path / "temporary").mkdir()
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("WARP_CACHE_PATH", "XDG_CACHE_HOME")
    }
    environment |= {"HOME": "/dev/null", "TMPDIR": str(tmp_path / "temporary")}
    code = f"{NOT_CARRIED}import sys; from collidecli.cli.guard import command; sys.exit(command())"
    run = [sys.executable, "-c", code, "run", "scene.xml", "--device", "cpu"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("warning: /dev/null/.cache/warp/")
    assert "not a directory" in warning
    assert list((tmp_path / "temporary").iterdir()) == []


def test_python_warns_of_a_folder_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr(kernel_cache, "cache_notes", ["kernels cannot be kept"])
    builder = collidecli.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    with pytest.warns(RuntimeWarning, match="kernels cannot be kept"):
        collidecli.collide(builder.finalize(), device="cpu")


@pytest.mark.rest
def test_a_disk_that_fills_up(tmp_path: Path):
    (tmp_path / "scene.xml").write_text(SCENE)
    (tmp_path / "disk").mkdir()
    mount = f"mount -t tmpfs -o size=64k none {tmp_path / 'disk'}"
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "sh", "-c", mount]).returncode
    ):
        pytest.skip("no disk can be mounted here")
    run = " ".join([*COMMAND, "run", "scene.xml", "--device", "cpu"])
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{mount} && {run}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "WARP_CACHE_PATH": str(tmp_path / "disk")},
    )
    assert done.returncode == 3, done.stderr
    said = f"error: {tmp_path}/disk/{wp.config.version}: compiled kernels cannot be written: no sp"
    assert done.stderr.startswith(said)
    assert not (tmp_path / "scene.contacts.h5").exists()


# Kernels that come with the package: which files are taken, and what damage, another Warp and a
# full disk change.


@kernel
def carried_once(number: wp.array[wp.int32]):
    number[0] = 8


@kernel
def not_carried(number: wp.array[wp.int32]):
    number[0] = 9


def replace_carried(files: dict[str, bytes]) -> None:
    """The compiled kernels of the package, with the digest of those of `carried_once`."""
    shutil.rmtree(carried_folder(), ignore_errors=True)
    named = files | (digest_of(files) if files else {})
    for name, content in named.items():
        path = Path(carried_folder(), name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def files(carried_cache, monkeypatch) -> dict[str, bytes]:
    """The files of `carried_once`, which this package carries."""
    names = compiled_files(carried_once.module, find_device("cpu"))
    with monkeypatch.context() as patch:
        patch.setattr(wp.config, "kernel_cache_dir", str(carried_cache.parent / "elsewhere"))
        (carried_cache.parent / "elsewhere").mkdir()
        carried_once.module.execs.clear()
        load_kernels([carried_once], find_device("cpu"))
        found = {name: (carried_cache.parent / "elsewhere" / name).read_bytes() for name in names}
    replace_carried(found)
    return found


@pytest.fixture
def compiled(files, monkeypatch) -> Iterator[list[int]]:
    """Numbers of compiled kernels that were reported."""
    monkeypatch.setattr(kernel_loader, "_loaders", {})
    counts: list[int] = []
    with reported_compilation(lambda done, _: counts.append(done)):
        yield counts


def loaded_again(declared: wp.Kernel = carried_once) -> int:
    """What a kernel writes after its module is loaded anew."""
    declared.module.execs.clear()
    load_kernels([declared], find_device("cpu"))
    number = wp.zeros(1, dtype=wp.int32, device="cpu")
    wp.launch(declared, 1, [number], device="cpu")
    return int(number.numpy()[0])


def digest_of(files: dict[str, bytes]) -> dict[str, bytes]:
    """The file with the digest of a module's files."""
    names = compiled_files(carried_once.module, find_device("cpu"))
    return {digest_name(names): digest(names, [files[name] for name in names])}


@pytest.mark.rest
def test_a_carried_kernel_is_not_compiled(files, carried_cache, compiled):
    assert loaded_again() == 8
    added = {
        str(path.relative_to(carried_cache)): path.read_bytes()
        for path in carried_cache.glob("wp_*/*")
    }
    assert added == files | digest_of(files)
    assert not compiled
    assert loaded_again(not_carried) == 9
    assert compiled


@pytest.mark.rest
def test_files_of_the_cache_stay(files, carried_cache, compiled):
    replace_carried(dict.fromkeys(files, b"other"))
    for name, content in (files | digest_of(files)).items():
        (carried_cache / name).parent.mkdir(exist_ok=True)
        (carried_cache / name).write_bytes(content)
    assert loaded_again() == 8
    assert all((carried_cache / name).read_bytes() == content for name, content in files.items())


@pytest.mark.rest
def test_damaged_files_of_the_package_are_not_used(files, carried_cache, monkeypatch, compiled):
    object_file = Path(carried_folder(), list(files)[-1])
    content = object_file.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    for damaged in (b"", content[:-40], b"no object", bytes(flipped)):
        monkeypatch.setattr(kernel_cache, "cache_notes", [])
        object_file.write_bytes(damaged)
        assert not add_to_cache(list(files))
        (warning,) = kernel_cache.kernel_cache_notes()
        assert warning.startswith(f"{carried_folder()}: is damaged, so kernels are compiled")
    assert loaded_again() == 8
    assert max(compiled) == 1


def test_kernels_of_another_warp_are_not_used(files, carried_cache):
    os.rename(carried_folder(), carried_folder().replace(wp.config.version, "1.18.9"))
    assert not add_to_cache(list(files))
    assert not kernel_cache.kernel_cache_notes()


def refuse_writing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a folder one that cannot be written, for root too; links to it included."""
    write = kernel_digests.write_file
    make = os.mkdir

    def check(path: str) -> None:
        if os.path.realpath(path).startswith(str(folder)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(
        kernel_digests, "write_file", lambda path, content: (check(path), write(path, content))
    )
    monkeypatch.setattr(os, "mkdir", lambda path, *mode: (check(path), make(path, *mode)))


def test_a_folder_that_cannot_be_written_needs_no_warning_unless_something_is_compiled(
    files, carried_cache, monkeypatch
):
    refuse_writing(carried_cache, monkeypatch)
    assert loaded_again() == 8
    assert str(wp.config.kernel_cache_dir) != str(carried_cache)
    assert not kernel_cache.kernel_cache_notes()
    assert loaded_again(not_carried) == 9
    (warning,) = kernel_cache.kernel_cache_notes()
    assert warning.startswith(f"{carried_cache}: compiled kernels cannot be kept")


def test_one_missing_file_adds_none(files, carried_cache):
    assert not add_to_cache([*files, "wp_other/wp_other.o"])
    assert not add_to_cache([])
    assert not list(carried_cache.iterdir())


def test_a_write_that_fails_leaves_no_part(files, carried_cache, monkeypatch):
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        add_to_cache(list(files))
    assert not list(carried_cache.rglob("*.*"))


def test_the_table_of_hashes_is_carried(carried_cache, monkeypatch):
    monkeypatch.setattr(kernel_hashes, "_tables", {})
    path = kernel_hashes.table_path()
    hashes = KernelHashes("wp_module", bytes(range(32)), 1, False, ((1, bytes(32)),))
    os.makedirs(carried_folder())
    Path(carried_folder(), os.path.basename(path)).write_text(table_row("key", hashes))
    assert kernel_hashes.known_hashes("key") == hashes
    assert os.path.exists(path)


# Damaged files: found by their digest, replaced, and reported once.

SMALL = b"\x7fELF"


def flipped(content: bytes) -> bytes:
    """With one other bit in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": flipped,
    "truncated": lambda content: content[:-100],
    "empty": lambda content: b"",
    "another": lambda content: SMALL,
}


COMPILED_AGAIN = [
    (False, "flipped", "object"),
    (False, "empty", "metadata"),
    (False, "truncated", "digest"),
]
RESTORED = list(product([True], DAMAGES, ["metadata", "object", "digest"]))


@pytest.mark.share(3)
@pytest.mark.parametrize(("is_carried", "damage", "which"), [*RESTORED, *COMPILED_AGAIN])
def test_damaged_files_are_replaced(files, carried_cache, compiled, damage, which, is_carried):
    if not is_carried:
        replace_carried({})
        kernel_cache.cache_notes.clear()
    assert loaded_again() == 8
    kernel_cache.cache_notes.clear()
    names = compiled_files(carried_once.module, find_device("cpu"))
    kinds = {"metadata": names[0], "object": names[1], "digest": digest_name(names)}
    path = carried_cache / kinds[which]
    before = path.read_bytes()
    path.write_bytes(DAMAGES[damage](before))
    assert loaded_again() == 8
    assert path.read_bytes() == before
    assert not (is_carried and compiled)
    notes = kernel_cache.kernel_cache_notes()
    assert sum(kernel_cache.DAMAGED in warning for warning in notes) == 1
    kernel_cache.cache_notes.clear()
    assert loaded_again() == 8
    assert not kernel_cache.kernel_cache_notes()


@pytest.mark.rest
def test_exchanged_files_are_replaced_with_one_report(files, carried_cache, compiled):
    replace_carried({})
    for declared, number in ((carried_once, 8), (not_carried, 9)):
        assert loaded_again(declared) == number
    kernel_cache.cache_notes.clear()
    one, other = (
        [carried_cache / name for name in (*names, digest_name(names))]
        for names in (
            compiled_files(declared.module, find_device("cpu"))
            for declared in (carried_once, not_carried)
        )
    )
    for path, second in zip(one, other, strict=True):  # the digests too
        content = path.read_bytes()
        path.write_bytes(second.read_bytes())
        second.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="damaged compiled kernels"):
        assert loaded_again() == 8
    assert loaded_again(not_carried) == 9
    assert kernel_cache.kernel_cache_notes() == (f"{carried_cache}: {kernel_cache.DAMAGED}",)


def test_files_without_a_digest_are_replaced_silently(files, carried_cache, compiled):
    """Of an earlier version, of Warp itself, or of a process that was killed."""
    assert loaded_again() == 8
    names = compiled_files(carried_once.module, find_device("cpu"))
    (carried_cache / digest_name(names)).unlink()
    (carried_cache / names[-1]).write_bytes(SMALL)
    assert loaded_again() == 8
    kept = {str(path.relative_to(carried_cache)) for path in carried_cache.glob("wp_*/*")}
    assert kept == {*names, digest_name(names)}
    assert not kernel_cache.kernel_cache_notes()


@pytest.mark.rest
@pytest.mark.parametrize("is_carried", [True, False])
def test_damaged_files_in_a_folder_that_cannot_be_written(
    files, carried_cache, monkeypatch, compiled, is_carried
):
    assert loaded_again() == 8
    if not is_carried:
        replace_carried({})
    (path,) = carried_cache.glob("wp_*/*.o")
    path.write_bytes(SMALL)
    refuse_writing(carried_cache, monkeypatch)
    assert loaded_again() == 8
    assert path.read_bytes() == SMALL
    assert str(wp.config.kernel_cache_dir) != str(carried_cache)
    assert f"{carried_cache}: {kernel_cache.DAMAGED}" in kernel_cache.kernel_cache_notes()


def test_a_kernel_in_memory_is_not_read_again(files, carried_cache, compiled, monkeypatch):
    assert loaded_again() == 8
    monkeypatch.setattr(kernel_loader, "file_state", Mock(side_effect=AssertionError("is read")))
    load_kernels([carried_once], find_device("cpu"))


COMPILE_IN_TURN = """
import os
import sys
from contextlib import suppress
import warp as wp
wp.config.kernel_cache_dir = sys.argv[1]
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import carried_kernels, kernel_cache, kernel_hashes, kernel_loader
from collidecli.engine.runtime.kernel_digests import digest_name
from collidecli.engine.runtime.warp_internals import compiled_files
carried_kernels.FOLDER = "/no/folder"
from tests.unit.engine.runtime.test_kernels import first
device = find_device("cpu")
names = compiled_files(first.module, device)
number = wp.zeros(1, dtype=wp.int32, device="cpu")
sys.stdin.readline()
for turn in range(4):
    first.module.execs.clear()
    kernel_loader.load_kernels([first], device)
    wp.launch(first, 1, [number], device="cpu")
    assert int(number.numpy()[0]) == 1
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(str(wp.config.kernel_cache_dir), digest_name(names)))
"""


@pytest.mark.slow
def test_processes_that_replace_one_kernel_at_once_find_complete_files(tmp_path):
    """Each removes the digest, so that all compile and replace the files while others load them."""
    command = [sys.executable, "-c", COMPILE_IN_TURN, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for process in processes:
        print(file=process.stdin, flush=True)
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
