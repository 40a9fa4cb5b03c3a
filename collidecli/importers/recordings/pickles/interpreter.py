"""Interpreter of the opcodes of a pickle, which builds plain values and calls nothing of the file.

`pickletools.genops` of the standard library decodes the opcodes and their arguments; it executes
none. Stack and memo are of this module. Names of objects stay texts, of which those of
`constructors.NAMES` are known; any other ends the reading.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from collidecli.errors import InputError
from collidecli.importers.recordings.pickles import constructors
from collidecli.importers.recordings.pickles.constructors import (
    CALLS,
    NAMES,
    RAW_ARRAY,
    Malformed,
    RawArray,
    StoredArray,
    StoredType,
    Symbol,
    canonical,
    checked_key,
)
from collidecli.importers.recordings.pickles.stream import PickleStream
from collidecli.importers.recordings.refused_motions import SAVE
from collidecli.storage.process_activity import structure_step

MOST_OPCODES = 4_000_000
"""A value takes some hundred bytes at most, and an opcode a microsecond."""
CONVERT = f"if you trust the file, load it in Python and save {SAVE}"
_DAMAGE = (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError)
"""What `pickletools` and an operation on values of another type than expected raise."""
_MARK = object()


@dataclass(frozen=True)
class Dialect:
    """What a file may have besides arrays and plain values. names: of objects. calls: functions by
    the names of callables. persistent: the value of a persistent identifier. follows: other bytes
    follow the pickle."""

    names: frozenset[str] = frozenset()
    calls: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    persistent: Callable[[Any], Any] | None = None
    follows: bool = False


PLAIN = Dialect()


def read_value(stream: PickleStream, where: str, dialect: Dialect = PLAIN) -> Any:
    """The value of a pickle: texts, numbers, None, lists, tuples, dictionaries, sets, `StoredArray`
    and NumPy's arrays.

    Raises InputError with the byte: damaged or truncated, a name that is not known, an object with
    a state, more opcodes than `MOST_OPCODES`, bytes after the end.
    """
    machine = _Machine(stream, dialect)
    name = "opcodes"
    position = stream.tell()
    try:
        for number, (opcode, argument, at) in enumerate(pickletools.genops(stream)):  # type: ignore[arg-type]
            name = opcode.name
            position = at if at is not None else position
            if number % 1024 == 0:
                structure_step()
            if number == MOST_OPCODES:
                raise Refused(f"it has more than {MOST_OPCODES} opcodes", "save it as npz or HDF5")
            machine.execute(name, argument)
    except Refused as error:
        raise InputError(str(error), f"{where}, byte {position}", error.fix) from None
    except _DAMAGE as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        what = f"the pickle is damaged, or has what is not read, at {name}: {reason}"
        raise InputError(
            what, f"{where}, byte {position}", "copy it again, or save it as npz"
        ) from (error)
    if not dialect.follows and stream.read(1):
        what = "there are bytes after the end of the pickle"
        fix = "save all in one call of dump"
        raise InputError(what, f"{where}, byte {stream.tell() - 1}", fix)
    return machine.result


class Refused(Exception):
    """A pickle that is whole and not read."""

    def __init__(self, what: str, fix: str = CONVERT) -> None:
        super().__init__(what)
        self.fix = fix


class _Machine:
    """Stack and memo."""

    def __init__(self, stream: PickleStream, dialect: Dialect) -> None:
        self.result: Any = None
        self._calls = {**CALLS, **dialect.calls}
        self._names = NAMES | dialect.names | dialect.calls.keys()
        self._persistent = dialect.persistent
        self._stream = stream
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def execute(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name]())
        elif name in _OPERATIONS:
            _OPERATIONS[name](self, argument)
        else:
            raise Refused(f"it has {name}, by which Python would look up or build an object")

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise Malformed("a mark in the place of a value")
        return value

    def _above_mark(self) -> list[Any]:
        """Removes and returns the values above the last mark."""
        values = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        values.reverse()
        return values

    def _top(self, kind: type) -> Any:
        top = self._stack[-1]
        if type(top) is not kind:
            raise Malformed(f"a {type(top).__name__} in the place of a {kind.__name__}")
        return top

    def get(self, number: int) -> None:
        self._stack.append(self._memo[number])

    def put(self, number: int) -> None:
        value = self._stack[-1]
        if value is _MARK:
            raise Malformed("a mark in the place of a value")
        self._memo[number] = value

    def memoize(self, _: None) -> None:
        self.put(len(self._memo))

    def mark(self, _: None) -> None:
        self._stack.append(_MARK)

    def pop(self, _: None) -> None:
        self._stack.pop()

    def pop_mark(self, _: None) -> None:
        self._above_mark()

    def duplicate(self, _: None) -> None:
        value = self._pop()
        self._stack += [value, value]

    def append(self, _: None) -> None:
        value = self._pop()
        self._top(list).append(value)

    def appends(self, _: None) -> None:
        values = self._above_mark()
        self._top(list).extend(values)

    def new_list(self, _: None) -> None:
        self._stack.append(self._above_mark())

    def new_tuple(self, _: None) -> None:
        self._stack.append(tuple(self._above_mark()))

    def tuple_of(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self._stack.append(tuple(values[::-1]))

    def set_items(self, _: None) -> None:
        self._set_items(self._above_mark())

    def set_item(self, _: None) -> None:
        value = self._pop()
        self._set_items([self._pop(), value])

    def _set_items(self, values: list[Any]) -> None:
        if len(values) % 2:
            raise Malformed("a key without a value")
        target = self._top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[checked_key(key)] = value

    def new_dict(self, _: None) -> None:
        values = self._above_mark()
        self._stack.append({})
        self._set_items(values)

    def add_items(self, _: None) -> None:
        values = self._above_mark()
        self._top(set).update(map(checked_key, values))

    def frozen(self, _: None) -> None:
        self._stack.append(set(map(checked_key, self._above_mark())))

    def named(self, text: str) -> None:
        """GLOBAL: module and name are in the opcode, joined by a space."""
        module, _, name = text.partition(" ")
        self._append_symbol(module, name)

    def stack_named(self, _: None) -> None:
        name = self._pop()
        module = self._pop()
        if type(name) is not str or type(module) is not str:
            raise Malformed("the name of an object is no text")
        self._append_symbol(module, name)

    def _append_symbol(self, module: str, name: str) -> None:
        known = canonical(module, name)
        if known not in self._names:
            shown = f"{module}.{name}"[:200]
            raise Refused(f"it needs {shown}, which would be loaded from Python and is not")
        self._stack.append(Symbol(known))

    def reduce(self, _: None) -> None:
        arguments = self._pop()
        symbol = self._pop()
        if (
            type(symbol) is not Symbol
            or symbol.name not in self._calls
            or type(arguments) is not tuple
        ):
            raise Refused("it calls what is no constructor of an array or a plain value")
        self._stack.append(self._calls[symbol.name](*arguments))

    def new_object(self, _: None) -> None:
        arguments = self._pop()
        symbol = self._pop()
        if type(symbol) is not Symbol or symbol.name != RAW_ARRAY or arguments != ():
            raise Refused("it builds an object that is not an array of joblib's")
        self._stack.append(RawArray())

    def build(self, _: None) -> None:
        state = self._pop()
        target = self._pop()
        if type(target) is StoredType:
            constructors.set_type_state(target, state)
        elif type(target) is StoredArray:
            constructors.set_array_state(target, state)
        elif type(target) is RawArray:
            target = self._raw_array(state)
        else:
            raise Refused(f"it sets the state of a {type(target).__name__}")
        self._stack.append(target)

    def persistent(self, _: None) -> None:
        if self._persistent is None:
            raise Refused("it has BINPERSID, by which Python would look up an object")
        self._stack.append(self._persistent(self._pop()))

    def _raw_array(self, state: Any) -> Any:
        """The array of joblib's wrapper: its data follow, after a byte with the number of bytes of
        padding in files of joblib 1.2 and later."""
        if type(state) is not dict:
            raise Malformed("the state of an array of joblib's is malformed")
        stored = state.get("dtype")
        if type(stored) is not StoredType or stored.dtype is None:
            raise Refused("it has an array of objects in joblib's layout")
        wanted = state.get("subclass")
        if type(wanted) is not Symbol or wanted.name not in constructors.ARRAY_CLASSES:
            raise Malformed("an array is of a class that is not read")
        if state.get("numpy_array_alignment_bytes") is not None:
            self._stream.read(int.from_bytes(self._stream.read(1), "little"))
        shape = constructors.checked_shape(state.get("shape"))
        size = stored.dtype.itemsize
        for extent in shape:
            size *= extent
        data = self._stream.read(size)
        return constructors.array_of(data, stored, shape, state.get("order"))

    def stop(self, _: None) -> None:
        self.result = self._pop()
        if self._stack:
            raise Malformed("values are left at the end")


_VALUES = frozenset(
    (
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "FLOAT",
        "BINFLOAT",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
        "BYTEARRAY8",
    )
)
"""Opcodes whose argument is the value."""
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}


def _nothing(machine: _Machine, argument: Any) -> None:
    """PROTO and FRAME, which tell how the opcodes are written."""


_OPERATIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _nothing,
    "FRAME": _nothing,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.memoize,
    "MARK": _Machine.mark,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "DUP": _Machine.duplicate,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "LIST": _Machine.new_list,
    "TUPLE": _Machine.new_tuple,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "DICT": _Machine.new_dict,
    "ADDITEMS": _Machine.add_items,
    "FROZENSET": _Machine.frozen,
    "GLOBAL": _Machine.named,
    "STACK_GLOBAL": _Machine.stack_named,
    "REDUCE": _Machine.reduce,
    "NEWOBJ": _Machine.new_object,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persistent,
    "STOP": _Machine.stop,
}
