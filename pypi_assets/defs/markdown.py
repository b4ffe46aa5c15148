"""Tables in Markdown, which Dagster shows as metadata. What comes from an index or a file is inert in them."""

from collections.abc import Iterable, Sequence

from pypi_assets.inert import inert_markdown_cell

LONGEST_CELL = 300  # characters


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]], longest: int = LONGEST_CELL) -> str:
    """One line a row. Cells of more than `longest` characters are cut."""
    cells = ([inert_markdown_cell(str(cell), longest) for cell in row] for row in rows)
    lines = [columns, ["---"] * len(columns), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
