"""Bodies of a scene by name, with their parents in its joint trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collidecli.motions.loaded_scene import LoadedScene

BodyName = tuple[int, str]
"""Template and path of a body."""


def body_rows(scene: LoadedScene) -> dict[BodyName, int]:
    """Row of each body, in the order of the rows."""
    bodies = scene.model.bodies
    names = zip(bodies.template.tolist(), bodies.path, strict=True)
    return {name: row for row, name in enumerate(names)}


def parents(scene: LoadedScene) -> dict[BodyName, BodyName]:
    """The nearest moving ancestor of each body that has one, by the scene's joint trees."""
    rows = body_rows(scene)
    source_of = scene.template_import(scene.model.bodies.template)
    above: dict[tuple[int, str], str] = {}
    for source, imported in enumerate(scene.imports):
        articulated = imported.articulated
        for tree in articulated.articulations if articulated is not None else ():
            for path, parent in zip(tree.body_path, tree.body_parent, strict=True):
                if parent >= 0:
                    above[source, path] = tree.body_path[parent]
    found: dict[BodyName, BodyName] = {}
    for (template, path), row in rows.items():
        parent = above.get((source_of[row], path))
        while parent is not None and (template, parent) not in rows:
            parent = above.get((source_of[row], parent))
        if parent is not None:
            found[template, path] = (template, parent)
    return found
