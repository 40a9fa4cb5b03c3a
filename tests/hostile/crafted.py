"""Inputs made on purpose: each a thing that somebody would try, or that a broken program writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.hostile import crafted_arrays, crafted_hdf5, crafted_mjcf, crafted_usd
from tests.hostile.seeds import Group


@dataclass(frozen=True)
class Crafted:
    name: str
    main: str
    files: dict[str, bytes | Callable[[], bytes]]
    commands: tuple[tuple[str, ...], ...]
    may_open: tuple[str, ...] = ()


_made: dict[str, list[Crafted]] = {}


def crafted(groups: list[Group], outside: str) -> list[Crafted]:
    """All of them, always in the same order. outside: a folder with `secret.*` that only some of them name."""
    if outside not in _made:
        by_name = {group.name: group for group in groups}
        _made[outside] = [*_hdf5(by_name, outside), *_arrays(by_name), *_scenes(by_name, outside)]
    return _made[outside]


def _hdf5(groups: dict[str, Group], outside: str) -> Iterator[Crafted]:
    for name in ("body_q", "joint_q", "robosuite", "states", "isaac", "contacts", "particle_q"):
        group = groups[name]
        for what, data in crafted_hdf5.variants(group.files[group.main], outside):
            yield Crafted(f"{name}: {what}", group.main, {**group.files, group.main: data}, group.commands)


def _arrays(groups: dict[str, Group]) -> Iterator[Crafted]:
    for name in ("states_npy", "states_npz"):
        group = groups[name]
        make = crafted_arrays.npy_files if name == "states_npy" else crafted_arrays.npz_files
        for what, data in make():
            yield Crafted(f"{name}: {what}", group.main, {**group.files, group.main: data}, group.commands)


def _scenes(groups: dict[str, Group], outside: str) -> Iterator[Crafted]:
    for name, module in (("usda", crafted_usd), ("mjcf", crafted_mjcf)):
        group = groups[name]
        for what, files, may_open in module.scenes(outside):
            yield Crafted(f"{name}: {what}", group.main, {**group.files, **files}, group.commands, may_open)
    group = groups["usdz"]
    for what, data in crafted_usd.packages(group.files[group.main], outside):
        yield Crafted(f"usdz: {what}", group.main, {group.main: data}, group.commands)
