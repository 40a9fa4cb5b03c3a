"""Files of other formats are refused by their name, and nothing in them runs."""

import gzip
import io
import json
import pickle
import zipfile
import zlib

import pytest

from collidecli.errors import InputError
from collidecli.importers.recordings.kinds import kind_of


class Trap:
    """An object whose unpickling fails the test."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def zipped(names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, pickle.dumps(Trap()))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1" + bytes(40), r"this is a Parquet file(.|\n)*to_csv"),
        *((zlib.compress(pickle.dumps(Trap()), level), "it needs _pytest") for level in (0, 2, 9)),
        (zlib.compress(b"time,elbow"), r"what it has is no pickle(.|\n)*decompress it"),
        (gzip.compress(pickle.dumps(Trap())), "it needs _pytest"),
        (gzip.compress(b"time,elbow"), r"compressed with gzip(.|\n)*gunzip"),
        (zipped(["m/data.pkl", "m/version", "m/data/0"]), "it needs _pytest"),
        (zipped(["xl/workbook.xml"]), r"Excel(.|\n)*as csv"),
        (zipped(["readme.txt", "b.bin"]), "not a recording of a known kind"),
        (b"MATLAB 5.0 MAT-file" + bytes(200), r"MAT file of MATLAB(.|\n)*scipy\.io\.loadmat"),
        (pickle.dumps(Trap()), r"it needs _pytest\.outcomes(.|\n)*numpy\.savez"),
        (b"0.1 0.2 0.3\n0.1 0.2 0.4\n", r"spaces between them(.|\n)*delimiter=','"),
        (b"0.5\n0.6\n", "or one column"),
        (b'{\n"Loop": "wrap",\n"Frames":\n[[0.03, 0, 0, 1]]}', "form of DeepMimic"),
        (
            b'{"LoopMode": "Wrap", "FrameDuration": 0.01667,\n\n"Frames": [\n[0.0]]}',
            r"form of DeepMimic(.|\n)*x y z w(.|\n)*numpy\.savez",
        ),
        (
            json.dumps({f"key {number}": number for number in range(60)}).encode(),
            "not a recording of a known kind: a JSON file",
        ),
        (
            json.dumps({f"key{number}": number for number in range(60)}).encode(),
            "not a recording of a known kind: a JSON file",
        ),
        (b'{"Loop": "a, b", "Rate" : 1 , "Frames": [[0]]}', "form of DeepMimic"),
        (b'{"Frames": 3}', "not a recording of a known kind: a JSON file"),
        (b"some 1 2\n3 4\n", "not a recording of a known kind: neither HDF5"),
        (b"\x00\x01\x02", "not a recording of a known kind: neither HDF5"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_foreign_file_is_named(tmp_path, content, message):
    path = tmp_path / "motion.pkl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        kind_of(path)
