"""The journal: what it announces, its segments, who reads it, and what was not delivered yet."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "journal_notices",
        sa.Column(
            "logged_serial", sa.BigInteger(), autoincrement=False, nullable=False, comment="where the journal has it"
        ),
        sa.Column("kind", Short, nullable=False, comment="epoch changed, reprocessed, or records taken down"),
        sa.Column("of_serial", sa.BigInteger(), nullable=False, comment="the least serial that shows it"),
        sa.PrimaryKeyConstraint("logged_serial", "kind", name=op.f("pk_journal_notices")),
        comment="What the journal announces that is no change of one file.",
    )
    op.create_table(
        "journal_segments",
        sa.Column("id", Key, nullable=False),
        sa.Column("stream", Short, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column(
            "number",
            sa.Integer(),
            nullable=True,
            comment="its place in the chain, from 1; null: what comes before it is missing",
        ),
        sa.Column("name", Text, nullable=False, comment="of the file, which has its hash"),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False, comment="before compression"),
        sa.Column("size", sa.BigInteger(), nullable=False, comment="of the file"),
        sa.Column("sha256", Short, nullable=False, comment="before compression"),
        sa.Column("manifest_sha256", Short, nullable=True, comment="of its manifest; null: it has no number"),
        sa.Column("written_at", sa.Float(), nullable=False),
        sa.CheckConstraint('start >= 0 AND "end" > start', name=op.f("ck_journal_segments_not_empty")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_journal_segments")),
        sa.UniqueConstraint("stream", "generation", "start", name=op.f("uq_journal_segments_stream_generation_start")),
        sa.UniqueConstraint(
            "stream", "generation", "number", name=op.f("uq_journal_segments_stream_generation_number")
        ),
        comment="An index of the journal's segments in the storage.",
    )
    op.create_table(
        "journal_consumers",
        sa.Column("name", Text, nullable=False),
        sa.Column("cursor", Text, nullable=False, comment="after the last record that it has taken"),
        sa.Column("serial", sa.BigInteger(), nullable=False, comment="of that record; 0: of none"),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("seen_at", sa.Float(), nullable=False, comment="when it last moved, or looked for more"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_journal_consumers")),
        comment="Readers of the journal that have a name, and how far each has come.",
    )
    op.create_table(
        "journal_letters",
        sa.Column("id", Key, nullable=False),
        sa.Column("consumer", Text, nullable=False),
        sa.Column("project", Text, nullable=False, comment="normalized; records of one are delivered in order"),
        sa.Column("cursor", Text, nullable=False, comment="after its last record"),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="zlib-compressed JSON: what is to be delivered"),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", sa.Float(), nullable=False),
        sa.Column("error_text", Text, nullable=True),
        sa.Column(
            "is_dead",
            sa.Boolean(),
            server_default=sa.false(),
            nullable=False,
            comment="true: not tried again by itself",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_journal_letters")),
        comment="What webhooks have not received yet.",
    )
    op.create_index("ix_journal_letters_due", "journal_letters", ["consumer", "is_dead", "due_at"])
    op.create_index("ix_journal_letters_of_project", "journal_letters", ["consumer", "project", "id"])
