"""Rules for the attributes of the files that collide reads, tested at every open. They read no
dataset."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.storage.h5_files import DAMAGE

UNREADABLE = (*DAMAGE, TypeError, ValueError)
"""Exceptions of h5py for an attribute: damaged bytes, or a type that NumPy does not have."""
_SHA256 = re.compile(r"(?!0{64})[0-9a-f]{64}")
Fault = Callable[[Any], str]
"""What is wrong with a value, as a predicate ("is not UTF-8"); empty for a valid value."""


@dataclass(frozen=True)
class Finding:
    """One rule that a file breaks: its first location, and the rule. is_note: rows of another
    engine may break it."""

    where: str
    what: str
    is_note: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class AttributeRule:
    """The rule of one attribute. path: of its object; "" is the root. A missing attribute breaks a
    required rule."""

    path: str
    name: str
    fault: Fault
    required: bool = True


def attribute_faults(file: h5py.File, rules: Iterable[AttributeRule]) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of every attribute that breaks its rule; the path "" is the root."""
    for rule in rules:
        try:
            item = file if not rule.path else file.get(rule.path)
            attributes = item.attrs if isinstance(item, (h5py.Group, h5py.Dataset)) else {}
            what = _what(
                rule, {rule.name: attributes[rule.name]} if rule.name in attributes else {}
            )
        except UNREADABLE as error:
            what = f"cannot be read: {error}"
        if what:
            yield (
                rule.path,
                f"the {'attribute' if rule.path else 'root attribute'} {rule.name} {what}",
            )


def refuse_attributes(
    file: h5py.File, rules: Iterable[AttributeRule], file_name: str, fix: str
) -> None:
    """Raises InputError for the first attribute that breaks its rule."""
    for path, what in attribute_faults(file, rules):
        raise InputError(what, f"{file_name}: {path}" if path else file_name, fix)


def refuse_values(
    values: Mapping[str, Any], rules: Iterable[AttributeRule], file_name: str, fix: str
) -> None:
    """`refuse_attributes` for the rules of the root and the values of a JSON object."""
    for rule in rules:
        what = "" if rule.path else _what(rule, values)
        if what:
            raise InputError(f"the value of {rule.name} {what}", file_name, fix)


def _what(rule: AttributeRule, attributes: Mapping[str, Any]) -> str:
    if rule.name in attributes:
        return rule.fault(attributes[rule.name])
    return "is missing" if rule.required else ""


def text(value: Any) -> str:
    """A string of UTF-8."""
    if not isinstance(value, str):
        return "is not a string"
    return "" if is_unicode(value) else "is not UTF-8"


def text_or_bytes(value: Any) -> str:
    """A string of UTF-8, of any length or of a fixed length, as other programs write."""
    return text(_decoded(value))


def text_if_string(value: Any) -> str:
    """Anything but a string that is not UTF-8."""
    return text_or_bytes(value) if isinstance(value, (str, bytes)) else ""


def _decoded(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def sha256(value: Any) -> str:
    """64 lower-case hexadecimal digits, not all 0."""
    return text(value) or ("" if _SHA256.fullmatch(value) else "is no SHA-256")


def sha256_or_empty(value: Any) -> str:
    """A SHA-256, or nothing."""
    return "" if isinstance(value, str) and not value else sha256(value)


def json_object(value: Any) -> str:
    """The text of a JSON object that has an entry, of Unicode texts."""
    if text(value):
        return text(value)
    try:
        content = json.loads(value)
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {error}"
    if not isinstance(content, dict):
        return "is no JSON object"
    if not content:
        return "has no entries"
    return (
        ""
        if is_unicode(json.dumps(content, ensure_ascii=False))
        else "has a text that is not Unicode"
    )


def one_of(values: Iterable[str]) -> Fault:
    """One of these strings."""
    known = tuple(values)

    def fault(value: Any) -> str:
        decoded = _decoded(value)
        if isinstance(decoded, str) and decoded in known:
            return ""
        shown = repr(decoded) if isinstance(decoded, str) else "not a string"
        return f"is {shown}; known values: {', '.join(map(repr, known))}"

    return fault


def version(major: int) -> Fault:
    """Two integers, of which the first is `major`."""

    def fault(value: Any) -> str:
        numbers = np.atleast_1d(value)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iu":
            return "is not two integers"
        return (
            ""
            if int(numbers[0]) == major
            else f"is {numbers[0]}.{numbers[1]}; this program reads {major}.x"
        )

    return fault


def is_unicode(value: str) -> bool:
    """Whether a text is Unicode; h5py reads other bytes as surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
