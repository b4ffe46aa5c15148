"""Run the migrations on the connection that database.py provides, inside its transaction."""

from alembic import context
from sqlalchemy import inspect
from sqlalchemy.schema import SetColumnComment, SetTableComment

from pypi_assets.catalog.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
context.run_migrations()

if connection.dialect.supports_comments:  # so no migration has to repeat or change comments
    inspector = inspect(connection)
    for table in metadata.sorted_tables:
        if inspector.has_table(table.name):
            connection.execute(SetTableComment(table))
            names = {column["name"] for column in inspector.get_columns(table.name)}
            for column in table.columns:
                if column.name in names:
                    connection.execute(SetColumnComment(column))
