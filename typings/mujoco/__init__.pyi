# The names of mujoco come from compiled modules without type stubs: pyright accepts any.
from typing import Any

def __getattr__(name: str) -> Any: ...
