"""An index without any event can be dumped: as of serial 0.

SQLite cannot change a constraint. Its manual allows to edit the schema's text where the stored rows stay as they are; a
copy of the table would not do, since other tables refer to it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_WAS = 'start >= 0 AND "end" > start'
_IS = 'start >= 0 AND ("end" > start OR "end" = 0)'


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.drop_constraint(op.f("ck_dumps_not_empty"), "dumps", type_="check")
        op.create_check_constraint(op.f("ck_dumps_in_order"), "dumps", _IS)
        return
    was, now = f"CONSTRAINT ck_dumps_not_empty CHECK ({_WAS})", f"CONSTRAINT ck_dumps_in_order CHECK ({_IS})"
    version = connection.scalar(sa.text("PRAGMA schema_version"))
    connection.execute(sa.text("PRAGMA writable_schema = ON"))
    change = sa.text("UPDATE sqlite_master SET sql = replace(sql, :was, :now) WHERE type = 'table' AND name = 'dumps'")
    connection.execute(change, {"was": was, "now": now})
    connection.execute(sa.text(f"PRAGMA schema_version = {version + 1}"))
    connection.execute(sa.text("PRAGMA writable_schema = OFF"))
