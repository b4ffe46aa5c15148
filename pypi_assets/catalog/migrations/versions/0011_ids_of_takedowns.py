"""The id of a takedown that was lifted is given to no other: a writer knows by a greater one that there is a new one.

PostgreSQL's sequences hold to that by themselves.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        options = {"sqlite_autoincrement": True}
        with op.batch_alter_table("journal_takedowns", recreate="always", table_kwargs=options):
            pass
