"""Tables in Markdown, which Dagster shows as metadata."""

from collections.abc import Iterable, Sequence


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """One line a row; a bar in a cell would end it, and a line break the row."""
    cells = ([" ".join(str(cell).replace("|", "\\|").split()) for cell in row] for row in rows)
    lines = [columns, ["---"] * len(columns), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
