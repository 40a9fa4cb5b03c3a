"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell that starts the tests in the background has SIGINT ignored, and every program they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
