"""A unit of systemd's user manager that keeps a stack running."""

from collections.abc import Sequence
from pathlib import Path

UNIT = "pypi-assets.service"
STOPPED_WITHIN_S = 180
WRONG_USAGE = 2
"""The exit code for wrong options and settings, which no restart mends."""


def unit_text(command: Sequence[str], folder: Path) -> str:
    """Return the unit that runs `command`, which is `pypi-assets up` with its options, in `folder`.

    It is restarted if it fails or is killed, and stays stopped after `pypi-assets up --stop`.
    """
    return f"""\
[Unit]
Description=pypi-assets: the whole pipeline on one machine
StartLimitIntervalSec=0

[Service]
Type=exec
WorkingDirectory={_escaped(str(folder))}
ExecStart={" ".join(map(_quoted, command))}
Restart=on-failure
RestartPreventExitStatus={WRONG_USAGE}
RestartSec=5
KillMode=mixed
TimeoutStopSec={STOPPED_WITHIN_S}

[Install]
WantedBy=default.target
"""


def units_folder(environment: dict[str, str]) -> Path:
    """The folder in which systemd looks for the units of this user."""
    configuration = environment.get("XDG_CONFIG_HOME")
    return (Path(configuration) if configuration else Path.home() / ".config") / "systemd" / "user"


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(argument: str) -> str:
    """An argument as `ExecStart` takes it."""
    escaped = _escaped(argument).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if escaped != argument or " " in argument or not argument else argument
