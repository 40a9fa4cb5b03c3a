"""Names of the shapes of a contact set that templates of environments share."""

from __future__ import annotations

from collidecli.scene.environment_names import local_path, roots_by_pattern
from collidecli.storage.contact_sets.reader import ContactSet


def local_names(contacts: ContactSet) -> list[str]:
    """The path of each shape, relative to its environment where it is in one."""
    paths = contacts.shapes.path
    roots = roots_by_pattern(paths, contacts.config.get("environments") or "")
    return [local_path(path, roots) for path in paths]
