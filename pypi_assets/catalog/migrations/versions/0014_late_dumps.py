"""What is learnt late of dumped serials is dumped at once: as of the last of them.

SQLite cannot change a constraint, so the schema's text is edited, as for the dumps of an empty index.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_WAS = 'start >= 0 AND ("end" > start OR "end" = 0)'
_IS = 'start >= 0 AND "end" >= start'


def upgrade() -> None:
    comment = "dumps that begin with this sequence or later know of it; null: all that have its logged_serial"
    op.add_column("changes", sa.Column("dump_sequence", sa.Integer(), nullable=True, comment=comment))
    op.execute(
        "UPDATE changes SET dump_sequence = (SELECT next_dump_sequence FROM catalog_state) WHERE logged_serial > serial"
        ' AND logged_serial > (SELECT max("end") FROM serial_ranges WHERE sealed)'
    )
    comment = "full dumps that begin with this sequence or later have it"
    op.add_column("journal_notices", sa.Column("dump_sequence", sa.Integer(), nullable=True, comment=comment))
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.drop_constraint(op.f("ck_dumps_in_order"), "dumps", type_="check")
        op.create_check_constraint(op.f("ck_dumps_in_order"), "dumps", _IS)
        return
    version = connection.scalar(sa.text("PRAGMA schema_version"))
    connection.execute(sa.text("PRAGMA writable_schema = ON"))
    change = sa.text("UPDATE sqlite_master SET sql = replace(sql, :was, :now) WHERE type = 'table' AND name = 'dumps'")
    connection.execute(change, {"was": f"CHECK ({_WAS})", "now": f"CHECK ({_IS})"})
    connection.execute(sa.text(f"PRAGMA schema_version = {version + 1}"))
    connection.execute(sa.text("PRAGMA writable_schema = OFF"))
