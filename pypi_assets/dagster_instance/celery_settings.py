"""Settings of Celery workers. The file `dagster_celery_config.py` in a worker's folder imports all of them."""

import logging

from celery.signals import setup_logging

from pypi_assets.logs import are_json, set_up_logs

__all__ = ["worker_disable_prefetch", "worker_max_tasks_per_child", "worker_redirect_stdouts"]

worker_max_tasks_per_child = 1  # each run has its own process
worker_disable_prefetch = True  # a worker takes only tasks that it starts, so that no run waits in a worker that dies
worker_redirect_stdouts = False  # the output of a step belongs to the step's own logs


def _keep_handlers(loglevel: int, **_others: object) -> None:
    """Set the level of Celery's logs. Celery adds no handlers if its signal has a receiver."""
    logging.getLogger("celery").setLevel(loglevel)


set_up_logs(is_guest=True)
if are_json():
    setup_logging.connect(_keep_handlers)
