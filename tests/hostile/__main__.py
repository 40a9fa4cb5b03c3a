"""python -m tests.hostile [COUNT [FIRST]]: all hostile inputs, or COUNT of them from number FIRST
on."""

import random
import sys
import time

from tests.hostile.cases import WHOLE
from tests.hostile.driver import Result, guard_faults, run_cases


def main() -> int:
    numbers = [int(word) for word in sys.argv[1:]]
    first = numbers[1] if len(numbers) > 1 else 0
    order = list(range(first, first + (numbers[0] if numbers else WHOLE)))
    random.Random(0).shuffle(order)  # something of every kind from the start
    start = time.monotonic()
    told = 0

    def show(done: int, of: int, result: Result) -> None:
        nonlocal told
        for text in result.found[told:]:
            print(text, flush=True)
        told = len(result.found)
        print(
            f"{done}/{of}, {told} faults, {len(result.crashed)} crashes",
            file=sys.stderr,
            flush=True,
        )

    result = run_cases(order, show)
    for text in guard_faults(result.crashed):
        result.found.append(text)
        print(text)
    codes = ", ".join(f"{code}: {times}" for code, times in sorted(result.codes.items()))
    print(
        f"{result.cases} inputs in {time.monotonic() - start:.0f} s; answers by exit code {codes}"
    )
    print(f"slowest {result.slowest[0]:.2f} s, {result.slowest[1]}")
    print(f"largest {result.largest[0] / 2**20:.0f} MiB, {result.largest[1]}")
    print("crashes of libraries:", "; ".join(result.crashed_names) or "none")
    print(f"libraries crashed on {len(result.crashed)} inputs; faults: {len(result.found)}")
    return 1 if result.found else 0


if __name__ == "__main__":
    sys.exit(main())
