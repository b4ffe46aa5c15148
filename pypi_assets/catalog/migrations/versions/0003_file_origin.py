"""The host that files come from is stored once the first pages of the index agree on it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column(
        "catalog_state",
        sa.Column(
            "file_origin",
            Text,
            nullable=True,
            comment="scheme and host of the files; empty: the index's own alone; null: not decided",
        ),
    )


def downgrade() -> None:
    op.drop_column("catalog_state", "file_origin")
