"""The size of the pod of each job, as a tag, where this process runs in a pod of Kubernetes; elsewhere there is none.

A run is one process with its children, so a job is as large as the largest of its assets.
"""

import json
import os
from collections.abc import Mapping

_GIB = 1024**3


def is_on_kubernetes(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs in a pod: Kubernetes sets this variable in each."""
    return "KUBERNETES_SERVICE_HOST" in environment


def _pod(cpus: int, memory: int, memory_limit: int, disk: int | None = None) -> dict[str, str]:
    """The tag of a pod: processors and bytes of memory that are set aside, the most memory, and bytes of disk."""
    if not is_on_kubernetes():
        return {}
    disks = {} if disk is None else {"ephemeral-storage": str(disk)}
    resources = {
        "requests": {"cpu": str(cpus), "memory": str(memory), **disks},
        "limits": {"memory": str(memory_limit), **disks},
    }
    return {"dagster-k8s/config": json.dumps({"container_config": {"resources": resources}})}


CRAWLING = _pod(1, 2 * _GIB, 4 * _GIB)  # a reader for each connection, of some 100 MB
DUMPING = _pod(2, _GIB // 2, _GIB)
BUILDING = _pod(2, 2 * _GIB, 3 * _GIB, 40 * _GIB)  # a version lies on disk twice while it is made of the one before
EXPORTING = _pod(1, _GIB // 2, _GIB)
