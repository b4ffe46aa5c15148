"""The services of deploy/compose.yaml as processes of this machine, with the same commands and the same files."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_VARIABLE = re.compile(r"\$\{(\w+)(?::\?[^}]*)?\}")


def _put_in(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def read_environment(path: Path, others: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of an environment file, as Compose and a shell read it; those of `others` take precedence."""
    values: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            values[name] = (others or {}).get(name, _put_in("".join(shlex.split(value)), values))
    return values


def compose_services(path: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """The services of a Compose file, each with the variables in its command put in."""
    services: dict[str, Any] = yaml.safe_load(path.read_text())["services"]
    for service in services.values():
        service["command"] = [_put_in(part, environment) for part in service.get("command", ())]
    return services
