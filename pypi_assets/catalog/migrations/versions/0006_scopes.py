"""Scopes say which projects are followed. A catalog of before follows all that its full crawls found."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_RULESETS = "SCOPE:VERSION of each ruleset in force, joined by commas; null: none was"
_IS_FIRST = "what it requires leads a scope on: read before the others"


def upgrade() -> None:
    op.add_column(
        "catalog_state",
        sa.Column(
            "follows_all",
            sa.Boolean,
            nullable=False,
            server_default=sa.true(),
            comment="false: scopes decide which projects are followed, see followed_intervals",
        ),
    )
    op.add_column(
        "catalog_state",
        sa.Column(
            "all_events_since",
            sa.BigInteger,
            comment="events of projects that are not followed are stored above this serial; null: above events_since",
        ),
    )
    op.add_column(
        "read_queue",
        sa.Column("is_first", sa.Boolean, nullable=False, server_default=sa.false(), comment=_IS_FIRST),
    )
    op.add_column("visits", sa.Column("rulesets", Text, comment=_RULESETS))
    op.add_column("read_attempts", sa.Column("rulesets", Text, comment=_RULESETS))
    if op.get_bind().dialect.name != "sqlite":
        op.execute(
            "COMMENT ON COLUMN visit_queue.scope IS 'crawl\\:ID, range\\:START-END, audit\\:ID, scope\\:ID, "
            "aborted\\:ID of a scope that rests, revisits, or listing\\: what no range has taken yet'"
        )
    _scopes()
    _projects_of_scopes()
    _followed()
    _selection_as_a_scope()


def downgrade() -> None:
    if not op.get_bind().scalar(sa.text("SELECT coalesce(min(CAST(follows_all AS integer)), 1) FROM catalog_state")):
        raise NotImplementedError("scopes say which projects are followed: go back to a backup of before")
    for table in ("followed_intervals", "scope_marks", "scope_edges", "scope_projects", "scope_rulesets", "scopes"):
        op.drop_table(table)
    op.drop_column("read_attempts", "rulesets")
    op.drop_column("visits", "rulesets")
    op.drop_column("read_queue", "is_first")
    op.drop_column("catalog_state", "all_events_since")
    op.drop_column("catalog_state", "follows_all")


def _scopes() -> None:
    op.create_table(
        "scopes",
        sa.Column("id", Key, primary_key=True),
        sa.Column("name", Text, nullable=False, unique=True),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("created_serial", sa.BigInteger, nullable=False, comment="from here on it decides what is followed"),
        sa.Column("roots", Text, nullable=False, comment="JSON: by normalized name, the extras that are followed too"),
        sa.Column(
            "most_depth", sa.Integer, comment="how many requirements lead away from a root at most; null: any number"
        ),
        sa.Column("nice", sa.SmallInteger, nullable=False, comment="lower first"),
        sa.Column(
            "concurrency", sa.Integer, comment="how many requests it has under way at most; null: as in the settings"
        ),
        sa.Column("tag", Text, comment="of the workers that its work is for; null: any"),
        sa.Column("match_only", sa.Boolean, nullable=False, comment="true: workers without its tag leave it alone"),
        sa.Column("is_aborted", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("completed_at", sa.Float, comment="when nothing was left to do; null: something is"),
        sa.Column("pruned_at", sa.Float, comment="when what its roots no longer lead to was left out"),
        sa.Column("pruned_serial", sa.BigInteger, comment="what the roots led to before it does not count since then"),
        sa.Column(
            "visited",
            sa.Integer,
            nullable=False,
            server_default=sa.text("0"),
            comment="how many of its visits are done and have left visit_queue",
        ),
        comment="What is followed: roots, and by which rules their requirements are.",
    )
    op.create_table(
        "scope_rulesets",
        sa.Column("scope_id", Key, sa.ForeignKey("scopes.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False, comment="counts up from 1"),
        sa.Column("from_serial", sa.BigInteger, nullable=False, comment="in force from here to the next one"),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("content", Text, nullable=False, comment="TOML"),
    )


def _projects_of_scopes() -> None:
    op.create_table(
        "scope_projects",
        sa.Column("scope_id", Key, sa.ForeignKey("scopes.id"), primary_key=True),
        sa.Column("project_id", Key, sa.ForeignKey("projects.id"), primary_key=True, index=True),
        sa.Column(
            "depth",
            sa.Integer,
            nullable=False,
            comment="the least number of requirements from a root since the last prune",
        ),
        sa.Column(
            "is_beyond", sa.Boolean, nullable=False, comment="true: beyond the greatest depth, so it is not followed"
        ),
        sa.Column("first_serial", sa.BigInteger, nullable=False, comment="the least at which the roots lead to it"),
        sa.Column(
            "entered_serial", sa.BigInteger, nullable=False, comment="after those that were complete when it entered"
        ),
        sa.Column("is_late", sa.Boolean, nullable=False, comment="true: first_serial was complete already"),
        sa.Column("entered_at", sa.Float, nullable=False),
        sa.Column("nice", sa.SmallInteger, nullable=False, comment="of the scope and of its rules"),
        comment="What the roots of a scope lead to. A project stays until the scope is pruned.",
    )
    op.create_table(
        "scope_edges",
        sa.Column("scope_id", Key, sa.ForeignKey("scopes.id"), primary_key=True),
        sa.Column("project_id", Key, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("required", Text, primary_key=True, comment="the normalized name of the project that is required"),
        sa.Column("start", sa.BigInteger, primary_key=True),
        sa.Column("end", sa.BigInteger, comment="the serial from which it no longer holds; null: it still does"),
        sqlite_with_rowid=False,
        comment="Which project of a scope requires which, by the rules of the scope.",
    )
    op.create_table(
        "scope_marks",
        sa.Column("id", Key, primary_key=True),
        sa.Column("project_id", Key, nullable=False),
        comment="What these projects require may have changed, so scopes look again. Writers only append.",
    )


def _followed() -> None:
    entering = sa.text("exact_from IS NULL")
    op.create_table(
        "followed_intervals",
        sa.Column("project_id", Key, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("start", sa.BigInteger, primary_key=True, comment="after the complete serial when it entered"),
        sa.Column("end", sa.BigInteger, comment="the serial from which it is no longer followed; null: it still is"),
        sa.Column(
            "exact_from",
            sa.BigInteger,
            comment="there is an answer from here on; null: entering, not settled yet",
            index=True,
        ),
        sa.Index("ix_followed_intervals_entering", "project_id", sqlite_where=entering, postgresql_where=entering),
        comment="Which projects are followed, where scopes decide it.",
    )


def _selection_as_a_scope() -> None:
    """The projects that PYPI_ASSETS_PROJECTS chose for the last full crawl are the roots of a scope from now on."""
    bind = op.get_bind()
    crawls = bind.execute(
        sa.text("SELECT selection, serial, opened_at, completed_at FROM full_crawls ORDER BY id")
    ).all()
    chosen = sorted(json.loads(crawls[-1].selection)) if crawls else []
    if not chosen:
        return
    state = bind.execute(sa.text("SELECT events_through, exact_from FROM catalog_state")).one()
    first = crawls[0]
    bind.execute(
        sa.text("UPDATE catalog_state SET follows_all = :no, all_events_since = events_through"), {"no": False}
    )
    scope = {
        "name": "projects",
        "created_at": first.opened_at,
        "created_serial": first.serial,
        "roots": json.dumps({name: [] for name in chosen}),
        "most_depth": 0,
        "nice": 0,
        "match_only": False,
        "completed_at": crawls[-1].completed_at,
    }
    tables = sa.MetaData()
    tables.reflect(bind, only=["scopes", "scope_rulesets", "scope_projects", "followed_intervals", "projects"])
    of = tables.tables
    scope_id = bind.execute(of["scopes"].insert().values(scope).returning(of["scopes"].c.id)).scalar_one()
    ruleset = {"version": 1, "from_serial": first.serial, "created_at": first.opened_at, "content": ""}
    bind.execute(of["scope_rulesets"].insert().values(scope_id=scope_id, **ruleset))
    known = sa.select(of["projects"].c.id, of["projects"].c.normalized)
    wanted = set(chosen)
    ids = [id_ for id_, name in bind.execute(known) if name in wanted]
    member = {
        "scope_id": scope_id,
        "depth": 0,
        "is_beyond": False,
        "first_serial": first.serial,
        "entered_serial": first.serial,
        "is_late": False,
        "entered_at": first.opened_at,
        "nice": 0,
    }
    if ids:
        is_complete = crawls[-1].completed_at is not None
        followed = {"start": first.serial, "exact_from": state.exact_from if is_complete else None}
        bind.execute(of["scope_projects"].insert(), [member | {"project_id": id_} for id_ in ids])
        bind.execute(of["followed_intervals"].insert(), [followed | {"project_id": id_} for id_ in ids])
