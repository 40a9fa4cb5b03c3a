"""Instruction set, C library and linear algebra library of this process.

No contact depends on these (docs/adr/0068-one-result-on-every-processor.md). They are recorded so that, if the results
of two machines differ nevertheless, their files contain the difference of the machines.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re

INSTRUCTIONS = ("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512dq", "avx512vl", "amx_tile", "asimd", "sve")
"""Instruction set extensions by which libraries choose between implementations."""
_CORE_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")


def processor_description() -> dict[str, str]:
    """Attributes of /timing: instruction_set, c_library and linear_algebra; empty if unknown."""
    return {"instruction_set": _instruction_set(), "c_library": _c_library(), "linear_algebra": _linear_algebra()}


def _instruction_set() -> str:
    """The machine type and the supported extensions of INSTRUCTIONS."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line.split() for line in file if re.match(r"(flags|Features)\s*:", line)), [])
    except OSError:
        flags = []
    return " ".join([platform.machine(), *(name for name in INSTRUCTIONS if name in flags)])


def _c_library() -> str:
    """Name and version of the C library, and the processor features that GLIBC_TUNABLES disables."""
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        name = " ".join(platform.libc_ver())
    hidden = [word for word in os.environ.get("GLIBC_TUNABLES", "").split(":") if "hwcap" in word]
    return " ".join([name, *hidden]).strip()


def _linear_algebra() -> str:
    """The processor name for which each loaded copy of OpenBLAS has chosen its kernels."""
    try:
        with open("/proc/self/maps") as file:
            paths = sorted({line.split(None, 5)[5].strip() for line in file if "openblas" in line.lower()})
    except OSError:
        return ""
    found: list[str] = []
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        core = next((getattr(library, name) for name in _CORE_NAMES if hasattr(library, name)), None)
        if core is not None:
            core.restype = ctypes.c_char_p
            found.append(f"OpenBLAS {(core() or b'').decode('ascii', 'replace')}")
    return ", ".join(dict.fromkeys(found))
