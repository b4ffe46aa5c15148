"""Settings of the workers of Celery. A file `dagster_celery_config.py` in a worker's folder imports all of them."""

worker_max_tasks_per_child = 1  # each run in a process of its own
worker_disable_prefetch = True  # a worker takes what it begins, so that no run waits in a worker that dies
worker_redirect_stdouts = False  # a step's output belongs to its own logs
