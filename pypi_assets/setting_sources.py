"""The sources of settings: variables PYPI_ASSETS_... of the environment and of a file `.env`, and an index's table.

Settings are declared and checked in `settings.py`, whose validation library takes longer to import than a look-up
takes. So this module does not import it, and a look-up reads only the two settings that it needs: the home and the
storage.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pypi_assets.errors import SettingsError

if TYPE_CHECKING:
    from pypi_assets.indexes import Indexes, IndexTable

ENV_PREFIX = "PYPI_ASSETS_"
ENV_FILE = ".env"
ENV_FILE_VARIABLE = f"{ENV_PREFIX}ENV_FILE"
FILE_SUFFIX = "_FILE"
"""The suffix of a variable that names a file with a setting's value, such as PYPI_ASSETS_DATABASE_URL_FILE."""
DEFAULT_HOME = Path(".pypi-assets")
INDEX_ACCEPTS = "the name of an index in the file of PYPI_ASSETS_INDEXES; default: its default index"
ENV_FILE_ACCEPTS = "a file of settings, a line NAME=VALUE each; default: .env in the current folder"
STORAGE_URL_ACCEPTS = "file:///PATH, s3://BUCKET/PREFIX, gs://..., az://... or memory:///; default: in home"
_SETTINGS = "pypi_assets.settings"
_FIELD = re.compile(r"^    (\w+): Annotated\[", re.MULTILINE)


@cache
def setting_names() -> frozenset[str]:
    """Return the names of the fields of `settings.Settings`, parsed from the source of that module if it is
    available.
    """
    spec = find_spec(_SETTINGS)
    source = spec.loader.get_source(_SETTINGS) if spec and isinstance(spec.loader, InspectLoader) else None
    if source is None:  # only bytecode is installed
        return frozenset(import_module(_SETTINGS).Settings.model_fields)
    return frozenset(_FIELD.findall(source))


@dataclass(frozen=True, slots=True)
class SettingVariables:
    """The variables that are set and not empty, by setting name, such as `index_url`.

    `file` is the file that was read, or None. `in_file` has the names of the settings whose text comes from this file.
    `unknown` has the variables that are not settings, in upper case. `index` is the index of the settings, or None if
    there is no file of indexes.
    """

    texts: Mapping[str, str]
    file: Path | None
    in_file: frozenset[str]
    unknown: tuple[str, ...]
    index: "IndexTable | None" = None

    def label(self, name: str) -> str:
        """Return the name of the setting for messages: its variable, or the key of its index."""
        return self.index.label(name) if self._is_of_index(name) and self.index else f"{ENV_PREFIX}{name.upper()}"

    def place(self, name: str) -> str:
        """Return the source of the setting for a message about its value; empty for the environment."""
        return f" (in {self.file})" if name in self.in_file and not self._is_of_index(name) else ""

    def _is_of_index(self, name: str) -> bool:
        return self.index is not None and name in self.index.values

    def warnings(self) -> list[str]:
        """Return a line for each unknown variable, with the most similar setting."""
        return [describe_unknown(variable) for variable in self.unknown]


_selected: ContextVar[str | None] = ContextVar("_selected", default=None)


@contextmanager
def selected_index(name: str | None) -> Iterator[None]:
    """Use the settings of the index `name` within the block. None stands for the index in PYPI_ASSETS_INDEX.

    with selected_index("company"):
        settings = load_settings()
    """
    token = _selected.set(name)
    try:
        yield
    finally:
        _selected.reset(token)


def read_variables(environment: Mapping[str, str] = os.environ) -> SettingVariables:
    """Return the variables of the environment, merged over the file in PYPI_ASSETS_ENV_FILE (default: `./.env`).

    If PYPI_ASSETS_INDEXES names a file, the table of the selected index is merged over both. Upper and lower case are
    equal. PYPI_ASSETS_..._FILE names a file with the value of the setting. Raises SettingsError for a file that cannot
    be read or is not valid, for a setting with both variables, and for an unknown index.
    """
    named = _of_settings(environment)
    named_file = named.pop(ENV_FILE_VARIABLE, None)
    named = _with_values_of_files(named)
    path = Path(os.path.expanduser(named_file or ENV_FILE))  # noqa: PTH111 - Path's raises for an unknown user
    stored = _read_file(path, is_required=named_file is not None)
    in_file = {} if stored is None else _with_values_of_files(_of_settings(stored))
    found = in_file | named
    texts = {name: text for variable, text in found.items() if (name := _setting(variable)) in setting_names()}
    if named_file is not None:
        texts["env_file"] = named_file
    index, texts = _of_index(texts, {**(stored or {}), **environment})
    return SettingVariables(
        index=index,
        texts=texts,
        file=None if stored is None else path,
        in_file=frozenset(_setting(variable) for variable in in_file.keys() - named.keys()),
        unknown=tuple(sorted(variable for variable in found if _setting(variable) not in setting_names())),
    )


def read_all_indexes(environment: Mapping[str, str] = os.environ) -> "Indexes | None":
    """Return all indexes of the file in PYPI_ASSETS_INDEXES, or None if it is not set. Raises SettingsError."""
    index = read_variables(environment).index
    if index is None:
        return None
    from pypi_assets.indexes import read_indexes

    return read_indexes(index.path, setting_names())


def _of_index(texts: dict[str, str], variables: Mapping[str, str]) -> "tuple[IndexTable | None, dict[str, str]]":
    """Return the selected index, and the settings with its table merged over them.

    Without a file of indexes, return None and `texts`.
    """
    name = _selected.get() or texts.get("index")
    if "indexes" not in texts:
        if name is not None:
            raise _unknown_index(f"there is no index {name}, since {ENV_PREFIX}INDEXES is not set")
        return None, texts
    from pypi_assets.indexes import read_indexes, refuse_shared_places, settings_of

    indexes = read_indexes(Path(os.path.expanduser(texts["indexes"])), setting_names())  # noqa: PTH111 - as above
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
    """Return a warning about an unknown variable. It is not an error, since a newer version may know it."""
    nearest = get_close_matches(_setting(variable), sorted(setting_names()), n=1)
    hint = f"did you mean {ENV_PREFIX}{nearest[0].upper()}?" if nearest else "`pypi-assets admin settings` lists them"
    return f"{variable} is not a setting and has no effect; {hint}"


def _of_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the prefix that are not empty, in upper case."""
    return {
        variable.upper(): text
        for variable, text in variables.items()
        if text and variable.upper().startswith(ENV_PREFIX)
    }


def _with_values_of_files(variables: Mapping[str, str]) -> dict[str, str]:
    """Replace variables of files by the content of the files, under the names of the settings."""
    found = dict(variables)
    for variable, path in variables.items():
        named = variable.removesuffix(FILE_SUFFIX)
        if named == variable or _setting(variable) in setting_names() or _setting(named) not in setting_names():
            continue
        if named in variables:
            raise SettingsError(f"{variable}: {named} is set, too; unset one of them")
        del found[variable]
        if text := _read_value(variable, path):
            found[named] = text
    return found


def _read_value(variable: str, path: str) -> str:
    """Return the content of a file, without the line break at its end."""
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{variable}: cannot read {path}: {reason}; it accepts a file with the value") from error


def _setting(variable: str) -> str:
    return variable.upper().removeprefix(ENV_PREFIX).lower()


def _read_file(path: Path, *, is_required: bool) -> dict[str, str] | None:
    """Return the variables of a file, or None without a file. `${NAME}` in a value stands for another variable."""
    if path == Path(os.devnull) or not (is_required or path.is_file()):
        return None
    from dotenv import dotenv_values  # only imported if there is a file

    try:
        with path.open(encoding="utf-8") as lines:
            return {name: text for name, text in dotenv_values(stream=lines).items() if text is not None}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"{ENV_FILE_VARIABLE}: cannot read {path}: {reason}; it accepts {ENV_FILE_ACCEPTS}"
        raise SettingsError(message) from error


@dataclass(frozen=True, slots=True)
class Locations:
    """The folder for all local files, and the storage. If `storage_url` is empty, it is the folder `storage` in the
    home.
    """

    home: Path = DEFAULT_HOME
    storage_url: str = ""

    @property
    def resolved_home(self) -> Path:
        return self.home.expanduser().resolve()

    @property
    def leveldbs_dir(self) -> Path:
        """Return the folder in which LevelDBs of a remote store are built and cached."""
        return self.resolved_home / "leveldbs"

    @property
    def resolved_storage_url(self) -> str:
        return self.storage_url or (self.resolved_home / "storage").as_uri()


def load_locations(environment: Mapping[str, str] = os.environ) -> Locations:
    """Return the locations of the settings, like `load_settings().locations`, without a check of other settings.

    Raises SettingsError, with the message of `load_settings` for an invalid storage URL.
    """
    variables = read_variables(environment)
    home, url = (variables.texts.get(name, "") for name in ("home", "storage_url"))
    try:
        return Locations(Path(home) if home else DEFAULT_HOME, checked_storage_url(url))
    except ValueError as error:
        place = variables.place("storage_url")
        label = variables.label("storage_url")
        raise SettingsError(f"{label}: {error}{place}; it accepts {STORAGE_URL_ACCEPTS}") from error


def checked_storage_url(value: str) -> str:
    """Return the URL without a slash at its end. Raises ValueError if it is not the URL of a storage."""
    scheme, _, rest = value.partition("://")
    if value and scheme not in {"file", "s3", "gs", "az", "memory"}:
        raise ValueError("not file://, s3://, gs://, az:// or memory://")
    if scheme == "file" and not rest.removeprefix("localhost").startswith("/"):
        raise ValueError("not an absolute path: file:///PATH")
    if scheme in {"s3", "gs", "az"} and not rest.partition("/")[0]:
        raise ValueError("has no bucket")
    return value.rstrip("/") if value.count("/") > 3 else value
