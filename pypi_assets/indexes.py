"""Read indexes.toml: the followed indexes, in order, with the settings of each. The values are not checked here.

`setting_sources.py` merges an index's settings over the environment's, and `settings.py` checks the values. The file
must not contain secrets: a value can name an environment variable, and credentials can be in netrc or the keyring.
"""

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit, urlunsplit

from pypi_assets.errors import ExpectedError, SettingsError
from pypi_assets.scopes.plan import PlanError, ScopePlan, check_fields, read_plan

INDEXES_ACCEPTS = "a file of indexes in TOML, a table each (docs/indexes.md); default: there is one index"
ALL_INDEXES = "all"
"""The value of `--index` for all indexes, so no index can have this name."""
DEFAULT_INDEX = "default"
"""The name of the default index. The only index of a file, or an index with `default = true`, is also the default."""
HOMES = "indexes"
"""The folder in the home with the homes of all indexes except the default one."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LONGEST_NAME = 40
_DECLARED_TWICE = re.compile(r"Cannot declare \('([^']*)',\) twice.*?(\(at line \d+)?")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RENAMED = {"url": "index_url", "database": "database_url", "storage": "storage_url"}
"""The keys whose names differ from their settings."""
_OWN_KEYS = ("default", "private", "also_public", "scopes", "credentials")
_NO_KEYS = frozenset({"home", "env_file", "index", "indexes", "notify_urls", *_RENAMED.values()})
"""Settings that all indexes share, or that would hold a secret."""
_SECRETS = frozenset({"password", "token", "secret", "api_key", "apikey", "auth"})
_OF_ONE_INDEX = (
    "index_url",
    "changelog_url",
    "lister",
    "database_url",
    "storage_url",
    "projects",
    "allowed_file_hosts",
)
"""Settings of a single index, which only the default index takes from the environment."""
_NAME_A_VARIABLE = 'name an environment variable, { env = "NAME" }, or use netrc or the keyring'


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that comes from an environment variable."""

    name: str


@dataclass(frozen=True, slots=True)
class IndexLogin:
    """The login of an index. The password is None if netrc or the keyring has it."""

    username: str
    password: Variable | None


@dataclass(frozen=True, slots=True)
class IndexTable:
    """One index of the file. `values` are its settings by setting name, and `keys` the key of each in the file.

    `also_public` has the normalized names that a private index shares with public ones on purpose. `scopes` has the
    fields of each declared scope by its name.
    """

    name: str
    path: Path
    is_default: bool
    is_private: bool
    also_public: tuple[str, ...]
    scopes: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, str | Variable]
    keys: Mapping[str, str]
    credentials: IndexLogin | None

    def label(self, setting: str) -> str:
        """Return the text with which a message names this index and the key of a setting."""
        return f"{self.path}: index {self.name}: {self.keys[setting]}"

    def scope_plans(self) -> list[ScopePlan]:
        """Return the plans of the declared scopes. Raises SettingsError, also for errors in the files that they
        name.
        """
        plans = []
        for name, fields in self.scopes.items():
            try:
                plans.append(read_plan(name, fields, self.path.absolute().parent))
            except ExpectedError as error:
                raise _error(self.path, self.name, f"scopes.{name}", str(error)) from error
        return plans

    def texts(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the table's settings as texts. Raises SettingsError if an environment variable that it names is not
        set.
        """
        texts = {
            setting: value if isinstance(value, str) else self._of_variable(self.keys[setting], value, variables)
            for setting, value in self.values.items()
        }
        if self.credentials:
            texts["index_url"] = self._with_login(texts["index_url"], self.credentials, variables)
        return texts

    def _of_variable(self, key: str, variable: Variable, variables: Mapping[str, str]) -> str:
        if found := variables.get(variable.name):
            return found
        raise _error(self.path, self.name, key, f"the environment variable {variable.name} is not set")

    def _with_login(self, url: str, login: IndexLogin, variables: Mapping[str, str]) -> str:
        parts = _split(url)
        if parts is None:
            return url  # the check of the setting reports it
        if parts.username or parts.password:
            raise _error(self.path, self.name, "credentials", "the URL has a login, too; keep one of them")
        user = quote(login.username, safe="")
        if login.password:
            password = self._of_variable("credentials.password", login.password, variables)
            user += f":{quote(password, safe='')}"
        return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of a file, in its order."""

    path: Path
    tables: tuple[IndexTable, ...]

    @property
    def default(self) -> IndexTable:
        """Return the default index, which uses the home and the Dagster keys of an installation without a file."""
        return next(table for table in self.tables if table.is_default)

    @property
    def names(self) -> list[str]:
        return [table.name for table in self.tables]

    def named(self, name: str) -> IndexTable | None:
        """Return the index of that name, or None."""
        return next((table for table in self.tables if table.name == name), None)


def read_indexes(path: Path, setting_names: Collection[str]) -> Indexes:
    """Return the indexes of the file. `setting_names` are the settings that a table can have.

    Raises SettingsError, whose message names the file and, if known, the index and the key.
    """
    content = _read_toml(path)
    if not content:
        raise SettingsError(f"{path}: has no index; add a table for each index, such as [company]")
    tables = [_read_table(path, name, table, setting_names) for name, table in content.items()]
    _refuse_equal_names(path, tables)
    return Indexes(path, tuple(_with_default(path, tables)))


def settings_of(table: IndexTable, texts: Mapping[str, str], variables: Mapping[str, str], home: str) -> dict[str, str]:
    """Return the texts of all settings for one index. Its settings replace those in `texts`, from the environment.

    An index that is not the default has its own home below `home`, and takes only general settings from the
    environment. `variables` are the environment variables that the file can name.
    """
    if table.is_default:
        return {**texts, **table.texts(variables)}
    general = {name: text for name, text in texts.items() if name not in _OF_ONE_INDEX}
    return {**general, **table.texts(variables), "home": str(Path(home) / HOMES / table.name)}


def refuse_shared_places(indexes: Indexes, texts: Mapping[str, str], variables: Mapping[str, str], home: str) -> None:
    """Raise SettingsError if two of the indexes have the same database or the same storage."""
    for key, place_of in (("database", _database), ("storage", _storage)):
        owners: dict[str, str] = {}
        for table in indexes.tables:
            place = place_of(table, texts, variables, home)
            if place is not None and (other := owners.setdefault(place, table.name)) != table.name:
                text = f"the index {other} has the same value; each index needs its own"
                raise _error(indexes.path, table.name, key, text)


def _error(path: Path, index: str, key: str, text: str) -> SettingsError:
    return SettingsError(f"{path}: index {index}: {key}: {text}")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        if found := _DECLARED_TWICE.match(str(error)):
            raise SettingsError(f"{path}: the index {found[1]} is a duplicate: each index needs its own name") from None
        raise SettingsError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path}: is nested too deeply") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"PYPI_ASSETS_INDEXES: cannot read {path}: {reason}; it accepts {INDEXES_ACCEPTS}"
        raise SettingsError(message) from error


def _read_table(path: Path, name: str, table: Any, setting_names: Collection[str]) -> IndexTable:
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: {_shown(name)} is not a table: each index is a table, such as [company]")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or name == ALL_INDEXES:
        accepts = f"at most {_LONGEST_NAME} lower-case letters and digits, with single hyphens or underscores between"
        raise SettingsError(
            f"{path}: index {_shown(name)}: the name of an index has {accepts}; it is not {ALL_INDEXES}"
        )
    allowed = {*_RENAMED, *_OWN_KEYS, *(set(setting_names) - _NO_KEYS)}
    for key in table:
        _refuse_unknown(path, name, key, allowed)
    if "url" not in table:
        raise _error(path, name, "url", "is missing: it is the Simple API's base URL, ending in /simple/")
    settings = {key: value for key, value in table.items() if key not in _OWN_KEYS}
    values = {_RENAMED.get(key, key): _value(path, name, key, value) for key, value in settings.items()}
    return IndexTable(
        name=name,
        path=path,
        is_default=_flag(path, name, table, "default") or name == DEFAULT_INDEX,
        is_private=_flag(path, name, table, "private"),
        also_public=tuple(re.sub(r"[-_.]+", "-", one).lower() for one in _names(path, name, table, "also_public")),
        scopes=_scopes(path, name, table.get("scopes", {})),
        values=values,
        keys={setting: next((key for key, one in _RENAMED.items() if one == setting), setting) for setting in values},
        credentials=_credentials(path, name, table.get("credentials")),
    )


def _scopes(path: Path, index: str, value: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields of each scope, after a check that does not read the files that they name."""
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise _error(path, index, "scopes", f"each scope is a table, such as [{index}.scopes.tools]")
    for name, fields in value.items():
        try:
            check_fields(name, fields)
        except PlanError as error:
            raise _error(path, index, ".".join(("scopes", *error.place)), error.problem) from None
    return value


def _refuse_unknown(path: Path, index: str, key: str, allowed: Collection[str]) -> None:
    if key in allowed:
        return
    if key.lower() in _SECRETS or key == "notify_urls":
        raise _error(path, index, _shown(key), f"a secret does not belong in this file: {_NAME_A_VARIABLE}")
    renamed = next((name for name, setting in _RENAMED.items() if setting == key), None)
    nearest = [renamed] if renamed else get_close_matches(key, sorted(allowed), n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else "docs/indexes.md lists the keys"
    raise _error(path, index, _shown(key), f"not a key of an index; {hint}")


def _value(path: Path, index: str, key: str, value: Any) -> str | Variable:
    """Return the text of a setting, in the form of an environment variable."""
    if isinstance(value, dict):
        return _variable(path, index, key, value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        items = _texts(path, index, key, value)
        return json.dumps(items) if key == "allowed_file_hosts" else " ".join(items)
    if not isinstance(value, str):
        raise _error(path, index, key, "not a text, a number, true or false, or a list of texts")
    if not value.strip():
        raise _error(path, index, key, "is empty; remove the line for the default")
    if _has_password(value):
        raise _error(path, index, key, f"contains a password, which does not belong in this file: {_NAME_A_VARIABLE}")
    return value


def _has_password(text: str) -> bool:
    try:
        parts = urlsplit(text)
        named = parse_qs(parts.query)
        return "://" in text and (parts.password is not None or bool({"password", "sslpassword"} & set(named)))
    except ValueError:  # for a malformed URL, the check of its setting reports more
        return False


def _variable(path: Path, index: str, key: str, value: Mapping[str, Any]) -> Variable:
    name = value.get("env")
    if set(value) != {"env"} or not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name):
        raise _error(path, index, key, 'not an environment variable; write { env = "NAME" }')
    return Variable(name)


def _credentials(path: Path, index: str, value: Any) -> IndexLogin | None:
    if value is None or value in ("keyring", "netrc"):
        return None  # both are always searched
    if not isinstance(value, dict):
        accepts = 'it accepts "keyring", "netrc" or { username = "ME", password = { env = "NAME" } }'
        raise _error(path, index, "credentials", f"not valid; {accepts}")
    for key in value:
        if key not in {"username", "password"}:
            raise _error(path, index, f"credentials.{_shown(key)}", "not a key; the keys are username and password")
    username, password = value.get("username"), value.get("password")
    if not isinstance(username, str) or not username:
        raise _error(path, index, "credentials.username", "is missing, or not a text")
    if password is None:
        return IndexLogin(username, None)
    if not isinstance(password, dict):
        text = f"a secret does not belong in this file: {_NAME_A_VARIABLE}"
        raise _error(path, index, "credentials.password", text)
    return IndexLogin(username, _variable(path, index, "credentials.password", password))


def _flag(path: Path, index: str, table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise _error(path, index, key, "expected true or false")
    return value


def _names(path: Path, index: str, table: Mapping[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise _error(path, index, key, "not a list of names")
    return _texts(path, index, key, value)


def _texts(path: Path, index: str, key: str, items: Sequence[Any]) -> list[str]:
    if wrong := [item for item in items if not isinstance(item, str) or not item.strip()]:
        raise _error(path, index, key, f"{_shown(wrong[0])} is not a text")
    return [str(item) for item in items]


def _shown(value: object) -> str:
    """Return a value of the file, short enough for a message."""
    text = str(value)
    return repr(text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}...")


def _refuse_equal_names(path: Path, tables: Sequence[IndexTable]) -> None:
    """Dagster's names have no hyphens, so a hyphen and an underscore are treated as equal."""
    known: dict[str, str] = {}
    for table in tables:
        other = known.setdefault(table.name.replace("-", "_"), table.name)
        if other != table.name:
            raise SettingsError(f"{path}: the indexes {other} and {table.name} only differ in - and _: rename one")


def _with_default(path: Path, tables: Sequence[IndexTable]) -> Iterator[IndexTable]:
    if len(tables) == 1:
        return iter([replace(tables[0], is_default=True)])
    marked = [table.name for table in tables if table.is_default]
    if len(marked) > 1:
        raise SettingsError(f"{path}: {' and '.join(marked)} are both the default index: keep one of them")
    if not marked:
        names = ", ".join(table.name for table in tables)
        raise SettingsError(
            f"{path}: none of {names} is the default index: add `default = true` to the one that commands are for"
            " without --index; it keeps PYPI_ASSETS_HOME and the keys in Dagster"
        )
    return iter(tables)


def _database(table: IndexTable, texts: Mapping[str, str], variables: Mapping[str, str], home: str) -> str | None:
    url = _text_of(table, "database_url", texts, variables)
    if url is None:
        return f"file {_home_of(table, home) / 'catalog.sqlite'}" if "database_url" not in table.values else None
    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///").partition("?")[0]
        return f"file {_resolved(Path(path))}"
    parts = _split(url)
    return parts and f"server {parts.hostname}:{_port(url) or 5432}{parts.path}?{parts.query}"


def _storage(table: IndexTable, texts: Mapping[str, str], variables: Mapping[str, str], home: str) -> str | None:
    url = _text_of(table, "storage_url", texts, variables)
    if url is None:
        return f"file {_home_of(table, home) / 'storage'}" if "storage_url" not in table.values else None
    if url.startswith("file://"):
        return f"file {_resolved(Path(unquote(url.removeprefix('file://').removeprefix('localhost'))))}"
    return url.rstrip("/")


def _text_of(table: IndexTable, setting: str, texts: Mapping[str, str], variables: Mapping[str, str]) -> str | None:
    """Return the text of a setting if it is known now; the variables of other indexes need not be set."""
    value = table.values.get(setting)
    if isinstance(value, Variable):
        return variables.get(value.name)
    return value or (texts.get(setting) if table.is_default else None)


def _home_of(table: IndexTable, home: str) -> Path:
    root = _resolved(Path(home))
    return root if table.is_default else root / HOMES / table.name


def _resolved(path: Path) -> Path:
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # no such home folder, a loop of links, a NUL
        return path


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None
