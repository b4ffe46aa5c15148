"""Past contents of files that were replaced under the same name: their facts, and the records read from them.

`catalog/derived/file_updates.py` determines which files were replaced.
"""

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, func, select

from pypi_assets.catalog.database import at_a_time, insert_missing, sent_values
from pypi_assets.catalog.reads.stored_contents import merged_details
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    name_lists,
    past_generations,
    projects,
    shared_details,
)
from pypi_assets.distributions.installability import is_installable

_FACTS = ("url", "size", "uploaded_at", "requires_python", "yanked_reason", "core_metadata_sha256", "first_seen_at")
_READ = ("outcome", "error_kind", "error_text", "metadata_version", "extractor_version")


PRESENT_REQUIRES_PYTHON = func.coalesce(
    func.nullif(distributions.c.requires_python, ""), distribution_data.c.requires_python
)
"""The supported Python versions of a file's present content, as the index shows them, else as in the metadata."""


@dataclass(frozen=True, slots=True)
class PastGeneration:
    """A content of a file that counted until the serial `until`, with the facts from its page and its record."""

    filename: str
    generation: int
    until: int
    sha256: str | None
    facts: Mapping[str, Any]

    @property
    def read_requires_python(self) -> str | None:
        """Return the supported Python versions in the metadata; None if they are not stored, as in older catalogs."""
        value: str | None = self.facts.get("read_requires_python")
        return value

    @property
    def requires_python(self) -> str | None:
        """Return the supported Python versions, as the index showed them, else as in the metadata."""
        return self.facts["requires_python"] or self.read_requires_python


def keep_past_generations(connection: Connection, until: Mapping[int, int]) -> None:
    """Copy the present contents of these distributions to past generations.

    `until` maps each distribution to the serial from which its next content counts.
    """
    if not until:
        return
    requires, modules = name_lists.alias(), name_lists.alias()
    data = distribution_data.c
    rows = connection.execute(
        select(
            distributions,
            *(data[name] for name in _READ),
            data.requires_python.label("read_requires_python"),
            data.details,
            requires.c.content.label("requires_dist"),
            modules.c.content.label("modules"),
            shared_details.c.content.label("shared"),
        )
        .join(distribution_data, data.distribution_id == distributions.c.id)
        .outerjoin(requires, requires.c.id == data.requires_dist_id)
        .outerjoin(modules, modules.c.id == data.modules_id)
        .outerjoin(shared_details, shared_details.c.id == data.shared_details_id)
        .where(distributions.c.id.in_(sorted(until)))
        .order_by(distributions.c.id)
    )
    kept = []
    for row in rows:
        facts: dict[str, Any] = {name: getattr(row, name) for name in (*_FACTS, *_READ, "read_requires_python")}
        for name in ("requires_dist", "modules"):
            content = getattr(row, name)
            facts[name] = None if content is None else json.loads(zlib.decompress(content))
        facts["details"] = merged_details(row.details, row.shared)
        kept.append(
            {
                "distribution_id": row.id,
                "generation": row.generation,
                "until": until[row.id],
                "sha256": row.sha256,
                "content": zlib.compress(json.dumps(facts, sort_keys=True).encode()),
            }
        )
    insert_missing(connection, past_generations, kept)


def past_generations_of(connection: Connection, project_id: int) -> list[PastGeneration]:
    """Return the past contents of a project's files, by filename and generation."""
    c = past_generations.c
    rows = connection.execute(
        select(distributions.c.filename, c.generation, c.until, c.sha256, c.content)
        .join(distributions, distributions.c.id == c.distribution_id)
        .where(distributions.c.project_id == project_id)
        .order_by(distributions.c.filename, c.generation)
    )
    return [
        PastGeneration(filename, generation, until, sha256, json.loads(zlib.decompress(content)))
        for filename, generation, until, sha256, content in rows
    ]


def has_past_generations(connection: Connection) -> bool:
    """Check whether any file was replaced under the same name. This is observed only on indexes without serials."""
    return bool(connection.scalar(select(exists(select(past_generations.c.generation)))))


def counts_later(distribution_id: ColumnElement[int], serial: int) -> ColumnElement[bool]:
    """Return the condition that at `serial` the distribution had another content than its newest one."""
    c = past_generations.c
    return exists().where(c.distribution_id == distribution_id, c.until > serial)


def contents_at(
    connection: Connection, serial: int, distribution_ids: Sequence[int] | None = None
) -> dict[int, PastGeneration]:
    """Return the contents that counted at `serial`, of distributions that have another content now.

    The result is by distribution id. If `distribution_ids` is None, all distributions are included.
    """
    c = past_generations.c
    query = (
        select(c.distribution_id, distributions.c.filename, c.generation, c.until, c.sha256, c.content)
        .join(distributions, distributions.c.id == c.distribution_id)
        .where(c.until > serial)
        .order_by(c.until.desc())  # so that the least `until` above the serial comes last and overwrites the others
    )
    parts = [query]
    if distribution_ids is not None:
        parts = [query.where(c.distribution_id.in_(ids)) for ids in at_a_time(distribution_ids)]
    return {
        id_: PastGeneration(filename, generation, until, sha256, json.loads(zlib.decompress(content)))
        for part in parts
        for id_, filename, generation, until, sha256, content in connection.execute(part)
    }


def replaced_files(connection: Connection, distribution_ids: Sequence[int]) -> set[int]:
    """Return the subset of these distributions that had another content before."""
    c = past_generations.c
    sent = sent_values(connection, c.distribution_id, distribution_ids)
    query = select(c.distribution_id).select_from(sent).join(past_generations, c.distribution_id == sent.c.value)
    return set(connection.scalars(query))


def rejected_then(connection: Connection, serial: int, normalized: Collection[str]) -> dict[int, bool]:
    """Return, by distribution id, whether installers rejected the content that counted at `serial`.

    Only files of the given projects that have another content now are included.
    """
    if not has_past_generations(connection):
        return {}
    c = past_generations.c
    replaced = (
        select(c.distribution_id)
        .join(distributions, distributions.c.id == c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .where(c.until > serial)
        .distinct()
    )
    ids = [
        id_
        for chunk in at_a_time(sorted(normalized))
        for id_ in connection.scalars(replaced.where(projects.c.normalized.in_(chunk)))
    ]
    found = contents_at(connection, serial, ids)
    return {id_: not is_installable(one.facts["details"].get("refusals")) for id_, one in found.items()}


def content_spans(connection: Connection, sha256: str) -> dict[int, list[tuple[int, int | None]]]:
    """Return when the content with this hash counted, for distributions that had several contents.

    By distribution id: the first serial at which it counted, and the end (None if it still counts).
    """
    c = past_generations.c
    had = select(c.distribution_id).where(c.sha256 == sha256)
    has = select(distributions.c.id).where(distributions.c.sha256 == sha256, distributions.c.generation > 1)
    ids = sorted({*connection.scalars(had), *connection.scalars(has)})
    spans: dict[int, list[tuple[int, int | None]]] = {}
    for chunk in at_a_time(ids):
        newest = dict(
            connection.execute(
                select(distributions.c.id, distributions.c.sha256).where(distributions.c.id.in_(chunk))
            ).all()
        )
        query = select(c.distribution_id, c.until, c.sha256).where(c.distribution_id.in_(chunk))
        since: dict[int, int] = {}
        for id_, until, its_sha256 in connection.execute(query.order_by(c.distribution_id, c.generation)):
            if its_sha256 == sha256:
                spans.setdefault(id_, []).append((since.get(id_, 0), until))
            since[id_] = until
        for id_, its_sha256 in newest.items():
            if its_sha256 == sha256:
                spans.setdefault(id_, []).append((since.get(id_, 0), None))
    return spans
