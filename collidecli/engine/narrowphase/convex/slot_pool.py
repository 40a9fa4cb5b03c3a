"""Memory for searches with large arrays: a pool of slots in place of local arrays.

A GPU's driver reserves the local arrays of a kernel for every thread that can be resident, whether
it uses them or not. On the CPU Warp clears a local array twice, which took longer than most
searches. Here a thread takes one of the slots for as long as it needs one:

    lanes = active_lanes()
    is_done = int(0)
    while all_done(lanes, is_done) == 0:
        slot = wp.uint64(0)
        if is_done == 0:
            slot = take_slot()
        if slot != wp.uint64(0):
            ...
            give_back_slot(slot)
            is_done = 1

A thread that finds no free slot tries again in the next iteration. This cannot deadlock: a thread
waits only in `all_done`, for threads of its own warp, and no thread holds a slot there; a thread
that holds a slot waits for nothing. `all_done` must remain: without it the compiler may execute the
search after the loop, which the threads of a warp leave together, so that those with a slot would
wait for those without.

Which slot a thread gets has no influence on its results: it reads nothing from the slot that it has
not written.
"""

import warp as wp

from collidecli.engine.runtime.native_code import native

GPU_SLOT_COUNT = 128
"""Threads of a kernel that can use a slot at a time on a GPU; each kernel has a pool of its own."""

CPU_SLOT_COUNT = 32
"""Threads of a kernel that can use a slot at a time on the CPU. More wait, and few are in a search
at a time. The pool is cleared at load, and takes its memory then."""

SLOT_BYTES = 60 * 1024
"""Of one slot, at least the arrays of EPA with its large capacity (see epa.py)."""


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return 1;
#else
    return 0;
#endif
""")
def is_on_gpu() -> int:
    """1 on a GPU, 0 on the CPU; a constant, so that the compiler leaves out the code for the
    other."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __activemask();
#else
    return 1;
#endif
""")
def active_lanes() -> wp.uint32:
    """Bits of the threads of this warp that execute this call together."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __all_sync(lanes, is_done);
#else
    return is_done;
#endif
""")
def all_done(lanes: wp.uint32, is_done: int) -> int:
    """1 if `is_done` is 1 in all threads of `lanes`, each of which must call this equally often;
    waits for them."""
    ...


@wp.func_native(
    native(
        __file__,
        "take_slot",
        GPU_SLOT_COUNT=GPU_SLOT_COUNT,
        SLOT_BYTES=SLOT_BYTES,
        CPU_SLOT_COUNT=CPU_SLOT_COUNT,
    )
)
def take_slot() -> wp.uint64:
    """Address of SLOT_BYTES bytes, not set, that no other thread uses until `give_back_slot`; 0 if
    no slot is free."""
    ...


@wp.func_native(native(__file__, "give_back_slot"))
def give_back_slot(address: wp.uint64):
    """Makes a slot of `take_slot` free for other threads."""
    ...
