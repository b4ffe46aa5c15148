"""The lists of requirements that name a project are found by its name, so that who required it at a serial is known.

Entering the lists that are there takes about two minutes for each million of them.
"""

import json
import zlib

import sqlalchemy as sa
from alembic import op

from pypi_assets.distributions.requirement_names import required_projects
from pypi_assets.index.models import LONGEST_NAME

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LISTS_AT_A_TIME = 1_000


def upgrade() -> None:
    op.create_table(
        "required_names",
        sa.Column("name", Text, nullable=False, comment="the normalized name of the project that is required"),
        sa.Column("list_id", Key, nullable=False),
        sa.Column(
            "condition", sa.SmallInteger(), nullable=False, comment="0: always, 1: by a marker, 2: only with an extra"
        ),
        sa.ForeignKeyConstraint(["list_id"], ["name_lists.id"], name=op.f("fk_required_names_list_id_name_lists")),
        sa.PrimaryKeyConstraint("name", "list_id", name=op.f("pk_required_names")),
        comment="Which lists of requirements name a project.",
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_distribution_data_requires_dist_id"), "distribution_data", ["requires_dist_id"])
    op.add_column(
        "name_lists",
        sa.Column(
            "has_required",
            sa.Boolean(),
            server_default=sa.false(),
            nullable=False,
            comment="true: required_names knows it",
        ),
    )
    _enter_lists(op.get_bind())


def _enter_lists(connection: sa.Connection) -> None:
    """Enters the lists of requirements that files have."""
    data = sa.table("distribution_data", sa.column("requires_dist_id"))
    lists = sa.table("name_lists", sa.column("id"), sa.column("content"), sa.column("has_required"))
    names = sa.table("required_names", sa.column("name"), sa.column("list_id"), sa.column("condition"))
    of_requirements = sa.exists().where(data.c.requires_dist_id == lists.c.id)
    last = 0
    while True:
        some = sa.select(lists.c.id, lists.c.content).where(lists.c.id > last, of_requirements)
        found = connection.execute(some.order_by(lists.c.id).limit(_LISTS_AT_A_TIME)).all()
        if not found:
            return
        rows = [
            {"name": name, "list_id": list_id, "condition": condition}
            for list_id, content in found
            for name, condition in sorted(required_projects(json.loads(zlib.decompress(content))).items())
            if len(name) <= LONGEST_NAME
        ]
        if rows:
            connection.execute(sa.insert(names), rows)
        entered = lists.c.id.between(found[0].id, found[-1].id) & of_requirements
        connection.execute(sa.update(lists).where(entered).values(has_required=True))
        last = found[-1].id


def downgrade() -> None:
    op.drop_column("name_lists", "has_required")
    op.drop_index(op.f("ix_distribution_data_requires_dist_id"), "distribution_data")
    op.drop_table("required_names")
