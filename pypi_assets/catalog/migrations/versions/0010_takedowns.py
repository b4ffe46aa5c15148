"""What was taken down from the journal, so that it is not written there again."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "journal_takedowns",
        sa.Column("id", Key, nullable=False),
        sa.Column("added_at", sa.Float(), nullable=False),
        sa.Column("reason", Text, nullable=False),
        sa.Column("project", Text, nullable=True, comment="normalized; null: one record"),
        sa.Column("version", Text, nullable=True, comment="null: all of the project"),
        sa.Column("filename", Text, nullable=True, comment="null: all files"),
        sa.Column("stream", Short, nullable=True, comment="of the one record"),
        sa.Column("serial", sa.BigInteger(), nullable=True, comment="of the one record"),
        sa.Column("ordinal", sa.BigInteger(), nullable=True, comment="of the one record"),
        sa.Column("hides_name", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("done_at", sa.Float(), nullable=True, comment="null: the published segments still have it"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_journal_takedowns")),
        comment="What the journal no longer has, though the catalog does.",
    )
