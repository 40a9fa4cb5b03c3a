"""Limits that the system sets to this process, as `ulimit` shows them: what collide needs of each,
and the errors that they cause."""

from __future__ import annotations

import errno
import sys
import threading
from typing import NamedTuple

from collidecli.errors import CollideError
from collidecli.exit_codes import KILLED
from collidecli.wording import memory

if sys.platform != "win32":
    import resource


class LimitError(CollideError):
    """A limit of the system on processes that leaves too little for a command."""

    exit_code = KILLED


class _Limit(NamedTuple):
    """name: of `resource`. flag: of ulimit, whose unit is `unit` bytes; 0 for a number. least: with
    which a small scene is computed. usual: of most systems; a lower one is raised to it where the
    system allows that, 0 is never raised."""

    name: str
    flag: str
    unit: int
    least: int
    usual: int
    what: str

    def value(self) -> int | None:
        """The limit of this process; None for none."""
        number = getattr(resource, self.name, None) if sys.platform != "win32" else None
        soft = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[0]
        return None if soft == resource.RLIM_INFINITY else soft

    def text(self, value: int) -> str:
        """A value with its unit, and how ulimit shows it."""
        if not self.unit:
            return f"{value} (ulimit -{self.flag})"
        return f"{memory(value)} (ulimit -{self.flag} {value // self.unit})"

    def raise_to_usual(self) -> None:
        soft, hard = resource.getrlimit(getattr(resource, self.name))
        usual = self.usual if hard == resource.RLIM_INFINITY else min(self.usual, hard)
        if soft != resource.RLIM_INFINITY and soft < usual:
            resource.setrlimit(getattr(resource, self.name), (usual, hard))

    def fix(self, least: int) -> str:
        number = -(-least // self.unit) if self.unit else least
        return f"raise it: ulimit -{self.flag} {number}, or the limit of the container or job"


FILES = _Limit("RLIMIT_NOFILE", "n", 0, 64, 1024, "open files")
STACK = _Limit("RLIMIT_STACK", "s", 1024, 1 << 20, 8 << 20, "the stack")
ADDRESSES = _Limit("RLIMIT_AS", "v", 1024, 1 << 30, 0, "the address space")
DATA = _Limit("RLIMIT_DATA", "d", 1024, 512 << 20, 0, "private memory")
PROCESSES = _Limit("RLIMIT_NPROC", "u", 0, 0, 0, "processes and threads of the user")
NO_MEMORY = ("cannot allocate memory", "failed to map segment", "failed to load the shared library")
NO_THREAD = ("can't start new thread", "failed to launch worker thread")
"""Texts of errors of libraries that find no memory, or can start no thread."""
STARTS = ("fork", "_fork_exec", "_execute_child", "_posix_spawn", "_launch", "spawnv_passfds")
"""Functions of Python that start a process, and raise where the system has no further one."""


def prepare_limits() -> None:
    """Raises the numbers of open files and the stack to their usual sizes where the system allows
    that.

    Raises LimitError for a limit with which no scene can be computed: libraries end the process or
    wait for ever where they find it in the middle of their work.
    """
    if sys.platform == "win32":
        return
    stack = STACK.value()
    for limit in (FILES, STACK):
        limit.raise_to_usual()
    if stack is not None and stack < STACK.usual:
        # the size of new threads is that of the limit when the program started
        threading.stack_size(STACK.usual)
    for limit in (FILES, STACK, ADDRESSES, DATA):
        value = limit.value()
        if value is not None and value < limit.least:
            needed = memory(limit.least) if limit.unit else str(limit.least)
            raise LimitError(
                f"the limit of {limit.what} is {limit.text(value)}, and collide needs {needed}",
                fix=limit.fix(limit.least),
            )


def limit_error(error: BaseException) -> LimitError | None:
    """The limit of the system that an exception, or what caused it, is about; None for another
    one."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, LimitError):
            return cause
        found = _of_files(cause) or _of_threads(cause) or _of_memory(cause)
        if found is not None:
            return found
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return None


def _of_files(error: BaseException) -> LimitError | None:
    if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
        return None
    value = FILES.value()
    if error.errno == errno.ENFILE or value is None:
        return LimitError("the system has too many open files", fix="close other programs")
    return LimitError(
        f"more files are needed than the limit of open files, {FILES.text(value)}",
        fix=FILES.fix(2 * value),
    )


def _text_of(error: BaseException) -> str:
    """What an exception says, in lower case; "" where that cannot be said, as of an error of
    OpenUSD about text that is not UTF-8."""
    try:
        return str(error).lower()
    except Exception:
        return ""


def _is_of_start(error: BaseException) -> bool:
    """Whether an error was raised where a process is started: a full pipe has the same number."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name in STARTS


def _of_threads(error: BaseException) -> LimitError | None:
    text = _text_of(error)
    is_thread = any(words in text for words in NO_THREAD)
    is_process = isinstance(error, BlockingIOError) and _is_of_start(error)
    if not (is_thread or is_process):
        return None
    noun = "thread" if is_thread else "process"
    limits = [
        f"{limit.what}: {limit.text(value)}"
        for limit in (PROCESSES, ADDRESSES)
        if (value := limit.value()) is not None
    ]
    limits.append("that of the container or job")
    return LimitError(
        f"the system starts no further {noun}: a limit is reached",
        fix=f"raise it, or lower --threads and --workers; limits are {', '.join(limits)}",
    )


def _of_memory(error: BaseException) -> LimitError | None:
    text = _text_of(error)
    if not isinstance(error, MemoryError) and not any(words in text for words in NO_MEMORY):
        return None
    for limit in (ADDRESSES, DATA):
        value = limit.value()
        if value is not None:
            return LimitError(
                f"the limit of {limit.what}, {limit.text(value)}, is too low for this command",
                fix=f"{limit.fix(2 * value)}; or lower --threads, --workers and --memory-limit",
            )
    return None
