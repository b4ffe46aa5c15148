"""An index without any event can be dumped: as of serial 0."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("dumps") as batch:
        batch.drop_constraint(op.f("ck_dumps_not_empty"), type_="check")
        batch.create_check_constraint(op.f("ck_dumps_in_order"), 'start >= 0 AND ("end" > start OR "end" = 0)')
