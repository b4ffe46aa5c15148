"""What the files of a release mostly have in common is stored once: summary, licence, links, entry points, extras.

A record's row has the rest of its details, and refers to what it shares.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from pypi_assets.catalog.database import at_a_time, insert_missing
from pypi_assets.catalog.reads.stored_contents import content_digest
from pypi_assets.catalog.reads.stored_json import from_json, to_json
from pypi_assets.catalog.tables import shared_details
from pypi_assets.distributions.record import DistributionRecord, ModulesGrade


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """What is stored of a record as JSON: in its own row, and shared with others; None where it shares nothing."""

    own: str
    shared: bytes | None


def record_details(record: DistributionRecord) -> RecordDetails:
    """Both parts leave out what is empty, so that the same facts give the same bytes.

    `import_names` alone can be empty and there: the project declares that there is nothing to import. `entry_points` is
    null in the row's own part where the file was read and they are unknown. `modules_grade` is left out where it is
    exact, as it is for each wheel.
    """
    shared = {
        "summary": record.summary,
        "provides_extra": record.provides_extra,
        "entry_points": record.entry_points,
        "license_expression": record.license_expression,
        "license": record.license,
        "license_classifiers": record.license_classifiers,
        "project_urls": record.project_urls,
        "import_names": record.import_names,
    }
    own = {
        "name": record.project,
        "version": record.version,
        "modules_by": record.modules_by,
        "modules_grade": None if record.modules_grade == ModulesGrade.EXACT else record.modules_grade,
        "requires_by": record.requires_by,
        "stubs": record.stubs,
        "left_out": record.left_out,
        "declared": record.declared,
        "notes": record.notes,
        "start_up_paths": record.start_up_paths,
        "refusals": record.refusals,
        "installed_metadata": record.installed_metadata,
    }
    in_common = {name: value for name, value in shared.items() if value or (value == () and name == "import_names")}
    unknown = {"entry_points": None} if record.entry_points is None and record.error is None else {}
    return RecordDetails(
        own=to_json({name: value for name, value in own.items() if value} | unknown).decode(),
        shared=to_json(in_common) if in_common else None,
    )


def merged_details(own: str | None, shared: bytes | None) -> dict[str, Any]:
    """All details of a record, by name, whichever part they are stored in."""
    return {**(from_json(own) if own else {}), **(from_json(shared) if shared else {})}


def store_shared_details(connection: Connection, contents: Iterable[bytes]) -> dict[bytes, int]:
    """Stores those of the contents that are not there yet; returns the id of each. It takes three statements."""
    digests = {content: content_digest(content) for content in contents}
    found = _find_details(connection, digests.values())
    rows = [
        {"sha256": digest, "content": zlib.compress(content)}
        for content, digest in digests.items()
        if digest not in found
    ]
    insert_missing(connection, shared_details, sorted(rows, key=lambda row: str(row["sha256"])))
    found |= _find_details(connection, [str(row["sha256"]) for row in rows])
    return {content: found[digest] for content, digest in digests.items()}


def _find_details(connection: Connection, digests: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for wanted in at_a_time(sorted(digests)):
        query = select(shared_details.c.sha256, shared_details.c.id).where(shared_details.c.sha256.in_(wanted))
        rows = connection.execute(query.with_for_update(read=True, key_share=True))  # nothing prunes them meanwhile
        found.update((row.sha256, row.id) for row in rows)
    return found
