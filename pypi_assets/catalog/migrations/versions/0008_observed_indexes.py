"""An index without serials is observed: what is known of its projects, and the events that were observed.

A file that is replaced by another one of the same name is its next generation.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0006"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "observed_projects",
        sa.Column("project", Text, nullable=False, comment="normalized"),
        sa.Column("url", Text, nullable=True, comment="of its page, where the list of projects gives one"),
        sa.Column("revision", sa.Integer(), nullable=False, comment="counts the saves of what is known"),
        sa.Column("serial", sa.BigInteger(), nullable=True, comment="of its last event; null: it has none"),
        sa.Column(
            "content",
            sa.LargeBinary(),
            nullable=True,
            comment="what is believed of its page: zlib-compressed JSON; null: never seen",
        ),
        sa.Column("is_there", sa.Boolean(), server_default=sa.false(), nullable=False, comment="whether it has a page"),
        sa.Column("etag", Text, nullable=True),
        sa.Column("last_modified", Text, nullable=True),
        sa.Column("due_at", sa.Float(), nullable=False, comment="when it is looked at next"),
        sa.Column("pause_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("looked_at", sa.Float(), nullable=True, comment="when its page, or a 404, was seen last"),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False, comment="in a row"),
        sa.Column("error_text", Text, nullable=True),
        sa.PrimaryKeyConstraint("project", name=op.f("pk_observed_projects")),
        comment="What is known of the projects of an index without serials; see catalog/observed/observations.py.",
    )
    op.create_index(op.f("ix_observed_projects_due_at"), "observed_projects", ["due_at"])
    op.create_table(
        "observed_events",
        sa.Column(
            "serial",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="of the counter in lister_states",
        ),
        sa.Column("project", Text, nullable=False, comment="normalized"),
        sa.Column("name", Text, nullable=False),
        sa.Column("version", Text, nullable=True),
        sa.Column("action", Text, nullable=False),
        sa.Column("seen_at", sa.Float(), nullable=False),
        sa.Column(
            "not_before",
            sa.Float(),
            nullable=True,
            comment="when the project was seen without it; null: it was never seen before",
        ),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_observed_events")),
        comment="The changes that were observed of an index without serials. They stand in for its changelog.",
    )
    op.create_table(
        "past_generations",
        sa.Column("distribution_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False, comment="the serial from which the next generation counts"),
        sa.Column("sha256", Short, nullable=True),
        sa.Column(
            "content",
            sa.LargeBinary(),
            nullable=False,
            comment="zlib-compressed JSON: its facts, and what was read of it",
        ),
        sa.ForeignKeyConstraint(
            ["distribution_id"],
            ["distributions.id"],
            name=op.f("fk_past_generations_distribution_id_distributions"),
        ),
        sa.PrimaryKeyConstraint("distribution_id", "generation", name=op.f("pk_past_generations")),
        comment="Contents of files that were replaced by others of the same name, as far as they were known.",
    )
    op.add_column(
        "distributions",
        sa.Column(
            "generation",
            sa.Integer(),
            server_default=sa.text("1"),
            nullable=False,
            comment="counts the contents that the index has had under this name",
        ),
    )


def downgrade() -> None:
    op.drop_column("distributions", "generation")
    op.drop_table("past_generations")
    op.drop_table("observed_events")
    op.drop_table("observed_projects")
