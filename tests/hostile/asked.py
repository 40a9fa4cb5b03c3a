"""Damaged contact sets for the verbs that ask something of them, each beside a good one."""

from __future__ import annotations

import io
import random
from functools import partial

import h5py

from collidecli.scene.options import GROUP_NAMES
from tests.hostile.crafted_hdf5 import ATTRIBUTES, DATASET_CHANGES, changed, set_attribute
from tests.hostile.mutators import damaged
from tests.hostile.seeds import GOLDEN, Group

_ASKED: dict[str, tuple[tuple[str, ...], ...]] = {
    "compared": (("diff", "{}", "good.h5", "--full"), ("diff", "good.h5", "{}", "--pairs-only"), ("textconv", "{}")),
    "when": (
        ("events", "{}", "--csv", "out.csv", "--parquet", "out.parquet", "--graph"),
        ("events", "{}", "--by", "bodies", "--merge-gap", "20ms", "--sort", "depth"),
        ("label", "{}", "-o", "out.npz", "--leave", "1mm", "--min-frames", "2"),
        ("label", "{}", "-o", "out.labels.parquet", "--by", "shapes"),
        ("audit", "{}", "--mask", "mask.npz"),
    ),
    "joined": (("merge", "{}", "later.h5", "-o", "out.h5"), ("merge", "later.h5", "{}", "-o", "out.h5", "--force")),
    "written": (
        ("export", "{}", "--to", "csv", "-o", "out.csv"),
        ("export", "{}", "--to", "parquet", "-o", "out.parquet"),
        ("export", "{}", "--to", "npz", "-o", "out.npz"),
    ),
    "laid out": tuple(
        ("export", "{}", "--to", name, "-o", "out.npz") for name in ("newton", "genesis", "dart", "raisim")
    ),
    "drawn": (
        ("report", "{}", "-o", "out.html"),
        ("plot", "{}", "-o", "out.svg"),
        ("view", "{}", "--points-only", "--frames", "0:2", "--export", "out.html"),
    ),
}


_ASKED_OF_GROUPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "when": (("events", "{}", "--by", "particles", "--csv", "each.csv", "--parquet", "each.parquet", "--graph"),),
    "written": tuple(
        ("export", "{}", "--to", to, "--group", name, "-o", f"{name}.{to}")
        for name in GROUP_NAMES
        if name not in ("sweep", "soft_sweep", "self_sweep", "touches")  # which no kept file has
        for to in ("csv", "npz")
    ),
    "drawn": tuple(("plot", "{}", "--kind", kind, "-o", f"{kind}.svg") for kind in ("forces", "particles")),
}
"""Commands besides, of sets with groups beside the rigid contacts."""


def asked_groups() -> list[Group]:
    """A group for each kind of question, of sets without and with groups beside the rigid contacts."""
    found = []
    for version, more in (("1_1", {}), ("1_3", _ASKED_OF_GROUPS)):
        good = GOLDEN.with_name(f"contacts_{version}.h5").read_bytes()
        files = {"contacts.h5": good, "good.h5": good, "later.h5": changed(good, _later)}
        for name, made in _ASKED.items():
            commands = (("check", "{}"), *made, *more.get(name, ()))
            found.append(Group(f"asked of {version}, {name}", "contacts.h5", files, ("contacts.h5",), commands))
    return found


def _later(file: h5py.File) -> None:
    """The same contacts in frames of their own, so that both can be joined."""
    for name, more in (("/time/step", 1000), ("/time/time", 100.0)):
        file[name][:] = file[name][()] + more  # pyright: ignore[reportIndexIssue]


def damaged_set(seed: bytes, rng: random.Random) -> bytes:
    """Bytes that were damaged, which most often no library reads, or a whole file that holds what it should not."""
    kind = rng.random()
    if kind < 0.3:
        return damaged(seed, rng)
    with h5py.File(io.BytesIO(seed)) as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        attributes = sorted(file.attrs)
    if kind < 0.4:
        name, value = rng.choice(attributes), ATTRIBUTES[rng.choice(sorted(ATTRIBUTES))]
        return changed(seed, partial(set_attribute, name=name, value=value))
    change = DATASET_CHANGES[rng.choice(sorted(DATASET_CHANGES))]
    return changed(seed, lambda file: change(file, rng.choice(sorted(names))))
