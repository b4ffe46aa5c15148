"""Dumps have columns of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column(
        "dumps",
        sa.Column(
            "columns",
            Text,
            nullable=True,
            comment="JSON array of the names of its columns; null: those of the first dumps",
        ),
    )


def downgrade() -> None:
    op.drop_column("dumps", "columns")
