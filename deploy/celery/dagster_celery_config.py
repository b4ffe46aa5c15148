"""Settings of the workers of Celery: read from the folder that they are started in, by the app `dagster_celery.app`."""

from pypi_assets.dagster_instance.celery_settings import *  # noqa: F403
