"""Checks of single values. Each names the field and refuses with an :class:`InvalidConfigError`.

Numbers may be of any integer type (``operator.index``), but never truth values: ``cpus=True`` is a mistake.
"""

from __future__ import annotations

import ipaddress
import math
import operator
import os
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from .errors import InvalidTypeError, InvalidValueError, OutOfRangeError, SmolError

#: Longer times are taken for a mistake; 31 years.
LONGEST_SECONDS = 1e9

# RFC 1123, section 2.1, with the underscore that names of services have. "*." stands for what holds anyway:
# the names below a host are meant too.
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_HOST = re.compile(rf"(?=.{{1,253}}\Z)(?:\*\.)?{_LABEL}(?:\.{_LABEL})*\.?\Z")
_PREFIX = re.compile(r"[^/]+(?:/[0-9]{1,3})?\Z")


def whole_number(field: str, value: Any, low: int, high: int, unit: str = "") -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidTypeError(f"{field} must be a whole number, not {value!r}")
    number = operator.index(value)
    if not low <= number <= high:
        raise OutOfRangeError(f"{field} must be {low} to {high}{unit}, not {number}")
    return number


def seconds(field: str, value: Any, *, zero: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidTypeError(f"{field} must be a number of seconds, not {value!r}")
    number = float(value)
    if math.isnan(number) or number > LONGEST_SECONDS or number < 0 or (number == 0 and not zero):
        bound = "0 or more" if zero else "above 0"
        raise InvalidValueError(
            f"{field} must be {bound} and at most {LONGEST_SECONDS:.0f} seconds, not {value!r}"
        )
    return number


def flag(field: str, value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidTypeError(f"{field} must be True, False or None, not {value!r}")
    return value


def text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{field} must be a text, not {value!r}")
    if b"\0" in encoded(field, value):
        raise InvalidValueError(f"{field} holds a NUL character")
    return value


def encoded(field: str, value: str) -> bytes:
    """UTF-8; surrogates that stand for bytes become these (PEP 383), others are refused."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"{field} holds a lone surrogate, which stands for no byte") from error


def nonblank(field: str, value: Any) -> str:
    if not text(field, value).strip():
        raise InvalidValueError(f"{field} must not be empty")
    return str(value)


def texts(field: str, value: Any) -> list[str]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidTypeError(f"{field} must be a list of texts, not {value!r}")
    return [text(f"{field}[{index}]", item) for index, item in enumerate(value)]


def hosts(field: str, value: Any) -> list[str]:
    names = texts(field, value)
    for name in names:
        if not _HOST.match(name):
            raise InvalidValueError(
                f"{field}: {name!r} is no host name such as 'example.com', without scheme, port and path, "
                "and in its xn-- form where it is not ASCII"
            )
    return names


def networks(field: str, value: Any) -> list[str]:
    """Networks by prefix, and single addresses. Raises SmolError CONFIG_ERROR for other texts."""
    networks = texts(field, value)
    for network in networks:
        try:
            if not _PREFIX.match(network):
                raise ValueError(network)
            ipaddress.ip_network(network, strict=False)
        except ValueError as error:
            raise SmolError(
                "CONFIG_ERROR", f"{field}: {network!r} is no network such as '10.0.0.0/8'"
            ) from error
    return networks


def command(value: Any) -> list[str]:
    """An argv. A text is no argv: which shell should split it is the caller's choice."""
    if isinstance(value, (str, bytes)):
        raise InvalidTypeError("command must be a list such as ['sh', '-c', 'ls'], not one text")
    argv = texts("command", value)
    if not argv:
        raise InvalidValueError("command must have at least one word")
    return argv


def variables(field: str, value: Any) -> dict[str, str]:
    """Environment variables. Values are never named in a message: they may be secrets."""
    if not isinstance(value, Mapping):
        raise InvalidTypeError(f"{field} must be a dict of texts")
    for name, content in value.items():
        if not isinstance(name, str) or not isinstance(content, str):
            raise InvalidTypeError(f"{field} must have texts as names and values ({name!r} has not)")
        if not name or "=" in name or b"\0" in encoded(field, name):
            raise InvalidValueError(f"{field}: {name!r} is no name of an environment variable")
        text(f"{field}: the value of {name}", content)
    return dict(value)


def pairs(field: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidTypeError(f"{field} must be a dict of texts, not {value!r}")
    return {text(f"{field}: a name", name): text(f"{field}[{name!r}]", item) for name, item in value.items()}


def path(field: str, value: Any) -> str | bytes:
    """A path of the machine, as text, bytes or PathLike."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise InvalidTypeError(f"{field} must be a path, not {value!r}")
    given: str | bytes = os.fspath(value)
    if not given or b"\0" in (given if isinstance(given, bytes) else encoded(field, given)):
        raise InvalidValueError(f"{field} must be neither empty nor hold a NUL character")
    return given
