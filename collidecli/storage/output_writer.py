"""Writers of an atomic output as context managers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from collidecli.storage.atomic_output import AtomicOutput


class OutputWriter(ABC):
    """A writer whose output is discarded at the end of its context, unless it is complete."""

    _output: AtomicOutput

    @abstractmethod
    def _leave(self, failed: bool) -> None:
        """Ends the context. failed: by an error."""

    def __enter__(self) -> Self:
        self._output.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave(kind is not None)
