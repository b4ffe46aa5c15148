"""The tables of the first release. `catalog/tables.py` may have changed since.

Comments of tables and columns are not included: `env.py` sets them from `catalog/tables.py` after each migration.
"""

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    false,
    text,
    true,
)
from sqlalchemy import Text as _Text

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None

_NAMES = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
Text = _Text().with_variant(_Text(collation="C"), "postgresql")
Short = String(64).with_variant(String(64, collation="C"), "postgresql")
Key = BigInteger().with_variant(Integer(), "sqlite")
Serial = BigInteger
Time = Float


def _intervals(metadata: MetaData, name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
        Column("start", Serial, primary_key=True),
        Column("end", Serial),
        CheckConstraint('"end" IS NULL OR "end" > start', name="not_empty"),
    )


def _claims() -> tuple[Column[Any], ...]:
    """Return the columns of a queue: priority, due time, failed attempts, and the claiming worker."""
    return (
        Column("nice", SmallInteger, nullable=False, server_default=text("0")),
        Column("due_at", Time, nullable=False, server_default=text("0")),
        Column("attempts", Integer, nullable=False, server_default=text("0")),
        Column("first_failed_at", Time),
        Column("claimed_by", Short),
        Column("claimed_until", Time, nullable=False, server_default=text("0")),
    )


def _rulesets() -> Column[Any]:
    return Column("rulesets", Text)


def _visited() -> Column[Any]:
    return Column("visited", Integer, nullable=False, server_default=text("0"))


def _partial_index(name: str, *columns: str, where: str, on_sqlite: str | None = None) -> Index:
    return Index(name, *columns, sqlite_where=text(on_sqlite or where), postgresql_where=text(where))


def upgrade() -> None:
    metadata = MetaData(naming_convention=_NAMES)
    Table(
        "catalog_state",
        metadata,
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("index_url", Text, nullable=False),
        Column("events_since", Serial, nullable=False),
        Column("events_through", Serial, nullable=False),
        Column("exact_from", Serial, nullable=False),
        Column("next_dump_sequence", Integer, nullable=False),
        Column("dumps_forgotten_through", Serial, nullable=False, server_default=text("0")),
        Column("file_origin", Text),
        Column("follows_all", Boolean, nullable=False, server_default=true()),
        Column("all_events_since", Serial),
        Column("identity", Text, nullable=False, server_default=text("''")),
        CheckConstraint("id = 1", name="one_row"),
        CheckConstraint("events_through >= events_since", name="events_in_order"),
    )
    Table(
        "counters",
        metadata,
        Column("id", Key, primary_key=True),
        Column("name", Text, nullable=False),
        Column("amount", BigInteger, nullable=False),
    )
    Table(
        "projects",
        metadata,
        Column("id", Key, primary_key=True),
        Column("normalized", Text, nullable=False, unique=True),
        Column("name", Text, nullable=False),
        Column("named_at", Serial),
        Column("bucket", Integer, nullable=False),
        Column("shard", SmallInteger, nullable=False),
        Column("known_since", Serial, nullable=False),
        Column("page_serial", Serial),
        Column("status", Text),
        Index(None, "shard"),
        Index(None, "bucket", "normalized"),
        Index(None, "page_serial"),
    )
    Table(
        "events",
        metadata,
        Column("serial", Serial, primary_key=True, autoincrement=False),
        Column("project_id", ForeignKey("projects.id"), nullable=False),
        Column("name", Text, nullable=False),
        Column("version", Text),
        Column("timestamp", BigInteger, nullable=False),
        Column("action", Text, nullable=False),
        Column("kind", Short, nullable=False),
        Index(None, "project_id", "serial"),
    )
    Table(
        "broken_entries",
        metadata,
        Column("id", Key, primary_key=True),
        Column("source", Short, nullable=False),
        Column("digest", Short, nullable=False),
        Column("project_id", ForeignKey("projects.id")),
        Column("name", Text),
        Column("serial", Serial),
        Column("after_serial", Serial),
        Column("problem", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("seen_at", Time, nullable=False),
        UniqueConstraint("source", "digest"),
        Index(None, "project_id"),
        Index(None, "source", "after_serial"),
    )
    Table(
        "releases",
        metadata,
        Column("id", Key, primary_key=True),
        Column("project_id", ForeignKey("projects.id"), nullable=False),
        Column("version", Text, nullable=False),
        UniqueConstraint("project_id", "version"),
    )
    Table(
        "distributions",
        metadata,
        Column("id", Key, primary_key=True),
        Column("project_id", ForeignKey("projects.id"), nullable=False),
        Column("release_id", ForeignKey("releases.id"), nullable=False),
        Column("filename", Text, nullable=False),
        Column("kind", Short, nullable=False),
        Column("url", Text),
        Column("sha256", Short),
        Column("size", BigInteger),
        Column("uploaded_at", Text),
        Column("requires_python", Text),
        Column("yanked_reason", Text),
        Column("core_metadata", Boolean, nullable=False, server_default=false()),
        Column("core_metadata_sha256", Short),
        Column("first_seen_at", Text),
        Column("page_serial", Serial),
        Column("generation", Integer, nullable=False, server_default=text("1")),
        UniqueConstraint("project_id", "filename"),
        Index(None, "sha256"),
    )
    _intervals(metadata, "live_intervals")
    _intervals(metadata, "yanked_intervals")
    Table(
        "changes",
        metadata,
        Column("id", Key, primary_key=True),
        Column("distribution_id", ForeignKey("distributions.id"), nullable=False),
        Column("serial", Serial, nullable=False),
        Column("cause", Short, nullable=False),
        Column("logged_serial", Serial, nullable=False),
        Column("dump_sequence", Integer),
        UniqueConstraint("distribution_id", "serial", "cause", "logged_serial"),
        Index(None, "logged_serial"),
        Index(
            "ix_changes_unexplained",
            "logged_serial",
            sqlite_where=text("cause = 'unexplained'"),
            postgresql_where=text("cause = 'unexplained'"),
        ),
    )
    Table(
        "name_lists",
        metadata,
        Column("id", Key, primary_key=True),
        Column("sha256", Short, nullable=False, unique=True),
        Column("length", Integer, nullable=False),
        Column("content", LargeBinary, nullable=False),
        Column("has_roots", Boolean, nullable=False, server_default=false()),
        Column("has_required", Boolean, nullable=False, server_default=false()),
    )
    Table(
        "shared_details",
        metadata,
        Column("id", Key, primary_key=True),
        Column("sha256", Short, nullable=False, unique=True),
        Column("content", LargeBinary, nullable=False),
    )
    Table(
        "module_roots",
        metadata,
        Column("name", Text, primary_key=True),
        Column("list_id", ForeignKey("name_lists.id"), primary_key=True, index=True),
        sqlite_with_rowid=False,
    )
    Table(
        "required_names",
        metadata,
        Column("name", Text, primary_key=True),
        Column("list_id", ForeignKey("name_lists.id"), primary_key=True, index=True),
        Column("condition", SmallInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    Table(
        "extract_packs",
        metadata,
        Column("id", Key, primary_key=True),
        Column("name", Short, nullable=False, unique=True),
        Column("size", BigInteger, nullable=False),
    )
    Table(
        "distribution_data",
        metadata,
        Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
        Column("outcome", Short, nullable=False, index=True),
        Column("error_kind", Short),
        Column("error_text", Text),
        Column("read_at", Time),
        Column("extractor_version", Integer),
        Column("record_digest", Short),
        Column("metadata_version", Text),
        Column("requires_python", Text),
        Column("requires_dist_id", ForeignKey("name_lists.id"), index=True),
        Column("modules_id", ForeignKey("name_lists.id"), index=True),
        Column("details", Text),
        Column("shared_details_id", ForeignKey("shared_details.id"), index=True),
        Column("pack_id", ForeignKey("extract_packs.id")),
        Column("pack_offset", BigInteger),
        Column("pack_length", Integer),
        Column("bytes_fetched", BigInteger, nullable=False, server_default=text("0")),
        Column("requests", Integer, nullable=False, server_default=text("0")),
        Column("seconds", Float, nullable=False, server_default=text("0")),
        Column("is_rejected", Boolean, nullable=False, server_default=false()),
        Index(None, "pack_id", "pack_offset"),
    )
    read_queue = Table(
        "read_queue",
        metadata,
        Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
        Column("project_id", ForeignKey("projects.id"), nullable=False, index=True),
        Column("is_first", Boolean, nullable=False, server_default=false()),
        *_claims(),
    )
    Table(
        "past_generations",
        metadata,
        Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
        Column("generation", Integer, primary_key=True, autoincrement=False),
        Column("until", Serial, nullable=False),
        Column("sha256", Short, index=True),
        Column("content", LargeBinary, nullable=False),
    )
    Table(
        "read_attempts",
        metadata,
        Column("id", Key, primary_key=True),
        Column("distribution_id", ForeignKey("distributions.id"), nullable=False, index=True),
        Column("attempt", Integer, nullable=False),
        Column("worker", Short, nullable=False),
        Column("started_at", Time),
        Column("seconds", Float, nullable=False),
        Column("outcome", Short, nullable=False),
        Column("error_kind", Short),
        Column("error_text", Text),
        Column("bytes_fetched", BigInteger, nullable=False),
        Column("requests", Integer, nullable=False),
        _rulesets(),
    )
    Table(
        "snapshots",
        metadata,
        Column("id", Key, primary_key=True),
        Column("sha256", Short, nullable=False, unique=True),
        Column("content", LargeBinary),
        Column("base_id", ForeignKey("snapshots.id")),
        Column("number", Integer, nullable=False, server_default=text("0")),
        Column("files", Integer, nullable=False),
    )
    Table(
        "visits",
        metadata,
        Column("id", Key, primary_key=True),
        Column("project_id", ForeignKey("projects.id"), nullable=False),
        Column("visit", Integer, nullable=False),
        Column("kind", Short, nullable=False),
        Column("workload", Short, nullable=False),
        Column("started_at", Time, nullable=False),
        _rulesets(),
        UniqueConstraint("project_id", "visit"),
        Index("ix_visits_of_workload", "project_id", "workload"),
    )
    Table(
        "visit_statuses",
        metadata,
        Column("id", Key, primary_key=True),
        Column("visit_id", ForeignKey("visits.id"), nullable=False, index=True),
        Column("at", Time, nullable=False),
        Column("status", Short, nullable=False),
        Column("page_serial", Serial),
        Column("seen_through", Serial),
        Column("snapshot_id", ForeignKey("snapshots.id")),
        Column("page_status", Text),
        Column("text", Text),
        Column("worker", Short),
        Column("logged_serial", Serial),
        Index(
            "ix_visit_statuses_logged",
            "logged_serial",
            "visit_id",
            sqlite_where=text("logged_serial IS NOT NULL"),
            postgresql_where=text("logged_serial IS NOT NULL"),
        ),
    )
    Table(
        "sightings",
        metadata,
        Column("id", Key, primary_key=True),
        Column("project_id", ForeignKey("projects.id"), nullable=False),
        Column("visit_id", BigInteger),
        Column("at", Time, nullable=False),
        Column("page_serial", Serial),
        Column("seen_through", Serial, nullable=False),
        Column("snapshot_id", ForeignKey("snapshots.id"), nullable=False),
        Column("page_status", Text),
        Column("shows_through", Serial),
        Column("not_before", Time),
        Index(None, "project_id", "seen_through"),
        Index(None, "project_id", "page_serial"),
    )
    Table(
        "checkpoints",
        metadata,
        Column("project_id", ForeignKey("projects.id"), primary_key=True, autoincrement=False),
        Column("serial", Serial, nullable=False),
        Column("page_serial", Serial),
        Column("content", LargeBinary, nullable=False),
    )
    Table(
        "visit_statistics",
        metadata,
        Column("project_id", ForeignKey("projects.id"), primary_key=True),
        Column("last_seen_at", Time),
        Column("last_visited_at", Time),
        Column("last_successful_at", Time),
        Column("last_outcome", Short),
        Column("successive_outcomes", Integer, nullable=False, server_default=text("0")),
        Column("next_due_at", Time),
        Column("last_changed_at", Time),
        Column("change_gap_s", Float),
        Column("pace", SmallInteger, nullable=False, server_default=text("10")),
        Column("unshown_since", Time),
        Index(None, "last_visited_at", "project_id"),
        Index(None, "pace", "last_visited_at", "project_id"),
        Index(
            "ix_visit_statistics_failing",
            "project_id",
            sqlite_where=text("last_outcome IN ('failed', 'partial')"),
            postgresql_where=text("last_outcome IN ('failed', 'partial')"),
        ),
    )
    Table(
        "serial_ranges",
        metadata,
        Column("id", Key, primary_key=True),
        Column("start", Serial, nullable=False, unique=True),
        Column("end", Serial, nullable=False, unique=True),
        Column("state", Short, nullable=False),
        Column("sealed", Boolean, nullable=False, server_default=false()),
        Column("requested_at", Time, nullable=False),
        Column("begun_at", Time),
        Column("error_text", Text),
        Column("completed_at", Time),
        Column("lister", Short),
        Column("exact_from", Serial),
        _visited(),
        CheckConstraint('start >= 0 AND "end" > start', name="not_empty"),
        Index(None, "state", "start"),
        Index(None, "requested_at", "start"),
        _partial_index("ix_serial_ranges_inexact", "start", "exact_from", where="exact_from IS NOT NULL"),
        _partial_index("ix_serial_ranges_sealed", "end", where="sealed IS true", on_sqlite="sealed IS 1"),
        _partial_index("ix_serial_ranges_unsealed", "start", where="sealed IS false", on_sqlite="sealed IS 0"),
    )
    Table(
        "full_crawls",
        metadata,
        Column("id", Key, primary_key=True),
        Column("serial", Serial, nullable=False),
        Column("selection", Text, nullable=False),
        Column("opened_at", Time, nullable=False),
        Column("listed_at", Time),
        Column("listed_serial", Serial),
        Column("completed_at", Time),
        Column("with_history", Boolean, nullable=False, server_default=false()),
        Column("open", SmallInteger, unique=True),
        Column("attempts_before", Key, nullable=False, server_default=text("0")),
        Column("limited_to", Integer),
        _visited(),
        CheckConstraint("(open IS NULL) = (completed_at IS NOT NULL)", name="open_until_completed"),
    )
    visit_queue = Table(
        "visit_queue",
        metadata,
        Column("workload", Short, primary_key=True),
        Column("project_id", ForeignKey("projects.id"), primary_key=True),
        Column("shard", SmallInteger, nullable=False),
        Column("min_serial", Serial, nullable=False),
        Column("state", Short, nullable=False),
        Column("error_text", Text),
        Column("was_gone", Boolean, nullable=False, server_default=false()),
        Column("listed_at", Serial),
        Column("unlisted_at", Serial),
        Column("queued_at", Time),
        *_claims(),
        _partial_index("ix_visit_queue_todo", "workload", "nice", "due_at", "project_id", where="state = 'todo'"),
        _partial_index("ix_visit_queue_exhausted", "project_id", where="state = 'gave up'"),
        Index("ix_visit_queue_shard_due", "workload", "shard", "state", "nice", "due_at", "project_id"),
    )
    for _queue in (read_queue, visit_queue):
        _is_claimed = _queue.c.claimed_by.is_not(None)
        Index(None, _queue.c.claimed_by, postgresql_where=_is_claimed, sqlite_where=_is_claimed)
    Table(
        "requested_visits",
        metadata,
        Column("id", Key, primary_key=True),
        Column("project_id", ForeignKey("projects.id"), nullable=False),
        Column("requested_at", Time, nullable=False),
        Column("before_visit", Integer, nullable=False),
        Column("ended_at", Time),
        Column("visit", Integer),
        Column("open", SmallInteger),
        UniqueConstraint("project_id", "open"),
        _partial_index("ix_requested_visits_open", "id", where="open = 1"),
        CheckConstraint("(open IS NULL) = (ended_at IS NOT NULL)", name="open_until_ended"),
        sqlite_autoincrement=True,
    )
    Table(
        "workload_claims",
        metadata,
        Column("claimed_by", Short, primary_key=True),
        Column("workload", Short, nullable=False),
        Column("claimed_until", Time, nullable=False),
        Column("host", Text, nullable=False),
    )
    Table(
        "audits",
        metadata,
        Column("id", Key, primary_key=True),
        Column("share_percent", Float, nullable=False),
        Column("opened_at", Time, nullable=False),
        Column("serial", Serial),
        Column("findings", Text),
        Column("completed_at", Time),
        Column("open", SmallInteger, unique=True),
        CheckConstraint("(open IS NULL) = (completed_at IS NOT NULL)", name="open_until_completed"),
    )
    Table(
        "lister_states",
        metadata,
        Column("lister", Short, primary_key=True),
        Column("instance", Text, primary_key=True),
        Column("state", Text, nullable=False),
        Column("revision", Integer, nullable=False),
        Column("updated_at", Time, nullable=False),
    )
    Table(
        "observed_projects",
        metadata,
        Column("project", Text, primary_key=True),
        Column("url", Text),
        Column("revision", Integer, nullable=False),
        Column("serial", Serial),
        Column("content", LargeBinary),
        Column("is_there", Boolean, nullable=False, server_default=false()),
        Column("etag", Text),
        Column("last_modified", Text),
        Column("due_at", Time, nullable=False),
        Column("pause_s", Float, nullable=False, server_default=text("0")),
        Column("looked_at", Time),
        Column("failures", Integer, nullable=False, server_default=text("0")),
        Column("error_text", Text),
        Column("changed_at", Time),
        Column("change_gap_s", Float),
        Index(None, "due_at"),
    )
    Table(
        "observed_events",
        metadata,
        Column("serial", Serial, primary_key=True, autoincrement=False),
        Column("project", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("version", Text),
        Column("action", Text, nullable=False),
        Column("seen_at", Time, nullable=False),
        Column("not_before", Time),
    )
    Table("rates", metadata, Column("name", Short, primary_key=True), Column("due_at", Time, nullable=False))
    Table(
        "clock_offsets", metadata, Column("machine", Short, primary_key=True), Column("offset_s", Time, nullable=False)
    )
    Table(
        "dumps",
        metadata,
        Column("id", Key, primary_key=True),
        Column("kind", Short, nullable=False),
        Column("start", Serial, nullable=False),
        Column("end", Serial, nullable=False),
        Column("directory", Short, nullable=False, unique=True),
        Column("sequence", Integer, nullable=False),
        Column("shards", Integer, nullable=False),
        Column("state", Short, nullable=False, index=True),
        Column("inputs", Text, nullable=False),
        Column("opened_at", Time, nullable=False),
        Column("committed_at", Time),
        Column("columns", Text, nullable=False),
        Column("leaf_count", Integer),
        Column("leaf_digest", Short),
        CheckConstraint('start >= 0 AND "end" >= start', name="in_order"),
        Index(None, "start", "end"),
    )
    Table(
        "dump_files",
        metadata,
        Column("id", Key, primary_key=True),
        Column("dump_id", ForeignKey("dumps.id"), nullable=False),
        Column("shard", Integer, nullable=False),
        Column("name", Short, nullable=False),
        Column("rows", Integer),
        Column("size", BigInteger),
        Column("sha256", Short),
        Column("frozen", Boolean, nullable=False, server_default=false()),
        UniqueConstraint("dump_id", "name"),
        Index(None, "dump_id", "shard"),
    )
    Table(
        "leveldb_versions",
        metadata,
        Column("version", Key, primary_key=True),
        Column("requested_at", Time, nullable=False),
        Column("serial", Serial, nullable=False),
    )
    Table(
        "leveldb_builds",
        metadata,
        Column("id", Key, primary_key=True),
        Column("dataset", Short, nullable=False),
        Column("version", ForeignKey("leveldb_versions.version"), nullable=False),
        Column("directory", Short, nullable=False),
        Column("started_at", Time, nullable=False),
        Column("published_at", Time),
        Column("serial", Serial),
        Column("base_version", Integer),
        UniqueConstraint("dataset", "directory"),
        Index(None, "dataset", "version"),
    )
    Table(
        "parquet_exports",
        metadata,
        Column("id", Key, primary_key=True),
        Column("serial", Serial, nullable=False, index=True),
        Column("directory", Short, nullable=False, unique=True),
        Column("started_at", Time, nullable=False),
    )
    Table(
        "leases",
        metadata,
        Column("name", Short, primary_key=True),
        Column("holder", Short, nullable=False),
        Column("taken_at", Time, nullable=False),
        Column("expires_at", Time, nullable=False),
    )
    Table(
        "pruning_positions",
        metadata,
        Column("table_name", Short, primary_key=True),
        Column("position", BigInteger, nullable=False),
    )
    Table(
        "epochs",
        metadata,
        Column("serial", Serial, primary_key=True, autoincrement=False),
        Column("epoch", Serial, nullable=False),
    )
    Table(
        "scopes",
        metadata,
        Column("id", Key, primary_key=True),
        Column("name", Text, nullable=False, unique=True),
        Column("created_at", Time, nullable=False),
        Column("created_serial", Serial, nullable=False),
        Column("roots", Text, nullable=False),
        Column("most_depth", Integer),
        Column("nice", SmallInteger, nullable=False),
        Column("concurrency", Integer),
        Column("tag", Text),
        Column("match_only", Boolean, nullable=False),
        Column("is_aborted", Boolean, nullable=False, server_default=false()),
        Column("completed_at", Time),
        Column("pruned_at", Time),
        Column("pruned_serial", Serial),
        Column("keep_files", Boolean, nullable=False, server_default=false()),
        Column("most", BigInteger),
        Column("kept_bytes", BigInteger, nullable=False, server_default=text("0")),
        Column("evicted_files", BigInteger, nullable=False, server_default=text("0")),
        Column("evicted_bytes", BigInteger, nullable=False, server_default=text("0")),
        _visited(),
    )
    Table(
        "kept_files",
        metadata,
        Column("sha256", Short, primary_key=True),
        Column("attempt", Short, nullable=False),
        Column("size", BigInteger, nullable=False),
        Column("state", Short, nullable=False),
        Column("worker", Short, nullable=False),
        Column("until", Time, nullable=False),
        Column("kept_at", Time),
        Column("blocks", LargeBinary),
        Column("standing", SmallInteger, nullable=False),
        Column("uploaded", Text, nullable=False),
        Index("ix_kept_files_order", "standing", "uploaded", "sha256"),
        _partial_index("ix_kept_files_unfinished", "state", "sha256", where="state <> 'kept'"),
    )
    Table(
        "kept_in_scopes",
        metadata,
        Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
        Column("sha256", ForeignKey("kept_files.sha256"), primary_key=True, index=True),
    )
    Table(
        "forgotten_files",
        metadata,
        Column("sha256", Short, primary_key=True),
        Column("forgotten_at", Time, nullable=False),
        Column("reason", Text, nullable=False),
        Column("takedown_id", Key),
        Column("had_bytes", Boolean, nullable=False),
        Column("deleted_at", Time),
        _partial_index("ix_forgotten_files_pending", "sha256", where="deleted_at IS NULL"),
    )
    Table(
        "scope_rulesets",
        metadata,
        Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
        Column("version", Integer, primary_key=True, autoincrement=False),
        Column("from_serial", Serial, nullable=False),
        Column("created_at", Time, nullable=False),
        Column("content", Text, nullable=False),
    )
    Table(
        "scope_projects",
        metadata,
        Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
        Column("project_id", ForeignKey("projects.id"), primary_key=True, index=True),
        Column("depth", Integer, nullable=False),
        Column("is_beyond", Boolean, nullable=False),
        Column("first_serial", Serial, nullable=False),
        Column("entered_serial", Serial, nullable=False),
        Column("is_late", Boolean, nullable=False),
        Column("entered_at", Time, nullable=False),
        Column("nice", SmallInteger, nullable=False),
    )
    Table(
        "scope_edges",
        metadata,
        Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
        Column("project_id", ForeignKey("projects.id"), primary_key=True),
        Column("required", Text, primary_key=True),
        Column("start", Serial, primary_key=True),
        Column("end", Serial),
        sqlite_with_rowid=False,
    )
    Table("scope_marks", metadata, Column("id", Key, primary_key=True), Column("project_id", Key, nullable=False))
    Table(
        "followed_intervals",
        metadata,
        Column("project_id", ForeignKey("projects.id"), primary_key=True),
        Column("start", Serial, primary_key=True),
        Column("end", Serial),
        Column("exact_from", Serial),
        Index(None, "exact_from"),
        _partial_index("ix_followed_intervals_entering", "project_id", where="exact_from IS NULL"),
    )
    Table(
        "journal_notices",
        metadata,
        Column("logged_serial", Serial, primary_key=True, autoincrement=False),
        Column("kind", Short, primary_key=True),
        Column("of_serial", Serial, nullable=False),
        Column("dump_sequence", Integer),
    )
    Table(
        "journal_segments",
        metadata,
        Column("id", Key, primary_key=True),
        Column("stream", Short, nullable=False),
        Column("generation", Integer, nullable=False),
        Column("start", Serial, nullable=False),
        Column("end", Serial, nullable=False),
        Column("number", Integer),
        Column("name", Text, nullable=False),
        Column("records", Integer, nullable=False),
        Column("bytes", BigInteger, nullable=False),
        Column("size", BigInteger, nullable=False),
        Column("sha256", Short, nullable=False),
        Column("manifest_sha256", Short),
        Column("written_at", Time, nullable=False),
        UniqueConstraint("stream", "generation", "start"),
        UniqueConstraint("stream", "generation", "number"),
        CheckConstraint('start >= 0 AND "end" > start', name="not_empty"),
    )
    Table(
        "journal_takedowns",
        metadata,
        Column("id", Key, primary_key=True),
        Column("added_at", Time, nullable=False),
        Column("reason", Text, nullable=False),
        Column("project", Text),
        Column("version", Text),
        Column("filename", Text),
        Column("stream", Short),
        Column("serial", Serial),
        Column("ordinal", Serial),
        Column("hides_name", Boolean, nullable=False, server_default=false()),
        Column("done_at", Time),
        sqlite_autoincrement=True,
    )
    Table(
        "journal_consumers",
        metadata,
        Column("name", Text, primary_key=True),
        Column("cursor", Text, nullable=False),
        Column("serial", Serial, nullable=False),
        Column("created_at", Time, nullable=False),
        Column("seen_at", Time, nullable=False),
    )
    Table(
        "journal_letters",
        metadata,
        Column("id", Key, primary_key=True),
        Column("consumer", Text, nullable=False),
        Column("project", Text, nullable=False),
        Column("cursor", Text, nullable=False),
        Column("content", LargeBinary, nullable=False),
        Column("attempts", Integer, nullable=False, server_default=text("0")),
        Column("due_at", Time, nullable=False),
        Column("error_text", Text),
        Column("is_dead", Boolean, nullable=False, server_default=false()),
        Index("ix_journal_letters_due", "consumer", "is_dead", "due_at"),
        Index("ix_journal_letters_of_project", "consumer", "project", "id"),
        sqlite_autoincrement=True,
    )

    metadata.create_all(op.get_bind())
