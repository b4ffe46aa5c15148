"""Make text from an index or a file inert for display, with a function for each kind of place.

This also covers everything that a process logs, and the traceback that ends it.
"""

import logging
import re
import sys
import traceback
from types import TracebackType

REPLACEMENT = "\ufffd"
LONGEST_NOTICE = 4_000  # characters
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # also as full-width characters
_MARKUP = re.compile(r"[\\`*\[\]<>&~|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINK = re.compile(r"://|www\.|@", re.IGNORECASE)
_BLOCK = re.compile(r"[#+=-]+(?=\s|$)|(?<=\d)[.)](?=\s|$)")
"""Text that makes a line a heading, a list or a rule, at its beginning or after a number."""
_BACKTICKS = re.compile(r"`+")
_MENTION = re.compile(r"@(?=\S)|<(?=\S)")
_SCHEME = re.compile(r"(?<=\w)://")


def inert_line(text: str) -> str:
    """Return `text` on one line, for terminals and logs, without control characters or direction marks.

    >>> inert_line("a\\x1b[31m\\nb") == "a\\ufffd[31m b"
    True
    """
    joined = " ".join(text.split())
    return joined if joined.isprintable() else "".join([c if c.isprintable() else REPLACEMENT for c in joined])


def inert_lines(text: str) -> str:
    """Do the same for text of several lines, which keep their indentation."""
    return "\n".join([_indentation(line) + inert_line(line) for line in text.splitlines()])


def inert_csv(text: str) -> str:
    """Do the same for a CSV cell. Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    line = inert_line(text)
    return f"'{line}" if line.startswith(_FORMULA_STARTS) else line


def inert_markdown(text: str) -> str:
    """Do the same for a paragraph of Markdown, such as a description in Dagster: no markup, images or links.

    >>> inert_markdown("see ![x](https://example.org/x.png)")
    'see `![x](https://example.org/x.png)`'
    """
    words = [_escaped(word) for word in inert_line(text).split(" ")]
    first = _BLOCK.search(words[0])
    if first:
        words[0] = f"{words[0][: first.start()]}\\{words[0][first.start() :]}"
    return " ".join(words)


def inert_markdown_cell(text: str, longest: int) -> str:
    """Do the same for a cell of a Markdown table, with at most `longest` characters."""
    shown = inert_line(text[: 2 * longest])
    if len(shown) > longest or len(text) > 2 * longest:
        shown = shown[: longest - 1] + "…"
    return _escaped(shown)


def inert_notice(text: str) -> str:
    """Do the same for the lines of a notice in mail and chats, with at most `LONGEST_NOTICE` characters.

    The text has no URL that becomes a link or is fetched for a preview, and mentions no people.
    """
    lines = inert_lines(text[:LONGEST_NOTICE])
    return _MENTION.sub(r"\g<0> ", _SCHEME.sub(":// ", lines)).replace("www.", "www. ")


def _indentation(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" ")))


def _escaped(text: str) -> str:
    """Escape markup. Addresses become code, since Markdown makes links even of escaped addresses, but not in code."""
    return _code(text) if _LINK.search(text) else _MARKUP.sub(r"\\\g<0>", text)


def _code(text: str) -> str:
    """Return the text as code, also within a table.

    There, a bar needs a backslash, even in code. But after a backslash of the text, that backslash would itself be
    escaped, and the bar would end the cell. So such a bar is put between two pieces of code.
    """
    return r"\|".join([_fenced(piece) for piece in re.split(r"(?<=\\)\|", text)])


def _fenced(text: str) -> str:
    if not text:
        return ""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    escaped = text.replace("|", r"\|")
    return f"{fence} {escaped} {fence}" if longest else f"{fence}{escaped}{fence}"


class InertRecord(logging.LogRecord):
    """A record without control characters in its message and traceback, for all handlers."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if self.exc_info and self.exc_info[0]:
            self.exc_text = inert_lines("".join(traceback.format_exception(*self.exc_info)))

    def getMessage(self) -> str:  # noqa: N802 - the name is logging's
        return inert_lines(super().getMessage())


def make_logs_inert() -> None:
    """Make all later logs and tracebacks of this process inert."""
    if logging.getLogRecordFactory() is logging.LogRecord:
        logging.setLogRecordFactory(InertRecord)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_inertly


def _print_inertly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(inert_lines("".join(traceback.format_exception(kind, error, trace))) + "\n")
