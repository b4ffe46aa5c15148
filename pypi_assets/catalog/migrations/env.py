"""Runs the migrations on the connection that database.py hands over, inside its transaction."""

from alembic import context

from pypi_assets.catalog.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
context.run_migrations()
