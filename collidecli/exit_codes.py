"""Exit codes of the command line, all in one place; `collide --help` lists EXIT_CODES."""

from __future__ import annotations

SUCCESS = 0
DIFFERENCE = 1
UNUSABLE_INPUT = 2
UNWRITABLE_OUTPUT = 3
KILLED = 4
"""By the system, or a limit of the system on processes would end the command."""
INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h."""
TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h."""
INTERRUPTED = 130
"""What a shell gives for a program that SIGINT ended: 128 and the number of the signal."""

EXIT_CODES = {
    SUCCESS: "success; for check and diff: no difference",
    DIFFERENCE: "a difference, a failed check, or an exceeded limit",
    UNUSABLE_INPUT: "a usage error, or an input that cannot be used",
    UNWRITABLE_OUTPUT: "an output that cannot be written",
    KILLED: "killed, most likely for lack of memory; or a limit of the system (ulimit)",
    INTERNAL_ERROR: "an internal error of collide",
    TRY_AGAIN: (
        "the object store, the scheduler or the workers of a batch ended; repeat the command"
    ),
    INTERRUPTED: "interrupted",
}
"""What each means, as the help says it."""
