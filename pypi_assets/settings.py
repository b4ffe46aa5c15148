"""All settings, with types, from the environment and a file `.env` (PYPI_ASSETS_...). It does not import Dagster."""

import json
import re
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name, is_normalized_name
from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from pypi_assets.errors import SettingsError as SettingsError
from pypi_assets.index.addresses import is_loopback as is_loopback
from pypi_assets.index.kind_names import AUTO, WITH_CHANGELOG_NEXT_TO_IT, require_kind
from pypi_assets.index.urls import base_of
from pypi_assets.indexes import INDEXES_ACCEPTS
from pypi_assets.setting_sources import (
    DEFAULT_HOME,
    ENV_FILE,
    ENV_FILE_ACCEPTS,
    INDEX_ACCEPTS,
    STORAGE_URL_ACCEPTS,
    Locations,
    checked_storage_url,
    read_variables,
)
from pypi_assets.setting_sources import ENV_PREFIX as ENV_PREFIX

AUTO_HOSTS = "auto"
CATALOG_URL_FILE = "catalog_url"
"""The file in the home with the URL of the catalog's database, if `pypi-assets up` has created one."""
_SHORTEST_TOKEN = 16
_OWNER = re.compile(r"team:.+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}")  # the owners that Dagster accepts
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9._:/%\[\]-]+")
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


def _pypi_url() -> str:
    """Return PyPI's Simple API. Only this default needs pypi-simple, whose import takes 0.2 s."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return PYPI_SIMPLE_ENDPOINT


def _as_number(value: object) -> object:
    """Return the number in a text of digits. The type of a field with a few numbers accepts no text."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _in_lower_case(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class Settings(BaseSettings):
    """All settings of pypi-assets, with their defaults. A field's description says which values its variable accepts.

    An empty variable counts as unset. A variable of the environment takes precedence over the same variable of the
    file.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        frozen=True,
        extra="ignore",
        validate_default=True,
        allow_inf_nan=False,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the names are pydantic's
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, InitSettingsSource(settings_cls, dict(read_variables().texts))

    env_file: Annotated[Path, Field(description=ENV_FILE_ACCEPTS)] = Path(ENV_FILE)
    indexes: Annotated[Path | None, Field(description=INDEXES_ACCEPTS)] = None
    index: Annotated[str | None, Field(description=INDEX_ACCEPTS)] = None
    home: Annotated[Path, Field(description="a folder for all local files; created if missing")] = DEFAULT_HOME
    lister: Annotated[
        str,
        Field(
            description="auto (detected by the first crawl), xmlrpc (the changelog), simple (the list of projects,"
            " while there is no changelog), pages (an index without serials), or a kind of index that a package"
            " adds"
        ),
    ] = "auto"
    index_url: Annotated[
        str,
        Field(
            default_factory=_pypi_url,
            description="the address of the index's list of projects, http(s), as in pip's --index-url",
        ),
    ]
    changelog_url: Annotated[
        str | None, Field(description="the XML-RPC endpoint's URL; default: /pypi next to the index's /simple/")
    ] = None
    database_url: Annotated[
        str,
        Field(
            description="sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE; default: the PostgreSQL of"
            " `pypi-assets up` if home has one, else SQLite in home"
        ),
    ] = ""
    storage_url: Annotated[str, Field(description=STORAGE_URL_ACCEPTS)] = ""
    contact: Annotated[
        str | None, Field(description="a mail address or a URL, in ASCII; required unless the index is on loopback")
    ] = None
    projects: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="project names separated by commas or spaces, or a file with one name per line; empty means all"
        ),
    ] = ()
    max_connections: Annotated[int, Field(ge=1, le=64, description="concurrent connections to the index, 1 to 64")] = 10
    requests_per_second: Annotated[
        float,
        Field(gt=0, le=10_000, description="requests per second to the index, of all processes together, above 0"),
    ] = 20.0
    allowed_file_hosts: Annotated[
        Literal["auto"] | tuple[str, ...],
        NoDecode,
        Field(
            description='auto (the host that the first pages name), or a JSON list of hosts like ["files.example.org"]'
        ),
    ] = "auto"
    proxy: Annotated[
        str | None,
        Field(
            description="http(s)://[USER:PASSWORD@]HOST[:PORT], for all hosts; default: HTTP_PROXY, HTTPS_PROXY, ..."
        ),
    ] = None
    ca_file: Annotated[
        Path | None,
        Field(description="a file or a folder of trusted certificates, in PEM; default: REQUESTS_CA_BUNDLE, ..."),
    ] = None
    client_cert: Annotated[
        Path | None,
        Field(description="a file with a private key and its certificate, in PEM, for servers that require one"),
    ] = None
    connect_timeout_s: Annotated[
        float, Field(gt=0, le=3600, description="seconds to wait for a connection, above 0, at most 3600")
    ] = 10.0
    read_timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=3600,
            description="seconds to wait for a response's headers, and for its next bytes, above 0, at most 3600",
        ),
    ] = 60.0
    request_attempts: Annotated[int, Field(ge=1, le=20, description="attempts of one request, 1 to 20")] = 4
    retry_pause_s: Annotated[
        float, Field(gt=0, le=3600, description="the first pause before a retry in seconds, above 0; it doubles")
    ] = 1.0
    retry_deadline_s: Annotated[
        float, Field(ge=0, description="seconds after which a project or file that keeps failing is not retried")
    ] = 6 * 3600.0
    poll_requests: Annotated[
        int, Field(ge=1, description="the most projects of an index without serials to poll in a round, 1 or more")
    ] = 1_000
    poll_shortest_s: Annotated[
        float, Field(ge=0, description="the least seconds between two polls of a project of such an index, 0 or more")
    ] = 300.0
    poll_longest_s: Annotated[
        float, Field(gt=0, description="the most seconds between two polls of a project of such an index, above 0")
    ] = 86_400.0
    poll_confirm_s: Annotated[
        float,
        Field(
            ge=0,
            description="seconds for which such an index must show a deletion until it counts, 0 or more",
        ),
    ] = 300.0
    range_events: Annotated[
        int,
        Field(
            ge=1, description="the most events in one serial range, 1 or more; a longer backlog becomes several ranges"
        ),
    ] = 20_000
    range_min_age_s: Annotated[
        float, Field(ge=0, description="seconds between a range and the next one that a sensor allocates, 0 or more")
    ] = 0.0
    range_min_events: Annotated[
        int, Field(ge=1, description="new events for which a sensor allocates a range earlier, 1 or more")
    ] = 500
    follow_interval_s: Annotated[
        float,
        Field(ge=0.5, le=3600, description="seconds between two polls of the index by `follow`, 0.5 to 3600"),
    ] = 2.0
    follow_leveldb_interval_s: Annotated[
        float,
        Field(ge=0, le=86_400, description="seconds between two LevelDB versions that `follow` builds, 0 to 86400"),
    ] = 5.0
    kafka_bootstrap_servers: Annotated[
        str | None, Field(description="Kafka's brokers, HOST:PORT separated by commas", pattern=r"^[^\s,]+(,[^\s,]+)*$")
    ] = None
    kafka_topic_prefix: Annotated[
        str,
        Field(
            description="the prefix of the names of Kafka's topics: 1 to 200 of A-Z a-z 0-9 . _ -",
            pattern=r"^[A-Za-z0-9._-]{1,200}$",
        ),
    ] = "pypi-assets"
    kafka_properties: Annotated[
        Path | None,
        Field(description="a file with properties of Kafka's client, a line NAME=VALUE each, for example for TLS"),
    ] = None
    revisit_share: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description="projects visited again in addition to a serial range, in percent of its visits, 0 to 100",
        ),
    ] = 1.0
    visit_policy: Annotated[
        Literal["balanced", "age", "activity", "lag"],
        BeforeValidator(_in_lower_case),
        Field(description="balanced, age, activity or lag: which projects are visited and polled first"),
    ] = "balanced"
    max_attempts: Annotated[int, Field(ge=1, le=10_000, description="attempts of one visit or read, 1 to 10000")] = 50
    in_flight: Annotated[
        int, Field(ge=1, le=10_000, description="visits or reads that one process claims at a time, 1 to 10000")
    ] = 200
    claim_lease_s: Annotated[
        float,
        Field(
            ge=3,
            le=86_400,
            description="seconds after which other processes take over the claims of a dead one, 3 to 86400",
        ),
    ] = 300.0
    audit_share_percent: Annotated[
        float,
        Field(ge=0, le=100, description="percent of all projects that an audit visits even without drift, 0 to 100"),
    ] = 5.0
    max_file_bytes: Annotated[int, Field(ge=1, description="the largest file that is read, in bytes")] = 2 * 1024**3
    max_metadata_bytes: Annotated[int, Field(ge=1, description="the largest metadata file, in bytes")] = 8 * 1024**2
    max_members: Annotated[int, Field(ge=1, description="the most members of one archive")] = 200_000
    max_name_length: Annotated[
        int, Field(ge=1, description="the longest name of a member of an archive, in characters")
    ] = 4096
    max_inflated_bytes: Annotated[int, Field(ge=1, description="the most bytes inflated from one archive")] = (
        8 * 1024**3
    )
    max_expansion_ratio: Annotated[
        float, Field(gt=1, description="the most bytes that one compressed byte of an archive can inflate to, above 1")
    ] = 200.0
    max_read_seconds: Annotated[
        float, Field(gt=0, le=3600, description="seconds of processor time for reading one file, above 0, at most 3600")
    ] = 60.0
    containment: Annotated[
        Literal["auto", "required"],
        Field(description="auto (as this system supports), or required: if it is missing, no distribution is read"),
    ] = "auto"
    sensors_on: Annotated[
        bool,
        Field(description="true or false: whether sensors and schedules start turned on"),
    ] = False
    sensor_interval_s: Annotated[
        int, Field(ge=5, description="seconds between two checks for new serials and new dumps, 5 or more")
    ] = 60
    notify_urls: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(description="Apprise URLs that receive notices, separated by spaces (mailtos://..., slack://...)"),
    ] = ()
    owners: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(description="mail addresses or team:NAME, separated by commas or spaces, that Dagster shows as owners"),
    ] = ("team:pypi-assets",)
    lag_warn_s: Annotated[
        float, Field(gt=0, description="seconds of lag from which status and checks warn, above 0")
    ] = 1800.0
    lag_fail_s: Annotated[
        float, Field(gt=0, description="seconds of lag from which checks of freshness fail, above 0")
    ] = 7200.0
    freshness_hours: Annotated[
        float | None,
        Field(
            gt=0,
            le=87_600,
            description="hours within which Dagster expects new ranges and LevelDB versions, above 0; empty: any time",
        ),
    ] = None
    given_up_warn_percent: Annotated[
        float,
        Field(
            gt=0,
            le=100,
            description="percent of exhausted visits and reads that makes status and checks warn, above 0 to 100",
        ),
    ] = 0.5
    given_up_fail_percent: Annotated[
        float,
        Field(
            gt=0,
            le=100,
            description="percent of exhausted visits and reads that makes a check fail, above 0 to 100",
        ),
    ] = 5.0
    dump_format: Annotated[
        Literal["gzip", "zstd"],
        Field(description="how new dump files are compressed: gzip, or zstd with about a third of the bytes"),
    ] = "gzip"
    dump_shards: Annotated[
        Literal[1, 4, 16, 64, 256, 1024, 4096],
        BeforeValidator(_as_number),
        Field(description="files of a full dump: 1, 4, 16, 64, 256, 1024 or 4096"),
    ] = 256
    dump_concurrency: Annotated[
        int, Field(ge=1, le=12, description="shards of a full dump that one process writes at a time, 1 to 12")
    ] = 2
    partitions_kept_days: Annotated[
        float, Field(ge=1, le=36_500, description="days for which Dagster keeps ranges, versions and runs, 1 to 36500")
    ] = 90.0
    visits_kept_days: Annotated[
        float, Field(ge=1, le=36_500, description="days for which the log of visits is kept, 1 to 36500")
    ] = 90.0
    read_attempts_kept_days: Annotated[
        float, Field(ge=1, le=36_500, description="days for which the log of attempts to read is kept, 1 to 36500")
    ] = 90.0
    superseded_kept_hours: Annotated[
        float, Field(ge=0, le=87_600, description="hours for which superseded files are kept, 0 to 87600")
    ] = 24.0
    leveldb_versions_kept: Annotated[
        int, Field(ge=1, le=10_000, description="how many of the newest LevelDB versions are kept, 1 to 10000")
    ] = 3
    parquet_exports_kept: Annotated[
        int, Field(ge=1, le=10_000, description="how many of the newest Parquet exports are kept, 1 to 10000")
    ] = 2
    tables_catalog_url: Annotated[
        str,
        Field(
            pattern=r"^(https?://\S+)?$",
            description="the http(s) address of an Iceberg REST catalog for the tables; empty: the project's database",
        ),
    ] = ""
    tables_namespace: Annotated[
        str,
        Field(pattern=r"^[a-z0-9_]{1,64}$", description="the Iceberg namespace of the tables: a-z, 0-9 and _"),
    ] = "pypi"
    tables_days_kept: Annotated[
        float, Field(ge=0, le=36_500, description="days whose last snapshot of the tables is kept, 0 to 36500")
    ] = 30.0
    solvability_since: Annotated[
        date | None,
        Field(description="the first day, like 2026-03-01, for which Dagster resolves projects; empty: none"),
    ] = None
    solvability_projects: Annotated[
        int, Field(ge=1, le=100_000, description="how many of the most-required projects are resolved each day")
    ] = 1_000
    solvability_kept_days: Annotated[
        float, Field(ge=1, le=36_500, description="days for which a day of solvability is kept, 1 to 36500")
    ] = 400.0
    leveldb_write_buffer_bytes: Annotated[
        int, Field(ge=1024**2, description="LevelDB's write buffer in bytes, 1 MiB or more")
    ] = 64 * 1024**2
    leveldb_memory_bytes: Annotated[
        int,
        Field(
            ge=256 * 1024**2,
            description="the memory for building a LevelDB, of all processes together, in bytes, 256 MiB or more",
        ),
    ] = 1024**3

    service_refresh_s: Annotated[
        float, Field(gt=0, le=3600, description="seconds between two checks of the service for new versions, above 0")
    ] = 5.0
    service_timeout_s: Annotated[
        float,
        Field(gt=0, le=3600, description="seconds for a response of the service, and for a client to receive a part"),
    ] = 30.0
    service_resolve_timeout_s: Annotated[
        float, Field(gt=0, le=3600, description="seconds for one resolution of requirements by the service")
    ] = 10.0
    service_max_requests: Annotated[
        int, Field(ge=1, le=100_000, description="the most requests that a process of the service answers at once")
    ] = 256
    service_max_connections: Annotated[
        int, Field(ge=1, le=100_000, description="the most connections of clients to a process of the service")
    ] = 1_000
    service_max_body_bytes: Annotated[
        int, Field(ge=1, description="the largest body of a request to the service, in bytes")
    ] = 8 * 1024**2
    visit_token: Annotated[
        str,
        Field(
            description="the token with which clients of the service may request visits (`POST /v1/visits`), of at"
            " least 16 characters; empty: no client may",
            repr=False,
        ),
    ] = ""
    service_allow_quarantined: Annotated[
        bool, Field(description="whether the service gives access to files that are quarantined on the index now")
    ] = False
    service_public_url: Annotated[
        str | None,
        Field(
            description="the address at which clients reach the service, such as https://packages.example.org/, for the"
            " commands on its pages; default: the address of the page in a browser"
        ),
    ] = None

    log_format: Annotated[
        Literal["text", "json"], BeforeValidator(_in_lower_case), Field(description="text or json: lines of the log")
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(_in_lower_case),
        Field(description="debug, info, warning or error: the lowest level that is logged"),
    ] = "info"

    webhooks: Annotated[
        str, Field(description="a JSON list of webhooks, whose fields docs/journal.md describes", repr=False)
    ] = ""
    webhooks_private: Annotated[
        bool, Field(description="whether webhooks may have addresses outside the public internet")
    ] = False

    @field_validator("projects", mode="before")
    @classmethod
    def _read_projects(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        text = value.strip()
        is_path = "/" in text or text.endswith(".txt")
        try:
            text = Path(text).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: the home folder is unknown
            if is_path:
                reason = error.strerror if isinstance(error, OSError) else error
                raise ValueError(f"cannot read the file of project names: {reason}") from error
        else:
            text = "\n".join(line.partition("#")[0] for line in text.splitlines())
        return tuple(text.replace(",", " ").split())

    @field_validator("projects", mode="after")
    @classmethod
    def _normalize_projects(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = sorted({canonicalize_name(name) for name in value})
        if wrong := [name for name in names if not is_normalized_name(name)]:
            raise ValueError(f"not a project name: {', '.join(wrong)}")
        return tuple(names)

    @field_validator("solvability_since", mode="before")
    @classmethod
    def _read_solvability_since(cls, value: object) -> object:
        return date.fromisoformat(value.strip()) if isinstance(value, str) else value  # not a number of seconds

    @field_validator("notify_urls", mode="before")
    @classmethod
    def _read_notify_urls(cls, value: object) -> object:
        return tuple(value.split()) if isinstance(value, str) else value

    @field_validator("notify_urls", mode="after")
    @classmethod
    def _check_notify_urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any("://" not in url for url in value):  # the value can contain a password, so it is not in the message
            raise ValueError("not all of them are URLs")
        return value

    @field_validator("visit_token")
    @classmethod
    def _check_visit_token(cls, value: str) -> str:
        if value and (len(value) < _SHORTEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value):
            raise ValueError(f"it must have at least {_SHORTEST_TOKEN} printable ASCII characters without spaces")
        return value

    @field_validator("webhooks")
    @classmethod
    def _check_webhooks(cls, value: str) -> str:
        try:
            found = json.loads(value or "[]")
        except json.JSONDecodeError:
            raise ValueError("not JSON") from None
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise ValueError("not a list of objects")
        return value

    @field_validator("owners", mode="before")
    @classmethod
    def _read_owners(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    @field_validator("owners", mode="after")
    @classmethod
    def _check_owners(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [owner for owner in value if not _OWNER.fullmatch(owner)]:
            raise ValueError(f"neither a mail address nor team:NAME: {', '.join(wrong)}")
        return value

    @field_validator("lister")
    @classmethod
    def _check_lister(cls, value: str) -> str:
        require_kind(value)
        return value

    @field_validator("index_url")
    @classmethod
    def _check_index_url(cls, value: str, info: ValidationInfo) -> str:
        path, lister = _http_path(value).rstrip("/"), info.data.get("lister", "auto")
        if not path.endswith("/simple") and lister in WITH_CHANGELOG_NEXT_TO_IT - {AUTO}:
            raise ValueError(f"does not end in /simple/, as {ENV_PREFIX}LISTER={lister} requires")
        return value.rstrip("/") + "/"

    @field_validator("changelog_url")
    @classmethod
    def _check_changelog_url(cls, value: str | None) -> str | None:
        if value is not None:
            _http_path(value)
        return value

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: str) -> str:
        if not value:
            return value
        if value.partition("://")[0] not in {"sqlite", "postgresql", "postgres", "postgresql+psycopg"}:
            raise ValueError("neither sqlite:///... nor postgresql://...")
        # imported only here: it takes half a second, and not every command has a catalog
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(value)
        except (ArgumentError, ValueError):  # the messages of these errors can contain a password
            raise ValueError("not a database URL") from None
        if url.drivername == "sqlite" and (url.host or url.database in {None, "", ":memory:"}):
            raise ValueError("has no file: sqlite:////absolute/path or sqlite:///relative/path")
        return value

    @field_validator("storage_url")
    @classmethod
    def _check_storage_url(cls, value: str) -> str:
        return checked_storage_url(value)

    @field_validator("contact")
    @classmethod
    def _check_contact(cls, value: str | None) -> str | None:
        if value is not None and not (value.isascii() and value.isprintable() and ("@" in value or "://" in value)):
            raise ValueError("neither a mail address nor a URL")
        return value

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, value: str | None) -> str | None:
        if value is not None and _http_path(value) not in {"", "/"}:
            raise ValueError("has a path")
        return value

    @field_validator("service_public_url")
    @classmethod
    def _check_service_public_url(cls, value: str | None) -> str | None:
        if value is None:
            return value
        _http_path(value)
        if not _PLAIN_URL.fullmatch(value):
            raise ValueError("has a user, or characters that a shell interprets")
        return value.rstrip("/") + "/"

    @field_validator("ca_file", "client_cert", "kafka_properties")
    @classmethod
    def _check_files(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        path = value.expanduser()
        if not path.exists():
            raise ValueError(f"there is no {path}")
        return path

    @field_validator("allowed_file_hosts", mode="before")
    @classmethod
    def _read_allowed_file_hosts(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.strip().lower() == AUTO_HOSTS:
            return AUTO_HOSTS
        try:
            hosts = json.loads(value)
        except json.JSONDecodeError:
            raise ValueError("neither auto nor valid JSON") from None
        if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
            raise ValueError("not a list of texts")
        return tuple(hosts)

    @field_validator("allowed_file_hosts")
    @classmethod
    def _check_allowed_file_hosts(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        if isinstance(value, str):
            return value
        if wrong := [host for host in value if not _HOST.fullmatch(host)]:
            raise ValueError(f"not a host, or a host with a port: {', '.join(wrong)}")
        return value

    def require_contact(self) -> None:
        """Raise SettingsError if the index is on another machine and no contact is set."""
        if self.contact:
            return
        for host in (urlsplit(url).hostname for url in (self.index_url, self.resolved_changelog_url)):
            if not is_loopback(host):
                raise SettingsError(
                    f"{ENV_PREFIX}CONTACT is not set: an index on another machine ({host}) needs a contact in the"
                    " User-Agent; set it to your mail address or URL, or run `pypi-assets init`"
                )

    @cached_property
    def locations(self) -> Locations:
        """Return the locations of local files and of the storage."""
        return Locations(self.resolved_home, self.storage_url)

    @cached_property
    def resolved_home(self) -> Path:
        return Locations(self.home).resolved_home

    @property
    def leveldbs_dir(self) -> Path:
        """Return the folder in which LevelDBs of a remote store are built and cached."""
        return self.locations.leveldbs_dir

    @cached_property
    def resolved_changelog_url(self) -> str:
        """Return the XML-RPC endpoint: the setting, else `/pypi` next to `/simple/`, or the index if its kind has no
        changelog.
        """
        if self.changelog_url is None and self.lister not in WITH_CHANGELOG_NEXT_TO_IT:
            return self.index_url
        return self.changelog_url or f"{base_of(self.index_url)}/pypi"

    @cached_property
    def resolved_database_url(self) -> str:
        """Return the SQLAlchemy URL. The default is the home's own PostgreSQL or SQLite. PostgreSQL uses psycopg 3."""
        url = self.database_url or self._url_of_home()
        if not url:
            from sqlalchemy.engine import URL

            return URL.create("sqlite", database=str(self.sqlite_path)).render_as_string(hide_password=False)
        scheme, _, rest = url.partition("://")
        return f"postgresql+psycopg://{rest}" if scheme.startswith("postgres") else url

    def _url_of_home(self) -> str:
        try:
            return (self.resolved_home / CATALOG_URL_FILE).read_text(encoding="utf-8").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""

    @property
    def sqlite_path(self) -> Path:
        """Return the catalog's file in SQLite, which is used if no setting and no file of the home names another
        database.
        """
        return self.resolved_home / "catalog.sqlite"

    @cached_property
    def resolved_storage_url(self) -> str:
        return self.locations.resolved_storage_url


def load_settings(**overrides: object) -> Settings:
    """Return the settings of the environment and the file, with `overrides` (by field name) on top.

    Raises SettingsError, whose message names the variable and the values that it accepts.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(item, overrides) for item in error.errors())) from error


def _http_path(url: str) -> str:
    """Return the path of an http(s) URL. Raises ValueError if it is not such a URL, or has a query or a fragment."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("not an http(s) URL")
    if parts.query or parts.fragment:
        raise ValueError("has a query or a fragment")
    _ = parts.port  # raises ValueError if it is not a number
    return parts.path


def _explain(item: ErrorDetails, overrides: Mapping[str, object]) -> str:
    message = item["msg"].removeprefix("Value error, ")
    if not item["loc"]:
        return message
    field = str(item["loc"][0])
    variables, label = read_variables(), f"{ENV_PREFIX}{field.upper()}"
    if field not in overrides:
        message += variables.place(field)
        label = variables.label(field)
    info = Settings.model_fields.get(field)
    accepts = f"; it accepts {info.description}" if info and info.description else ""
    return f"{label}: {message}{accepts}"
