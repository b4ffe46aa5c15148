"""The tables of the catalog. Constraints here enforce the rules that docs/formats.md explains.

Texts are compared bytewise on every database, so that rows have the same order in the catalog and in dumps.
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
Key = BigInteger().with_variant(Integer(), "sqlite")  # SQLite numbers rows automatically only with INTEGER
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
        comment="rows of dumps up to this serial may be deleted, so new dumps there get names never used before",
    ),
    Column(
        "file_origin",
        Text,
        comment="scheme and host of the files; empty: only the index's own; null: not decided yet",
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
        comment="events of unfollowed projects are stored above this serial; null: above events_since",
    ),
    Column(
        "identity",
        Text,
        nullable=False,
        server_default=text("''"),
        comment="identifies the catalog; index.json in its storage contains it",
    ),
    CheckConstraint("id = 1", name="one_row"),
    CheckConstraint("events_through >= events_since", name="events_in_order"),
    comment="A single row, which is locked exclusively to seal a range, and shared to log a change.",
)

counters = Table(
    "counters",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    comment="Counts of rows in large tables: a count is the sum of the amounts of its name. Writers only append.",
)

projects = Table(
    "projects",
    metadata,
    Column("id", Key, primary_key=True),
    Column("normalized", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False, comment="the displayed name"),
    Column("named_at", Serial, comment="the serial of the event or list that gave the name; null: unknown"),
    Column("bucket", Integer, nullable=False, comment="first 16 bits of the sha256 of the normalized name"),
    Column("shard", SmallInteger, nullable=False, comment="sha256 of the normalized name modulo 1,000"),
    Column("known_since", Serial, nullable=False, comment="all events above this serial are stored"),
    Column("page_serial", Serial, comment="greatest serial of a seen page"),
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
    comment="The changelog as the index sent it.",
)

broken_entries = Table(
    "broken_entries",
    metadata,
    Column("id", Key, primary_key=True),
    Column("source", Short, nullable=False, comment="changelog, project list or project page"),
    Column("digest", Short, nullable=False, comment="hash of its source and content, which prevents duplicates"),
    Column(
        "project_id", ForeignKey("projects.id"), comment="the project on whose page it is; null: it is not on a page"
    ),
    Column("name", Text, comment="the name of its project or file, if it is usable"),
    Column("serial", Serial, comment="its serial, if it is usable and in order"),
    Column("after_serial", Serial, comment="only for the changelog: the last usable serial before it"),
    Column("problem", Text, nullable=False),
    Column("content", Text, nullable=False, comment="its JSON, truncated if it is very long"),
    Column("seen_at", Time, nullable=False),
    UniqueConstraint("source", "digest"),
    Index(None, "project_id"),
    Index(None, "source", "after_serial"),
    comment="Entries of the index's answers that break its protocol. The other entries are used.",
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
    Column("url", Text, comment="null: known only from an event"),
    Column("sha256", Short),
    Column("size", BigInteger),
    Column("uploaded_at", Text),
    Column("requires_python", Text),
    Column("yanked_reason", Text),
    Column("core_metadata", Boolean, nullable=False, server_default=false()),
    Column("core_metadata_sha256", Short),
    Column("first_seen_at", Text, comment="when an observed index first showed it, if no page states its upload"),
    Column("page_serial", Serial, comment="the page that url and the other facts come from"),
    Column(
        "generation",
        Integer,
        nullable=False,
        server_default=text("1"),
        comment="number of contents that the index has had under this name",
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
        Column("end", Serial, comment="first serial after the interval; null: it has not ended"),
        CheckConstraint('"end" IS NULL OR "end" > start', name="not_empty"),
    )


live_intervals = _intervals("live_intervals")
yanked_intervals = _intervals("yanked_intervals")

changes = Table(
    "changes",
    metadata,
    Column("id", Key, primary_key=True),
    Column("distribution_id", ForeignKey("distributions.id"), nullable=False),
    Column("serial", Serial, nullable=False, comment="the serial at which it happened"),
    Column("cause", Short, nullable=False),
    Column(
        "logged_serial",
        Serial,
        nullable=False,
        comment="the serial at which dumps contain it: `serial`, or one after the sealed serials",
    ),
    Column(
        "dump_sequence",
        Integer,
        comment="dumps with this sequence or a later one contain it; null: all dumps that include logged_serial",
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
    Column(
        "has_roots",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="true: its top-level names are in module_roots",
    ),
    Column(
        "has_required",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="true: its projects are in required_names",
    ),
    comment="Lists of modules and of requirements, each stored once.",
)

shared_details = Table(
    "shared_details",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sha256", Short, nullable=False, unique=True),
    Column("content", LargeBinary, nullable=False, comment="a JSON object, zlib-compressed"),
    comment="Details that the files of a release share, each stored once.",
)

module_roots = Table(
    "module_roots",
    metadata,
    Column("name", Text, primary_key=True, comment="the part before the first dot, truncated if it is very long"),
    Column("list_id", ForeignKey("name_lists.id"), primary_key=True, index=True),
    sqlite_with_rowid=False,
    comment="The lists of modules that contain a module with this top-level name.",
)

required_names = Table(
    "required_names",
    metadata,
    Column("name", Text, primary_key=True, comment="normalized name of the required project"),
    Column("list_id", ForeignKey("name_lists.id"), primary_key=True, index=True),
    Column("condition", SmallInteger, nullable=False, comment="0: always, 1: by a marker, 2: only with an extra"),
    sqlite_with_rowid=False,
    comment="The lists of requirements that name a project.",
)

extract_packs = Table(
    "extract_packs",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Short, nullable=False, unique=True, comment="sha256 of its content, and its name in the storage"),
    Column("size", BigInteger, nullable=False),
    comment="The packs that contain extracts. A row is inserted once the pack is complete in the storage.",
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
    Column("record_digest", Short, comment="hash of the whole record, to compare it with others"),
    Column("metadata_version", Text),
    Column("requires_python", Text),
    Column("requires_dist_id", ForeignKey("name_lists.id"), index=True),
    Column("modules_id", ForeignKey("name_lists.id"), index=True),
    Column("details", Text, comment="JSON: the record's other facts, see docs/formats.md"),
    Column("shared_details_id", ForeignKey("shared_details.id"), index=True, comment="null: details is complete"),
    Column(
        "pack_id",
        ForeignKey("extract_packs.id"),
        comment="the pack that contains the extract; null: nothing was extracted",
    ),
    Column("pack_offset", BigInteger),
    Column("pack_length", Integer),
    Column("bytes_fetched", BigInteger, nullable=False, server_default=text("0")),
    Column("requests", Integer, nullable=False, server_default=text("0")),
    Column("seconds", Float, nullable=False, server_default=text("0")),
    Column("is_rejected", Boolean, nullable=False, server_default=false(), comment="true: installers reject the file"),
    Index(None, "pack_id", "pack_offset"),
    comment="The record of each distribution, or why it could not be read.",
)


def _claims() -> tuple[Column[Any], ...]:
    """Return the columns of a queue: priority, due time, failed attempts, and the claiming worker."""
    return (
        Column(
            "nice", SmallInteger, nullable=False, server_default=text("0"), comment="priority: lower values run first"
        ),
        Column("due_at", Time, nullable=False, server_default=text("0")),
        Column(
            "attempts", Integer, nullable=False, server_default=text("0"), comment="failed attempts since it was queued"
        ),
        Column("first_failed_at", Time),
        Column("claimed_by", Short, comment="name of the worker"),
        Column(
            "claimed_until",
            Time,
            nullable=False,
            server_default=text("0"),
            comment="after this time another worker may claim it",
        ),
    )


def _rulesets() -> Column[Any]:
    return Column("rulesets", Text, comment="SCOPE:VERSION of each ruleset in force, comma-separated; null: none")


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
        comment="true: its requirements can lead a scope to further projects, so it is read earlier",
    ),
    *_claims(),
    comment="Exactly the distributions that are pending and have a URL.",
)

past_generations = Table(
    "past_generations",
    metadata,
    Column("distribution_id", ForeignKey("distributions.id"), primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("until", Serial, nullable=False, comment="first serial at which the next generation counts"),
    Column("sha256", Short, index=True),
    Column("content", LargeBinary, nullable=False, comment="zlib-compressed JSON: its facts and its record"),
    comment="Known contents of files that were replaced under the same name.",
)

read_attempts = Table(
    "read_attempts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("distribution_id", ForeignKey("distributions.id"), nullable=False, index=True),
    Column("attempt", Integer, nullable=False, comment="number of the attempt since the distribution was queued"),
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
    Column(
        "sha256", Short, nullable=False, unique=True, comment="hash of the full value, even if a difference is stored"
    ),
    Column(
        "content",
        LargeBinary,
        comment="zlib-compressed JSON: [[filename, sha256, yanked], ...], or the difference from the base; null: the"
        " journal that was replayed lacks it",
    ),
    Column("base_id", ForeignKey("snapshots.id"), comment="null: content is the full value"),
    Column(
        "number",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="its number in the chain since the full value",
    ),
    Column("files", Integer, nullable=False, comment="number of files on the page"),
    comment="Content-addressed snapshots of pages: full values, and differences from earlier snapshots.",
)

visits = Table(
    "visits",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("visit", Integer, nullable=False, comment="number of the visit within the project"),
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
    Column(
        "page_serial", Serial, comment="the page's own serial; null: no page was seen, or a 404 that no event explains"
    ),
    Column("seen_through", Serial, comment="serial up to which events were stored when the page was judged"),
    Column("snapshot_id", ForeignKey("snapshots.id")),
    Column("page_status", Text, comment="the project-status of the page"),
    Column("text", Text),
    Column("worker", Short, comment="who ended a visit that failed, or that came after a failure; null: the others"),
    Column("logged_serial", Serial, comment="the serial at which the journal has the visit; null: it has not ended"),
    Index(
        "ix_visit_statuses_logged",
        "logged_serial",
        "visit_id",
        sqlite_where=text("logged_serial IS NOT NULL"),
        postgresql_where=text("logged_serial IS NOT NULL"),
    ),
    comment="Append-only; the latest status is the outcome of its visit.",
)

sightings = Table(
    "sightings",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("visit_id", BigInteger, comment="the visit that saw it; that visit may be deleted from the log"),
    Column("at", Time, nullable=False),
    Column("page_serial", Serial, comment="as in visit_statuses"),
    Column("seen_through", Serial, nullable=False, comment="as in visit_statuses"),
    Column("snapshot_id", ForeignKey("snapshots.id"), nullable=False),
    Column("page_status", Text, comment="the project-status of the page; null: there was no page"),
    Column(
        "shows_through",
        Serial,
        comment="the page shows no change beyond this serial; null: the ends of the next ranges are the limit",
    ),
    Column(
        "not_before",
        Time,
        comment="of a page beyond the stored events: what it changed is of after this time; null: unknown",
    ),
    Index(None, "project_id", "seen_through"),
    Index(None, "project_id", "page_serial"),
    comment="Pages as they were seen, without repetitions. File states are derived from them and from events.",
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True, autoincrement=False),
    Column("serial", Serial, nullable=False, comment="the state includes all events and pages up to this serial"),
    Column(
        "page_serial", Serial, comment="serial of the page whose facts it has; null: facts of some files are missing"
    ),
    Column("content", LargeBinary, nullable=False, comment="see catalog/derived/checkpoint.py"),
    comment="Stored states of projects with many files, so that they need not be computed from their first event.",
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
        comment="number of consecutive visits with this outcome",
    ),
    Column("next_due_at", Time, comment="when the last failed visit is retried; null: never"),
    Column("last_changed_at", Time, comment="when its files last changed, since it is followed"),
    Column("change_gap_s", Float, comment="smoothed seconds between two changes of its files"),
    Column(
        "pace",
        SmallInteger,
        nullable=False,
        server_default=text("10"),
        comment="at its last visit, one change was expected in 2 ** pace hours",
    ),
    Column(
        "unshown_since",
        Time,
        comment="a list shows changes of after this time that no page has shown; 0: of any time; null: there are none",
    ),
    Index(None, "last_visited_at", "project_id"),
    Index(None, "pace", "last_visited_at", "project_id"),
    Index(
        "ix_visit_statistics_failing",
        "project_id",
        sqlite_where=text("last_outcome IN ('failed', 'partial')"),
        postgresql_where=text("last_outcome IN ('failed', 'partial')"),
    ),
    comment="Statistics of each project, derived from its visits and their statuses.",
)


def _visited() -> Column[Any]:
    return Column(
        "visited",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="number of its finished visits that were removed from visit_queue",
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
    Column("begun_at", Time, comment="when the work began that completed the range, or that has not ended"),
    Column("error_text", Text, comment="the error that ended the last worker's work; null: no known error"),
    Column("completed_at", Time),
    Column("lister", Short, comment="the lister that requested it: xmlrpc or simple; null: a full crawl"),
    Column(
        "exact_from",
        Serial,
        comment="no events are known between start and this serial, so the serials between have no answers",
    ),
    _visited(),
    CheckConstraint('start >= 0 AND "end" > start', name="not_empty"),
    Index(None, "state", "start"),
    Index(None, "requested_at", "start"),
    _partial_index("ix_serial_ranges_inexact", "start", "exact_from", where="exact_from IS NOT NULL"),
    _partial_index("ix_serial_ranges_sealed", "end", where="sealed IS true", on_sqlite="sealed IS 1"),
    _partial_index("ix_serial_ranges_unsealed", "start", where="sealed IS false", on_sqlite="sealed IS 0"),
    comment="The ledger, which allocates all ranges without gap or overlap.",
)

full_crawls = Table(
    "full_crawls",
    metadata,
    Column("id", Key, primary_key=True),
    Column(
        "serial", Serial, nullable=False, comment="pinned serial: the index's last serial when the crawl was opened"
    ),
    Column("selection", Text, nullable=False, comment="JSON array of project names; empty: all projects"),
    Column("opened_at", Time, nullable=False),
    Column("listed_at", Time),
    Column(
        "listed_serial", Serial, comment="the index's serial when the list was made; null: unknown, or not listed yet"
    ),
    Column("completed_at", Time),
    Column(
        "with_history",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="true: all events since serial 0 are stored, and each project of one of them is visited",
    ),
    Column("open", SmallInteger, unique=True, comment="1 while open, then null, so that at most one is open"),
    Column(
        "attempts_before",
        Key,
        nullable=False,
        server_default=text("0"),
        comment="the last id of read_attempts when the crawl was opened",
    ),
    Column("limited_to", Integer, comment="most projects that a trial visits; null: the crawl is of the whole index"),
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
        comment="crawl:ID, range:START-END, audit:ID, scope:ID, aborted:ID of an aborted scope, revisits, requested,"
        " or listing: visits that no range has taken yet",
    ),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("shard", SmallInteger, nullable=False),
    Column("min_serial", Serial, nullable=False, comment="a page older than this is stale"),
    Column("state", Short, nullable=False, comment="todo, done or gave up"),
    Column("error_text", Text),
    Column("was_gone", Boolean, nullable=False, server_default=false(), comment="whether the last answer was a 404"),
    Column(
        "listed_at", Serial, comment="the list of projects with this serial contains it, with min_serial as its serial"
    ),
    Column("unlisted_at", Serial, comment="the list of projects with this serial does not contain it"),
    Column("queued_at", Time, comment="since when it waits"),
    *_claims(),
    _partial_index("ix_visit_queue_todo", "workload", "nice", "due_at", "project_id", where="state = 'todo'"),
    _partial_index("ix_visit_queue_exhausted", "project_id", where=_IS_EXHAUSTED),
    Index("ix_visit_queue_shard_due", "workload", "shard", "state", "nice", "due_at", "project_id"),
)
for _queue in (read_queue, visit_queue):
    _is_claimed = _queue.c.claimed_by.is_not(None)
    Index(None, _queue.c.claimed_by, postgresql_where=_is_claimed, sqlite_where=_is_claimed)

requested_visits = Table(
    "requested_visits",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("requested_at", Time, nullable=False),
    Column("before_visit", Integer, nullable=False, comment="number of the project's last visit then; 0: none"),
    Column("ended_at", Time, comment="null: it is open"),
    Column("visit", Integer, comment="number of the visit that ended it; null: it is open"),
    Column("open", SmallInteger, comment="1 while open, then null, so that a project has one open request"),
    UniqueConstraint("project_id", "open"),
    _partial_index("ix_requested_visits_open", "id", where="open = 1"),
    CheckConstraint("(open IS NULL) = (ended_at IS NOT NULL)", name="open_until_ended"),
    comment="Visits that people requested by name.",
    sqlite_autoincrement=True,  # ids are never reused, so an id always means the same request
)

workload_claims = Table(
    "workload_claims",
    metadata,
    Column("claimed_by", Short, primary_key=True, comment="name of the worker"),
    Column("workload", Short, nullable=False, comment="the workload that it works on, as in visit_queue"),
    Column("claimed_until", Time, nullable=False, comment="after this time it is not assumed to live"),
    Column("host", Text, nullable=False, comment="the name of its machine, for people"),
    comment="The workers that are active on a whole workload. There can be several.",
)

audits = Table(
    "audits",
    metadata,
    Column("id", Key, primary_key=True),
    Column(
        "share_percent",
        Float,
        nullable=False,
        comment="share of all listed projects that is visited whatever their serial is",
    ),
    Column("opened_at", Time, nullable=False),
    Column("serial", Serial, comment="the index's serial when the list was made; null: not listed yet"),
    Column("findings", Text, comment="JSON: by cause, the number of projects and examples; null: not listed yet"),
    Column("completed_at", Time),
    Column("open", SmallInteger, unique=True, comment="1 while open, then null, so that at most one is open"),
    CheckConstraint("(open IS NULL) = (completed_at IS NOT NULL)", name="open_until_completed"),
)

lister_states = Table(
    "lister_states",
    metadata,
    Column("lister", Short, primary_key=True, comment="xmlrpc, simple or pages"),
    Column("instance", Text, primary_key=True, comment="the index's URL"),
    Column("state", Text, nullable=False, comment="JSON whose form depends on the lister; see docs/operations.md"),
    Column("revision", Integer, nullable=False, comment="number of saves"),
    Column("updated_at", Time, nullable=False),
    comment="The state of each lister. Only catalog_state has the serial up to which events are stored.",
)

observed_projects = Table(
    "observed_projects",
    metadata,
    Column("project", Text, primary_key=True, comment="normalized name"),
    Column("url", Text, comment="URL of its page, if the list of projects has one"),
    Column("revision", Integer, nullable=False, comment="number of saves of this row"),
    Column("serial", Serial, comment="serial of its last event; null: it has none"),
    Column("content", LargeBinary, comment="accepted state of its page, as zlib-compressed JSON; null: never seen"),
    Column("is_there", Boolean, nullable=False, server_default=false(), comment="whether it has a page"),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("due_at", Time, nullable=False, comment="when it is polled next"),
    Column("pause_s", Float, nullable=False, server_default=text("0")),
    Column("looked_at", Time, comment="when its page, or a 404, was last seen"),
    Column("failures", Integer, nullable=False, server_default=text("0"), comment="number of consecutive failures"),
    Column("error_text", Text),
    Column("changed_at", Time, comment="when a poll last showed a change"),
    Column("change_gap_s", Float, comment="smoothed seconds between two changes"),
    Index(None, "due_at"),
    comment="The state of the projects of an index without serials; see catalog/observed/observations.py.",
)

observed_events = Table(
    "observed_events",
    metadata,
    Column("serial", Serial, primary_key=True, autoincrement=False, comment="serial from the counter in lister_states"),
    Column("project", Text, nullable=False, comment="normalized name"),
    Column("name", Text, nullable=False),
    Column("version", Text),
    Column("action", Text, nullable=False),
    Column("seen_at", Time, nullable=False),
    Column("not_before", Time, comment="when the project was last seen without the change; null: never"),
    comment="Observed changes of an index without serials, used in place of a changelog.",
)

rates = Table(
    "rates",
    metadata,
    Column("name", Short, primary_key=True),
    Column("due_at", Time, nullable=False, comment="when the next request may be sent, by the database's clock"),
    comment="Request rates that all workers share.",
)

clock_offsets = Table(
    "clock_offsets",
    metadata,
    Column("machine", Short, primary_key=True, comment="a hash of the machine and its boot"),
    Column("offset_s", Time, nullable=False, comment="seconds by which its clock was ahead of the time since the boot"),
    comment="Detects steps of the machine's clock. Only SQLite needs it.",
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
    Column("inputs", Text, nullable=False, comment="JSON array of joined directories; only for a compaction"),
    Column("opened_at", Time, nullable=False),
    Column("committed_at", Time),
    Column("columns", Text, nullable=False, comment="JSON array of the names of its columns, in order"),
    Column("leaf_count", Integer, comment="number of incremental dumps in a compaction; null: not a compaction"),
    Column("leaf_digest", Short, comment="sum of the sha256 of their directories, in hexadecimal digits"),
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
    Column("sha256", Short, comment="null: allocated, but not completely written"),
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
    Column("position", BigInteger, nullable=False, comment="id of the last row that was checked"),
    comment="The positions in tables from which pruning continues.",
)

epochs = Table(
    "epochs",
    metadata,
    Column(
        "serial",
        Serial,
        primary_key=True,
        autoincrement=False,
        comment="the epoch applies from this serial up to the next row's serial",
    ),
    Column("epoch", Serial, nullable=False, comment="greater than in all rows before; see ledger/epochs.py"),
    comment="Epochs of serials whose answers changed after the serials were complete.",
)

scopes = Table(
    "scopes",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Time, nullable=False),
    Column("created_serial", Serial, nullable=False, comment="first serial at which the scope counts"),
    Column(
        "roots",
        Text,
        nullable=False,
        comment="JSON object from normalized names to the extras that are followed with them",
    ),
    Column(
        "most_depth", Integer, comment="greatest number of requirements between a root and a project; null: no limit"
    ),
    Column("nice", SmallInteger, nullable=False, comment="priority: lower values run first"),
    Column("concurrency", Integer, comment="greatest number of concurrent requests; null: as in the settings"),
    Column("tag", Text, comment="tag of the workers that take its work; null: any worker"),
    Column("match_only", Boolean, nullable=False, comment="true: workers without its tag take none of its work"),
    Column("is_aborted", Boolean, nullable=False, server_default=false()),
    Column("completed_at", Time, comment="when it had no pending work left; null: it has pending work"),
    Column("pruned_at", Time, comment="when projects that its roots no longer lead to were removed"),
    Column("pruned_serial", Serial, comment="since the last prune, requirements before this serial do not count"),
    Column("keep_files", Boolean, nullable=False, server_default=false(), comment="true: the bytes of files are kept"),
    Column("most", BigInteger, comment="greatest number of bytes of kept files; null: no limit"),
    Column("kept_bytes", BigInteger, nullable=False, server_default=text("0"), comment="sum over kept_in_scopes"),
    Column("evicted_files", BigInteger, nullable=False, server_default=text("0"), comment="number of all evictions"),
    Column("evicted_bytes", BigInteger, nullable=False, server_default=text("0")),
    _visited(),
    comment="Scopes: root projects, and how their requirements are followed.",
)

kept_files = Table(
    "kept_files",
    metadata,
    Column("sha256", Short, primary_key=True),
    Column("attempt", Short, nullable=False, comment="last part of the path of its object, never used again"),
    Column("size", BigInteger, nullable=False),
    Column("state", Short, nullable=False, comment="writing, kept, corrupt or deleting"),
    Column("worker", Short, nullable=False, comment="name of the worker that writes or wrote it"),
    Column("until", Time, nullable=False, comment="after this time another worker may write it, if it is not kept yet"),
    Column("kept_at", Time, comment="null: not completely written yet"),
    Column("blocks", LargeBinary, comment="sha256 of each MiB, one after the other; null: not completely written yet"),
    Column("standing", SmallInteger, nullable=False, comment="0: on the index, 1: yanked, 2: gone, when last checked"),
    Column("uploaded", Text, nullable=False, comment="time of its upload; empty: unknown"),
    Index("ix_kept_files_order", "standing", "uploaded", "sha256"),
    _partial_index("ix_kept_files_unfinished", "state", "sha256", where="state <> 'kept'"),
    comment="The files whose bytes are in the storage for scopes with keep_files, below files/.",
)

kept_in_scopes = Table(
    "kept_in_scopes",
    metadata,
    Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
    Column("sha256", ForeignKey("kept_files.sha256"), primary_key=True, index=True),
    comment="The scopes that want a kept file.",
)

forgotten_files = Table(
    "forgotten_files",
    metadata,
    Column("sha256", Short, primary_key=True),
    Column("forgotten_at", Time, nullable=False),
    Column("reason", Text, nullable=False),
    Column("takedown_id", Key, comment="the takedown of the journal that names it; null: forgotten by its hash"),
    Column("had_bytes", Boolean, nullable=False, comment="true: its bytes were kept"),
    Column("deleted_at", Time, comment="when the storage no longer had its bytes; null: they are still to be deleted"),
    _partial_index("ix_forgotten_files_pending", "sha256", where="deleted_at IS NULL"),
    comment="Files whose bytes must never be kept again.",
)

scope_rulesets = Table(
    "scope_rulesets",
    metadata,
    Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False, comment="number of the version, from 1"),
    Column(
        "from_serial", Serial, nullable=False, comment="first serial at which it is in force, until the next version is"
    ),
    Column("created_at", Time, nullable=False),
    Column("content", Text, nullable=False, comment="TOML"),
)

scope_projects = Table(
    "scope_projects",
    metadata,
    Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), primary_key=True, index=True),
    Column("depth", Integer, nullable=False, comment="least number of requirements from a root since the last prune"),
    Column("is_beyond", Boolean, nullable=False, comment="true: beyond the greatest depth, so it is not followed"),
    Column("first_serial", Serial, nullable=False, comment="first serial at which the roots lead to it"),
    Column(
        "entered_serial",
        Serial,
        nullable=False,
        comment="first serial with answers: after the serials that were complete when it entered",
    ),
    Column("is_late", Boolean, nullable=False, comment="true: first_serial was already complete"),
    Column("entered_at", Time, nullable=False),
    Column(
        "nice", SmallInteger, nullable=False, comment="priority from the scope and its rules: lower values run first"
    ),
    comment="The projects that the roots of a scope lead to. A project stays until the scope is pruned.",
)

scope_edges = Table(
    "scope_edges",
    metadata,
    Column("scope_id", ForeignKey("scopes.id"), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("required", Text, primary_key=True, comment="normalized name of the required project"),
    Column("start", Serial, primary_key=True),
    Column("end", Serial, comment="first serial after the interval; null: it has not ended"),
    sqlite_with_rowid=False,
    comment="Requirements between the projects of a scope, by the rules of the scope.",
)

scope_marks = Table(
    "scope_marks",
    metadata,
    Column("id", Key, primary_key=True),
    Column("project_id", Key, nullable=False),
    comment="Projects whose requirements may have changed, so that scopes are searched again. Writers only append.",
)

followed_intervals = Table(
    "followed_intervals",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("start", Serial, primary_key=True, comment="the serial after the complete serial when it entered"),
    Column("end", Serial, comment="first serial at which it is no longer followed; null: it still is"),
    Column("exact_from", Serial, comment="first serial with answers; null: entering, not settled yet"),
    Index(None, "exact_from"),
    _partial_index("ix_followed_intervals_entering", "project_id", where="exact_from IS NULL"),
    comment="The serials at which projects are followed, if scopes decide it.",
)

journal_notices = Table(
    "journal_notices",
    metadata,
    Column(
        "logged_serial",
        Serial,
        primary_key=True,
        autoincrement=False,
        comment="the serial at which the journal contains it",
    ),
    Column("kind", Short, primary_key=True, comment="epoch changed, reprocessed, or records taken down"),
    Column("of_serial", Serial, nullable=False, comment="the first serial that it concerns"),
    Column("dump_sequence", Integer, comment="full dumps with this sequence or a later one include it"),
    comment="Announcements in the journal that do not concern a single file.",
)

journal_segments = Table(
    "journal_segments",
    metadata,
    Column("id", Key, primary_key=True),
    Column("stream", Short, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("start", Serial, nullable=False),
    Column("end", Serial, nullable=False),
    Column("number", Integer, comment="its place in the chain, from 1; null: an earlier segment is missing"),
    Column("name", Text, nullable=False, comment="filename, which contains its hash"),
    Column("records", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False, comment="size of the content before compression, in bytes"),
    Column("size", BigInteger, nullable=False, comment="size of the file in bytes"),
    Column("sha256", Short, nullable=False, comment="hash of the content before compression"),
    Column("manifest_sha256", Short, comment="hash of its manifest; null: it has no number"),
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
    Column("version", Text, comment="null: all releases of the project"),
    Column("filename", Text, comment="null: all files"),
    Column("stream", Short, comment="only for a single record"),
    Column("serial", Serial, comment="only for a single record"),
    Column("ordinal", Serial, comment="only for a single record"),
    Column("hides_name", Boolean, nullable=False, server_default=false()),
    Column("done_at", Time, comment="null: published segments still contain it"),
    comment="Data that the journal omits although the catalog keeps it.",
    sqlite_autoincrement=True,  # ids are never reused, so a writer detects a new takedown by a greater id
)

journal_consumers = Table(
    "journal_consumers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("cursor", Text, nullable=False, comment="its place, after the last record that it has"),
    Column("serial", Serial, nullable=False, comment="serial of that record; 0: it has no record"),
    Column("created_at", Time, nullable=False),
    Column("seen_at", Time, nullable=False, comment="when it last moved, or asked for more"),
    comment="Named readers of the journal, and the position of each.",
)

journal_letters = Table(
    "journal_letters",
    metadata,
    Column("id", Key, primary_key=True),
    Column("consumer", Text, nullable=False),
    Column("project", Text, nullable=False, comment="normalized name; records of a project are delivered in order"),
    Column("cursor", Text, nullable=False, comment="the place after its last record"),
    Column("content", LargeBinary, nullable=False, comment="zlib-compressed JSON: the records to deliver"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("due_at", Time, nullable=False),
    Column("error_text", Text),
    Column("is_dead", Boolean, nullable=False, server_default=false(), comment="true: not retried automatically"),
    Index("ix_journal_letters_due", "consumer", "is_dead", "due_at"),
    Index("ix_journal_letters_of_project", "consumer", "project", "id"),
    comment="Deliveries that webhooks have not received yet.",
    sqlite_autoincrement=True,  # ids are never reused, so a receiver detects repeated deliveries
)
