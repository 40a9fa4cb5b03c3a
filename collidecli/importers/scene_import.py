"""What every scene door says of the scene that it brought in."""

from __future__ import annotations

from typing import Protocol

from collidecli.scene.model import Model
from collidecli.scene.motion import Motion


class SceneImport(Protocol):
    """files: every one that may decide a contact, the scene's first. warnings: for the user, one line each.

    text: of a scene that is no file of its own, else empty.
    """

    @property
    def files(self) -> tuple[str, ...]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...

    def motion(self, model: Model) -> Motion | None:
        """The scene's own motion, over the bodies of the finalized model; None where it has none."""
        ...
