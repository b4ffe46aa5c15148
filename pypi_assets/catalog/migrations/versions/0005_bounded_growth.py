"""What a visit, a range or a status costs no longer grows with the age of the catalog.

On SQLite a column is added as it is: alembic would copy the whole table for the sake of its foreign key.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    _exhausted_visits()
    _unread_live_files()
    _dump_leaves()
    _sightings()
    _checkpoints()
    _displayed_names()
    _broken_entries()
    _ledger()
    _visit_queue()  # after what changes the states of visits
    _full_crawls()
    _look_ups()
    _counters()  # after what changes outcomes and the queue of reads
    _pruning()
    _hosts()
    _epochs()


def downgrade() -> None:
    _refuse_without_sightings()
    op.drop_table("broken_entries")
    op.drop_table("counters")
    op.drop_index("ix_visits_of_scope", "visits")
    op.drop_index(op.f("ix_dumps_start_dumps_end"), "dumps")
    op.drop_column("full_crawls", "attempts_before")
    _undo_visit_queue()
    _undo_ledger()
    op.drop_column("scope_claims", "host")
    op.drop_table("epochs")
    _drop_pruning()
    _drop_dump_leaves()
    op.drop_index("ix_visit_queue_exhausted", "visit_queue")


def _refuse_without_sightings() -> None:
    raise NotImplementedError("what pages showed since then is kept as differences: go back to a backup of before")


def _comment(on: str, comment: str) -> None:
    if op.get_bind().dialect.name != "sqlite":
        quoted = comment.replace("'", "''").replace(":", "\\:")
        op.execute(f"COMMENT ON {on} IS '{quoted}'")


def _sightings() -> None:
    """What pages showed is apart from the log of visits, and snapshots can be differences."""
    op.create_table(
        "sightings",
        sa.Column("id", Key, nullable=False),
        sa.Column("project_id", Key, nullable=False),
        sa.Column(
            "visit_id",
            sa.BigInteger(),
            nullable=True,
            comment="the visit that saw it; the log may no longer have that visit",
        ),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("page_serial", sa.BigInteger(), nullable=True, comment="as in visit_statuses"),
        sa.Column("seen_through", sa.BigInteger(), nullable=False, comment="as in visit_statuses"),
        sa.Column("snapshot_id", Key, nullable=False),
        sa.Column("page_status", Text, nullable=True, comment="the project-status of the page; null: there was none"),
        sa.Column(
            "shows_through",
            sa.BigInteger(),
            nullable=True,
            comment="nothing later is on the page; null: the next ranges bound it",
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_sightings_project_id_projects")),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.id"], name=op.f("fk_sightings_snapshot_id_snapshots")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sightings")),
        comment="What pages showed that was new: file states follow from these and from events. Never pruned.",
    )
    _copy_sightings(op.get_bind())
    op.create_index(op.f("ix_sightings_project_id_sightings_seen_through"), "sightings", ["project_id", "seen_through"])
    op.create_index(op.f("ix_sightings_project_id_sightings_page_serial"), "sightings", ["project_id", "page_serial"])
    reference = "fk_snapshots_base_id_snapshots"
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"ALTER TABLE snapshots ADD COLUMN base_id INTEGER CONSTRAINT {reference} REFERENCES snapshots (id)")
    else:
        op.add_column("snapshots", sa.Column("base_id", Key, nullable=True, comment="null: content is the full value"))
        op.create_foreign_key(op.f(reference), "snapshots", "snapshots", ["base_id"], ["id"])
    op.add_column(
        "snapshots",
        sa.Column(
            "number",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="of the differences since the full value",
        ),
    )
    op.add_column(
        "snapshots",
        sa.Column(
            "files",
            sa.Integer(),
            nullable=True,
            comment="how many files the page showed; null: stored before this was counted",
        ),
    )
    _comment("COLUMN snapshots.sha256", "of the full value, also where a difference is kept")
    _comment(
        "COLUMN snapshots.content",
        "zlib-compressed JSON: [[filename, sha256, yanked], ...], or what differs from the base",
    )
    _comment(
        "TABLE snapshots",
        "What a page showed, content-addressed. Full values now and then, and differences in between.",
    )


def _copy_sightings(connection: sa.Connection) -> None:
    """Copies what visits saw, in their order, without pages that only repeat the one before."""
    shown = ("page_serial", "snapshot_id", "page_status")
    visits = sa.table("visits", sa.column("id"), sa.column("project_id"))
    statuses = sa.table(
        "visit_statuses", *(sa.column(name) for name in ("id", "visit_id", "at", "seen_through", *shown))
    )
    columns = ("project_id", "visit_id", "at", "page_serial", "seen_through", "snapshot_id", "page_status")
    sightings = sa.table("sightings", *(sa.column(name) for name in columns))
    before = [
        sa.func.lag(statuses.c[name])
        .over(partition_by=visits.c.project_id, order_by=statuses.c.id)
        .label(f"{name}_before")
        for name in shown
    ]
    seen = (
        sa.select(
            statuses.c.id,
            visits.c.project_id,
            *(statuses.c[name] for name in columns if name != "project_id"),
            *before,
        )
        .join_from(statuses, visits, visits.c.id == statuses.c.visit_id)
        .where(statuses.c.snapshot_id.is_not(None))
        .subquery()
    )
    repeats = (seen.c[name].is_not_distinct_from(seen.c[f"{name}_before"]) for name in shown)
    is_new = sa.or_(seen.c.page_serial.is_(None), ~sa.and_(*repeats))  # a 404 that no event explains counts each time
    rows = sa.select(*(seen.c[name] for name in columns)).where(is_new).order_by(seen.c.id)
    connection.execute(sa.insert(sightings).from_select(list(columns), rows))


def _checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("project_id", Key, autoincrement=False, nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False, comment="the state counts what is known up to here"),
        sa.Column(
            "page_serial",
            sa.BigInteger(),
            nullable=True,
            comment="of the page whose facts it has; null: it lacks some of them",
        ),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="see catalog/derived/checkpoint.py"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_checkpoints_project_id_projects")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_checkpoints")),
        comment="The state of projects with many files, so that a visit need not begin with their first event.",
    )


def _displayed_names() -> None:
    """A project's name follows the newest event or list that names it."""
    op.add_column(
        "projects",
        sa.Column(
            "named_at",
            sa.BigInteger(),
            nullable=True,
            comment="the serial of the event or list that gave the name; null: unknown",
        ),
    )
    _comment("COLUMN projects.name", "as displayed")


def _broken_entries() -> None:
    """Entries of answers that break the protocol are kept aside."""
    op.create_table(
        "broken_entries",
        sa.Column("id", Key, nullable=False),
        sa.Column("source", Short, nullable=False, comment="changelog, project list or project page"),
        sa.Column("digest", Short, nullable=False, comment="of where it was and of its content: none is there twice"),
        sa.Column("project_id", Key, nullable=True, comment="of whose page it is; null: of no page"),
        sa.Column("name", Text, nullable=True, comment="of its project or file, where it has a usable one"),
        sa.Column("serial", sa.BigInteger(), nullable=True, comment="where it has one that is usable at its place"),
        sa.Column(
            "after_serial",
            sa.BigInteger(),
            nullable=True,
            comment="of a row of the changelog: the usable serial before it",
        ),
        sa.Column("problem", Text, nullable=False),
        sa.Column("content", Text, nullable=False, comment="its JSON, cut where it is very long"),
        sa.Column("seen_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_broken_entries_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_broken_entries")),
        sa.UniqueConstraint("source", "digest", name=op.f("uq_broken_entries_source_digest")),
        comment="Entries of the index's answers that break its protocol, kept aside so that the others count.",
    )
    op.create_index(op.f("ix_broken_entries_project_id"), "broken_entries", ["project_id"])
    op.create_index(
        op.f("ix_broken_entries_source_broken_entries_after_serial"), "broken_entries", ["source", "after_serial"]
    )


def _exhausted_visits() -> None:
    """An exhausted visit is done once a later one has succeeded, with a page as new as it wanted."""
    _create_partial_index("ix_visit_queue_exhausted", "visit_queue", ["project_id"], "state = 'gave up'")
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


def _ledger() -> None:
    """Unsealed, sealed and inexact ranges are found without a look at all, which are 52,560 more each year."""
    op.drop_index(op.f("ix_serial_ranges_exact_from"), "serial_ranges")
    op.create_index(op.f(_ALLOCATED), "serial_ranges", ["asked_at", "start"])
    _create_partial_index(
        "ix_serial_ranges_inexact", "serial_ranges", ["start", "exact_from"], "exact_from IS NOT NULL"
    )
    _create_partial_index("ix_serial_ranges_sealed", "serial_ranges", ["end"], "sealed IS true", "sealed IS 1")
    _create_partial_index("ix_serial_ranges_unsealed", "serial_ranges", ["start"], "sealed IS false", "sealed IS 0")


_ALLOCATED = "ix_serial_ranges_asked_at_serial_ranges_start"


def _undo_ledger() -> None:
    op.drop_index(op.f(_ALLOCATED), "serial_ranges")
    for name in ("inexact", "sealed", "unsealed"):
        op.drop_index(f"ix_serial_ranges_{name}", "serial_ranges")
    op.create_index(op.f("ix_serial_ranges_exact_from"), "serial_ranges", ["exact_from"])


def _visit_queue() -> None:
    """What is done leaves the queue with the completion of its scope, and its owner has the count."""
    for owner in ("serial_ranges", "full_crawls"):
        comment = "how many of its visits are done and have left visit_queue"
        column = sa.Column("visited", sa.Integer(), server_default=sa.text("0"), nullable=False, comment=comment)
        op.add_column(owner, column)
    scopes = {"serial_ranges": """'range:' || start || '-' || "end\"""", "full_crawls": "'crawl:' || id"}
    for owner, scope in scopes.items():
        op.execute(f"""
            UPDATE {owner} SET visited = (
                SELECT count(*) FROM visit_queue WHERE scope = {scope} AND visit_queue.state = 'done'
            ) WHERE completed_at IS NOT NULL
        """)
    for owner, scope in (scopes | {"audits": "'audit:' || id"}).items():
        op.execute(f"""
            DELETE FROM visit_queue WHERE state = 'done' AND unlisted_at IS NULL AND scope IN (
                SELECT {scope} FROM {owner} WHERE completed_at IS NOT NULL
            )
        """)
    op.drop_index("ix_visit_queue_due", "visit_queue")
    _create_partial_index(
        "ix_visit_queue_todo", "visit_queue", ["scope", "nice", "due_at", "project_id"], "state = 'todo'"
    )


def _look_ups() -> None:
    op.create_index("ix_visits_of_scope", "visits", ["project_id", "scope"])
    op.create_index(op.f("ix_dumps_start_dumps_end"), "dumps", ["start", "end"])


def _full_crawls() -> None:
    """The reads of a crawl are counted by their numbers, since all that was ever read has no index by its time."""
    comment = "the last of read_attempts when it was opened"
    column = sa.Column("attempts_before", Key, server_default=sa.text("0"), nullable=False, comment=comment)
    op.add_column("full_crawls", column)


def _undo_visit_queue() -> None:
    op.drop_index("ix_visit_queue_todo", "visit_queue")
    op.create_index("ix_visit_queue_due", "visit_queue", ["scope", "state", "nice", "due_at", "project_id"])
    for owner in ("serial_ranges", "full_crawls"):
        op.drop_column(owner, "visited")


def _counters() -> None:
    """Counts that are kept from now on, counted once."""
    op.create_table(
        "counters",
        sa.Column("id", Key, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_counters")),
        comment="How many rows of a kind large tables have: the sum of the amounts of a name. Writers only append.",
    )
    op.execute("""
        INSERT INTO counters (name, amount)
        SELECT 'live: ' || outcome, count(*) FROM distribution_data
        JOIN live_intervals ON live_intervals.distribution_id = distribution_data.distribution_id
        WHERE live_intervals."end" IS NULL GROUP BY outcome
    """)
    op.execute("""
        INSERT INTO counters (name, amount)
        SELECT outcome || ': ' || coalesce(error_kind, 'worker died'), count(*) FROM distribution_data
        WHERE outcome IN ('error', 'gave up') GROUP BY outcome, coalesce(error_kind, 'worker died')
    """)
    for name, counted in (
        ("reads in the queue", "read_queue"),
        ("unexplained changes", "changes WHERE cause = 'unexplained'"),
    ):
        op.execute(f"INSERT INTO counters (name, amount) SELECT '{name}', count(*) FROM {counted}")


def _create_partial_index(
    name: str, table: str, columns: list[str], where: str, where_on_sqlite: str | None = None
) -> None:
    op.create_index(
        name, table, columns, sqlite_where=sa.text(where_on_sqlite or where), postgresql_where=sa.text(where)
    )


_REFERRING = (("module_roots", "list_id"), ("required_names", "list_id"), ("distribution_data", "shared_details_id"))


def _pruning() -> None:
    """What finds the rows that nothing refers to, and where the next pruning of a table begins."""
    for table, column in _REFERRING:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])
    forgotten = "of dumps that end up to here, rows may be gone: a new one gets a name that none can have had"
    through = sa.Column(
        "dumps_forgotten_through", sa.BigInteger(), nullable=False, server_default=sa.text("0"), comment=forgotten
    )
    op.add_column("catalog_state", through)
    op.create_table(
        "pruning_positions",
        sa.Column("table_name", Short, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="the id of the last row that was looked at"),
        sa.PrimaryKeyConstraint("table_name", name=op.f("pk_pruning_positions")),
        comment="How far the pruning of each table came, which goes on there.",
    )


def _hosts() -> None:
    host = sa.Column("host", Text, comment="the name of its machine, for people; null: of an older version")
    op.add_column("scope_claims", host)


def _drop_pruning() -> None:
    op.drop_table("pruning_positions")
    op.drop_column("catalog_state", "dumps_forgotten_through")
    for table, column in _REFERRING:
        op.drop_index(op.f(f"ix_{table}_{column}"), table)


def _epochs() -> None:
    """Answers before the migration had no epoch, so it begins without a row."""
    op.create_table(
        "epochs",
        sa.Column("serial", sa.BigInteger(), nullable=False, comment="from here to the next row's serial"),
        sa.Column(
            "epoch",
            sa.BigInteger(),
            nullable=False,
            comment="greater than those of all rows before; see ledger/epochs.py",
        ),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_epochs")),
        comment="When what is visible at serials changed last after they were complete.",
    )
