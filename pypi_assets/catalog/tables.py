"""The tables. docs/formats.md explains serials, intervals and states; constraints here enforce the rules.

Texts compare bytewise on every database, so the order of the catalog is the order of the dumps.
"""

from typing import Any

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

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Text = _Text().with_variant(_Text(collation="C"), "postgresql")
Short = String(64).with_variant(String(64, collation="C"), "postgresql")
Key = BigInteger().with_variant(Integer(), "sqlite")  # SQLite counts up by itself on INTEGER alone
Serial = BigInteger
Time = Float  # unix seconds, UTC

catalog_state = Table(
    "catalog_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("index_url", Text, nullable=False),
    Column("events_since", Serial, nullable=False),
    Column("events_through", Serial, nullable=False),
    Column("exact_from", Serial, nullable=False),
    Column("next_dump_sequence", Integer, nullable=False),
    Column(
        "dumps_forgotten_through",
        Serial,
        nullable=False,
        server_default=text("0"),
        comment="of dumps that end up to here, rows may be gone: a new one gets a name that none can have had",
    ),
    Column(
        "file_origin", Text, comment="scheme and host of the files; empty: the index's own alone; null: not decided"
    ),
    Column(
        "follows_all",
        Boolean,
        nullable=False,
        server_default=true(),
        comment="false: scopes decide which projects are followed, see followed_intervals",
    ),
    Column(
        "all_events_since",
        Serial,
        comment="events of projects that are not followed are stored above this serial; null: above events_since",
    ),
    Column(
        "identity",
        Text,
        nullable=False,
        server_default=text("''"),
        comment="distinguishes the catalog from others; index.json of its storage names it",
    ),
    CheckConstraint("id = 1", name="one_row"),
    CheckConstraint("events_through >= events_since", name="events_in_order"),
    comment="One row. It is locked while a range is sealed, and shared while a change is logged.",
)

counters = Table(
    "counters",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    comment="How many rows of a kind large tables have: the sum of the amounts of a name. Writers only append.",
)

projects = Table(
    "projects",
    metadata,
    Column("id", Key, primary_key=True),
    Column("normalized", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False, comment="as displayed"),
    Column("named_at", Serial, comment="the serial of the event or list that gave the name; null: unknown"),
    Column("bucket", Integer, nullable=False, comment="first 16 bits of the sha256 of the normalized name"),
    Column("shard", SmallInteger, nullable=False, comment="sha256 of the normalized name modulo 1,000"),
    Column("known_since", Serial, nullable=False, comment="events above this serial are all stored"),
    Column("page_serial", Serial, comment="greatest serial of a page that was seen"),
    Column("status", Text, comment="project-status of that page"),
    Index(None, "shard"),
    Index(None, "bucket", "normalized"),
    Index(None, "page_serial"),
)

events = Table(
    "events",
    metadata,
    Column("serial", Serial, primary_key=True, autoincrement=False),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Text),
    Column("timestamp", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", Short, nullable=False, comment="what the action does to files, see index/actions.py"),
    Index(None, "project_id", "serial"),
    comment="The changelog as it came.",
)

broken_entries = Table(
    "broken_entries",
    metadata,
    Column("id", Key, primary_key=True),
    Column("source", Short, nullable=False, comment="changelog, project list or project page"),
    Column("digest", Short, nullable=False, comment="of where it was and of its content: none is there twice"),
    Column("project_id", ForeignKey("projects.id"), comment="of whose page it is; null: of no page"),
    Column("name", Text, comment="of its project or file, where it has a usable one"),
    Column("serial", Serial, comment="where it has one that is usable at its place"),
    Column("after_serial", Serial, comment="of a row of the changelog: the usable serial before it"),
    Column("problem", Text, nullable=False),
    Column("content", Text, nullable=False, comment="its JSON, cut where it is very long"),
    Column("seen_at", Time, nullable=False),
    UniqueConstraint("source", "digest"),
    Index(None, "project_id"),
    Index(None, "source", "after_serial"),
    comment="Entries of the index's answers that break its protocol, kept aside so that the others count.",
)

releases = Table(
    "releases",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("version", Text, nullable=False),
    UniqueConstraint("project_id", "version"),
)

distributions = Table(
    "distributions",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("release_id", ForeignKey("releases.id"), nullable=False),
    Column("filename", Text, nullable=False),
    Column("kind", Short, nullable=False),
    Column("url", Text, comment="null: known from an event alone"),
    Column("sha256", Short),
    Column("size", BigInteger),
    Column("uploaded_at", Text),
    Column("requires_python", Text),
    Column("yanked_reason", Text),
    Column("core_metadata", Boolean, nullable=False, server_default=false()),
    Column("core_metadata_sha256", Short),
    Column("first_seen_at", Text, comment="when an observed index first showed it, if no page states its upload"),
    Column("page_serial", Serial, comment="the page that url and so on come from"),
    Column(
        "generation",
        Integer,
        nullable=False,
        server_default=text("1"),
        comment="counts the contents that the index has had under this name",
    ),
    UniqueConstraint("project_id", "filename"),
    Index(None, "sha256"),
)


def _intervals(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
        Column("start", Serial, primary_key=True),
        Column("end", Serial, comment="the serial from which it no longer holds; null: it still does"),
        CheckConstraint('"end" IS NULL OR "end" > start', name="not_empty"),
    )


live_intervals = _intervals("live_intervals")
yanked_intervals = _intervals("yanked_intervals")

changes = Table(
    "changes",
    metadata,
    Column("id", Key, primary_key=True),
    Column("distribution_id", ForeignKey("distributions.id"), nullable=False),
    Column("serial", Serial, nullable=False, comment="where it happened"),
    Column("cause", Short, nullable=False),
    Column(
        "logged_serial", Serial, nullable=False, comment="where dumps show it: at `serial`, or after what is sealed"
    ),
    Column(
        "dump_sequence",
        Integer,
        comment="dumps that begin with this sequence or later know of it; null: all that have its logged_serial",
    ),
    UniqueConstraint("distribution_id", "serial", "cause", "logged_serial"),
    Index(None, "logged_serial"),
    Index(
        "ix_changes_unexplained",
        "logged_serial",
        sqlite_where=text("cause = 'unexplained'"),
        postgresql_where=text("cause = 'unexplained'"),
    ),
)

name_lists = Table(
    "name_lists",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sha256", Short, nullable=False, unique=True),
    Column("length", Integer, nullable=False),
    Column("content", LargeBinary, nullable=False, comment="a JSON array of strings, zlib-compressed"),
    Column("has_roots", Boolean, nullable=False, server_default=false(), comment="true: module_roots knows it"),
    Column("has_required", Boolean, nullable=False, server_default=false(), comment="true: required_names knows it"),
    comment="Lists of modules and of requirements, each stored once.",
)

shared_details = Table(
    "shared_details",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sha256", Short, nullable=False, unique=True),
    Column("content", LargeBinary, nullable=False, comment="a JSON object, zlib-compressed"),
    comment="What the files of a release have in common of their details, each once.",
)

module_roots = Table(
    "module_roots",
    metadata,
    Column("name", Text, primary_key=True, comment="the part before the first dot, cut short where it is very long"),
    Column("list_id", ForeignKey("name_lists.id"), primary_key=True, index=True),
    sqlite_with_rowid=False,
    comment="Which lists of modules hold a module of that top-level name.",
)

required_names = Table(
    "required_names",
    metadata,
    Column("name", Text, primary_key=True, comment="the normalized name of the project that is required"),
    Column("list_id", ForeignKey("name_lists.id"), primary_key=True, index=True),
    Column("condition", SmallInteger, nullable=False, comment="0: always, 1: by a marker, 2: only with an extra"),
    sqlite_with_rowid=False,
    comment="Which lists of requirements name a project.",
)

extract_packs = Table(
    "extract_packs",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Short, nullable=False, unique=True, comment="sha256 of its content; names it in the storage"),
    Column("size", BigInteger, nullable=False),
    comment="The packs that extracts lie in. A row is there once the pack lies whole in the storage.",
)

distribution_data = Table(
    "distribution_data",
    metadata,
    Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
    Column("outcome", Short, nullable=False, index=True),
    Column("error_kind", Short),
    Column("error_text", Text),
    Column("read_at", Time),
    Column("extractor_version", Integer),
    Column("record_digest", Short, comment="of the whole record, to compare it with another one"),
    Column("metadata_version", Text),
    Column("requires_python", Text),
    Column("requires_dist_id", ForeignKey("name_lists.id"), index=True),
    Column("modules_id", ForeignKey("name_lists.id"), index=True),
    Column("details", Text, comment="JSON: the record's other facts, see docs/formats.md"),
    Column("shared_details_id", ForeignKey("shared_details.id"), index=True, comment="null: details has all of them"),
    Column("pack_id", ForeignKey("extract_packs.id"), comment="where the extract lies; null: nothing was extracted"),
    Column("pack_offset", BigInteger),
    Column("pack_length", Integer),
    Column("bytes_fetched", BigInteger, nullable=False, server_default=text("0")),
    Column("requests", Integer, nullable=False, server_default=text("0")),
    Column("seconds", Float, nullable=False, server_default=text("0")),
    Column("is_rejected", Boolean, nullable=False, server_default=false(), comment="no installer takes the file"),
    Index(None, "pack_id", "pack_offset"),
    comment="What was read from each distribution, or why nothing was.",
)


def _claims() -> tuple[Column[Any], ...]:
    """The columns of a queue: what is done next, by which worker, until when, after how many attempts."""
    return (
        Column("nice", SmallInteger, nullable=False, server_default=text("0"), comment="lower first"),
        Column("due_at", Time, nullable=False, server_default=text("0")),
        Column("attempts", Integer, nullable=False, server_default=text("0"), comment="since it was queued"),
        Column("first_failed_at", Time),
        Column("claimed_by", Short, comment="the worker that does it"),
        Column(
            "claimed_until",
            Time,
            nullable=False,
            server_default=text("0"),
            comment="from then on another worker may claim it",
        ),
    )


def _rulesets() -> Column[Any]:
    return Column("rulesets", Text, comment="SCOPE:VERSION of each ruleset in force, joined by commas; null: none was")


read_queue = Table(
    "read_queue",
    metadata,
    Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False, index=True),
    Column(
        "is_first",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="what it requires leads a scope on: read before the others",
    ),
    *_claims(),
    comment="The distributions that are pending and whose address is known; nothing else is here.",
)

past_generations = Table(
    "past_generations",
    metadata,
    Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("until", Serial, nullable=False, comment="the serial from which the next generation counts"),
    Column("sha256", Short),
    Column("content", LargeBinary, nullable=False, comment="zlib-compressed JSON: its facts, and what was read of it"),
    comment="Contents of files that were replaced by others of the same name, as far as they were known.",
)

read_attempts = Table(
    "read_attempts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("distribution_id", ForeignKey("distributions.id"), nullable=False, index=True),
    Column("attempt", Integer, nullable=False, comment="counts up since the distribution was queued"),
    Column("worker", Short, nullable=False),
    Column("started_at", Time, comment="null: its worker died"),
    Column("seconds", Float, nullable=False),
    Column("outcome", Short, nullable=False),
    Column("error_kind", Short),
    Column("error_text", Text),
    Column("bytes_fetched", BigInteger, nullable=False),
    Column("requests", Integer, nullable=False),
    _rulesets(),
    comment="Every attempt to read a distribution. Append-only.",
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sha256", Short, nullable=False, unique=True, comment="of the full value, also where a difference is kept"),
    Column(
        "content",
        LargeBinary,
        nullable=False,
        comment="zlib-compressed JSON: [[filename, sha256, yanked], ...], or what differs from the base",
    ),
    Column("base_id", ForeignKey("snapshots.id"), comment="null: content is the full value"),
    Column(
        "number", Integer, nullable=False, server_default=text("0"), comment="of the differences since the full value"
    ),
    Column("files", Integer, nullable=False, comment="how many files the page showed"),
    comment="What a page showed, content-addressed. Full values now and then, and differences in between.",
)

visits = Table(
    "visits",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("visit", Integer, nullable=False, comment="counts up within the project"),
    Column("kind", Short, nullable=False),
    Column("workload", Short, nullable=False),
    Column("started_at", Time, nullable=False),
    _rulesets(),
    UniqueConstraint("project_id", "visit"),
    Index("ix_visits_of_workload", "project_id", "workload"),
)

visit_statuses = Table(
    "visit_statuses",
    metadata,
    Column("id", Key, primary_key=True),
    Column("visit_id", ForeignKey("visits.id"), nullable=False, index=True),
    Column("at", Time, nullable=False),
    Column("status", Short, nullable=False),
    Column("page_serial", Serial, comment="the page's own; null: none was seen, or a 404 that no event explains"),
    Column("seen_through", Serial, comment="how far events were stored when the page was judged"),
    Column("snapshot_id", ForeignKey("snapshots.id")),
    Column("page_status", Text, comment="the project-status of the page"),
    Column("text", Text),
    comment="Append-only; the latest status is the outcome of its visit.",
)

sightings = Table(
    "sightings",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("visit_id", BigInteger, comment="the visit that saw it; the log may no longer have that visit"),
    Column("at", Time, nullable=False),
    Column("page_serial", Serial, comment="as in visit_statuses"),
    Column("seen_through", Serial, nullable=False, comment="as in visit_statuses"),
    Column("snapshot_id", ForeignKey("snapshots.id"), nullable=False),
    Column("page_status", Text, comment="the project-status of the page; null: there was none"),
    Column("shows_through", Serial, comment="nothing later is on the page; null: the next ranges bound it"),
    Index(None, "project_id", "seen_through"),
    Index(None, "project_id", "page_serial"),
    comment="What pages showed that was new: file states follow from these and from events. Never pruned.",
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True, autoincrement=False),
    Column("serial", Serial, nullable=False, comment="the state counts what is known up to here"),
    Column("page_serial", Serial, comment="of the page whose facts it has; null: it lacks some of them"),
    Column("content", LargeBinary, nullable=False, comment="see catalog/derived/checkpoint.py"),
    comment="The state of projects with many files, so that a visit need not begin with their first event.",
)

visit_statistics = Table(
    "visit_statistics",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("last_seen_at", Time, comment="when the index last listed it, or the time of its last event"),
    Column("last_visited_at", Time, comment="when its last visit ended; null: it was never visited"),
    Column("last_successful_at", Time, comment="when a visit last ended in full or not_found"),
    Column("last_outcome", Short, comment="the status in which its last visit ended"),
    Column(
        "successive_outcomes",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="how many visits in a row ended in it",
    ),
    Column("next_due_at", Time, comment="when the last failed visit is retried; null: it is not"),
    Index(None, "last_visited_at", "project_id"),
    Index(
        "ix_visit_statistics_failing",
        "project_id",
        sqlite_where=text("last_outcome IN ('failed', 'partial')"),
        postgresql_where=text("last_outcome IN ('failed', 'partial')"),
    ),
    comment="What follows for each project from its visits and their statuses.",
)


def _visited() -> Column[Any]:
    return Column(
        "visited",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="how many of its visits are done and have left visit_queue",
    )


def _partial_index(name: str, *columns: str, where: str, on_sqlite: str | None = None) -> Index:
    return Index(name, *columns, sqlite_where=text(on_sqlite or where), postgresql_where=text(where))


serial_ranges = Table(
    "serial_ranges",
    metadata,
    Column("id", Key, primary_key=True),
    Column("start", Serial, nullable=False, unique=True),
    Column("end", Serial, nullable=False, unique=True),
    Column("state", Short, nullable=False, comment="asked or complete"),
    Column("sealed", Boolean, nullable=False, server_default=false()),
    Column("requested_at", Time, nullable=False),
    Column("begun_at", Time, comment="when the work began that completed it, or that did not end"),
    Column("error_text", Text, comment="the error that ended the last worker's work; null: none is known"),
    Column("completed_at", Time),
    Column("lister", Short, comment="the lister that brought it: xmlrpc or simple; null: a full crawl"),
    Column(
        "exact_from",
        Serial,
        comment="no event is known between start and here, so these serials have no answer",
    ),
    _visited(),
    CheckConstraint('start >= 0 AND "end" > start', name="not_empty"),
    Index(None, "state", "start"),
    Index(None, "requested_at", "start"),
    _partial_index("ix_serial_ranges_inexact", "start", "exact_from", where="exact_from IS NOT NULL"),
    _partial_index("ix_serial_ranges_sealed", "end", where="sealed IS true", on_sqlite="sealed IS 1"),
    _partial_index("ix_serial_ranges_unsealed", "start", where="sealed IS false", on_sqlite="sealed IS 0"),
    comment="The ledger: ranges are born here, without gap or overlap.",
)

full_crawls = Table(
    "full_crawls",
    metadata,
    Column("id", Key, primary_key=True),
    Column("serial", Serial, nullable=False, comment="pinned: the index's last serial when the crawl was opened"),
    Column("selection", Text, nullable=False, comment="JSON array of project names; empty: all"),
    Column("opened_at", Time, nullable=False),
    Column("listed_at", Time),
    Column("listed_serial", Serial, comment="the index's when the list was made; null: unknown, or not listed yet"),
    Column("completed_at", Time),
    Column(
        "with_history",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="true: every event since serial 0 is stored, and every project of one is visited",
    ),
    Column("open", SmallInteger, unique=True, comment="1 while open, then null: at most one is open"),
    Column(
        "attempts_before",
        Key,
        nullable=False,
        server_default=text("0"),
        comment="the last of read_attempts when it was opened",
    ),
    _visited(),
    CheckConstraint("(open IS NULL) = (completed_at IS NOT NULL)", name="open_until_completed"),
)

_IS_EXHAUSTED = "state = 'gave up'"
visit_queue = Table(
    "visit_queue",
    metadata,
    Column(
        "workload",
        Short,
        primary_key=True,
        comment="crawl:ID, range:START-END, audit:ID, scope:ID, aborted:ID of a scope that rests, revisits, or listing:"
        " what no range has taken yet",
    ),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("shard", SmallInteger, nullable=False),
    Column("min_serial", Serial, nullable=False, comment="a page older than this is stale"),
    Column("state", Short, nullable=False, comment="todo, done or gave up"),
    Column("error_text", Text),
    Column("was_gone", Boolean, nullable=False, server_default=false(), comment="whether the last answer was a 404"),
    Column("listed_at", Serial, comment="the list of projects of this serial has it, with min_serial as its own"),
    Column("unlisted_at", Serial, comment="the list of projects of this serial does not have it"),
    *_claims(),
    _partial_index("ix_visit_queue_todo", "workload", "nice", "due_at", "project_id", where="state = 'todo'"),
    _partial_index("ix_visit_queue_exhausted", "project_id", where=_IS_EXHAUSTED),
    Index("ix_visit_queue_shard_due", "workload", "shard", "state", "nice", "due_at", "project_id"),
)
for _queue in (read_queue, visit_queue):
    _is_claimed = _queue.c.claimed_by.is_not(None)
    Index(None, _queue.c.claimed_by, postgresql_where=_is_claimed, sqlite_where=_is_claimed)

workload_claims = Table(
    "workload_claims",
    metadata,
    Column("claimed_by", Short, primary_key=True, comment="the worker"),
    Column("workload", Short, nullable=False, comment="what it works on, as in visit_queue"),
    Column("claimed_until", Time, nullable=False, comment="from then on it is not known to live"),
    Column("host", Text, nullable=False, comment="the name of its machine, for people"),
    comment="The workers that are active on the whole of a scope. There can be several.",
)

audits = Table(
    "audits",
    metadata,
    Column("id", Key, primary_key=True),
    Column("share_percent", Float, nullable=False, comment="of all listed projects, visited whatever their serial is"),
    Column("opened_at", Time, nullable=False),
    Column("serial", Serial, comment="the index's when the list was made; null: not listed yet"),
    Column("findings", Text, comment="JSON: by cause, how many projects and some of them; null: not listed yet"),
    Column("completed_at", Time),
    Column("open", SmallInteger, unique=True, comment="1 while open, then null: at most one is open"),
    CheckConstraint("(open IS NULL) = (completed_at IS NOT NULL)", name="open_until_completed"),
)

lister_states = Table(
    "lister_states",
    metadata,
    Column("lister", Short, primary_key=True, comment="xmlrpc or simple"),
    Column("instance", Text, primary_key=True, comment="the index's URL"),
    Column("state", Text, nullable=False, comment="JSON, the lister's own; see docs/operations.md"),
    Column("revision", Integer, nullable=False, comment="counts the saves"),
    Column("updated_at", Time, nullable=False),
    comment="The state of each lister. How far events are stored is in catalog_state alone.",
)

observed_projects = Table(
    "observed_projects",
    metadata,
    Column("project", Text, primary_key=True, comment="normalized"),
    Column("url", Text, comment="of its page, where the list of projects gives one"),
    Column("revision", Integer, nullable=False, comment="counts the saves of what is known"),
    Column("serial", Serial, comment="of its last event; null: it has none"),
    Column("content", LargeBinary, comment="what is believed of its page: zlib-compressed JSON; null: never seen"),
    Column("is_there", Boolean, nullable=False, server_default=false(), comment="whether it has a page"),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("due_at", Time, nullable=False, comment="when it is looked at next"),
    Column("pause_s", Float, nullable=False, server_default=text("0")),
    Column("looked_at", Time, comment="when its page, or a 404, was seen last"),
    Column("failures", Integer, nullable=False, server_default=text("0"), comment="in a row"),
    Column("error_text", Text),
    Index(None, "due_at"),
    comment="What is known of the projects of an index without serials; see catalog/observed/observations.py.",
)

observed_events = Table(
    "observed_events",
    metadata,
    Column("serial", Serial, primary_key=True, autoincrement=False, comment="of the counter in lister_states"),
    Column("project", Text, nullable=False, comment="normalized"),
    Column("name", Text, nullable=False),
    Column("version", Text),
    Column("action", Text, nullable=False),
    Column("seen_at", Time, nullable=False),
    Column("not_before", Time, comment="when the project was seen without it; null: it was never seen before"),
    comment="The changes that were observed of an index without serials. They stand in for its changelog.",
)

rates = Table(
    "rates",
    metadata,
    Column("name", Short, primary_key=True),
    Column("due_at", Time, nullable=False, comment="when the next request may be sent, by the database's clock"),
    comment="The limits that all workers share.",
)

clock_offsets = Table(
    "clock_offsets",
    metadata,
    Column("machine", Short, primary_key=True, comment="a hash of the machine and its boot"),
    Column("offset_s", Time, nullable=False, comment="how far its clock was ahead of the time since the boot"),
    comment="Tells when the clock of the machine was set. Only SQLite needs it.",
)

dumps = Table(
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
    Column("inputs", Text, nullable=False, comment="JSON array of directories; only of a compaction"),
    Column("opened_at", Time, nullable=False),
    Column("committed_at", Time),
    Column("columns", Text, nullable=False, comment="JSON array of the names of its columns"),
    Column("leaf_count", Integer, comment="how many incremental dumps a compaction holds; null: it is none"),
    Column("leaf_digest", Short, comment="the sum of the sha256 of their directories, in hexadecimal digits"),
    CheckConstraint('start >= 0 AND "end" >= start', name="in_order"),
    Index(None, "start", "end"),
    comment="An index of the manifests in the storage, and the names allocated for them.",
)

dump_files = Table(
    "dump_files",
    metadata,
    Column("id", Key, primary_key=True),
    Column("dump_id", ForeignKey("dumps.id"), nullable=False),
    Column("shard", Integer, nullable=False),
    Column("name", Short, nullable=False),
    Column("rows", Integer),
    Column("size", BigInteger),
    Column("sha256", Short, comment="null: allocated, not written to its end"),
    Column("frozen", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("dump_id", "name"),
    Index(None, "dump_id", "shard"),
)

leveldb_versions = Table(
    "leveldb_versions",
    metadata,
    Column("version", Key, primary_key=True),
    Column("requested_at", Time, nullable=False),
    Column("serial", Serial, nullable=False, comment="the cover's serial when it was allocated"),
)

leveldb_builds = Table(
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

parquet_exports = Table(
    "parquet_exports",
    metadata,
    Column("id", Key, primary_key=True),
    Column("serial", Serial, nullable=False, index=True),
    Column("directory", Short, nullable=False, unique=True),
    Column("started_at", Time, nullable=False),
    comment="The names allocated for attempts to export Parquet.",
)

leases = Table(
    "leases",
    metadata,
    Column("name", Short, primary_key=True),
    Column("holder", Short, nullable=False),
    Column("taken_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
)

pruning_positions = Table(
    "pruning_positions",
    metadata,
    Column("table_name", Short, primary_key=True),
    Column("position", BigInteger, nullable=False, comment="the id of the last row that was looked at"),
    comment="How far the pruning of each table came, which goes on there.",
)

epochs = Table(
    "epochs",
    metadata,
    Column("serial", Serial, primary_key=True, autoincrement=False, comment="from here to the next row's serial"),
    Column("epoch", Serial, nullable=False, comment="greater than those of all rows before; see ledger/epochs.py"),
    comment="When what is visible at serials changed last after they were complete.",
)

scopes = Table(
    "scopes",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Time, nullable=False),
    Column("created_serial", Serial, nullable=False, comment="from here on it decides what is followed"),
    Column("roots", Text, nullable=False, comment="JSON: by normalized name, the extras that are followed too"),
    Column("most_depth", Integer, comment="how many requirements lead away from a root at most; null: any number"),
    Column("nice", SmallInteger, nullable=False, comment="lower first"),
    Column("concurrency", Integer, comment="how many requests it has under way at most; null: as in the settings"),
    Column("tag", Text, comment="of the workers that its work is for; null: any"),
    Column("match_only", Boolean, nullable=False, comment="true: workers without its tag leave it alone"),
    Column("is_aborted", Boolean, nullable=False, server_default=false()),
    Column("completed_at", Time, comment="when nothing was left to do; null: something is"),
    Column("pruned_at", Time, comment="when what its roots no longer lead to was left out"),
    Column("pruned_serial", Serial, comment="what the roots led to before it does not count since then"),
    _visited(),
    comment="What is followed: roots, and by which rules their requirements are.",
)

scope_rulesets = Table(
    "scope_rulesets",
    metadata,
    Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False, comment="counts up from 1"),
    Column("from_serial", Serial, nullable=False, comment="in force from here to the next one"),
    Column("created_at", Time, nullable=False),
    Column("content", Text, nullable=False, comment="TOML"),
)

scope_projects = Table(
    "scope_projects",
    metadata,
    Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), primary_key=True, index=True),
    Column(
        "depth", Integer, nullable=False, comment="the least number of requirements from a root since the last prune"
    ),
    Column("is_beyond", Boolean, nullable=False, comment="true: beyond the greatest depth, so it is not followed"),
    Column("first_serial", Serial, nullable=False, comment="the least at which the roots lead to it"),
    Column("entered_serial", Serial, nullable=False, comment="after those that were complete when it entered"),
    Column("is_late", Boolean, nullable=False, comment="true: first_serial was complete already"),
    Column("entered_at", Time, nullable=False),
    Column("nice", SmallInteger, nullable=False, comment="of the scope and of its rules"),
    comment="What the roots of a scope lead to. A project stays until the scope is pruned.",
)

scope_edges = Table(
    "scope_edges",
    metadata,
    Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("required", Text, primary_key=True, comment="the normalized name of the project that is required"),
    Column("start", Serial, primary_key=True),
    Column("end", Serial, comment="the serial from which it no longer holds; null: it still does"),
    sqlite_with_rowid=False,
    comment="Which project of a scope requires which, by the rules of the scope.",
)

scope_marks = Table(
    "scope_marks",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", Key, nullable=False),
    comment="What these projects require may have changed, so scopes look again. Writers only append.",
)

followed_intervals = Table(
    "followed_intervals",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("start", Serial, primary_key=True, comment="after the complete serial when it entered"),
    Column("end", Serial, comment="the serial from which it is no longer followed; null: it still is"),
    Column("exact_from", Serial, comment="there is an answer from here on; null: entering, not settled yet"),
    Index(None, "exact_from"),
    _partial_index("ix_followed_intervals_entering", "project_id", where="exact_from IS NULL"),
    comment="Which projects are followed, where scopes decide it.",
)

journal_notices = Table(
    "journal_notices",
    metadata,
    Column("logged_serial", Serial, primary_key=True, autoincrement=False, comment="where the journal has it"),
    Column("kind", Short, primary_key=True, comment="epoch changed, reprocessed, or records taken down"),
    Column("of_serial", Serial, nullable=False, comment="the least serial that shows it"),
    Column("dump_sequence", Integer, comment="full dumps that begin with this sequence or later have it"),
    comment="What the journal announces that is no change of one file.",
)

journal_segments = Table(
    "journal_segments",
    metadata,
    Column("id", Key, primary_key=True),
    Column("stream", Short, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("start", Serial, nullable=False),
    Column("end", Serial, nullable=False),
    Column("number", Integer, comment="its place in the chain, from 1; null: what comes before it is missing"),
    Column("name", Text, nullable=False, comment="of the file, which has its hash"),
    Column("records", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False, comment="before compression"),
    Column("size", BigInteger, nullable=False, comment="of the file"),
    Column("sha256", Short, nullable=False, comment="before compression"),
    Column("manifest_sha256", Short, comment="of its manifest; null: it has no number"),
    Column("written_at", Time, nullable=False),
    UniqueConstraint("stream", "generation", "start"),
    UniqueConstraint("stream", "generation", "number"),
    CheckConstraint('start >= 0 AND "end" > start', name="not_empty"),
    comment="An index of the journal's segments in the storage.",
)

journal_takedowns = Table(
    "journal_takedowns",
    metadata,
    Column("id", Key, primary_key=True),
    Column("added_at", Time, nullable=False),
    Column("reason", Text, nullable=False),
    Column("project", Text, comment="normalized; null: one record"),
    Column("version", Text, comment="null: all of the project"),
    Column("filename", Text, comment="null: all files"),
    Column("stream", Short, comment="of the one record"),
    Column("serial", Serial, comment="of the one record"),
    Column("ordinal", Serial, comment="of the one record"),
    Column("hides_name", Boolean, nullable=False, server_default=false()),
    Column("done_at", Time, comment="null: the published segments still have it"),
    comment="What the journal no longer has, though the catalog does.",
    sqlite_autoincrement=True,  # a writer knows by a greater id that there is a new one
)

journal_consumers = Table(
    "journal_consumers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("cursor", Text, nullable=False, comment="after the last record that it has taken"),
    Column("serial", Serial, nullable=False, comment="of that record; 0: of none"),
    Column("created_at", Time, nullable=False),
    Column("seen_at", Time, nullable=False, comment="when it last moved, or looked for more"),
    comment="Readers of the journal that have a name, and how far each has come.",
)

journal_letters = Table(
    "journal_letters",
    metadata,
    Column("id", Key, primary_key=True),
    Column("consumer", Text, nullable=False),
    Column("project", Text, nullable=False, comment="normalized; records of one are delivered in order"),
    Column("cursor", Text, nullable=False, comment="after its last record"),
    Column("content", LargeBinary, nullable=False, comment="zlib-compressed JSON: what is to be delivered"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("due_at", Time, nullable=False),
    Column("error_text", Text),
    Column("is_dead", Boolean, nullable=False, server_default=false(), comment="true: not tried again by itself"),
    Index("ix_journal_letters_due", "consumer", "is_dead", "due_at"),
    Index("ix_journal_letters_of_project", "consumer", "project", "id"),
    comment="What webhooks have not received yet.",
    sqlite_autoincrement=True,  # a receiver knows by its number which letter it has already
)
