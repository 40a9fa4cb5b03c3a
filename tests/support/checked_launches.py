"""Kernels on the CPU as a GPU executes them: threads in any order, one value per lane; and each
access recorded.

`install` must be called before Warp is initialized, in a process of its own with a kernel cache of
its own, since it changes the C++ that Warp writes for every kernel:

- The loop over a launch's threads visits them in an order that is chosen at run time (`set_order`).
- Clang's thread sanitizer inserts a call at each load and store. The calls keep, for every byte,
  the thread that last wrote it, the threads that read it in this launch, and a state. So they find
  two threads of one launch that use a byte, where one of them writes and the accesses are not both
  atomic; a read of what nobody wrote; and an access beside an array. Kernels have no barriers: for
  the given input these are all.
- The C++ for lanes is that of a GPU (SCALAR_LANES).

It uses private names of Warp, of the version that it is checked against (KNOWN_WARP).
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import warp as wp
from warp._src import codegen

KNOWN_WARP = "1.19."
CONTROL = 0x0F00_0000_0000
CONTROL_BYTES = 1 << 20
ACCESS = 0x1000_0000_0000
STATE = 0x2000_0000_0000
"""Addresses of the control block, of eight bytes of record for each byte of memory, and of one byte
each with its state. Memory is reserved, and exists where it is used."""
ADDRESS_BITS = 40
"""Of an address, the lowest bits number its records: two arrays 1 TiB apart would share them."""
MOST_THREADS = (1 << 20) - 3
MOST_RECORDS = 1000
(
    EPOCH,
    MODE,
    FACTOR,
    SHIFT,
    RECORDS,
    THREAD,
    ATOMIC,
    STACK,
    FOUND,
    LAUNCHES,
    THREADS,
    ACCESSES,
    NAME,
    LARGEST,
) = range(14)
FIRST_RECORD = 16
RECORD_NUMBERS = 5
ORDERS = {"ascending": 0, "descending": 1, "permuted": 2}
WRITE_WRITE, READ_WRITE, NO_VALUE, BEYOND = range(4)
KINDS = (
    "two threads write",
    "one thread reads and another writes",
    "a read of what was never written",
    "an access outside of an array",
)
HAS_VALUE, UNWRITTEN, OUTSIDE = range(3)
"""States of a byte."""

PREAMBLE = f"""
namespace collide_checks {{
typedef unsigned long U;
#define UNCHECKED __attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation))
static U* const control = (U*){CONTROL}ul;
static const U MANY = (1ul << 20) - 1;

UNCHECKED static void found(U kind, U address, U other) {{
    U n = control[{FOUND}]++;
    if (n >= {MOST_RECORDS}) return;
    U* record = control + {FIRST_RECORD} + {RECORD_NUMBERS} * n;
    record[0] = kind; record[1] = address; record[2] = control[{THREAD}]; record[3] = other;
    record[4] = control[{NAME}];
}}

UNCHECKED __attribute__((noinline)) static void access(U address, int size, bool writes) {{
    if (!control[{RECORDS}]) return;
    if (address >= (U)__builtin_frame_address(0) && address <= control[{STACK}]) return;  // the thread's own variables
    control[{ACCESSES}]++;
    const U me = control[{THREAD}] + 1, atomic = control[{ATOMIC}], epoch = control[{EPOCH}] & 0x3fffff;
    bool told = false;
    for (int k = 0; k < size; ++k) {{
        const U at = (address + k) & ((1ul << {ADDRESS_BITS}) - 1);
        unsigned char* state = (unsigned char*)({STATE}ul + at);
        U* record = (U*)({ACCESS}ul) + at;
        U old = *record;
        U writer = old & MANY, reader = (old >> 20) & MANY, was_atomic = (old >> 40) & 1;
        if ((old >> 42) != epoch) {{ writer = 0; reader = 0; was_atomic = 0; }}
        const bool both_atomic = atomic && was_atomic;
        if (!told && !both_atomic) {{
            if (writer && writer != me) {{
                found(writes ? {WRITE_WRITE} : {READ_WRITE}, address, writer - 1);
                told = true;
            }} else if (writes && reader && reader != me) {{
                found({READ_WRITE}, address, reader - 1);
                told = true;
            }}
        }}
        if (!told && *state == {OUTSIDE}) {{ found({BEYOND}, address, 0); told = true; }}
        if (!told && !writes && *state == {UNWRITTEN}) {{ found({NO_VALUE}, address, 0); told = true; }}
        if (writes && *state == {UNWRITTEN}) *state = {HAS_VALUE};
        if (writes) writer = me;
        else reader = reader && reader != me ? MANY : me;
        *record = epoch << 42 | atomic << 40 | reader << 20 | writer;
    }}
}}

UNCHECKED static U in_order(U step, U count) {{
    if (control[{MODE}] == 0) return step;
    if (control[{MODE}] == 1) return count - 1 - step;
    U factor = control[{FACTOR}] % count, a, b;
    do {{  // the next factor without a common divisor
        factor = factor + 1;
        for (a = factor, b = count; b;) {{ U rest = a % b; a = b; b = rest; }}
    }} while (a != 1);
    return (step * factor + control[{SHIFT}]) % count;
}}

struct Launch {{  // of `count` threads; another may execute within it
    U epoch, stack, thread, name;
    UNCHECKED Launch(const char* kernel, U count, void* frame)
        : epoch(control[{EPOCH}]), stack(control[{STACK}]), thread(control[{THREAD}]), name(control[{NAME}]) {{
        control[{EPOCH}] = ++control[{LAUNCHES}];
        control[{THREADS}] += count;
        if (count > control[{LARGEST}]) control[{LARGEST}] = count;
        control[{STACK}] = (U)frame;
        control[{NAME}] = (U)kernel;
    }}
    UNCHECKED U next(U step, U count) {{ return control[{THREAD}] = in_order(step, count); }}
    UNCHECKED ~Launch() {{
        control[{EPOCH}] = epoch; control[{STACK}] = stack; control[{THREAD}] = thread; control[{NAME}] = name;
    }}
}};

UNCHECKED static void hand_over(U address, U size) {{  // to one thread, which knows nothing of what others wrote there
    if (!control[{RECORDS}]) return;
    for (U k = 0; k < size; ++k) {{
        const U at = (address + k) & ((1ul << {ADDRESS_BITS}) - 1);
        *((unsigned char*)({STATE}ul + at)) = {UNWRITTEN};
        ((U*)({ACCESS}ul))[at] = 0;
    }}
}}

struct Atomically {{
    UNCHECKED Atomically() {{ control[{ATOMIC}]++; }}
    UNCHECKED ~Atomically() {{ control[{ATOMIC}]--; }}
}};
}}
namespace wp {{
template <typename... Arguments> inline auto atomic_add_checked(const Arguments&... arguments) {{
    collide_checks::Atomically mark;
    return atomic_add(arguments...);
}}
template <typename... Arguments> inline auto atomic_max_checked(const Arguments&... arguments) {{
    collide_checks::Atomically mark;
    return atomic_max(arguments...);
}}
template <typename... Arguments> inline auto atomic_or_checked(const Arguments&... arguments) {{
    collide_checks::Atomically mark;
    return atomic_or(arguments...);
}}
}}
#define atomic_add atomic_add_checked
#define atomic_max atomic_max_checked
#define atomic_or atomic_or_checked
"""

SLOTS = """
UNCHECKED unsigned long __tsan_atomic64_compare_exchange_val(
    volatile unsigned long* slot, unsigned long expected, unsigned long value, int, int) {
    const unsigned long old = *slot;
    if (old == expected) {
        *slot = value;
        collide_checks::hand_over((unsigned long)(slot + 1), SLOT_BYTES);
    }
    return old;
}
UNCHECKED void __tsan_atomic64_store(volatile unsigned long* slot, unsigned long value, int) { *slot = value; }
"""
"""The only atomic operations that are not Warp's: slots of memory that one thread after the other
holds (convex.scratch_pool)."""

CALLS = """
UNCHECKED void __tsan_init() {}
UNCHECKED void __tsan_func_entry(void*) {}
UNCHECKED void __tsan_func_exit() {}
UNCHECKED void* __tsan_memcpy(void* to, const void* from, unsigned long size) {
    collide_checks::access((unsigned long)from, (int)size, false);
    collide_checks::access((unsigned long)to, (int)size, true);
    for (unsigned long k = 0; k < size; ++k) ((volatile char*)to)[k] = ((const char*)from)[k];
    return to;
}
UNCHECKED void* __tsan_memmove(void* to, const void* from, unsigned long size) {
    const bool down = to < from;
    collide_checks::access((unsigned long)from, (int)size, false);
    collide_checks::access((unsigned long)to, (int)size, true);
    for (unsigned long k = 0; k < size; ++k) {
        const unsigned long at = down ? k : size - 1 - k;
        ((volatile char*)to)[at] = ((const volatile char*)from)[at];
    }
    return to;
}
UNCHECKED void* __tsan_memset(void* to, int value, unsigned long size) {
    collide_checks::access((unsigned long)to, (int)size, true);
    for (unsigned long k = 0; k < size; ++k) ((volatile char*)to)[k] = (char)value;
    return to;
}
""" + "".join(
    f"UNCHECKED void __tsan_{form}{verb}{size}(void* a) "
    f"{{ collide_checks::access((unsigned long)a, {size}, {writes}); }}\n"
    for form in ("", "unaligned_")
    for verb, writes in (("read", "false"), ("write", "true"))
    for size in (1, 2, 4, 8, 16)
    if size > 1 or not form
)

LOOP = """    for (size_t task_index = 0; task_index < dim->size; ++task_index)
    {{
        {name}_cpu_kernel_forward<wp_linear_contiguous>(*dim, task_index, _wp_args);
    }}
"""
CHECKED_LOOP = """    collide_checks::Launch launch("{name}", dim->size, __builtin_frame_address(0));
    for (size_t step = 0; step < dim->size; ++step)
    {{
        const size_t task_index = launch.next(step, dim->size);
        {name}_cpu_kernel_forward<wp_linear_contiguous>(*dim, task_index, _wp_args);
    }}
"""


def install() -> None:
    """Changes the C++ of kernels compiled from now on, and reserves the memory of the records."""
    if not wp.config.version.startswith(KNOWN_WARP):
        raise RuntimeError(
            f"these checks were written for Warp {KNOWN_WARP}, this is {wp.config.version}"
        )
    if LOOP not in codegen.cpu_module_template_forward:
        raise RuntimeError("Warp's loop over the threads of a launch has another form")
    if "collidecli.engine.runtime.kernel" in sys.modules:
        raise RuntimeError("kernels declared before now would not record their accesses")
    from collidecli.engine.narrowphase.convex.slot_pool import SLOT_BYTES

    added = PREAMBLE + 'extern "C" {' + CALLS + SLOTS.replace("SLOT_BYTES", str(SLOT_BYTES)) + "}\n"
    codegen.cpu_module_header += added.replace("{", "{{").replace("}", "}}")
    codegen.cpu_module_template_forward = codegen.cpu_module_template_forward.replace(
        LOOP, CHECKED_LOOP
    )
    # Without vectorization: of a vector of 32 bytes the sanitizer reports no access.
    wp.config.cpu_compiler_flags = "-fsanitize=thread -DSCALAR_LANES"
    wp.config.optimization_level = 1
    for address, size in (
        (CONTROL, CONTROL_BYTES),
        (ACCESS, 8 << ADDRESS_BITS),
        (STATE, 1 << ADDRESS_BITS),
    ):
        reserve(address, size)


def reserve(address: int, size: int) -> None:
    """Reserves memory at an address of this process; it exists where it is used. Raises OSError if
    something else is there."""
    private = 0x02
    anonymous = 0x20
    no_reserve = 0x4000
    exactly_there = 0x100000
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    found = libc.mmap(address, size, 3, private | anonymous | no_reserve | exactly_there, -1, 0)
    if found != address:
        raise OSError(ctypes.get_errno(), f"cannot reserve {size} bytes at {address:#x}")


def control() -> np.ndarray:
    """The control block, uint64."""
    return np.ctypeslib.as_array((ctypes.c_uint64 * (CONTROL_BYTES // 8)).from_address(CONTROL))


def set_order(name: str, seed: int = 0) -> None:
    """The order of the threads of later launches: a name of ORDERS; of "permuted" each seed gives
    another one."""
    factor, shift = np.random.default_rng(seed).integers(1, 1 << 30, 2)
    control()[[MODE, FACTOR, SHIFT]] = ORDERS[name], factor, shift


def set_state(pointer: int, size: int, state: int) -> None:
    """Sets the state of bytes of memory: HAS_VALUE, UNWRITTEN or OUTSIDE."""
    ctypes.memset(STATE + (pointer & ((1 << ADDRESS_BITS) - 1)), state, size)


@dataclass(frozen=True)
class Finding:
    """An access that is not allowed, of a thread of a kernel; other: the thread of the earlier
    access."""

    kind: str
    kernel: str
    address: int
    thread: int
    other: int


@contextmanager
def recording() -> Iterator[list[Finding]]:
    """Records accesses; the list has the first findings of each kernel when the context ends."""
    block = control()
    findings: list[Finding] = []
    block[[RECORDS, FOUND]] = 1, 0
    try:
        yield findings
    finally:
        block[RECORDS] = 0
        if block[LARGEST] > MOST_THREADS:
            raise RuntimeError(
                f"a launch of {block[LARGEST]} threads; records tell {MOST_THREADS} apart"
            )
        count = min(int(block[FOUND]), MOST_RECORDS)
        rows = (
            block[FIRST_RECORD : FIRST_RECORD + RECORD_NUMBERS * count]
            .reshape(count, RECORD_NUMBERS)
            .tolist()
        )
        for kind, address, thread, other, name in rows:
            kernel = ctypes.string_at(name).decode()
            findings.append(Finding(KINDS[kind], kernel, address, thread, other))
