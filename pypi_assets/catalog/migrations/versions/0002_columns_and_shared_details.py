"""Dumps have columns of their own, what files of a release have in common is stored once, and a file is found by hash.

On SQLite a column is added as it is: alembic would copy the whole table for the sake of its foreign key. Comments get
the wording that the first migration has by now.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REFERENCE = "fk_distribution_data_shared_details_id_shared_details"
_TABLE_COMMENTS = {
    "read_attempts": "Every attempt to read a distribution. Append-only.",
    "visit_statuses": "Append-only; the latest status is the outcome of its visit.",
    "visit_statistics": "What follows for each project from its visits and their statuses.",
    "scope_claims": "The workers that are active on the whole of a scope. There can be several.",
    "lister_states": "The state of each lister. How far events are stored is in catalog_state alone.",
    "dumps": "An index of the manifests in the storage, and the names allocated for them.",
    "parquet_exports": "The names allocated for attempts to export Parquet.",
}
_COLUMN_COMMENTS = {
    "distribution_data.record_digest": "of the whole record, to compare it with another one",
    "read_queue.claimed_until": "from then on another worker may claim it",
    "visit_statistics.successive_outcomes": "how many visits in a row ended in it",
    "visit_statistics.next_due_at": "when the last failed visit is retried; null: it is not",
    "serial_ranges.begun_at": "when the work began that completed it, or that did not end",
    "serial_ranges.error_text": "the error that ended the last worker's work; null: none is known",
    "serial_ranges.lister": "the lister that brought it: xmlrpc or simple; null: a full crawl",
    "serial_ranges.exact_from": "no event is known between start and here, so these serials have no answer",
    "full_crawls.listed_serial": "the index's when the list was made; null: unknown, or not listed yet",
    "visit_queue.claimed_until": "from then on another worker may claim it",
    "scope_claims.scope": "what it works on, as in visit_queue",
    "dump_files.sha256": "null: allocated, not written to its end",
    "leveldb_versions.serial": "the cover's serial when it was allocated",
}


def upgrade() -> None:
    op.add_column(
        "dumps",
        sa.Column(
            "columns",
            Text,
            nullable=True,
            comment="JSON array of the names of its columns; null: those of the first dumps",
        ),
    )
    op.create_table(
        "shared_details",
        sa.Column("id", Key, nullable=False),
        sa.Column("sha256", Short, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="a JSON object, zlib-compressed"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shared_details")),
        sa.UniqueConstraint("sha256", name=op.f("uq_shared_details_sha256")),
        comment="What the files of a release have in common of their details, each once.",
    )
    op.create_index(op.f("ix_distributions_sha256"), "distributions", ["sha256"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "ALTER TABLE distribution_data ADD COLUMN shared_details_id INTEGER"
            f" CONSTRAINT {_REFERENCE} REFERENCES shared_details (id)"
        )
        return
    op.add_column(
        "distribution_data",
        sa.Column("shared_details_id", Key, nullable=True, comment="null: details has all of them"),
    )
    op.create_foreign_key(op.f(_REFERENCE), "distribution_data", "shared_details", ["shared_details_id"], ["id"])
    op.alter_column(
        "distribution_data",
        "details",
        existing_type=Text,
        comment="JSON: the record's other facts, see docs/formats.md",
    )
    for table, comment in _TABLE_COMMENTS.items():
        _comment(f"TABLE {table}", comment)
    for column, comment in _COLUMN_COMMENTS.items():
        _comment(f"COLUMN {column}", comment)


def _comment(on: str, comment: str) -> None:
    quoted = comment.replace("'", "''").replace(":", "\\:")
    op.execute(f"COMMENT ON {on} IS '{quoted}'")


def downgrade() -> None:
    raise NotImplementedError("details that are shared would be lost: go back to a backup of before")
