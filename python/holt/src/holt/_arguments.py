"""Checks of arguments before anything starts: wrong types are `TypeError`, wrong values `InvalidConfigError`."""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from holt._errors import InvalidConfigError

StrPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
Command: TypeAlias = "str | bytes | Sequence[str | bytes]"
Seconds: TypeAlias = "float | timedelta"
BytesLike: TypeAlias = "bytes | bytearray | memoryview"

_MOST_SECONDS = 100 * 365 * 86400.0


def wrong_type(what: str, wanted: str, value: object) -> TypeError:
    return TypeError(f"{what} must be {wanted}, not {type(value).__name__}")


def encode(what: str, text: str | bytes) -> bytes:
    """Bytes for the guest. Surrogates that stand for bytes become these; others have no bytes."""
    if isinstance(text, bytes):
        data = text
    else:
        try:
            data = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InvalidConfigError(f"{what} holds a lone surrogate, which stands for no byte") from None
    if b"\0" in data:
        raise InvalidConfigError(f"{what} holds a NUL byte")
    return data


def text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise wrong_type(what, "a str", value)
    encode(what, value)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidConfigError(f"{what} is no valid text") from None
    return value


def optional_text(what: str, value: object) -> str | None:
    return None if value is None else text(what, value)


def path(what: str, value: object) -> bytes:
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise wrong_type(what, "a str, bytes or os.PathLike", value)
    data = encode(what, os.fspath(value))
    if not data:
        raise InvalidConfigError(f"{what} is empty")
    return data


def optional_path(what: str, value: object) -> bytes | None:
    return None if value is None else path(what, value)


def command(value: object, shell: object) -> bytes | list[bytes]:
    """An argv as a list, or a script of /bin/sh as bytes."""
    if flag("shell", shell):
        if not isinstance(value, (str, bytes)):
            raise wrong_type("command", "a str or bytes with shell=True", value)
        script = encode("command", value)
        if not script:
            raise InvalidConfigError("command is empty")
        return script
    if not isinstance(value, (list, tuple)):
        raise wrong_type("command", "a list or tuple of str or bytes (or a str with shell=True)", value)
    argv = []
    for number, item in enumerate(value):
        if not isinstance(item, (str, bytes)):
            raise wrong_type(f"command[{number}]", "a str or bytes", item)
        argv.append(encode(f"command[{number}]", item))
    if not argv or not argv[0]:
        raise InvalidConfigError("command is empty")
    return argv


def data(what: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise wrong_type(what, "bytes", value)


def data_or_text(what: str, value: object) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InvalidConfigError(f"{what} holds a lone surrogate, which stands for no byte") from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise wrong_type(what, "bytes or str", value)


def flag(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(what, "a bool", value)
    return value


def integer(what: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool):
        raise wrong_type(what, "an int", value)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise wrong_type(what, "an int", value) from None
    if not least <= number <= most:
        raise InvalidConfigError(f"{what} is {number}, not {least} to {most}")
    return number


def optional_integer(what: str, value: object, least: int, most: int) -> int | None:
    return None if value is None else integer(what, value, least, most)


def seconds(what: str, value: object, *, zero: str = "refused") -> float | None:
    """Seconds above zero (or from zero on, with zero="allowed"), None for none."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong_type(what, "a number of seconds, a timedelta or None", value)
    else:
        number = float(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and zero != "allowed"):
        raise InvalidConfigError(f"{what} is {number}, not a time above zero")
    return min(number, _MOST_SECONDS)


def environment(what: str, value: object) -> dict[bytes, bytes]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_type(what, "a mapping of str to str", value)
    return {_variable(what, name): _variable_value(what, name, one) for name, one in value.items()}


def environment_changes(what: str, value: object) -> dict[bytes, bytes | None]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_type(what, "a mapping of str to str or None", value)
    return {
        _variable(what, name): None if one is None else _variable_value(what, name, one)
        for name, one in value.items()
    }


def _variable(what: str, name: object) -> bytes:
    if not isinstance(name, (str, bytes)):
        raise wrong_type(f"a name in {what}", "a str", name)
    key = encode(f"a name in {what}", name)
    if not key or b"=" in key:
        raise InvalidConfigError(f"{what} has a name that is empty or holds '='")
    return key


def _variable_value(what: str, name: object, value: object) -> bytes:
    # The value may be a secret: messages name the variable only.
    if not isinstance(value, (str, bytes)):
        raise wrong_type(f"{what}[{name!r}]", "a str", value)
    return encode(f"{what}[{name!r}]", value)


def labels(what: str, value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_type(what, "a mapping of str to str", value)
    return {text(f"a name in {what}", name): text(f"{what}[{name!r}]", one) for name, one in value.items()}


def label_changes(what: str, value: object) -> dict[str, str | None]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_type(what, "a mapping of str to str or None", value)
    return {
        text(f"a name in {what}", name): optional_text(f"{what}[{name!r}]", one) for name, one in value.items()
    }


def texts(what: str, value: object) -> list[str]:
    return [text(f"{what}[{number}]", item) for number, item in enumerate(_items(what, value))]


def paths(what: str, value: object) -> list[bytes]:
    return [path(f"{what}[{number}]", item) for number, item in enumerate(_items(what, value))]


def choice(what: str, value: object, words: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise wrong_type(what, "one of " + ", ".join(words), value)
    if value not in words:
        raise InvalidConfigError(f"{what} is {value!r}, not one of {', '.join(words)}")
    return value


def _items(what: str, value: object) -> Iterable[Any]:
    # A str is a sequence of str, and never what was meant.
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise wrong_type(what, "a list or tuple of str", value)
    return value
