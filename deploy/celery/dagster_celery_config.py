"""Settings of the workers of Celery: read from the folder that they are started in, by the app `dagster_celery.app`."""

worker_max_tasks_per_child = 1  # each run in a process of its own
worker_disable_prefetch = True  # a worker takes what it begins, so that no run waits in a worker that dies
worker_redirect_stdouts = False  # a step's output belongs to its own logs
