"""What a visit, a range or a status costs no longer grows with the age of the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    _exhausted_visits()
    _unread_live_files()
    _dump_leaves()


def downgrade() -> None:
    _drop_dump_leaves()
    op.drop_index("ix_visit_queue_exhausted", "visit_queue")


def _exhausted_visits() -> None:
    """An exhausted visit is done once a later one has succeeded, with a page as new as it wanted."""
    is_exhausted = sa.text("state = 'gave up'")
    op.create_index(
        "ix_visit_queue_exhausted",
        "visit_queue",
        ["project_id"],
        sqlite_where=is_exhausted,
        postgresql_where=is_exhausted,
    )
    op.execute("""
        UPDATE visit_queue SET state = 'done', error_text = NULL
        WHERE state = 'gave up' AND project_id IN (
            SELECT projects.id FROM projects
            JOIN visit_statistics ON visit_statistics.project_id = projects.id
            WHERE visit_statistics.last_outcome = 'not_found'
            OR (visit_statistics.last_outcome = 'full' AND projects.page_serial >= visit_queue.min_serial)
        )
    """)


def _unread_live_files() -> None:
    """A live file with an address is never vanished: it is read again."""
    op.execute("""
        UPDATE distribution_data SET outcome = 'pending', error_kind = NULL, error_text = NULL
        WHERE outcome = 'vanished'
        AND EXISTS (
            SELECT 1 FROM live_intervals
            WHERE live_intervals.distribution_id = distribution_data.distribution_id AND live_intervals."end" IS NULL
        )
        AND EXISTS (
            SELECT 1 FROM distributions
            WHERE distributions.id = distribution_data.distribution_id AND distributions.url IS NOT NULL
        )
    """)
    op.execute("""
        INSERT INTO read_queue (distribution_id, project_id)
        SELECT distributions.id, distributions.project_id FROM distributions
        JOIN distribution_data ON distribution_data.distribution_id = distributions.id
        WHERE distribution_data.outcome = 'pending' AND distributions.url IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM read_queue WHERE read_queue.distribution_id = distributions.id)
    """)


def _dump_leaves() -> None:
    """Compactions of before have the names of their leaves in `inputs`; the code counts these."""
    count = "how many incremental dumps a compaction holds; null: those in inputs"
    digest = "the sum of the sha256 of their directories, in hexadecimal digits"
    op.add_column("dumps", sa.Column("leaf_count", sa.Integer(), comment=count))
    op.add_column("dumps", sa.Column("leaf_digest", Short, comment=digest))


def _drop_dump_leaves() -> None:
    for name in ("leaf_digest", "leaf_count"):
        op.drop_column("dumps", name)
