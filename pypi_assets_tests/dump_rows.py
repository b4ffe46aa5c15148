"""Rows of dumps, as tests make them."""

from pypi_assets.dumps.rows import COLUMNS, Row


def dump_row(normalized: str, version: str, filename: str, **columns: object) -> Row:
    """A row of a live file, with sensible values where `columns` names none."""
    row: Row = dict.fromkeys(COLUMNS)
    return row | {
        "project": normalized,
        "normalized": normalized,
        "version": version,
        "filename": filename,
        "tombstone": False,
        "kind": "wheel" if filename.endswith(".whl") else "sdist",
        "sha256": "ab" * 32,
        "size": 10,
        "uploaded_at": "2026-01-02T03:04:05Z",
        "yanked": False,
        "live_since": 1,
        "outcome": "data",
        "requires_dist": [],
        "provides_extra": [],
        "modules": [],
        **columns,
    }


def tombstone_of(row: Row) -> Row:
    return {name: row[name] for name in ("project", "normalized", "version", "filename")} | {"tombstone": True}


def in_order(rows: list[Row]) -> list[Row]:
    """As they stand in a dump file."""
    return sorted(rows, key=lambda row: (str(row["normalized"]), str(row["version"]), str(row["filename"])))
