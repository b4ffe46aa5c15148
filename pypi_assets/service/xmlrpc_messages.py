"""Parses calls of XML-RPC and renders answers, which can be longer than memory should hold."""

import re
import xmlrpc.client
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar
from xml.sax.saxutils import escape

from defusedxml.common import DefusedXmlException

from pypi_assets.index.changelog import UNMARSHAL_ERRORS, unmarshal

MEDIA_TYPE = "text/xml"
PARSE_ERROR, UNKNOWN_METHOD, WRONG_ARGUMENT, UNAVAILABLE = -32700, -32601, -32602, -32403
"""The codes of faults, as PyPI uses them."""
_BEGIN = b"<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value>"
_END = b"</value>\n</param>\n</params>\n</methodResponse>\n"
_AT_ONCE = 1_000
_LARGEST_INT = 2**31 - 1
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Value = str | int | None
Part = TypeVar("Part")


class FaultError(Exception):
    """Ends a call with a fault: one of the codes above, and a text for people."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A parsed call. The arguments have any type that XML-RPC has."""

    method: str
    arguments: Sequence[object]

    def integers(self, *names: str) -> Sequence[int]:
        """Return the arguments: one integer for each name. Raises FaultError, which names a wrong one."""
        found: list[int] = []
        for position, name in enumerate(names):
            if position >= len(self.arguments):
                raise _wrong_argument(name, "Missing required argument")
            value = self.arguments[position]
            if type(value) is not int:
                raise _wrong_argument(name, "Input should be a valid integer")
            found.append(value)
        if len(self.arguments) > len(names):
            raise _wrong_argument(str(len(names)), "Unexpected positional argument")
        return found


def _wrong_argument(name: str, problem: str) -> FaultError:
    return FaultError(WRONG_ARGUMENT, f"client error; {name}: {problem}")


def parse_call(body: bytes) -> MethodCall:
    """Return the call in a body. Raises FaultError if it is not XML-RPC, or declares a document type or entities."""
    try:
        arguments, method = unmarshal([body])
    except DefusedXmlException:
        raise FaultError(PARSE_ERROR, "parse error; the call declares a document type or entities") from None
    except (*UNMARSHAL_ERRORS, xmlrpc.client.Fault, AttributeError):
        raise FaultError(PARSE_ERROR, "parse error; not well formed") from None
    if method is None:
        raise FaultError(PARSE_ERROR, "parse error; there is no methodName")
    return MethodCall(method, arguments)


def text_in_xml(text: str) -> str:
    """Return `text` escaped for XML, without characters that XML cannot contain.

    >>> text_in_xml("a<b\\x00")
    'a&lt;b'
    """
    return escape(_NOT_IN_XML.sub("", text))


def render_fault(fault: FaultError) -> bytes:
    """Return the answer to a call that ended with `fault`."""
    code = b"<member><name>faultCode</name><value><int>%d</int></value></member>" % fault.code
    text = f"<member><name>faultString</name>{_value(fault.text)}</member>".encode()
    return (
        b"<?xml version='1.0'?>\n<methodResponse>\n<fault>\n<value><struct>\n%s\n%s\n</struct></value>\n</fault>\n"
        b"</methodResponse>\n" % (code, text)
    )


def render_value(value: Value) -> bytes:
    """Return the answer with one value."""
    return _BEGIN + _content(value).encode() + _END


def render_rows(rows: Iterable[Sequence[Value]]) -> Iterator[bytes]:
    """Yield the answer with a list of rows, in parts."""
    yield _BEGIN + b"<array><data>\n"
    for some in _in_parts(rows):
        yield "".join(
            f"<value><array><data>{''.join(map(_value, row))}</data></array></value>\n" for row in some
        ).encode()
    yield b"</data></array>" + _END


def render_texts(texts: Iterable[str]) -> bytes:
    """Return the answer with a list of texts."""
    return _BEGIN + f"<array><data>{''.join(map(_value, texts))}</data></array>".encode() + _END


def render_members(members: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the answer with a struct of numbers, in parts."""
    yield _BEGIN + b"<struct>\n"
    for some in _in_parts(members):
        yield "".join(
            f"<member><name>{text_in_xml(name)}</name>{_value(number)}</member>\n" for name, number in some
        ).encode()
    yield b"</struct>" + _END


def _in_parts(items: Iterable[Part]) -> Iterator[list[Part]]:
    rest = iter(items)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _value(value: Value) -> str:
    return f"<value>{_content(value)}</value>"


def _content(value: Value) -> str:
    match value:
        case None:
            return "<nil/>"
        case int():
            tag = "int" if -_LARGEST_INT <= value <= _LARGEST_INT else "i8"
            return f"<{tag}>{value}</{tag}>"
        case str():
            return f"<string>{text_in_xml(value)}</string>"
