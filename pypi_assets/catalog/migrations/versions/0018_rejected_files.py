"""A file that no installer takes says so in a column, so that queries for dependents and owners skip it."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_INSTALLERS = ("pip ", "uv ")


def upgrade() -> None:
    op.add_column(
        "distribution_data",
        sa.Column(
            "is_rejected",
            sa.Boolean(),
            nullable=False,
            server_default=sa.false(),
            comment="no installer takes the file",
        ),
    )
    names = ("distribution_id", "details", "is_rejected")
    data = sa.table("distribution_data", *(sa.column(name) for name in names))
    with_refusals = sa.select(data.c.distribution_id, data.c.details).where(data.c.details.contains('"refusals"'))
    connection = op.get_bind()
    for id_, details in connection.execute(with_refusals).all():  # few files have any
        found = json.loads(details).get("refusals", [])
        if all(any(one.startswith(installer) for one in found) for installer in _INSTALLERS):
            connection.execute(sa.update(data).where(data.c.distribution_id == id_).values(is_rejected=True))
