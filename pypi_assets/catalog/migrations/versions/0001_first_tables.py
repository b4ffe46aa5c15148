"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "catalog_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("index_url", Text, nullable=False),
        sa.Column("events_since", sa.BigInteger(), nullable=False),
        sa.Column("events_through", sa.BigInteger(), nullable=False),
        sa.Column("exact_from", sa.BigInteger(), nullable=False),
        sa.Column("next_dump_sequence", sa.Integer(), nullable=False),
        sa.CheckConstraint("events_through >= events_since", name=op.f("ck_catalog_state_events_in_order")),
        sa.CheckConstraint("id = 1", name=op.f("ck_catalog_state_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_state")),
        comment="One row. It is locked while a range is sealed, and shared while a change is logged.",
    )
    op.create_table(
        "audits",
        sa.Column("id", Key, nullable=False),
        sa.Column(
            "share_percent",
            sa.Float(),
            nullable=False,
            comment="of all listed projects, visited whatever their serial is",
        ),
        sa.Column("opened_at", sa.Float(), nullable=False),
        sa.Column(
            "serial",
            sa.BigInteger(),
            nullable=True,
            comment="the index's when the list was made; null: not listed yet",
        ),
        sa.Column(
            "findings",
            Text,
            nullable=True,
            comment="JSON: by cause, how many projects and some of them; null: not listed yet",
        ),
        sa.Column("completed_at", sa.Float(), nullable=True),
        sa.Column("open", sa.SmallInteger(), nullable=True, comment="1 while open, then null: at most one is open"),
        sa.CheckConstraint("(open IS NULL) = (completed_at IS NOT NULL)", name=op.f("ck_audits_open_until_completed")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audits")),
        sa.UniqueConstraint("open", name=op.f("uq_audits_open")),
    )
    op.create_table(
        "lister_states",
        sa.Column("lister", Short, nullable=False, comment="xmlrpc or simple"),
        sa.Column("instance", Text, nullable=False, comment="the index's URL"),
        sa.Column("state", Text, nullable=False, comment="JSON, the lister's own; see docs/operations.md"),
        sa.Column("revision", sa.Integer(), nullable=False, comment="counts the saves"),
        sa.Column("updated_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("lister", "instance", name=op.f("pk_lister_states")),
        comment="The state of each lister. How far events are stored is in catalog_state alone.",
    )
    op.create_table(
        "dumps",
        sa.Column("id", Key, nullable=False),
        sa.Column("kind", Short, nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("directory", Short, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("shards", sa.Integer(), nullable=False),
        sa.Column("state", Short, nullable=False),
        sa.Column("inputs", Text, nullable=False, comment="JSON array of directories; only of a compaction"),
        sa.Column("opened_at", sa.Float(), nullable=False),
        sa.Column("committed_at", sa.Float(), nullable=True),
        sa.CheckConstraint('start >= 0 AND "end" > start', name=op.f("ck_dumps_not_empty")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dumps")),
        sa.UniqueConstraint("directory", name=op.f("uq_dumps_directory")),
        comment="An index of the manifests in the storage, and the names allocated for them.",
    )
    op.create_index(op.f("ix_dumps_state"), "dumps", ["state"], unique=False)
    op.create_table(
        "full_crawls",
        sa.Column("id", Key, nullable=False),
        sa.Column(
            "serial",
            sa.BigInteger(),
            nullable=False,
            comment="pinned: the index's last serial when the crawl was opened",
        ),
        sa.Column("selection", Text, nullable=False, comment="JSON array of project names; empty: all"),
        sa.Column("opened_at", sa.Float(), nullable=False),
        sa.Column("listed_at", sa.Float(), nullable=True),
        sa.Column(
            "listed_serial",
            sa.BigInteger(),
            nullable=True,
            comment="the index's when the list was made; null: unknown, or not listed yet",
        ),
        sa.Column("completed_at", sa.Float(), nullable=True),
        sa.Column(
            "with_history",
            sa.Boolean(),
            server_default=sa.false(),
            nullable=False,
            comment="true: every event since serial 0 is stored, and every project of one is visited",
        ),
        sa.Column("open", sa.SmallInteger(), nullable=True, comment="1 while open, then null: at most one is open"),
        sa.CheckConstraint(
            "(open IS NULL) = (completed_at IS NOT NULL)", name=op.f("ck_full_crawls_open_until_completed")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_full_crawls")),
        sa.UniqueConstraint("open", name=op.f("uq_full_crawls_open")),
    )
    op.create_table(
        "leases",
        sa.Column("name", Short, nullable=False),
        sa.Column("holder", Short, nullable=False),
        sa.Column("taken_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "leveldb_versions",
        sa.Column("version", Key, nullable=False),
        sa.Column("asked_at", sa.Float(), nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False, comment="the cover's serial when it was allocated"),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_leveldb_versions")),
    )
    op.create_table(
        "extract_packs",
        sa.Column("id", Key, nullable=False),
        sa.Column("name", Short, nullable=False, comment="sha256 of its content; names it in the storage"),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_extract_packs")),
        sa.UniqueConstraint("name", name=op.f("uq_extract_packs_name")),
        comment="The packs that extracts lie in. A row is there once the pack lies whole in the storage.",
    )
    op.create_table(
        "name_lists",
        sa.Column("id", Key, nullable=False),
        sa.Column("sha256", Short, nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="a JSON array of strings, zlib-compressed"),
        sa.Column(
            "has_roots",
            sa.Boolean(),
            server_default=sa.false(),
            nullable=False,
            comment="true: module_roots knows it",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_name_lists")),
        sa.UniqueConstraint("sha256", name=op.f("uq_name_lists_sha256")),
        comment="Lists of modules and of requirements, each stored once.",
    )
    op.create_table(
        "module_roots",
        sa.Column(
            "name", Text, nullable=False, comment="the part before the first dot, cut short where it is very long"
        ),
        sa.Column("list_id", Key, nullable=False),
        sa.ForeignKeyConstraint(["list_id"], ["name_lists.id"], name=op.f("fk_module_roots_list_id_name_lists")),
        sa.PrimaryKeyConstraint("name", "list_id", name=op.f("pk_module_roots")),
        sqlite_with_rowid=False,
        comment="Which lists of modules hold a module of that top-level name.",
    )
    op.create_table(
        "parquet_exports",
        sa.Column("id", Key, nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False),
        sa.Column("directory", Short, nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_parquet_exports")),
        sa.UniqueConstraint("directory", name=op.f("uq_parquet_exports_directory")),
        comment="The names allocated for attempts to export Parquet.",
    )
    op.create_index(op.f("ix_parquet_exports_serial"), "parquet_exports", ["serial"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", Key, nullable=False),
        sa.Column("normalized", Text, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False, comment="first 16 bits of the sha256 of the normalized name"),
        sa.Column("shard", sa.SmallInteger(), nullable=False, comment="sha256 of the normalized name modulo 1,000"),
        sa.Column("known_since", sa.BigInteger(), nullable=False, comment="events above this serial are all stored"),
        sa.Column("page_serial", sa.BigInteger(), nullable=True, comment="greatest serial of a page that was seen"),
        sa.Column("status", Text, nullable=True, comment="project-status of that page"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("normalized", name=op.f("uq_projects_normalized")),
    )
    op.create_index(op.f("ix_projects_bucket_projects_normalized"), "projects", ["bucket", "normalized"], unique=False)
    op.create_index(op.f("ix_projects_page_serial"), "projects", ["page_serial"], unique=False)
    op.create_index(op.f("ix_projects_shard"), "projects", ["shard"], unique=False)
    op.create_table(
        "rates",
        sa.Column("name", Short, nullable=False),
        sa.Column(
            "due_at", sa.Float(), nullable=False, comment="when the next request may be sent, by the database's clock"
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rates")),
        comment="The limits that all workers share.",
    )
    op.create_table(
        "scope_claims",
        sa.Column("claimed_by", Short, nullable=False, comment="the worker"),
        sa.Column("scope", Short, nullable=False, comment="what it works on, as in visit_queue"),
        sa.Column("claimed_until", sa.Float(), nullable=False, comment="from then on it is not known to live"),
        sa.PrimaryKeyConstraint("claimed_by", name=op.f("pk_scope_claims")),
        comment="The workers that are active on the whole of a scope. There can be several.",
    )
    op.create_table(
        "serial_ranges",
        sa.Column("id", Key, nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("state", Short, nullable=False, comment="asked or complete"),
        sa.Column("sealed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("asked_at", sa.Float(), nullable=False),
        sa.Column(
            "begun_at",
            sa.Float(),
            nullable=True,
            comment="when the work began that completed it, or that did not end",
        ),
        sa.Column(
            "error_text",
            Text,
            nullable=True,
            comment="the error that ended the last worker's work; null: none is known",
        ),
        sa.Column("completed_at", sa.Float(), nullable=True),
        sa.Column(
            "lister", Short, nullable=True, comment="the lister that brought it: xmlrpc or simple; null: a full crawl"
        ),
        sa.Column(
            "exact_from",
            sa.BigInteger(),
            nullable=True,
            comment="no event is known between start and here, so these serials have no answer",
        ),
        sa.CheckConstraint('start >= 0 AND "end" > start', name=op.f("ck_serial_ranges_not_empty")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_serial_ranges")),
        sa.UniqueConstraint("end", name=op.f("uq_serial_ranges_end")),
        sa.UniqueConstraint("start", name=op.f("uq_serial_ranges_start")),
        comment="The ledger: ranges are born here, without gap or overlap.",
    )
    op.create_index(op.f("ix_serial_ranges_exact_from"), "serial_ranges", ["exact_from"], unique=False)
    op.create_index(
        op.f("ix_serial_ranges_state_serial_ranges_start"), "serial_ranges", ["state", "start"], unique=False
    )
    op.create_table(
        "snapshots",
        sa.Column("id", Key, nullable=False),
        sa.Column("sha256", Short, nullable=False),
        sa.Column(
            "content",
            sa.LargeBinary(),
            nullable=False,
            comment="JSON [[filename, sha256, yanked], ...], zlib-compressed",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshots")),
        sa.UniqueConstraint("sha256", name=op.f("uq_snapshots_sha256")),
        comment="What a page showed, content-addressed.",
    )
    op.create_table(
        "dump_files",
        sa.Column("id", Key, nullable=False),
        sa.Column("dump_id", Key, nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("name", Short, nullable=False),
        sa.Column("rows", sa.Integer(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("sha256", Short, nullable=True, comment="null: allocated, not written to its end"),
        sa.Column("frozen", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(["dump_id"], ["dumps.id"], name=op.f("fk_dump_files_dump_id_dumps")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dump_files")),
        sa.UniqueConstraint("dump_id", "name", name=op.f("uq_dump_files_dump_id_name")),
    )
    op.create_index(op.f("ix_dump_files_dump_id_dump_files_shard"), "dump_files", ["dump_id", "shard"], unique=False)
    op.create_table(
        "events",
        sa.Column("serial", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("project_id", Key, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("version", Text, nullable=True),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("action", Text, nullable=False),
        sa.Column("kind", Short, nullable=False, comment="what the action does to files, see index/actions.py"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_events_project_id_projects")),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_events")),
        comment="The changelog as it came.",
    )
    op.create_index(op.f("ix_events_project_id_events_serial"), "events", ["project_id", "serial"], unique=False)
    op.create_table(
        "leveldb_builds",
        sa.Column("id", Key, nullable=False),
        sa.Column("dataset", Short, nullable=False),
        sa.Column("version", Key, nullable=False),
        sa.Column("directory", Short, nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.Column("published_at", sa.Float(), nullable=True),
        sa.Column("serial", sa.BigInteger(), nullable=True),
        sa.Column("base_version", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["version"], ["leveldb_versions.version"], name=op.f("fk_leveldb_builds_version_leveldb_versions")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leveldb_builds")),
        sa.UniqueConstraint("dataset", "directory", name=op.f("uq_leveldb_builds_dataset_directory")),
    )
    op.create_index(
        op.f("ix_leveldb_builds_dataset_leveldb_builds_version"), "leveldb_builds", ["dataset", "version"], unique=False
    )
    op.create_table(
        "releases",
        sa.Column("id", Key, nullable=False),
        sa.Column("project_id", Key, nullable=False),
        sa.Column("version", Text, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_releases_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
        sa.UniqueConstraint("project_id", "version", name=op.f("uq_releases_project_id_version")),
    )
    op.create_table(
        "visit_queue",
        sa.Column(
            "scope",
            Short,
            nullable=False,
            comment="crawl:ID, range:START-END, audit:ID, revisits, or listing: what no range has taken yet",
        ),
        sa.Column("project_id", Key, nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False),
        sa.Column("min_serial", sa.BigInteger(), nullable=False, comment="a page older than this is stale"),
        sa.Column("state", Short, nullable=False, comment="todo, done or gave up"),
        sa.Column("error_text", Text, nullable=True),
        sa.Column(
            "was_gone",
            sa.Boolean(),
            server_default=sa.false(),
            nullable=False,
            comment="whether the last answer was a 404",
        ),
        sa.Column(
            "listed_at",
            sa.BigInteger(),
            nullable=True,
            comment="the list of projects of this serial has it, with min_serial as its own",
        ),
        sa.Column(
            "unlisted_at",
            sa.BigInteger(),
            nullable=True,
            comment="the list of projects of this serial does not have it",
        ),
        sa.Column("nice", sa.SmallInteger(), server_default=sa.text("0"), nullable=False, comment="lower first"),
        sa.Column("due_at", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False, comment="since it was queued"),
        sa.Column("first_failed_at", sa.Float(), nullable=True),
        sa.Column("claimed_by", Short, nullable=True, comment="the worker that does it"),
        sa.Column(
            "claimed_until",
            sa.Float(),
            server_default=sa.text("0"),
            nullable=False,
            comment="from then on another worker may claim it",
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_visit_queue_project_id_projects")),
        sa.PrimaryKeyConstraint("scope", "project_id", name=op.f("pk_visit_queue")),
    )
    op.create_index(
        "ix_visit_queue_due", "visit_queue", ["scope", "state", "nice", "due_at", "project_id"], unique=False
    )
    op.create_index(
        "ix_visit_queue_shard_due",
        "visit_queue",
        ["scope", "shard", "state", "nice", "due_at", "project_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_visit_queue_claimed_by"),
        "visit_queue",
        ["claimed_by"],
        unique=False,
        postgresql_where=sa.text("claimed_by IS NOT NULL"),
        sqlite_where=sa.text("claimed_by IS NOT NULL"),
    )
    op.create_table(
        "visits",
        sa.Column("id", Key, nullable=False),
        sa.Column("project_id", Key, nullable=False),
        sa.Column("visit", sa.Integer(), nullable=False, comment="counts up within the project"),
        sa.Column("kind", Short, nullable=False),
        sa.Column("scope", Short, nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_visits_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_visits")),
        sa.UniqueConstraint("project_id", "visit", name=op.f("uq_visits_project_id_visit")),
    )
    op.create_table(
        "visit_statistics",
        sa.Column("project_id", Key, nullable=False),
        sa.Column(
            "last_seen_at",
            sa.Float(),
            nullable=True,
            comment="when the index last listed it, or the time of its last event",
        ),
        sa.Column(
            "last_visited_at",
            sa.Float(),
            nullable=True,
            comment="when its last visit ended; null: it was never visited",
        ),
        sa.Column(
            "last_successful_at",
            sa.Float(),
            nullable=True,
            comment="when a visit last ended in full or not_found",
        ),
        sa.Column("last_outcome", Short, nullable=True, comment="the status in which its last visit ended"),
        sa.Column(
            "successive_outcomes",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="how many visits in a row ended in it",
        ),
        sa.Column(
            "next_due_at",
            sa.Float(),
            nullable=True,
            comment="when the last failed visit is retried; null: it is not",
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_visit_statistics_project_id_projects")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_visit_statistics")),
        comment="What follows for each project from its visits and their statuses.",
    )
    op.create_index(
        op.f("ix_visit_statistics_last_visited_at_visit_statistics_project_id"),
        "visit_statistics",
        ["last_visited_at", "project_id"],
        unique=False,
    )
    op.create_index(
        "ix_visit_statistics_failing",
        "visit_statistics",
        ["project_id"],
        unique=False,
        sqlite_where=sa.text("last_outcome IN ('failed', 'partial')"),
        postgresql_where=sa.text("last_outcome IN ('failed', 'partial')"),
    )
    op.create_table(
        "distributions",
        sa.Column("id", Key, nullable=False),
        sa.Column("project_id", Key, nullable=False),
        sa.Column("release_id", Key, nullable=False),
        sa.Column("filename", Text, nullable=False),
        sa.Column("kind", Short, nullable=False),
        sa.Column("url", Text, nullable=True, comment="null: known from an event alone"),
        sa.Column("sha256", Short, nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("uploaded_at", Text, nullable=True),
        sa.Column("requires_python", Text, nullable=True),
        sa.Column("yanked_reason", Text, nullable=True),
        sa.Column("core_metadata", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("core_metadata_sha256", Short, nullable=True),
        sa.Column("page_serial", sa.BigInteger(), nullable=True, comment="the page that url and so on come from"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_distributions_project_id_projects")),
        sa.ForeignKeyConstraint(["release_id"], ["releases.id"], name=op.f("fk_distributions_release_id_releases")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_distributions")),
        sa.UniqueConstraint("project_id", "filename", name=op.f("uq_distributions_project_id_filename")),
    )
    op.create_table(
        "visit_statuses",
        sa.Column("id", Key, nullable=False),
        sa.Column("visit_id", Key, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("status", Short, nullable=False),
        sa.Column(
            "page_serial",
            sa.BigInteger(),
            nullable=True,
            comment="the page's own; null: none was seen, or a 404 that no event explains",
        ),
        sa.Column(
            "seen_through",
            sa.BigInteger(),
            nullable=True,
            comment="how far events were stored when the page was judged",
        ),
        sa.Column("snapshot_id", Key, nullable=True),
        sa.Column("page_status", Text, nullable=True, comment="the project-status of the page"),
        sa.Column("text", Text, nullable=True),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["snapshots.id"], name=op.f("fk_visit_statuses_snapshot_id_snapshots")
        ),
        sa.ForeignKeyConstraint(["visit_id"], ["visits.id"], name=op.f("fk_visit_statuses_visit_id_visits")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_visit_statuses")),
        comment="Append-only; the latest status is the outcome of its visit.",
    )
    op.create_index(op.f("ix_visit_statuses_visit_id"), "visit_statuses", ["visit_id"], unique=False)
    op.create_table(
        "changes",
        sa.Column("id", Key, nullable=False),
        sa.Column("distribution_id", Key, nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False, comment="where it happened"),
        sa.Column("cause", Short, nullable=False),
        sa.Column(
            "logged_serial",
            sa.BigInteger(),
            nullable=False,
            comment="where dumps show it: at `serial`, or after what is sealed",
        ),
        sa.ForeignKeyConstraint(
            ["distribution_id"], ["distributions.id"], name=op.f("fk_changes_distribution_id_distributions")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
        sa.UniqueConstraint(
            "distribution_id",
            "serial",
            "cause",
            "logged_serial",
            name=op.f("uq_changes_distribution_id_serial_cause_logged_serial"),
        ),
    )
    op.create_index(op.f("ix_changes_logged_serial"), "changes", ["logged_serial"], unique=False)
    op.create_index(
        "ix_changes_unexplained",
        "changes",
        ["logged_serial"],
        unique=False,
        sqlite_where=sa.text("cause = 'unexplained'"),
        postgresql_where=sa.text("cause = 'unexplained'"),
    )
    op.create_table(
        "distribution_data",
        sa.Column("distribution_id", Key, nullable=False),
        sa.Column("outcome", Short, nullable=False),
        sa.Column("error_kind", Short, nullable=True),
        sa.Column("error_text", Text, nullable=True),
        sa.Column("read_at", sa.Float(), nullable=True),
        sa.Column("extractor_version", sa.Integer(), nullable=True),
        sa.Column("record_digest", Short, nullable=True, comment="of the whole record, to compare it with another one"),
        sa.Column("metadata_version", Text, nullable=True),
        sa.Column("requires_python", Text, nullable=True),
        sa.Column("requires_dist_id", Key, nullable=True),
        sa.Column("modules_id", Key, nullable=True),
        sa.Column("details", Text, nullable=True, comment="JSON: the record's other facts, see docs/formats.md"),
        sa.Column("pack_id", Key, nullable=True, comment="where the extract lies; null: nothing was extracted"),
        sa.Column("pack_offset", sa.BigInteger(), nullable=True),
        sa.Column("pack_length", sa.Integer(), nullable=True),
        sa.Column("bytes_fetched", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("requests", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("seconds", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["distribution_id"], ["distributions.id"], name=op.f("fk_distribution_data_distribution_id_distributions")
        ),
        sa.ForeignKeyConstraint(
            ["modules_id"], ["name_lists.id"], name=op.f("fk_distribution_data_modules_id_name_lists")
        ),
        sa.ForeignKeyConstraint(
            ["pack_id"], ["extract_packs.id"], name=op.f("fk_distribution_data_pack_id_extract_packs")
        ),
        sa.ForeignKeyConstraint(
            ["requires_dist_id"], ["name_lists.id"], name=op.f("fk_distribution_data_requires_dist_id_name_lists")
        ),
        sa.PrimaryKeyConstraint("distribution_id", name=op.f("pk_distribution_data")),
        comment="What was read from each distribution, or why nothing was.",
    )
    op.create_index(op.f("ix_distribution_data_modules_id"), "distribution_data", ["modules_id"], unique=False)
    op.create_index(op.f("ix_distribution_data_outcome"), "distribution_data", ["outcome"], unique=False)
    op.create_index(
        op.f("ix_distribution_data_pack_id_distribution_data_pack_offset"),
        "distribution_data",
        ["pack_id", "pack_offset"],
        unique=False,
    )
    op.create_table(
        "read_queue",
        sa.Column("distribution_id", Key, nullable=False),
        sa.Column("project_id", Key, nullable=False),
        sa.Column("nice", sa.SmallInteger(), server_default=sa.text("0"), nullable=False, comment="lower first"),
        sa.Column("due_at", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False, comment="since it was queued"),
        sa.Column("first_failed_at", sa.Float(), nullable=True),
        sa.Column("claimed_by", Short, nullable=True, comment="the worker that does it"),
        sa.Column(
            "claimed_until",
            sa.Float(),
            server_default=sa.text("0"),
            nullable=False,
            comment="from then on another worker may claim it",
        ),
        sa.ForeignKeyConstraint(
            ["distribution_id"], ["distributions.id"], name=op.f("fk_read_queue_distribution_id_distributions")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_read_queue_project_id_projects")),
        sa.PrimaryKeyConstraint("distribution_id", name=op.f("pk_read_queue")),
        comment="The distributions that are pending and whose address is known; nothing else is here.",
    )
    op.create_index(op.f("ix_read_queue_project_id"), "read_queue", ["project_id"], unique=False)
    op.create_index(
        op.f("ix_read_queue_claimed_by"),
        "read_queue",
        ["claimed_by"],
        unique=False,
        postgresql_where=sa.text("claimed_by IS NOT NULL"),
        sqlite_where=sa.text("claimed_by IS NOT NULL"),
    )
    op.create_table(
        "read_attempts",
        sa.Column("id", Key, nullable=False),
        sa.Column("distribution_id", Key, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False, comment="counts up since the distribution was queued"),
        sa.Column("worker", Short, nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True, comment="null: its worker died"),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("outcome", Short, nullable=False),
        sa.Column("error_kind", Short, nullable=True),
        sa.Column("error_text", Text, nullable=True),
        sa.Column("bytes_fetched", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["distribution_id"], ["distributions.id"], name=op.f("fk_read_attempts_distribution_id_distributions")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_read_attempts")),
        comment="Every attempt to read a distribution. Append-only.",
    )
    op.create_index(op.f("ix_read_attempts_distribution_id"), "read_attempts", ["distribution_id"], unique=False)
    op.create_table(
        "live_intervals",
        sa.Column("distribution_id", Key, nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column(
            "end",
            sa.BigInteger(),
            nullable=True,
            comment="the serial from which it no longer holds; null: it still does",
        ),
        sa.CheckConstraint('"end" IS NULL OR "end" > start', name=op.f("ck_live_intervals_not_empty")),
        sa.ForeignKeyConstraint(
            ["distribution_id"], ["distributions.id"], name=op.f("fk_live_intervals_distribution_id_distributions")
        ),
        sa.PrimaryKeyConstraint("distribution_id", "start", name=op.f("pk_live_intervals")),
    )
    op.create_table(
        "yanked_intervals",
        sa.Column("distribution_id", Key, nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column(
            "end",
            sa.BigInteger(),
            nullable=True,
            comment="the serial from which it no longer holds; null: it still does",
        ),
        sa.CheckConstraint('"end" IS NULL OR "end" > start', name=op.f("ck_yanked_intervals_not_empty")),
        sa.ForeignKeyConstraint(
            ["distribution_id"], ["distributions.id"], name=op.f("fk_yanked_intervals_distribution_id_distributions")
        ),
        sa.PrimaryKeyConstraint("distribution_id", "start", name=op.f("pk_yanked_intervals")),
    )


def downgrade() -> None:
    op.drop_table("yanked_intervals")
    op.drop_table("live_intervals")
    op.drop_table("read_attempts")
    op.drop_table("read_queue")
    op.drop_table("distribution_data")
    op.drop_table("changes")
    op.drop_table("visit_statuses")
    op.drop_table("distributions")
    op.drop_table("visit_statistics")
    op.drop_table("visits")
    op.drop_table("visit_queue")
    op.drop_table("releases")
    op.drop_table("leveldb_builds")
    op.drop_table("events")
    op.drop_table("dump_files")
    op.drop_table("snapshots")
    op.drop_table("serial_ranges")
    op.drop_table("scope_claims")
    op.drop_table("rates")
    op.drop_table("projects")
    op.drop_table("parquet_exports")
    op.drop_table("module_roots")
    op.drop_table("name_lists")
    op.drop_table("extract_packs")
    op.drop_table("leveldb_versions")
    op.drop_table("lister_states")
    op.drop_table("leases")
    op.drop_table("full_crawls")
    op.drop_table("dumps")
    op.drop_table("audits")
    op.drop_table("catalog_state")
