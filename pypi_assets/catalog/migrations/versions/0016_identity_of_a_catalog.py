"""A catalog has an identity from its first moment on, which its storage names.

Until now it was the serial and the time of the first full crawl. Storages that name that stay those of their catalogs.
"""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column(
        "catalog_state",
        sa.Column(
            "identity",
            Text,
            nullable=False,
            server_default=sa.text("''"),
            comment="distinguishes the catalog from others; index.json of its storage names it",
        ),
    )
    connection = op.get_bind()
    begins = (
        "SELECT serial, opened_at FROM full_crawls ORDER BY id LIMIT 1",
        'SELECT "end", asked_at FROM serial_ranges ORDER BY start LIMIT 1',  # if it began with a scope
    )
    first = next((row for query in begins if (row := connection.execute(sa.text(query)).first())), None)
    identity = uuid.uuid4().hex if first is None else f"{first[0]}-{first[1]:.6f}"
    connection.execute(sa.text("UPDATE catalog_state SET identity = :identity"), {"identity": identity})


def downgrade() -> None:
    op.drop_column("catalog_state", "identity")
