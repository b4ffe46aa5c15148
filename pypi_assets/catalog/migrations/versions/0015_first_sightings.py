"""Files of observed indexes whose pages state no time of upload have the time of their first sighting."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_COMMENT = "when an observed index first showed it, if no page states its upload"


def upgrade() -> None:
    op.add_column("distributions", sa.Column("first_seen_at", sa.Text(), nullable=True, comment=_COMMENT))
