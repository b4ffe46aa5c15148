"""Dumps have columns of their own, what files of a release have in common is stored once, and a file is found by hash.

On SQLite a column is added as it is: alembic would copy the whole table for the sake of its foreign key.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Short = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REFERENCE = "fk_distribution_data_shared_details_id_shared_details"


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
    op.create_table(
        "shared_details",
        sa.Column("id", Key, nullable=False),
        sa.Column("sha256", Short, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False, comment="a JSON object, zlib-compressed"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shared_details")),
        sa.UniqueConstraint("sha256", name=op.f("uq_shared_details_sha256")),
        comment="What the files of a release have in common of their details, each once.",
    )
    op.create_index(op.f("ix_distributions_sha256"), "distributions", ["sha256"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "ALTER TABLE distribution_data ADD COLUMN shared_details_id INTEGER"
            f" CONSTRAINT {_REFERENCE} REFERENCES shared_details (id)"
        )
        return
    op.add_column(
        "distribution_data",
        sa.Column("shared_details_id", Key, nullable=True, comment="null: details has all of them"),
    )
    op.create_foreign_key(op.f(_REFERENCE), "distribution_data", "shared_details", ["shared_details_id"], ["id"])
    op.alter_column(
        "distribution_data",
        "details",
        existing_type=Text,
        comment="JSON: the record's other facts, see docs/formats.md",
        existing_comment="JSON: what else the record says, see docs/formats.md",
    )


def downgrade() -> None:
    raise NotImplementedError("details that are shared would be lost: go back to a backup of before")
