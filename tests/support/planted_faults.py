"""python -m tests.support.planted_faults: faults that only a GPU shows, planted in turn in a
pipeline under the checks.

Each (`faulty_kernels`) is right on the CPU, where threads run one after the other. Prints, as JSON,
what the checks of `device_checks` find of each: kinds of accesses, and the number of different
answers over the orders of threads.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import warp as wp

from tests.support import checked_launches as checks
from tests.support.device_checks import ORDERS, Scratch


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
    from collidecli.scene.options import ContactOptions
    from tests.support.device_scenes import answer, closed_forms, scene_pipeline
    from tests.support.faulty_kernels import FAULTS

    device_stream.TREATED_AS_DEVICES.add("cpu")
    device_stream.keep_freed_memory = lambda device: None
    wp.config.log_level = wp.LOG_ERROR
    scratch = Scratch()
    scratch.install()
    scene = closed_forms(ContactOptions())
    pipeline = scene_pipeline(scene, "nxn")

    def run() -> str:
        return answer(pipeline, scene)[0]

    found = {"none": findings_of(run, scratch)}
    for fault, (module, name, faulty) in FAULTS.items():
        with replaced(module, name, faulty):
            found[fault] = findings_of(run, scratch)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
