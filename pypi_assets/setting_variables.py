"""Where settings come from: variables PYPI_ASSETS_... of the environment, of a file `.env`, and the table of an index.
Checks no value.

It imports neither pydantic nor Dagster, so a command that needs one or two settings can read them at once. What each
variable accepts is in `settings.py`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from pypi_assets.errors import SettingsError

if TYPE_CHECKING:
    from pypi_assets.indexes import Indexes, IndexTable

ENV_PREFIX = "PYPI_ASSETS_"
ENV_FILE = ".env"
ENV_FILE_VARIABLE = f"{ENV_PREFIX}ENV_FILE"
FILE_SUFFIX = "_FILE"
"""Of the variable that names a file with a setting's value, such as a secret: PYPI_ASSETS_DATABASE_URL_FILE."""
DEFAULT_HOME = Path(".pypi-assets")
INDEX_ACCEPTS = "the name of an index in the file of PYPI_ASSETS_INDEXES; default: its default index"
ENV_FILE_ACCEPTS = "a file of settings, a line NAME=VALUE each; default: .env in the current folder"

SETTING_NAMES = frozenset(
    {
        "allowed_file_hosts",
        "audit_share_percent",
        "ca_file",
        "changelog_url",
        "claim_lease_s",
        "client_cert",
        "connect_timeout_s",
        "contact",
        "containment",
        "database_url",
        "dump_concurrency",
        "env_file",
        "follow_interval_s",
        "follow_leveldb_interval_s",
        "freshness_hours",
        "given_up_fail_percent",
        "given_up_warn_percent",
        "home",
        "in_flight",
        "index",
        "index_url",
        "indexes",
        "kafka_bootstrap_servers",
        "kafka_properties",
        "kafka_topic_prefix",
        "lag_fail_s",
        "lag_warn_s",
        "leveldb_memory_bytes",
        "leveldb_versions_kept",
        "leveldb_write_buffer_bytes",
        "lister",
        "log_format",
        "log_level",
        "max_attempts",
        "max_connections",
        "max_expansion_ratio",
        "max_file_bytes",
        "max_inflated_bytes",
        "max_members",
        "max_metadata_bytes",
        "max_name_length",
        "max_read_seconds",
        "notify_urls",
        "owners",
        "parquet_exports_kept",
        "partitions_kept_days",
        "poll_confirm_s",
        "poll_longest_s",
        "poll_requests",
        "poll_shortest_s",
        "projects",
        "proxy",
        "range_events",
        "range_min_age_s",
        "range_min_events",
        "read_attempts_kept_days",
        "read_timeout_s",
        "request_attempts",
        "requests_per_second",
        "retry_deadline_s",
        "retry_pause_s",
        "revisit_share",
        "sensor_interval_s",
        "sensors_on",
        "service_allow_quarantined",
        "service_max_body_bytes",
        "service_resolve_timeout_s",
        "service_max_connections",
        "service_max_requests",
        "service_public_url",
        "service_refresh_s",
        "service_timeout_s",
        "solvability_kept_days",
        "solvability_projects",
        "solvability_since",
        "storage_url",
        "superseded_kept_hours",
        "visits_kept_days",
        "webhooks",
        "webhooks_private",
    }
)
"""The fields of `settings.Settings`; a test compares the two."""


@dataclass(frozen=True, slots=True)
class SettingVariables:
    """The variables that are set and not empty, by setting name, such as `index_url`.

    `file` is the file that was read, None where there is none. `in_file` has the names whose text is the file's.
    `unknown` has the variables that name no setting, in upper case. `index` is the one that the settings are of, None
    where there is no file of indexes.
    """

    texts: Mapping[str, str]
    file: Path | None
    in_file: frozenset[str]
    unknown: tuple[str, ...]
    index: "IndexTable | None" = None

    def label(self, name: str) -> str:
        """What a message calls the setting: its variable, or the key of its index."""
        return self.index.label(name) if self._is_of_index(name) and self.index else f"{ENV_PREFIX}{name.upper()}"

    def place(self, name: str) -> str:
        """Where the setting comes from, to be added to a message about its value; empty for the environment."""
        return f" (in {self.file})" if name in self.in_file and not self._is_of_index(name) else ""

    def _is_of_index(self, name: str) -> bool:
        return self.index is not None and name in self.index.values

    def warnings(self) -> list[str]:
        """A line for each variable that names no setting, with the nearest one that does."""
        return [describe_unknown(variable) for variable in self.unknown]


_selected: ContextVar[str | None] = ContextVar("_selected", default=None)


@contextmanager
def selected_index(name: str | None) -> Iterator[None]:
    """Within the block, settings are those of the index `name`, whatever PYPI_ASSETS_INDEX names; None: of that one.

    with selected_index("company"):
        settings = load_settings()
    """
    token = _selected.set(name)
    try:
        yield
    finally:
        _selected.reset(token)


def read_variables(environment: Mapping[str, str] = os.environ) -> SettingVariables:
    """The variables of the environment, over those of the file that PYPI_ASSETS_ENV_FILE names, else of `./.env`.

    Where PYPI_ASSETS_INDEXES names a file, the table of the selected index is over both. Upper and lower case are the
    same. PYPI_ASSETS_..._FILE names a file with the value of the setting. Raises SettingsError for a file that cannot
    be read or is wrong, for a setting with both variables, and where there is no index of the selected name.
    """
    named = _of_settings(environment)
    named_file = named.pop(ENV_FILE_VARIABLE, None)
    named = _with_values_of_files(named)
    path = Path(os.path.expanduser(named_file or ENV_FILE))  # noqa: PTH111 - Path's raises for an unknown user
    stored = _read_file(path, is_required=named_file is not None)
    in_file = {} if stored is None else _with_values_of_files(_of_settings(stored))
    found = in_file | named
    texts = {name: text for variable, text in found.items() if (name := _setting(variable)) in SETTING_NAMES}
    if named_file is not None:
        texts["env_file"] = named_file
    index, texts = _of_index(texts, {**(stored or {}), **environment})
    return SettingVariables(
        index=index,
        texts=texts,
        file=None if stored is None else path,
        in_file=frozenset(_setting(variable) for variable in in_file.keys() - named.keys()),
        unknown=tuple(sorted(variable for variable in found if _setting(variable) not in SETTING_NAMES)),
    )


def read_all_indexes(environment: Mapping[str, str] = os.environ) -> "Indexes | None":
    """All indexes of the file that PYPI_ASSETS_INDEXES names; None where it is not set. Raises SettingsError."""
    index = read_variables(environment).index
    if index is None:
        return None
    from pypi_assets.indexes import read_indexes

    return read_indexes(index.path, SETTING_NAMES)


def _of_index(texts: dict[str, str], variables: Mapping[str, str]) -> "tuple[IndexTable | None, dict[str, str]]":
    """The selected index, and the settings with those of its table; both as they are where there is no file."""
    name = _selected.get() or texts.get("index")
    if "indexes" not in texts:
        if name is not None:
            raise _unknown_index(f"there is no index {name}, since {ENV_PREFIX}INDEXES is not set")
        return None, texts
    from pypi_assets.indexes import read_indexes, refuse_shared_places, settings_of

    indexes = read_indexes(Path(os.path.expanduser(texts["indexes"])), SETTING_NAMES)  # noqa: PTH111 - as above
    home = texts.get("home", str(DEFAULT_HOME))
    refuse_shared_places(indexes, texts, variables, home)
    index = indexes.default if name is None else indexes.named(name)
    if index is None:
        raise _unknown_index(f"there is no index {name}: {indexes.path} has {', '.join(indexes.names)}")
    return index, settings_of(index, texts, variables, home) | {"index": index.name}


def _unknown_index(text: str) -> SettingsError:
    return SettingsError(
        f"{'--index' if _selected.get() else f'{ENV_PREFIX}INDEX'}: {text}; it accepts {INDEX_ACCEPTS}"
    )


def describe_unknown(variable: str) -> str:
    """A warning about a variable that names no setting. It is not an error, since a newer version may know it."""
    nearest = get_close_matches(_setting(variable), sorted(SETTING_NAMES), n=1)
    hint = f"did you mean {ENV_PREFIX}{nearest[0].upper()}?" if nearest else "`pypi-assets admin settings` lists them"
    return f"{variable} is no setting and has no effect; {hint}"


def _of_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Those with the prefix that are not empty, in upper case."""
    return {
        variable.upper(): text
        for variable, text in variables.items()
        if text and variable.upper().startswith(ENV_PREFIX)
    }


def _with_values_of_files(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables with the values that are in files, each under the name of its setting."""
    found = dict(variables)
    for variable, path in variables.items():
        named = variable.removesuffix(FILE_SUFFIX)
        if named == variable or _setting(variable) in SETTING_NAMES or _setting(named) not in SETTING_NAMES:
            continue
        if named in variables:
            raise SettingsError(f"{variable}: {named} is set too; set one of them")
        del found[variable]
        if text := _read_value(variable, path):
            found[named] = text
    return found


def _read_value(variable: str, path: str) -> str:
    """The content of a file, without the end of its line."""
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{variable}: cannot read {path}: {reason}; it accepts a file with the value") from error


def _setting(variable: str) -> str:
    return variable.upper().removeprefix(ENV_PREFIX).lower()


def _read_file(path: Path, *, is_required: bool) -> dict[str, str] | None:
    """The variables of a file, None where there is none. `${NAME}` in a value stands for another variable."""
    if path == Path(os.devnull) or not (is_required or path.is_file()):
        return None
    from dotenv import dotenv_values  # only where there is a file

    try:
        with path.open(encoding="utf-8") as lines:
            return {name: text for name, text in dotenv_values(stream=lines).items() if text is not None}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"{ENV_FILE_VARIABLE}: cannot read {path}: {reason}; it accepts {ENV_FILE_ACCEPTS}"
        raise SettingsError(message) from error
