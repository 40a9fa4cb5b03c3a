"""Values of pickles: those of Python's own unpickler, or a refusal; joblib's files."""

import bz2
import gzip
import io
import lzma
import pickle
import pickletools
import subprocess
import sys
import zipfile
import zlib
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from collidecli.errors import InputError
from collidecli.importers.recordings.content import open_content
from collidecli.importers.recordings.kinds import kind_of
from collidecli.importers.recordings.pickles import interpreter, named_values, torch_tensors
from collidecli.importers.recordings.pickles.constructors import StoredArray
from collidecli.importers.recordings.pickles.interpreter import read_value
from collidecli.importers.recordings.pickles.stream import PickleStream

FILES = Path(__file__).parent / "pickle_files"
"""Written by joblib 1.6.0 with NumPy 2.4.6, and by joblib 1.1.1 with NumPy 1.26.4, which has no
padding before the data of an array; the tensors by torch 2.13.0."""
OF_JOBLIB = ("joblib_1.6.0", "joblib_1.1.1", "zlib", "gzip", "bz2", "lzma", "xz")
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def value_of(data: bytes):
    return read_value(PickleStream(io.BytesIO(data)), "a.pkl")


def named(data: bytes):
    return named_values.named_values(io.BytesIO(data), "a.pkl", len(data))


def check_equal(value, truth):
    """The values are equal in type, shape and content; those of `OrderedDict` and `defaultdict` are
    dictionaries, those of frozen sets sets."""
    if isinstance(value, StoredArray):
        value = value.values
        if truth.dtype == object:
            check_equal(value, truth.item() if truth.ndim == 0 else list(truth))
            return
    if isinstance(truth, (np.ndarray, np.generic)):
        truth = np.asarray(truth)
        assert isinstance(value, np.ndarray)
        assert value.shape == truth.shape
        # NumPy converts arrays of protocols below 5, and scalars, to this machine's byte order.
        assert value.dtype.newbyteorder("=") == truth.dtype.newbyteorder("=")
        value = value.astype(truth.dtype)
        assert value.tobytes() == truth.tobytes()
        return
    if isinstance(truth, dict):
        assert type(value) is dict
        assert list(map(repr, value)) == list(map(repr, truth))
        for one, other in zip(value.values(), truth.values(), strict=True):
            check_equal(one, other)
    elif isinstance(truth, (list, tuple)):
        assert type(value) is type(truth)
        for one, other in zip(value, truth, strict=True):
            check_equal(one, other)
    elif isinstance(truth, (set, frozenset)):
        assert value == set(truth)
    elif isinstance(truth, (bytes, bytearray)):
        assert value == truth
    else:
        assert type(value) is type(truth)
        assert repr(value) == repr(truth)


TYPES = st.one_of(
    st_np.boolean_dtypes(),
    st_np.integer_dtypes(endianness="?"),
    st_np.unsigned_integer_dtypes(endianness="?"),
    st_np.floating_dtypes(endianness="?"),
    st_np.complex_number_dtypes(endianness="?"),
    st_np.datetime64_dtypes(endianness="?"),
    st_np.timedelta64_dtypes(endianness="?"),
    st_np.byte_string_dtypes(max_len=5),
    st_np.unicode_string_dtypes(max_len=5, endianness="?"),
)
ARRAYS = st_np.arrays(
    TYPES, st_np.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), fill=st.nothing()
)
ORDERS = st.sampled_from(
    (lambda x: x, np.asfortranarray, lambda x: x[::-1] if x.ndim else x, lambda x: x.T)
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
    st.binary().map(bytearray),
    st_np.arrays(st_np.scalar_dtypes(), (1,)).map(lambda array: array[0]),
)
KEYS = st.one_of(st.text(), st.integers(), st.tuples(st.integers(), st.text()))
VALUES = st.recursive(
    st.one_of(SCALARS, st.builds(lambda order, array: order(array), ORDERS, ARRAYS)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4).map(OrderedDict),
        st.dictionaries(KEYS, inner, max_size=4).map(lambda items: defaultdict(list, items)),
        st.sets(KEYS, max_size=4),
        st.frozensets(KEYS, max_size=4),
        inner.map(lambda value: [value, value]),
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.sampled_from(PROTOCOLS), st.booleans())
def test_values_are_those_of_python(value, protocol, optimized):
    data = pickle.dumps(value, protocol)
    data = pickletools.optimize(data) if optimized else data
    check_equal(value_of(data), pickle.loads(data))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_all_axes_and_byte_orders(protocol):
    """Every order of three axes, which protocol 5 writes in a form of its own, and both byte
    orders."""
    base = np.arange(24, dtype=">f4").reshape(2, 3, 4)
    arrays = [base.transpose(axes) for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1))]
    arrays += [array.astype("<i2") for array in arrays]
    data = pickle.dumps(arrays, protocol)
    for one, other in zip(value_of(data), arrays, strict=True):
        check_equal(one, other)


def test_names_of_numpy_1_and_of_python_2():
    array = np.arange(6, dtype="<f8").reshape(2, 3)
    data = pickle.dumps(array, 2)
    assert b"numpy._core" in data
    check_equal(value_of(data.replace(b"numpy._core", b"numpy.core")), array)
    # Python 2 writes bytes as strings of no encoding.
    text = lambda data: b"U" + bytes([len(data)]) + data  # noqa: E731
    python_2 = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
        + text(b"b")
        + b"\x87R(K\x01K\x02K\x03\x86cnumpy\ndtype\n"
        + text(b"f8")
        + b"K\x00K\x01\x87R(K\x03"
        + text(b"<")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + text(array.tobytes())
        + b"tb."
    )
    check_equal(value_of(python_2), pickle.loads(python_2, encoding="latin1"))
    check_equal(value_of(python_2), array)


@pytest.mark.parametrize("name", OF_JOBLIB)
def test_files_of_joblib(name):
    """Values as `pickle_files` were made of: arrays in both orders, whose data follow the opcodes."""
    content = open_content(FILES / f"{name}.pkl")
    frames = np.arange(5)[:, None]
    for motion in ("0-walk", "1-run"):
        values = {
            key.rpartition("/")[2]: array
            for key, array in content.values.items()
            if key.startswith(f"{motion}/")
        }
        assert values["root_trans_offset"].dtype == np.float32
        offset = np.arange(3)[None] * 0.1 + frames * 0.01
        np.testing.assert_allclose(values["root_trans_offset"], offset, atol=1e-7)
        np.testing.assert_array_equal(values["dof"], np.array([[0.1, 0.2]]) + frames * 0.05)
        assert values["dof"].flags.f_contiguous
        np.testing.assert_array_equal(values["root_rot"], np.tile([0.0, 0.0, 0.6, 0.8], (5, 1)))
        assert values["fps"] == 30
        assert values["pose_aa"].shape == (5, 3, 3)


def test_names_lead_to_arrays():
    value = {
        "a": {"b": np.ones((2, 3)), 7: [np.zeros(2), np.zeros(2)]},
        "rows": [[1, 2.5], [3, 4]],
        "names": ["hip", "knee"],
        "parts": [{"x": 1.0}, {"x": 2.0}],
        "uneven": [np.zeros(2), np.zeros(3)],
        "text": "xyzw",
        "none": None,
        "raw": b"12",
        "large": 1 << 70,
    }
    found = named(pickle.dumps(value))
    shapes = {name: (array.dtype.str, array.shape) for name, array in found.arrays.items()}
    assert shapes == {
        "a/b": ("<f8", (2, 3)),
        "a/7": ("<f8", (2, 2)),
        "rows": ("<f8", (2, 2)),
        "names": ("<U4", (2,)),
        "parts/0/x": ("<f8", ()),
        "parts/1/x": ("<f8", ()),
        "uneven/0": ("<f8", (2,)),
        "uneven/1": ("<f8", (3,)),
        "text": ("<U4", ()),
    }
    np.testing.assert_array_equal(found.arrays["rows"], value["rows"])
    assert list(found.arrays["names"]) == value["names"]
    assert found.left_out == {"none": "None", "raw": "a bytes", "large": "a large number"}
    assert list(named(pickle.dumps(np.ones(3))).arrays) == [named_values.UNNAMED]


def itself(protocol=4):
    value: dict = {"a": np.zeros(2)}
    value["self"] = value
    return pickle.dumps(value, protocol)


def nested(depth: int) -> bytes:
    return b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b"."


def doubled(times: int, start: bytes = b"]") -> bytes:
    """Lists of twice the list before: of `times` opcodes, and exponentially many values."""
    return b"\x80\x04" + start + b"2\x86" * times + b"."


def array_with(shape: bytes = b"K\x02\x85", code: bytes = b"f8", data: bytes = bytes(16)) -> bytes:
    """An array of protocol 2 by hand. shape: opcodes of a tuple."""
    return (
        b"\x80\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01"
        + shape + b"cnumpy\ndtype\nX" + len(code).to_bytes(4, "little") + code
        + b"\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNNK\x00K\x00K\x00tb\x89C"
        + bytes([len(data)]) + data + b"tb."
    )  # fmt: skip


def array_of_class(name: str) -> bytes:
    return array_with().replace(b"cnumpy\nndarray", b"cnumpy\n" + name.encode())


def test_the_array_by_hand_is_one():
    check_equal(value_of(array_with()), pickle.loads(array_with()))


REFUSED = {
    "itself": (itself(), "contains itself"),
    "deep": (nested(100), "over 32 deep"),
    "doubled": (doubled(60), "deep"),
    "doubled, shallow": (doubled(30, b"](K\x01K\x01K\x01K\x01e"), "expands to|more than"),
    "two of one name": (pickle.dumps({"a": {"b": 1.0}, "a/b": 2.0}), "two values have this name"),
    "records": (pickle.dumps(np.zeros(2, [("x", "f8")])), "type 'V8'"),
    "subarrays": (pickle.dumps(np.dtype(("f8", (2,)))), "type 'V16'"),
    "raw bytes": (pickle.dumps(np.zeros(2, "V4")), "type 'V4'"),
    "objects in rows": (pickle.dumps(np.full((2, 2), None)), "one row of values"),
    "more shape than data": (array_with(b"K\x03\x85"), "24 bytes has 16 bytes of data"),
    "more data than shape": (array_with(b"K\x01\x85"), "8 bytes has 16 bytes of data"),
    "negative shape": (array_with(b"J\xff\xff\xff\xff\x85"), "the shape of an array is malformed"),
    "shape of text": (array_with(b"X\x01\x00\x00\x002\x85"), "the shape of an array is malformed"),
    "huge shape": (array_with(b"\x8a\x08" + b"\xff" * 7 + b"\x0f\x85"), "bytes of data"),
    "type of several": (array_with(code=b"f8,f8"), "'f8,f8'"),
    "type of a shape": (array_with(code=b"(1000,)f8"), "type"),
    "matrix": (array_of_class("matrix"), "numpy.matrix"),
    "masked": (pickle.dumps(np.ma.masked_array([1.0])), "numpy.ma"),
    "bytes after": (pickle.dumps(1) + b"x", "bytes after the end"),
    "truncated": (pickle.dumps(np.zeros(9))[:-30], "damaged"),
    "forged length": (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f" + b"x", "damaged"),
    "forged long": (b"\x80\x04\x8b\xff\xff\xff\x7fx", "damaged"),
    "negative length": (b"\x80\x04\x8b\xff\xff\xff\xffx", "damaged"),
    "key of a list": (b"\x80\x04}]Ns.", "a key is a list"),
    "key of tuples": (b"\x80\x04})" + b"\x85" * 3 + b"Ns.", "a key is a tuple"),
    "persistent id": (b"\x80\x04K\x01Q.", "BINPERSID"),
    "extension": (b"\x80\x04\x82\x01.", "EXT1"),
    "buffer outside": (b"\x80\x05\x97.", "NEXT_BUFFER"),
    "memo": (b"\x80\x04h\x05.", "damaged"),
    "empty stack": (b"\x80\x04a.", "damaged"),
    "no mark": (b"\x80\x04]e.", "damaged"),
    "left values": (b"\x80\x04]].", "values are left"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    data, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason):
        named(data)


def test_the_byte_is_told():
    data = b"\x80\x04]" + b"Na" * 10 + b"cposix\nsystem\n."
    with pytest.raises(
        InputError, match=r"a\.pkl, byte 23: it needs posix\.system, which would be"
    ):
        value_of(data)


def test_limits(monkeypatch):
    monkeypatch.setattr(interpreter, "MOST_OPCODES", 100)
    value_of(b"\x80\x04" + b"]0" * 48 + b"N.")
    with pytest.raises(InputError, match="more than 100 opcodes"):
        value_of(b"\x80\x04" + b"]0" * 50 + b"N.")
    monkeypatch.undo()
    monkeypatch.setattr(named_values, "MOST_VISITS", 100)
    named(pickle.dumps([1.0] * 60))
    with pytest.raises(InputError, match="more than 100 values"):
        named(pickle.dumps([1.0] * 110))
    monkeypatch.undo()
    monkeypatch.setattr(named_values, "MOST_NAMES", 10)
    named(pickle.dumps({str(key): 1.0 for key in range(10)}))
    with pytest.raises(InputError, match="more than 10 values"):
        named(pickle.dumps({str(key): 1.0 for key in range(11)}))


PACKERS = {"gzip": gzip.compress, "zlib": zlib.compress, "bz2": bz2.compress, "xz": lzma.compress}
PACKERS["lzma"] = lambda data: lzma.compress(data, lzma.FORMAT_ALONE)


@pytest.mark.parametrize("name", PACKERS)
def test_compressed(tmp_path, monkeypatch, name):
    """Damage, a truncated file and excessive expansion are refused."""
    values = np.random.default_rng(0).random((30_000, 9))
    data = PACKERS[name](pickle.dumps({"x": values}))
    path = tmp_path / "a.pkl"
    path.write_bytes(data)
    np.testing.assert_array_equal(open_content(path).values["x"], values)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"compressed data are damaged|end early"):
        open_content(path)
    changed = bytearray(data)
    changed[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path.write_bytes(changed)
    with pytest.raises(InputError, match="damaged"):
        open_content(path)
    from collidecli.storage import reading_limit

    monkeypatch.setattr(reading_limit, "EXPANDED_BYTES", 1 << 20)
    path.write_bytes(PACKERS[name](pickle.dumps({"x": np.zeros(4 << 20)})))
    with pytest.raises(InputError, match="expands to"):
        open_content(path)


def test_other_files_that_are_refused(tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(b"\x04\x22\x4d\x18" + bytes(100))
    with pytest.raises(InputError, match="compressed by lz4"):
        open_content(path)
    body = {"walk": {"pose_aa": np.zeros((3, 72)), "trans_orig": np.zeros((3, 3)), "fps": 30}}
    path.write_bytes(pickle.dumps(body))
    with pytest.raises(InputError, match="human body model"):
        open_content(path)
    amass = {"poses": np.zeros((3, 72)), "trans": np.zeros((3, 3)), "mocap_framerate": 30.0}
    path.write_bytes(pickle.dumps(amass))
    assert kind_of(path).NAME == "smpl-motion"


def test_objects_in_files_of_numpy(tmp_path):
    """What `numpy.save` makes of a dictionary."""
    value = {"walk": {"q": np.ones((2, 3))}, "note": "x"}
    np.save(tmp_path / "a.npy", value)  # type: ignore[arg-type]
    assert sorted(open_content(tmp_path / "a.npy").values) == ["note", "walk/q"]
    np.savez(tmp_path / "a.npz", motions=value, fps=30.0)  # type: ignore[arg-type]
    content = open_content(tmp_path / "a.npz")
    assert sorted(content.arrays) == ["fps", "motions/note", "motions/walk/q"]
    np.testing.assert_array_equal(content.array("motions/walk/q"), np.ones((2, 3)))
    assert content.array("fps") == 30.0
    np.save(tmp_path / "b.npy", np.array([print], object))
    with pytest.raises(InputError, match=r"builtins\.print"):
        open_content(tmp_path / "b.npy")


@pytest.mark.parametrize("name", ["torch_2.13.0.pt", "torch_tensors.pkl"])
def test_tensors_of_torch(name):
    """Views of storages of several types, in an archive of torch.save and in a plain pickle."""
    values = open_content(FILES / name).values
    numbers = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = {
        "dof_pos": numbers,
        "part": numbers[1:, 1:],
        "d": numbers.astype(np.float64),
        "fps": np.array(30),
        "ok": np.array([True, False]),
        "half": numbers.astype(np.float16),
        "list": np.array(["a"]),
        "param": numbers,
    }
    assert set(values) == set(expected)
    for key, truth in expected.items():
        assert values[key].dtype == truth.dtype, key
        np.testing.assert_array_equal(values[key], truth)


def view(storage: np.ndarray, offset=0, size=(2, 3), stride=(3, 1)):
    return torch_tensors._tensor(torch_tensors.Storage(storage), offset, size, stride, False, {})


def test_views_of_storages():
    storage = np.arange(12.0)
    np.testing.assert_array_equal(view(storage, 6), storage[6:].reshape(2, 3))
    np.testing.assert_array_equal(view(storage, 0, (3, 2), (1, 3)), storage[:6].reshape(2, 3).T)
    assert view(storage, 12, (0, 3)).shape == (0, 3)
    for offset, size, stride in (
        (7, (2, 3), (3, 1)),
        (0, (2, 3), (10, 1)),
        (0, (1 << 40,), (0,)),
        (-1, (1,), (1,)),
        (0, (2,), (-1,)),
        (0, (2, 2), (1,)),
        (0, (0, 1 << 60), (1, 1)),
    ):
        with pytest.raises(ValueError, match=r"tensor|shape"):
            view(storage, offset, size, stride)


def test_archives_that_are_refused(tmp_path):
    """A storage that is missing, short or outside, the form before archives."""
    source = zipfile.ZipFile(FILES / "torch_2.13.0.pt")
    members = {info.filename: source.read(info) for info in source.infolist()}
    path = tmp_path / "a.pt"

    def refused(changes: dict[str, bytes | None], reason: str) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in (members | changes).items():
                if data is not None:
                    archive.writestr(name, data)
        with pytest.raises(InputError, match=reason):
            open_content(path)

    start = "torch_2.13.0/"
    refused({f"{start}data/0": None}, r"data/0")
    refused({f"{start}data/0": bytes(47)}, "storage of 12 numbers has 47 bytes")
    refused({f"{start}byteorder": b"big"}, "another byte order")
    opcodes = members[f"{start}data.pkl"]
    refused({f"{start}data.pkl": opcodes.replace(b"FloatStorage", b"EvilyStorage")}, "EvilyStorage")
    refused(
        {f"{start}data.pkl": opcodes.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v9")}, "v9"
    )
    refused({f"{start}data.pkl": opcodes[:60]}, "damaged")
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + bytes(20))
    with pytest.raises(InputError, match=r"form of torch\.save before"):
        open_content(path)


def test_bytes_of_a_tensor_contain_no_tensor():
    """A storage in a storage would nest as deep as the file is long."""
    inner = b"\x80\x02ctorch.storage\n_load_from_bytes\n."
    data = b"\x80\x04ctorch.storage\n_load_from_bytes\nB"
    data += len(inner).to_bytes(4, "little") + inner + b"\x85R."
    with pytest.raises(InputError, match=r"it needs torch\.storage\._load_from_bytes"):
        named(data)


def test_other_recordings_import_no_reader_of_pickles() -> None:
    code = "import sys, collidecli.importers.recordings.kinds; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "collidecli.importers.recordings.array_files" in done.stdout
    assert "collidecli.importers.recordings.pickles" not in done.stdout
