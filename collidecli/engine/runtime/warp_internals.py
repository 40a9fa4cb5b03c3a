"""All uses of Warp's private names, for the versions of Warp in KNOWN_WARP.

Private are the memory layout of a packed CPU launch, the C struct behind an instance of a Warp
struct, the folder of precompiled headers of a thread, the library of its compiler, the names of
files in the kernel cache, and the hashes from which they are made. Warp promises none of them. With
another version of Warp `is_known_warp` returns False, and callers use the public functions of Warp
instead: launches one by one (`RecordedLaunches`), fields set with Warp's checks, one folder of
headers per thread, object files for the processor at hand, no message while kernels are compiled,
every kernel parsed and hashed by Warp. The contacts are equal to the bit.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import platform
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.deferred_builtins import KNOWN_WARP
from collidecli.engine.runtime.index_limit import INDEX_LIMIT


def is_known_warp() -> bool:
    """Whether the installed Warp is one of KNOWN_WARP; callers use this module only then."""
    return wp.config.version.startswith(KNOWN_WARP)


V3 = {
    "avx",
    "avx2",
    "bmi",
    "bmi2",
    "cx16",
    "f16c",
    "fma",
    "lzcnt",
    "movbe",
    "popcnt",
    "sahf",
    "sse3",
    "sse4.1",
}
V3 |= {"sse4.2", "ssse3", "xsave"}
"""LLVM's names of what x86-64-v3 adds to the first x86-64 processors."""


@cache
def has_v3() -> bool:
    """Whether this is Linux on a processor of x86-64-v3, as Warp's compiler sees it; False with an
    unknown Warp."""
    if not is_known_warp() or sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        compiler = ctypes.CDLL(os.path.join(os.path.dirname(wp.__file__), "bin", "warp-clang.so"))
        compiler.wp_get_host_cpu_features.restype = ctypes.c_char_p
        return set(compiler.wp_get_host_cpu_features().decode().split(",")) >= V3
    except (OSError, AttributeError):
        return False


def hashing_lock() -> threading.RLock:
    """The lock that Warp holds while it hashes and generates code; a new one with an unknown
    Warp."""
    if not is_known_warp():
        return threading.RLock()
    from warp._src.codegen import _codegen_lock

    return _codegen_lock


def keep_struct_dtypes() -> None:
    """Makes a known Warp build the NumPy type of a struct once, under its own lock: NumPy parses
    formats such as "3f8" as Python, in which two threads may fail (`DeferredFunction`)."""
    if not is_known_warp():
        return
    from warp._src.codegen import Struct

    build: Any = Struct.numpy_dtype

    @cache
    def numpy_dtype(struct: Any) -> np.dtype:
        with hashing_lock():
            return np.dtype(build(struct))

    Struct.numpy_dtype = numpy_dtype  # pyright: ignore[reportAttributeAccessIssue]


def share_header_folder(folder: Any) -> None:
    """Sets the folder of precompiled C++ headers of this thread, a `tempfile.TemporaryDirectory`:
    by default, and with an unknown Warp, each thread precompiles its own headers."""
    if not is_known_warp():
        return
    from warp._src import context

    context.runtime._pch_dirs[threading.get_ident()] = folder


def compiled_files(module: wp.Module, device: wp.Device) -> tuple[str, ...]:
    """Names in Warp's cache of the files that Warp needs to load a module, the object last; () with
    an unknown Warp."""
    if not is_known_warp():
        return ()
    block_dim = _block_dim(module, device)
    folder = module.get_module_identifier(block_dim)
    names = (
        module._get_meta_name(block_dim=block_dim),
        module._get_compile_output_name(device, block_dim=block_dim),
    )
    return tuple(f"{folder}/{name}" for name in names)


def cubin_files(module: wp.Module, architecture: int) -> tuple[str, ...]:
    """Names in Warp's cache of the metadata and the cubin of a module for a CUDA architecture, the
    cubin last, whatever Warp would choose for a device.

    () with an unknown Warp, and where its settings ask for PTX or for features of one architecture.
    """
    if not is_known_warp() or wp.config.cuda_output == "ptx" or wp.config.cuda_arch_suffix:
        return ()
    block_dim = module.options["block_dim"]
    folder = module.get_module_identifier(block_dim)
    names = (
        module._get_meta_name(block_dim=block_dim),
        module._get_compile_output_name(None, architecture, use_ptx=False, block_dim=block_dim),
    )
    return tuple(f"{folder}/{name}" for name in names)


def compile_cubin(module: wp.Module, architecture: int, folder: str) -> None:
    """Compiles a module of a known Warp for a CUDA architecture into a new folder; needs no driver.
    Raises what Warp raises."""
    name = os.path.basename(cubin_files(module, architecture)[-1])
    options = module.resolved_options[module.options["block_dim"]]
    module._compile(None, folder, name, architecture, use_ptx=False, options=options)


def compile_module(module: wp.Module, device: wp.Device, folder: str) -> None:
    """Compiles a module of a known Warp into a new folder, whatever Warp's cache has. Raises what
    Warp raises."""
    name = os.path.basename(compiled_files(module, device)[-1])
    options = module.resolved_options[_block_dim(module, device)]
    module._compile(device, folder, name, module._get_compile_arch(device), options=options)


def is_in_memory(module: wp.Module, device: wp.Device) -> bool:
    """Whether a module is loaded as it is now, so that Warp reads no file; False with an unknown
    Warp."""
    if not is_known_warp():
        return False
    block_dim = _block_dim(module, device)
    loaded = module.execs.get((device.context, block_dim))
    return loaded is not None and loaded.module_hash == module.get_module_hash(block_dim)


def link_kernels(module: wp.Module, device: wp.Device) -> None:
    """Links the kernels of a loaded module of the CPU, which their first launch would do."""
    loaded = module.execs.get((device.context, _block_dim(module, device)))
    if loaded is not None:
        for kernel in list(module.kernels.values()):
            loaded.get_kernel_hooks(kernel)


def _block_dim(module: wp.Module, device: wp.Device) -> int:
    """Threads of a block of a launch that does not name their number."""
    return 1 if device.is_cpu else module.options["block_dim"]


@dataclass(frozen=True)
class KernelHashes:
    """What Warp computes from the source of a kernel that has a module of its own.

    module_name: of that module. kernel: hash of the kernel. dimensions: of its launch. grid_stride:
    whether its threads loop. modules: hash of the module for each block size that was used.
    """

    module_name: str
    kernel: bytes
    dimensions: int
    grid_stride: bool
    modules: tuple[tuple[int, bytes], ...]

    def text(self) -> str:
        """One line, without its end."""
        modules = " ".join(f"{size}:{value.hex()}" for size, value in self.modules)
        launch = f"{self.dimensions} {int(self.grid_stride)}"
        return f"{self.module_name} {self.kernel.hex()} {launch} {modules}"

    @staticmethod
    def of_text(text: str) -> KernelHashes:
        """The hashes of a line. Raises ValueError for any other text."""
        name, kernel, dimensions, grid_stride, *modules = text.split()
        pairs = [part.split(":") for part in modules]
        values = tuple((int(size), bytes.fromhex(value)) for size, value in pairs)
        hashes = KernelHashes(
            name, bytes.fromhex(kernel), int(dimensions), bool(int(grid_stride)), values
        )
        if any(
            len(value) != _HASH_BYTES for value in (hashes.kernel, *dict(hashes.modules).values())
        ):
            raise ValueError(text)
        return hashes


_HASH_BYTES = 32


def hashes_of(kernel: wp.Kernel) -> KernelHashes:
    """The hashes of a kernel that Warp has hashed."""
    modules = sorted((size, hasher.get_hash()) for size, hasher in kernel.module.hashers.items())
    sizes = kernel.adj.kernel_dim, bool(kernel.grid_stride)
    assert kernel.hash is not None
    return KernelHashes(kernel.module.name, kernel.hash, *sizes, tuple(modules))


def hashed_kernel(
    function: Callable[..., Any], options: dict[str, Any], limit: int | None, hashes: KernelHashes
) -> wp.Kernel:
    """The kernel of a function whose hashes are known, in a module of its own; the one that is
    declared already, if any.

    Warp neither searches it for references to other modules nor parses it, unless it has to compile
    it: then it does as if it had hashed the kernel itself. options: of the module. limit: most
    registers of a thread of a GPU; None leaves it to the compiler.
    """
    from warp._src import codegen, context

    module = wp.Module(function.__name__, None)
    module.defer_reference_scan = True
    module.options.update(options)
    kernel = context.Kernel(
        function,
        codegen.make_full_qualified_name(function),
        module,
        {} if limit is None else {"cuda_max_registers": limit},
        source=f"def {function.__code__.co_name}(): pass",
    )
    _parse_later(kernel.adj)
    functools.update_wrapper(kernel, function)
    return _with_hashes(kernel, hashes)


_OF_SOURCE = frozenset(
    (
        "source",
        "source_lines",
        "fun_lineno",
        "tree",
        "_shared_source",
        "has_unresolved_static_expressions",
        "resolved_static_expressions",
    )
)
"""What Warp finds in the source of a function, not in its annotations."""


@cache
def _unparsed() -> type:
    """The class of a function whose source Warp parses when it first reads what is in it."""
    from warp._src.codegen import Adjoint

    class Unparsed(Adjoint):
        def __getattr__(self, name: str) -> Any:
            if name not in _OF_SOURCE:
                raise AttributeError(name)
            with hashing_lock():
                if name not in vars(self):
                    found = vars(Adjoint(self.func))
                    vars(self).update({each: found[each] for each in _OF_SOURCE})
            return vars(self)[name]

    return Unparsed


def _parse_later(adjoint: Any) -> None:
    """Removes what Warp found in a source that stands for that of the function."""
    for name in _OF_SOURCE:
        del vars(adjoint)[name]
    adjoint.__class__ = _unparsed()


def _with_hashes(kernel: wp.Kernel, hashes: KernelHashes) -> wp.Kernel:
    """The kernel, with its hashes; the one that has its module name already, if any."""
    from warp._src.codegen import _TID_MAX_EXTENT
    from warp._src.context import ModuleHasher, user_modules

    module = kernel.module
    same = user_modules.get(hashes.module_name)
    if same is not None:
        return same.kernels[kernel.key]
    module.name = hashes.module_name
    kernel.grid_stride = hashes.grid_stride
    kernel.adj.kernel_dim = hashes.dimensions
    kernel.adj.tid_extent_limit_candidate = _TID_MAX_EXTENT
    for size, value in hashes.modules:
        hasher = ModuleHasher((), {})
        hasher.hash = value
        hasher.unique_kernels[hashes.kernel] = kernel
        hasher.kernel_hashes[kernel] = hashes.kernel
        module.hashers[size] = hasher
        module.resolved_options[size] = module.resolve_options(wp.config, block_dim=size)
    kernel.hash = hashes.kernel
    user_modules[module.name] = module
    return kernel


def type_code(kind: Any) -> str:
    """Warp's code for a type of an argument; with the hash of a struct. Raises TypeError for
    anything else."""
    from warp._src import codegen, types

    if isinstance(kind, codegen.Struct):
        return f"{kind.key}:{kind.hash.hex()}"
    if types.is_array(kind):
        return f"{type(kind).__name__}:{kind.ndim}:{type_code(kind.dtype)}"
    return types.get_type_code(kind)


def struct_of(decorated: type) -> Any:
    """What Warp made of a class: `vars`, `numpy_dtype` and `ctype`. For type checkers `wp.struct`
    returns the class."""
    return decorated


def struct_rows(decorated: Any, count: int) -> np.ndarray:
    """`count` rows of a struct's NumPy type, zeros."""
    return np.zeros(count, struct_of(decorated).numpy_dtype())


def set_field(struct: Any, name: str, value: Any) -> None:
    """Sets a field of a Warp struct; an int directly in the C struct that kernels read, without
    Warp's checks."""
    setattr(struct.__ctype__() if type(value) is int else struct, name, value)


def rebind_host_array(struct: Any, name: str, values: np.ndarray) -> None:
    """Sets address, length and stride of an array field, which holds an array of this element type,
    of a Warp struct on the CPU to a host array, one contiguous row per element. Construction of a
    new `wp.array` takes longer than the kernels of a small chunk.

    The array that the field holds has the stride 0 where it is empty.
    """
    array = getattr(struct.__ctype__(), name)
    array.data = values.__array_interface__["data"][0]
    array.shape[0] = len(values)
    array.strides[0] = values.itemsize * math.prod(values.shape[1:])


@cache
def _arguments_struct(names: tuple[str, ...], types: tuple[type, ...]) -> type[ctypes.Structure]:
    """C struct of a kernel's arguments; cached, since its construction takes longer than
    packing."""
    return type(
        "Arguments", (ctypes.Structure,), {"_fields_": list(zip(names, types, strict=True))}
    )


class PackedLaunch:
    """A kernel's launch on the CPU, its arguments in the memory layout that the compiled function
    reads.

    command: as recorded by Warp with `arguments`. call: address of the compiled function, and of
    its two arguments.
    """

    def __init__(self, command: wp.Launch, arguments: list[Any]) -> None:
        self._command = command
        self._last = arguments
        self._names = [argument.label for argument in command.kernel.adj.args]
        packed = command.params[1:]
        self.packed: Any = _arguments_struct(
            tuple(self._names), tuple(type(value) for value in packed)
        )(*packed)
        self._structs = {
            self._names[index]: value
            for index, value in enumerate(packed)
            if isinstance(value, ctypes.Structure) and not isinstance(arguments[index], wp.array)
        }
        self._bounds = command.bounds
        assert command.hooks is not None
        self._entry = command.hooks.forward
        address = ctypes.cast(self._entry, ctypes.c_void_p).value
        self.call = (address, ctypes.addressof(self._bounds), ctypes.addressof(self.packed))

    def pack(self, count: int, arguments: list[Any]) -> None:
        """Packs the arguments that differ from the last call; structs always, since their fields
        may have changed."""
        last = self._last
        names = self._names
        packed = self.packed
        for index, value in enumerate(arguments):
            if value is last[index]:
                continue
            if type(value) is int:
                setattr(packed, names[index], value)
                continue
            self._command.set_param_at_index(index, value)
            new = self._command.params[index + 1]
            setattr(packed, names[index], new)
            if names[index] in self._structs:
                self._structs[names[index]] = new
        for name, struct in self._structs.items():
            setattr(packed, name, struct)
        self._last = arguments
        if count > INDEX_LIMIT:
            self._command.set_dim(count)  # raises the error
        self._bounds.shape[0] = self._bounds.size = count

    def launch(self) -> None:
        """Launches immediately."""
        self._entry(ctypes.byref(self._bounds), ctypes.byref(self.packed))
