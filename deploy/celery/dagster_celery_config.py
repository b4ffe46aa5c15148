"""Settings of the workers of Celery: read from the folder that they are started in, by the app `dagster_celery.app`."""

worker_max_tasks_per_child = 1  # each run in a process of its own
worker_disable_prefetch = True  # a worker takes what it begins, so that nothing waits in one that dies
worker_redirect_stdouts = False  # what a step says belongs to its own logs
