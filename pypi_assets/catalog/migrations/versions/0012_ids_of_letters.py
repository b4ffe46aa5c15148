"""The id of a letter that was received is given to no other: a receiver knows by it which one it has already.

PostgreSQL's sequences hold to that by themselves.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        options = {"sqlite_autoincrement": True}
        with op.batch_alter_table("journal_letters", recreate="always", table_kwargs=options):
            pass
