"""Makes text that an index or a file has chosen inert where it is shown: one function for each kind of place.

It also covers all that a process logs, and the traceback that ends it.
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
"""What makes a heading, a list or a rule of a line that begins with it, or with a number before it."""
_BACKTICKS = re.compile(r"`+")
_MENTION = re.compile(r"@(?=\S)|<(?=\S)")
_SCHEME = re.compile(r"(?<=\w)://")


def inert_line(text: str) -> str:
    """`text` on one line, for terminals and logs: without control characters, and none that changes the direction.

    >>> inert_line("a\\x1b[31m\\nb") == "a\\ufffd[31m b"
    True
    """
    joined = " ".join(text.split())
    return joined if joined.isprintable() else "".join([c if c.isprintable() else REPLACEMENT for c in joined])


def inert_lines(text: str) -> str:
    """The same for text of several lines, which keep their indentation."""
    return "\n".join([_indentation(line) + inert_line(line) for line in text.splitlines()])


def inert_csv(text: str) -> str:
    """The same for a cell of CSV: what a spreadsheet would take for a formula gets an apostrophe in front."""
    line = inert_line(text)
    return f"'{line}" if line.startswith(_FORMULA_STARTS) else line


def inert_markdown(text: str) -> str:
    """The same for a paragraph of Markdown, as Dagster shows descriptions: no markup, no image, no link.

    >>> inert_markdown("see ![x](https://example.org/x.png)")
    'see `![x](https://example.org/x.png)`'
    """
    words = [_escaped(word) for word in inert_line(text).split(" ")]
    first = _BLOCK.search(words[0])
    if first:
        words[0] = f"{words[0][: first.start()]}\\{words[0][first.start() :]}"
    return " ".join(words)


def inert_markdown_cell(text: str, longest: int) -> str:
    """The same for a cell of a table in Markdown, of at most `longest` characters."""
    shown = inert_line(text[: 2 * longest])
    if len(shown) > longest or len(text) > 2 * longest:
        shown = shown[: longest - 1] + "…"
    return _escaped(shown)


def inert_notice(text: str) -> str:
    """The same for the lines of a notice, as mail and chats show it: no URL that becomes a link and is fetched for a
    preview, and no mention of people. It has at most `LONGEST_NOTICE` characters.
    """
    lines = inert_lines(text[:LONGEST_NOTICE])
    return _MENTION.sub(r"\g<0> ", _SCHEME.sub(":// ", lines)).replace("www.", "www. ")


def _indentation(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" ")))


def _escaped(text: str) -> str:
    """Markdown makes links of addresses even where they are escaped, but not within code."""
    return _code(text) if _LINK.search(text) else _MARKUP.sub(r"\\\g<0>", text)


def _code(text: str) -> str:
    """Code, also within a table. There a bar needs a backslash in code too; but after a backslash of the text that one
    would be escaped itself, and the bar would end the cell. So such a bar stands between two pieces of code.
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
    """A record whose message and traceback have no control characters, whichever handler shows them."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if self.exc_info and self.exc_info[0]:
            self.exc_text = inert_lines("".join(traceback.format_exception(*self.exc_info)))

    def getMessage(self) -> str:  # noqa: N802 - the name is logging's
        return inert_lines(super().getMessage())


def make_logs_inert() -> None:
    """For this process, from now on."""
    if logging.getLogRecordFactory() is logging.LogRecord:
        logging.setLogRecordFactory(InertRecord)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_inertly


def _print_inertly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(inert_lines("".join(traceback.format_exception(kind, error, trace))) + "\n")
