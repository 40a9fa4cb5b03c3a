"""The contact sets that the folder of a batch stands for where files are named."""

from __future__ import annotations

from collections.abc import Callable

from collidecli.errors import InputError
from collidecli.results.inputs import InputFile
from collidecli.verbs.batch.gathered_episodes import Gathered
from collidecli.verbs.batch.plan import read_plan
from collidecli.verbs.batch.store import open_store
from collidecli.wording import plural


def contact_sets(folder: str, warn: Callable[[str], None]) -> list[InputFile]:
    """The contact sets of a batch, each once. Raises InputError where an episode has none and has
    not failed."""
    store = open_store(folder)
    gathered = Gathered(store, read_plan(store))
    if gathered.failed:
        warn(
            f"{folder}: {plural(gathered.failed, 'episode')} failed: there is no contact set of"
            " them"
        )
    of_key: dict[str, list[dict[str, str]]] = {}
    for episode in (done.episode for done in gathered.episodes):
        of_key.setdefault(episode.key, []).append(
            {name: getattr(episode, name) for name in ("job", "motion", "demo")}
        )
    if not of_key:
        raise InputError(
            "no episode of the batch has a contact set",
            folder,
            "collide batch status names the failures",
        )
    return [
        InputFile(store.result_location(key), f"{key}.h5", False, size)
        for key, size in of_key.items()
    ]
