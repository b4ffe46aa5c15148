"""Retries go on when the machine's clock is set forward or back: the catalog knows by how much it was set."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "clock_offsets",
        sa.Column("machine", Short, nullable=False, comment="a hash of the machine and its boot"),
        sa.Column(
            "offset_s", sa.Float, nullable=False, comment="how far its clock was ahead of the time since the boot"
        ),
        sa.PrimaryKeyConstraint("machine", name=op.f("pk_clock_offsets")),
        comment="Tells when the clock of the machine was set. Only SQLite needs it.",
    )


def downgrade() -> None:
    op.drop_table("clock_offsets")
