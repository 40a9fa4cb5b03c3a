"""HDF5 files that lie about their sizes, lead elsewhere, or hold what no recording holds."""

import io
import math
from collections.abc import Callable, Iterator
from functools import partial

import h5py
import numpy as np

from tests.hostile.seeds import hdf5

HUGE = (10**10, 2**40, 2**62)
DEEP = 2000


def variants(seed: bytes, outside: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """What was done and the bytes, for every dataset of the seed and for the file as a whole."""
    with h5py.File(io.BytesIO(seed)) as file:
        names: list[str] = []
        file.visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
        )
        attributes = list(file.attrs)
    few = (
        names if len(names) < 8 else [name for name in names if name.rsplit("/", 1)[-1] in _TELLING]
    )
    for name in few:
        for what, change in {**DATASET_CHANGES, **leads_outside(outside)}.items():
            yield f"{name} {what}", partial(hdf5, partial(_call, change, name), seed)
    for name in attributes:
        for what, value in ATTRIBUTES.items():
            yield (
                f"attribute {name} {what}",
                partial(hdf5, partial(set_attribute, name=name, value=value), seed),
            )
    for what, change in FILE_CHANGES.items():
        yield what, partial(hdf5, change, seed)


def _call(change: Callable[[h5py.File, str], None], name: str, file: h5py.File) -> None:
    change(file, name)


_TELLING = ("path", "cell_start", "normal", "template")


def set_attribute(file: h5py.File, name: str, value: object) -> None:
    del file.attrs[name]
    if value is not None:
        file.attrs[name] = value


ATTRIBUTES = {
    "gone": None,
    "of bytes that are not UTF-8": np.bytes_(b"\xff\xfe\x80"),
    "a number": 7.5,
    "many numbers": np.zeros(1000),
    "a long string": "x" * 30_000,
    "empty": h5py.Empty("f8"),
    "with control characters": "\x1b[2J\x07\n\r",
}


def put(file: h5py.File, name: str, **how) -> None:
    """Another dataset in the place of `name`, with its attributes."""
    attributes = dict(file[name].attrs)
    del file[name]
    made = file.create_dataset(name, **how)
    for key, value in attributes.items():
        made.attrs[key] = value


def of_values(change: Callable[[np.ndarray], object]) -> Callable[[h5py.File, str], None]:
    """Values changed; those that NumPy cannot change so are left as they are."""

    def put_changed(file: h5py.File, name: str) -> None:
        try:
            values = np.asarray(change(file[name][()]))
            put(file, name, data=values)
        except (TypeError, ValueError, KeyError, IndexError):
            pass

    return put_changed


def filled(value: float) -> Callable[[h5py.File, str], None]:
    return of_values(
        lambda v: np.full_like(v, value if v.dtype.kind == "f" else np.array(value).astype(v.dtype))
    )


def declared(extent: int, axis: int = 0) -> Callable[[h5py.File, str], None]:
    """An extent is huge; nothing of it is stored."""

    def put_huge(file: h5py.File, name: str) -> None:
        kept = file[name]
        shape = [n or 1 for n in kept.shape] or [1]
        shape[axis] = extent
        put(
            file,
            name,
            shape=shape,
            dtype=kept.dtype,
            chunks=tuple(min(64, max(1, n)) for n in shape),
        )

    return put_huge


def one_vast_chunk(file: h5py.File, name: str) -> None:
    """Deflate makes a quarter of a gigabyte of zeros small; a chunk can only be unpacked whole."""
    kept = file[name]
    if kept.dtype.kind == "O" or not kept.shape:
        return
    axis = 1 if len(kept.shape) == 3 and kept.shape[0] == 1 else 0
    shape = [size or 1 for size in kept.shape]
    row = kept.dtype.itemsize * math.prod(shape) // shape[axis]
    shape[axis] = (1 << 28) // row
    values = np.zeros(shape, kept.dtype)
    put(file, name, data=values, chunks=values.shape, compression="gzip", compression_opts=1)


def unknown_filter(file: h5py.File, name: str) -> None:
    kept = file[name]
    if kept.shape and kept.dtype.kind != "O" and kept.size:
        # Shuffle is there, the filter of that number nowhere: optional, so that it can be created
        # at all.
        space = h5py.h5s.create_simple(kept.shape)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(kept.shape)
        plist.set_filter(305, h5py.h5z.FLAG_OPTIONAL, ())
        kind = kept.id.get_type().copy()
        del file[name]
        h5py.h5d.create(file.id, name.encode(), kind, space, plist)


def instead(value: object) -> Callable[[h5py.File, str], None]:
    """Something else in the dataset's place; nothing for None."""

    def put_instead(file: h5py.File, name: str) -> None:
        del file[name]
        if value is not None:
            file[name] = value(name) if callable(value) else value

    return put_instead


def group_instead(file: h5py.File, name: str) -> None:
    del file[name]
    file.create_group(name)


def of_dtype(dtype) -> Callable[[h5py.File, str], None]:
    def put_empty(file: h5py.File, name: str) -> None:
        put(file, name, shape=file[name].shape, dtype=dtype)

    return put_empty


DATASET_CHANGES: dict[str, Callable[[h5py.File, str], None]] = {
    **{f"of {extent:.0e} rows": declared(extent) for extent in HUGE},
    "of a huge last extent": declared(10**9, -1),
    "in one vast chunk": one_vast_chunk,
    "behind an unknown filter": unknown_filter,
    "is a group": group_instead,
    "is a type": instead(np.dtype("f8")),
    "is gone": instead(None),
    "is a link to itself": instead(lambda name: h5py.SoftLink(f"/{name}")),
    "is a link to nowhere": instead(h5py.SoftLink("/nowhere/at/all")),
    "is NaN": filled(float("nan")),
    "is infinite": filled(float("inf")),
    "is denormal": filled(5e-324),
    "is huge": filled(1e308),
    "is negative": filled(-1.0),
    "is zero": filled(0.0),
    "has one extent": of_values(lambda v: v.reshape(-1)),
    "has one extent more": of_values(lambda v: v[None]),
    "is turned about": of_values(lambda v: v.T),
    "is a number": of_values(lambda v: v.reshape(-1)[0]),
    "has one row less": of_values(lambda v: v[1:]),
    "has no row": of_values(lambda v: v[:0]),
    "runs back": of_values(lambda v: v[::-1]),
    "is big-endian": of_values(lambda v: v.astype(v.dtype.newbyteorder(">"))),
    "is float16": of_values(lambda v: v.astype(np.float16)),
    "is int8": of_values(lambda v: v.astype(np.int8)),
    "is longdouble": of_values(lambda v: v.astype(np.longdouble)),
    "is complex": of_values(lambda v: v.astype(np.complex128)),
    "is uint64": of_values(lambda v: v.astype(np.uint64)),
    "is text": of_values(lambda v: v.astype("S8")),
    "is variable text": of_dtype(h5py.string_dtype()),
    "is references": of_dtype(h5py.ref_dtype),
    "is ragged": of_dtype(h5py.vlen_dtype(np.float64)),
    "is opaque": of_dtype(np.dtype("V16")),
    "is compound": of_dtype(np.dtype([("x", "f8"), ("y", "i4")])),
    "is an enum": of_dtype(h5py.enum_dtype({"a": 0, "b": 1})),
    "is arrays": of_dtype(np.dtype(("f8", (3,)))),
    "is nothing": lambda file, name: put(file, name, data=h5py.Empty("f8")),
}


def leads_outside(folder: str) -> dict[str, Callable[[h5py.File, str], None]]:
    target = f"{folder}/secret.h5"

    def virtual(file: h5py.File, name: str) -> None:
        kept = file[name]
        layout = h5py.VirtualLayout(shape=kept.shape or (1,), dtype="f8")
        layout[...] = h5py.VirtualSource(target, "time", shape=kept.shape or (1,))
        del file[name]
        file.create_virtual_dataset(name, layout)

    def external_data(file: h5py.File, name: str) -> None:
        kept = file[name]
        if kept.dtype.kind != "O" and kept.shape:
            put(file, name, shape=kept.shape, dtype=kept.dtype, external=[(target, 0, kept.nbytes)])

    def link_through_group(file: h5py.File, name: str) -> None:
        del file[name]
        file["link"] = h5py.ExternalLink(target, "/")
        file[name] = h5py.SoftLink("/link/time")

    return {
        "links to another file": instead(h5py.ExternalLink(target, "/time")),
        "is a view of another file": virtual,
        "is stored in another file": external_data,
        "links to another file by way of a group": link_through_group,
    }


def deep_groups(file: h5py.File) -> None:
    group = file
    for _ in range(DEEP):
        group = group.create_group("g")


def ring(file: h5py.File) -> None:
    group = file.create_group("a/b/c")
    group["again"] = file["a"]
    group["root"] = file["/"]


def many_groups(file: h5py.File) -> None:
    for k in range(3000):
        file.create_group(f"many/g{k}")


def many_links(file: h5py.File) -> None:
    """Paths double with each level, objects do not."""
    group = file.create_group("start")
    for _ in range(40):
        below = group.create_group("x")
        group["y"] = below
        group = below


def strange_names(file: h5py.File) -> None:
    file.id.links.create_soft(b"\xff\xfe name", b"/\xff")
    file.create_group("\x1b[31m red\n")
    file.create_group("a" * 5000)


FILE_CHANGES: dict[str, Callable[[h5py.File], None]] = {
    "groups nested deep": deep_groups,
    "groups in a ring": ring,
    "many groups": many_groups,
    "many paths to few groups": many_links,
    "strange names": strange_names,
    "nothing in it": lambda file: [file.__delitem__(name) for name in list(file)] and None,
}
