"""The size of the pod of each job, as a tag, where this process runs in a pod of Kubernetes; elsewhere there is none.

A run is one process with its children, so a job is as large as the largest of its assets.
"""

import json
import os
from collections.abc import Mapping

_GIB = 1024**3
_CONFIG = "dagster-k8s/config"


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
    return {_CONFIG: json.dumps({"container_config": {"resources": resources}})}


LABEL = "pypi-assets/tag"
"""Of the pods of a scope with a tag, and of the nodes that take them alone."""


def with_tag(tag: str, *, is_match_only: bool) -> dict[str, str]:
    """The tag of the pod of a crawl with this label; `is_match_only`: it runs on nodes with the same label alone."""
    if not CRAWLING:
        return {}
    config = json.loads(CRAWLING[_CONFIG])
    config["pod_template_spec_metadata"] = {"labels": {LABEL: tag}}
    if is_match_only:
        config["pod_spec_config"] = {"node_selector": {LABEL: tag}}
    return {_CONFIG: json.dumps(config)}


CRAWLING = _pod(1, 2 * _GIB, 4 * _GIB)  # a reader for each connection, of some 100 MB
DUMPING = _pod(2, _GIB // 2, _GIB)
BUILDING = _pod(2, 2 * _GIB, 3 * _GIB, 40 * _GIB)  # a version lies on disk twice while it is made of the one before
EXPORTING = _pod(1, _GIB // 2, _GIB)
