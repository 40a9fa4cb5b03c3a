"""Memory for searches that few threads of a GPU need: a pool of slots in device memory, in place of local arrays.

A GPU's driver reserves the local arrays of a kernel for every thread that can be resident, whether it uses them or not.
Here a thread takes one of SLOT_COUNT slots for as long as it needs one:

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

A thread that finds no free slot tries again in the next iteration. This cannot deadlock: a thread waits only in
`all_done`, for threads of its own warp, and no thread holds a slot there; a thread that holds a slot waits for nothing.
`all_done` must remain: without it the compiler may execute the search after the loop, which the threads of a warp leave
together, so that those with a slot would wait for those without.

Which slot a thread gets has no influence on its results: it reads nothing from the slot that it has not written. On the
CPU, whose threads have stacks of their own, `has_slots` returns 0, and the compiler leaves out what it guards.
"""

import warp as wp

SLOT_COUNT = 128
"""Threads of a kernel that can use a slot at a time; each kernel has a pool of its own."""

SLOT_BYTES = 60 * 1024
"""Of one slot, at least the arrays of EPA's second attempt (see epa.py); the pool takes 7.5 MiB a kernel."""

SLOTS_EXIST = "defined(__CUDA_ARCH__) || defined(POOLED_SCRATCH)"
"""C++ condition; tests define POOLED_SCRATCH to compile the pool for the CPU."""


@wp.func_native(f"""
#if {SLOTS_EXIST}
    return 1;
#else
    return 0;
#endif
""")
def has_slots() -> int:
    """1 if arrays of rare searches belong into slots, 0 if into local memory; constant for a device."""
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
    """1 if `is_done` is 1 in all threads of `lanes`, each of which must call this equally often; waits for them."""
    ...


@wp.func_native(f"""
#if {SLOTS_EXIST}
#if defined(__CUDA_ARCH__)
    static __device__ unsigned long long slots[{SLOT_COUNT}][{1 + SLOT_BYTES // 8}];
    const unsigned int first = blockIdx.x * blockDim.x + threadIdx.x;
#else
    static unsigned long long slots[{SLOT_COUNT}][{1 + SLOT_BYTES // 8}];
    const unsigned int first = 0;
#endif
    // The first word of a slot is 1 while a thread holds it.
    for (unsigned int k = 0; k < {SLOT_COUNT}; ++k) {{
        unsigned long long* slot = slots[(first + k) % {SLOT_COUNT}];
#if defined(__CUDA_ARCH__)
        if (atomicCAS(slot, 0ull, 1ull) == 0ull) {{
            __threadfence();
            return (wp::uint64)(slot + 1);
        }}
    }}
    __nanosleep(500);
#else
        if (__sync_bool_compare_and_swap(slot, 0ull, 1ull))
            return (wp::uint64)(slot + 1);
    }}
#endif
#endif
    return 0;
""")
def take_slot() -> wp.uint64:
    """Address of SLOT_BYTES bytes, not set, that no other thread uses until `give_back_slot`; 0 if no slot is free."""
    ...


@wp.func_native(f"""
#if {SLOTS_EXIST}
    unsigned long long* slot = (unsigned long long*)address - 1;
#if defined(__CUDA_ARCH__)
    __threadfence();
    atomicExch(slot, 0ull);
#else
    __sync_lock_release(slot);
#endif
#endif
""")
def give_back_slot(address: wp.uint64):
    """Makes a slot of `take_slot` free for other threads."""
    ...
