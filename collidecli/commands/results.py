"""Results of verbs, their input files and outputs, and lists of them."""

from __future__ import annotations

import glob
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar

from collidecli.errors import InputError, OutputError
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.input_files import ENDINGS, HDF5, USD, bag_format
from collidecli.texts import count, printable

# Base class of the verbs' results, and conversion of values to the types of JSON.

PathLike = str | os.PathLike[str]
Progress = Callable[[int, int], None] | None
"""Called with the number of frames done and the number of all frames."""


@dataclass(frozen=True)
class Result:
    """A verb's result. Its fields, in their order, are the keys of the object that `--json` prints after `schema`.

    SCHEMA: name and version of that object. OPTIONAL: fields that the object lacks while they are None. A class states
    both as its parameters schema and optional.
    """

    SCHEMA: ClassVar[str] = ""
    OPTIONAL: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, schema: str = "", optional: tuple[str, ...] = (), **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.SCHEMA, cls.OPTIONAL = schema or cls.SCHEMA, optional or cls.OPTIONAL

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints, in the types of JSON; tables and pages are made from it."""
        values = {"schema": self.SCHEMA, **plain(self)}
        return {name: value for name, value in values.items() if value is not None or name not in self.OPTIONAL}


def plain(value: Any) -> Any:
    """A value in the types of JSON: dataclasses as dictionaries, non-finite numbers as "nan", "inf" or "-inf"."""
    import numpy as np  # not at the start: an output that exists is refused without it

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {member.name: plain(getattr(value, member.name)) for member in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def html_table(rows: Mapping[str, object]) -> str:
    """The table that a notebook shows: names and values, every text escaped."""
    from html import escape  # most runs need no page

    left = 'style="text-align: left"'  # notebooks align cells to the right
    lines = (
        f"<tr><th {left}>{escape(name)}</th><td {left}>"
        f"{escape(printable(count(value) if isinstance(value, int) else str(value)))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{''.join(lines)}</table>"


# Results of a verb that was called with several inputs.

DONE, FAILED, SKIPPED, ONLY_A, ONLY_B = "done", "failed", "skipped", "only_a", "only_b"


@dataclass(frozen=True, kw_only=True)
class ListedInput:
    """Outcome of one input. input: its path. state: DONE, FAILED, SKIPPED (its output exists), ONLY_A or ONLY_B.

    name: of the episodes of a batch that it has; "" without. output: path of its output, None if the verb has none.
    result: the object that the verb prints for this input alone, if it is done. error: what, where, fix, message and
    exit_code, as in collide.error/1, if it failed.
    """

    input: str
    state: str
    output: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    name: str = ""


STATES = {"run": (DONE, FAILED, SKIPPED), "report": (DONE, FAILED, SKIPPED), "diff": (DONE, FAILED, ONLY_A, ONLY_B)}
"""States of the inputs of a verb; of the others they are done and failed."""


@dataclass(frozen=True, kw_only=True)
class ResultList(Result):
    """Outcomes of all inputs of a verb, in the order of their paths: collide.<verb>_list/1, with the numbers of inputs
    by state.

    more: further entries of the object, by name; `written` of `events` are the paths of the tables of all intervals by
    format, of `label` the path of its table, or None.
    """

    verb: str
    items: Sequence[ListedInput]
    more: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        counted = Counter(item.state for item in self.items)
        counts = {state: counted[state] for state in STATES.get(self.verb, (DONE, FAILED))}
        items = plain(self.items)
        return {"schema": f"collide.{self.verb}_list/1", "counts": counts, "items": items, **plain(self.more)}

    @property
    def warnings(self) -> list[str]:
        """Every distinct warning of the inputs' results once, with the first input that has it."""
        inputs: dict[str, list[str]] = {}
        for item in self.items:
            for text in (item.result or {}).get("warnings") or ():
                inputs.setdefault(text, []).append(item.input)
        return [f"{of[0]}{f' and {len(of) - 1} more' if len(of) > 1 else ''}: {text}" for text, of in inputs.items()]


# Checks of output paths before a computation, and writing of small files.

PAGE_ENDINGS = (".html", ".htm")
HDF5_ENDINGS = ENDINGS[HDF5]


def check_ending(path: PathLike, endings: tuple[str, ...], what: str) -> None:
    """Raises InputError for the path of an output `what` (such as "a page") whose extension is not one of `endings`."""
    if os.path.splitext(path)[1].lower() not in endings:
        raise InputError(f"{what} has the extension {' or '.join(endings)}", os.fspath(path), "choose another name")


def write_output(path: PathLike, content: bytes, force: bool) -> None:
    """Writes a small file atomically. Raises OutputError; then no file is left."""
    with AtomicOutput(path, force) as output:
        output.write(content)
        output.commit()


def check_output(
    path: PathLike,
    force: bool,
    inputs: Iterable[PathLike | None],
    endings: tuple[str, ...] = (),
    what: str = "",
) -> None:
    """Raises OutputError if `path` cannot be written, exists without `force`, is one of the inputs, or is "-".

    endings, what: raises the error of `check_ending` too, for a file `what`, such as "a contact set".
    """
    if os.fspath(path) == "-":
        raise OutputError("outputs are not written to standard output", "-", "give a path; ./- is a file of that name")
    for source in inputs:
        if source is not None and os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise OutputError("the output is also an input", os.fspath(path), "choose another path")
    AtomicOutput(path, force).discard()
    if endings:
        check_ending(path, endings, what)


TRACE = (".json",), "a trace"
"""Extension of the file of --trace, and what it is, as of `check_output`."""


# Input files named by paths, patterns and folders, and the names of the outputs of several inputs.

RECORDING_ENDINGS = tuple(ending for storage, every in ENDINGS.items() if storage != USD for ending in every)
"""Extensions of the recordings of a folder. USD layers are named by a path or a pattern: a folder of them may contain
scenes too."""

DATA_SET = os.path.join("meta", "info.json")
"""The file in a folder by which it is one recording, a LeRobot data set."""

FILE_ENDINGS = (*HDF5_ENDINGS, *PAGE_ENDINGS)
"""Extensions of outputs, which the name of a folder of outputs does not have."""


@dataclass(frozen=True)
class InputFile:
    """An input. relative: its path below the folder, or below the fixed part of the pattern, that named it.

    of_folder: whether a folder named it. episodes: job, motion and demo of each episode of a batch that it is of.
    """

    path: str
    relative: str
    of_folder: bool = False
    episodes: Sequence[dict[str, str]] = ()

    @property
    def name(self) -> str:
        """The recording and the demonstration of the first episode, and the number of the others; "" without any."""
        if not self.episodes:
            return ""
        first, more = self.episodes[0], len(self.episodes) - 1
        file = os.path.basename(first["motion"].removesuffix(DATA_SET).rstrip("/"))
        shown = " ".join(filter(None, (file or first["job"], first["demo"])))
        return f"{shown} and {more} more" if more else shown


def is_pattern(word: str, folder: str = "") -> bool:
    """Whether a word is a pattern: it has one of *, ? and [, and is not the path of a file."""
    return glob.has_magic(word) and not os.path.lexists(os.path.join(folder, word))


def names_several(words: Sequence[str]) -> bool:
    """Whether words name a list of inputs: several words, a folder or a pattern, however many files it matches.

    The folder of a ROS bag is one input.
    """
    return len(words) > 1 or any((os.path.isdir(word) and not bag_format(word)) or is_pattern(word) for word in words)


def input_files(words: Sequence[str], endings: Sequence[str], where: str = "", folder: str = "") -> list[InputFile]:
    """The files that paths, patterns and folders name, each once, sorted by path.

    Args:
        words: a pattern matches files, and with ** those in folders of any depth; a folder stands for the files with
            one of `endings` in it, at any depth. Hidden files are only matched by a pattern that begins with a dot.
        where: the option or file that contains the words, for errors.
        folder: the words are relative to it; paths then begin with it.
    Raises InputError for a file that does not exist, a pattern without a match, a folder without such files.
    """
    files: dict[str, InputFile] = {}
    for word in words:
        for file in _files_of(word, endings, where, folder):
            files.setdefault(os.path.abspath(file.path), file)
    return [files[path] for path in sorted(files)]


def _files_of(word: str, endings: Sequence[str], where: str, folder: str) -> list[InputFile]:
    path = os.path.join(folder, word)
    if is_pattern(word, folder):
        matches = glob.glob(word, root_dir=folder or None, recursive=True)
        fixed = os.path.dirname(word)  # the folder before the first element with one of *, ? and [
        while glob.has_magic(fixed):
            fixed = os.path.dirname(fixed)
        fixed = os.path.join(folder, fixed)
        files = [os.path.join(folder, match) for match in matches]
        files = [InputFile(file, _below(file, fixed)) for file in files if os.path.isfile(file) or bag_format(file)]
        if not files:
            relative = f"patterns are relative to {folder}" if folder else "quote the pattern, and check its folder"
            raise InputError(f"'{word}' matches no file", where, relative)
        return files
    if os.path.isfile(os.path.join(path, DATA_SET)):
        return [InputFile(os.path.join(path, DATA_SET), os.path.basename(os.path.normpath(path)) + ".json")]
    if os.path.isdir(path) and not bag_format(path):
        names = glob.glob("**/*", root_dir=path, recursive=True)
        names = [name for name in names if os.path.splitext(name)[1].lower() in endings]
        bags = {folder for folder in map(os.path.dirname, names) if bag_format(os.path.join(path, folder))}
        names = [*bags, *(name for name in names if os.path.dirname(name) not in bags)]
        files = [InputFile(os.path.join(path, name), name, True) for name in names]
        files = [file for file in files if os.path.isfile(file.path) or bag_format(file.path)]
        if not files:
            raise InputError(f"the folder has no file with the extension {' or '.join(endings)}", word)
        return files
    if not os.path.exists(path):
        relative = f"paths are relative to {folder}" if folder else ""
        raise InputError(f"'{word}': there is no such file", where, relative)
    return [InputFile(path, os.path.basename(path))]


def _below(path: str, folder: str) -> str:
    """The path relative to a folder; the name alone of a file that is not below it."""
    relative = os.path.relpath(path, folder or ".")
    return os.path.basename(path) if relative.startswith(os.pardir) else relative


def sorted_by_kind(
    files: Iterable[InputFile], formats: Sequence[str], what: str
) -> tuple[list[InputFile], list[InputFile]]:
    """The files, and those of folders that are left out: files of collide of a format that is not one of `formats`.

    A file that cannot be read is not left out: the verb names its fault. what: a noun in the plural, for errors.
    Raises InputError if all files are left out.
    """
    from collidecli.storage.h5_files import format_of_path
    from collidecli.storage.process_activity import reading

    kept, left_out = [], []
    for file in files:
        file_format = ""
        if file.of_folder and os.path.splitext(file.path)[1].lower() in HDF5_ENDINGS:
            with reading("file", file.path):
                file_format = format_of_path(file.path)
        is_other = file_format.startswith("collide-") and file_format not in formats
        (left_out if is_other else kept).append(file)
    if not kept and left_out:
        raise InputError(f"none of the files of the folder are {what}", os.path.dirname(left_out[0].path))
    return kept, left_out


def relative_outputs(files: Sequence[InputFile], ending: str) -> list[str]:
    """Names of the outputs of inputs: their relative paths with another ending.

    If two are equal, all are relative to the folder that contains all inputs. Raises InputError if two still are.
    """
    names = [os.path.splitext(file.relative)[0] for file in files]
    if len(set(names)) < len(names):
        paths = [os.path.abspath(file.path) for file in files]
        common = os.path.commonpath([os.path.dirname(path) for path in paths])
        names = [os.path.splitext(os.path.relpath(path, common))[0] for path in paths]
    for name, number in Counter(names).items():
        if number > 1:
            first, second = [file.path for file, file_name in zip(files, names, strict=True) if file_name == name][:2]
            what = f"has the output {name}{ending}, and so has {first}"
            raise InputError(what, second, "call collide once for each of them, with two folders")
    return [name + ending for name in names]


def planned_outputs(
    folder: str, files: Sequence[InputFile], ending: str, force: bool, skip_existing: bool
) -> list[tuple[str, bool]]:
    """Path of the output of each input, in the folder, and whether it exists and is to be skipped.

    Raises OutputError for a folder that is a file or named as one, an output that exists unless it may be replaced
    (force) or skipped, and an output that is also an input. Raises InputError for both force and skip_existing.
    """
    if force and skip_existing:
        raise InputError("--force and --skip-existing exclude each other", fix="remove one of them")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise OutputError("several inputs need a folder for their outputs, and this is a file", folder, "give another")
    stem, extension = os.path.splitext(folder)
    if extension.lower() in FILE_ENDINGS and not os.path.isdir(folder):
        fix = f"give a folder, such as {stem}/"
        raise OutputError("several inputs need a folder for their outputs, and this is the name of a file", folder, fix)
    outputs = [os.path.join(folder, name) for name in relative_outputs(files, ending)]
    inputs = {os.path.realpath(file.path) for file in files}
    for output in outputs:
        if os.path.realpath(output) in inputs:
            raise OutputError("the output is also an input", output, "choose another folder")
    exists = [os.path.lexists(output) for output in outputs]
    if any(exists) and not (force or skip_existing):
        more = f", and {sum(exists) - 1} more of {len(outputs)}" if sum(exists) > 1 else ""
        fix = "choose another folder, or pass --skip-existing or --force"
        raise OutputError(f"the output exists already{more}", outputs[exists.index(True)], fix)
    return [(output, is_there and not force) for output, is_there in zip(outputs, exists, strict=True)]


@contextmanager
def output_folders(paths: Iterable[str]) -> Iterator[None]:
    """Creates the folders of files; those that it has created and that are empty at the end are removed.

    Raises OutputError for a folder that cannot be created.
    """
    made: list[str] = []
    try:
        for folder in dict.fromkeys(os.path.dirname(path) for path in paths):
            _make_folder(folder, made)
        yield
    finally:
        for folder in reversed(made):
            with suppress(OSError):  # not empty
                os.rmdir(folder)


def _make_folder(folder: str, made: list[str]) -> None:
    if not folder or os.path.isdir(folder):
        return
    _make_folder(os.path.dirname(folder), made)
    try:
        os.mkdir(folder)
    except FileExistsError:
        if os.path.isdir(folder):  # made by another process
            return
        raise OutputError("a folder cannot be created: a file has its name", folder, "choose another") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"the folder cannot be created: {reason}", folder, "choose another") from error
    made.append(folder)
