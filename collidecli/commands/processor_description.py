"""What this process computes with: the processor's instructions, the C library and the linear algebra library.

No contact depends on these (docs/adr/0068-one-result-on-every-processor.md). They are recorded so that, if two machines
disagree all the same, their files tell in what they differ.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re

INSTRUCTIONS = ("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512dq", "avx512vl", "amx_tile", "asimd", "sve")
"""Of those that a processor names, the ones that choose between implementations."""
_CORE_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")


def arithmetic_facts() -> dict[str, str]:
    """Attributes of /timing: instruction_set, c_library and linear_algebra; empty where the system does not tell."""
    return {"instruction_set": _instruction_set(), "c_library": _c_library(), "linear_algebra": _linear_algebra()}


def _instruction_set() -> str:
    """The machine, and those of INSTRUCTIONS that it has."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line.split() for line in file if re.match(r"(flags|Features)\s*:", line)), [])
    except OSError:
        flags = []
    return " ".join([platform.machine(), *(name for name in INSTRUCTIONS if name in flags)])


def _c_library() -> str:
    """Name and version; and the processor features that the environment hides from it."""
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        name = " ".join(platform.libc_ver())
    hidden = [word for word in os.environ.get("GLIBC_TUNABLES", "").split(":") if "hwcap" in word]
    return " ".join([name, *hidden]).strip()


def _linear_algebra() -> str:
    """OpenBLAS and the kernels that it has chosen, of each copy that is loaded."""
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
