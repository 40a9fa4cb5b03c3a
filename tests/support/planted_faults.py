"""python -m tests.support.planted_faults: faults that only a GPU shows, planted in turn in a pipeline under the checks.

Each is right on the CPU, where threads run one after the other in ascending order. Prints, as JSON, what the checks of
`device_checks` find of each: kinds of accesses, and the number of different answers over the orders of threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import warp as wp

from tests.support import checked_launches as checks
from tests.support.device_checks import ORDERS, Scratch


def faulty_kernels() -> dict[str, tuple[str, str, Any]]:
    """Module and name of the kernel that each fault replaces, and the faulty one. To be called after `install`."""
    from collidecli.engine.broadphase.hit_words import HitWords
    from collidecli.engine.runtime.kernel import kernel

    @kernel
    def every_candidate_writes(
        width: int,
        cell_count: int,
        candidate_count: int,
        candidates: wp.array[wp.vec2i],
        end: wp.array[wp.int32],
        cell_end: wp.array[wp.int32],
    ):
        """Not the last candidate of a cell alone."""
        thread = wp.tid()
        for c in range(candidates[thread][0] // width, cell_count):
            cell_end[c] = end[thread]

    @kernel
    def reads_before_it_writes(
        width: int,
        cell_count: int,
        candidate_count: int,
        candidates: wp.array[wp.vec2i],
        end: wp.array[wp.int32],
        cell_end: wp.array[wp.int32],
    ):
        """The previous chunk's ends, which the result does not depend on."""
        thread = wp.tid()
        if thread == candidate_count - 1:
            for c in range(cell_count):
                cell_end[c] = wp.min(cell_end[c], 0)
        if thread == candidate_count - 1:
            for k in range(candidate_count):
                cell_end[candidates[k][0] // width] = end[k]
            for c in range(1, cell_count):
                cell_end[c] = wp.max(cell_end[c - 1], cell_end[c])

    @kernel
    def writes_one_too_many(
        width: int,
        cell_count: int,
        candidate_count: int,
        candidates: wp.array[wp.vec2i],
        end: wp.array[wp.int32],
        cell_end: wp.array[wp.int32],
    ):
        """The end of a cell behind the last one."""
        thread = wp.tid()
        if thread == candidate_count - 1:
            for c in range(cell_count + 1):
                cell_end[c] = 0
            for k in range(candidate_count):
                cell_end[candidates[k][0] // width] = end[k]
            for c in range(1, cell_count):
                cell_end[c] = wp.max(cell_end[c - 1], cell_end[c])

    @kernel
    def writes_where_there_is_space(width: int, words_per_slot: int, hits: HitWords, candidates: wp.array[wp.vec2i]):
        """Slots of the list of candidates are taken by an atomic counter, from the last one on."""
        thread = wp.tid()
        word = hits.word[thread]
        instance0 = thread // words_per_slot
        instance1 = (instance0 // width) * width + (thread - instance0 * words_per_slot) * 32
        total = hits.end.shape[0] - 1
        while word != wp.uint32(0):
            if (word & wp.uint32(1)) != wp.uint32(0):
                candidates[wp.atomic_add(hits.end, total, -1) - 1] = wp.vec2i(instance0, instance1)
            word = word >> wp.uint32(1)
            instance1 += 1

    cells = "collidecli.engine.contacts.compaction", "count_cells"
    return {
        "race": (*cells, every_candidate_writes),
        "uninitialized": (*cells, reads_before_it_writes),
        "beyond": (*cells, writes_one_too_many),
        "order": ("collidecli.engine.broadphase.all_pairs", "write_all", writes_where_there_is_space),
    }


@contextmanager
def replaced(module: str, name: str, faulty: Any) -> Iterator[None]:
    """The fault in place of the kernel."""
    import importlib

    place = importlib.import_module(module)
    sound = getattr(place, name)
    setattr(place, name, faulty)
    try:
        yield
    finally:
        setattr(place, name, sound)


def findings_of(run: Callable[[], str], scratch: Scratch) -> dict[str, Any]:
    """Kinds of findings, and the number of different answers, over all orders of threads."""
    kinds: set[str] = set()
    answers: dict[str, None] = {}
    for order, seed in ORDERS:
        checks.set_order(order, seed)
        with checks.recording() as found:
            answers[run()] = None
        kinds |= {each.kind for each in found}
        scratch.release()
    return {"kinds": sorted(kinds), "answers": len(answers), "first": next(iter(answers))}


def main() -> None:
    """Prints the findings of the sound pipeline and of each fault."""
    checks.install()
    from collidecli.engine.runtime import device_stream
    from collidecli.scene.run_options import ContactOptions
    from tests.support.device_scenes import answer, primitives, scene_pipeline

    device_stream.TREATED_AS_DEVICES.add("cpu")
    device_stream.keep_freed_memory = lambda device: None
    wp.config.log_level = wp.LOG_ERROR
    scratch = Scratch()
    scratch.install()
    scene = primitives(ContactOptions())
    pipeline = scene_pipeline(scene, "nxn")

    def run() -> str:
        return answer(pipeline, scene)[0]

    found = {"none": findings_of(run, scratch)}
    for fault, (module, name, faulty) in faulty_kernels().items():
        with replaced(module, name, faulty):
            found[fault] = findings_of(run, scratch)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
