"""Tables in Markdown, which Dagster shows as metadata. What comes from an index or a file is inert in them."""

import re
from collections.abc import Iterable, Sequence

LONGEST_CELL = 300  # characters
_MARKUP = re.compile(r"[\\`*\[\]<>&~|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINK = re.compile(r"://|www\.|@", re.IGNORECASE)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]], longest: int = LONGEST_CELL) -> str:
    """One line a row. Cells of more than `longest` characters are cut."""
    lines = [columns, ["---"] * len(columns), *([markdown_cell(str(cell), longest) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_cell(text: str, longest: int = LONGEST_CELL) -> str:
    """`text` on one line, of at most `longest` characters, without markup, links and invisible characters.

    Markdown makes links of addresses even where they are escaped, but not within code.
    """
    shown = " ".join(text[: 2 * longest].split())
    shown = "".join(character if character.isprintable() else "\ufffd" for character in shown)
    if len(shown) > longest or len(text) > 2 * longest:
        shown = shown[: longest - 1] + "…"
    return _code(shown) if _LINK.search(shown) else _MARKUP.sub(r"\\\g<0>", shown)


def _code(text: str) -> str:
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    escaped = text.replace("|", "\\|")  # which a table needs within code too
    return f"{fence} {escaped} {fence}" if longest else f"{fence}{escaped}{fence}"
