"""The processor, the memory and the versions of packages of a run."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import sys
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError

from collidecli.installed_versions import installed_version

PACKAGES = {
    "collidecli": "",
    "warp-lang": "warp",
    "usd-core": "",
    "mujoco": "mujoco",
    "numpy": "numpy",
    "h5py": "h5py",
}
"""Packages that affect a result, and the module with their `__version__`, as reading package
metadata is slower."""


def peak_memory() -> int:
    """Largest resident size of this process so far [bytes]."""
    try:
        # On Linux, getrusage includes the size that the process had before exec.
        with open("/proc/self/status") as file:
            peaks = [int(line.split()[1]) for line in file if line.startswith("VmHWM")]
        if peaks:
            return peaks[0] * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def versions() -> dict[str, str]:
    """Version of each of PACKAGES and of Python; empty for a package that is not installed."""
    return dict(_versions(len(sys.modules)))


@lru_cache(maxsize=1)
def _versions(loaded_modules: int) -> dict[str, str]:
    """loaded_modules: their number; a package that is loaded states its own version."""
    version_of = {"python": platform.python_version()}
    for package, module in PACKAGES.items():
        try:
            version_of[package] = getattr(
                sys.modules.get(module), "__version__", None
            ) or installed_version(package)
        except PackageNotFoundError:
            version_of[package] = ""
    return version_of


@cache
def processor_name() -> str:
    """Model name of the processor."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()


INSTRUCTIONS = (
    "sse4_2",
    "avx",
    "f16c",
    "fma",
    "avx2",
    "avx512f",
    "avx512dq",
    "avx512vl",
    "amx_tile",
    "asimd",
    "sve",
)
"""Instruction set extensions by which libraries choose between implementations."""
_CORE_NAMES = (
    "scipy_openblas_get_corename64_",
    "scipy_openblas_get_corename",
    "openblas_get_corename",
)


def processor_description() -> dict[str, str]:
    """Attributes of /timing: instruction_set, c_library and linear_algebra; empty if unknown."""
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        name = " ".join(platform.libc_ver())
    hidden = [word for word in os.environ.get("GLIBC_TUNABLES", "").split(":") if "hwcap" in word]
    return {
        "instruction_set": instruction_set(),
        "c_library": " ".join([name, *hidden]).strip(),
        "linear_algebra": _linear_algebra(len(sys.modules)),
    }


@cache
def instruction_set() -> str:
    """The machine type and the supported extensions of INSTRUCTIONS."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next(
                (line.split() for line in file if re.match(r"(flags|Features)\s*:", line)), []
            )
    except OSError:
        flags = []
    return " ".join([platform.machine(), *(name for name in INSTRUCTIONS if name in flags)])


@lru_cache(maxsize=1)
def _linear_algebra(loaded_modules: int) -> str:
    """The processor name for which each loaded copy of OpenBLAS has chosen its kernels.

    loaded_modules: their number; a further module may load a further copy.
    """
    try:
        with open("/proc/self/maps") as file:
            paths = sorted(
                {line.split(None, 5)[5].strip() for line in file if "openblas" in line.lower()}
            )
    except OSError:
        return ""
    libraries: list[str] = []
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        core = next(
            (getattr(library, name) for name in _CORE_NAMES if hasattr(library, name)), None
        )
        if core is not None:
            core.restype = ctypes.c_char_p
            libraries.append(f"OpenBLAS {(core() or b'').decode('ascii', 'replace')}")
    return ", ".join(dict.fromkeys(libraries))
