"""The names of build backends in pyproject.toml, for backends that several readers of an sdist check for.

Only exact names count: anyone may publish a package whose name begins like one of these.
"""

SETUPTOOLS = frozenset({"setuptools.build_meta"})
AROUND_SETUPTOOLS = frozenset({"scikit_build_core.setuptools.build_meta", "jupyter_packaging.build_api", "pbr.build"})
"""Backends that call setuptools and may add to its result."""
FLIT = frozenset({"flit_core.buildapi", "flit.buildapi", "flit_scm"})
HATCHLING = frozenset({"hatchling.build"})
POETRY = frozenset({"poetry.core.masonry.api", "poetry.masonry.api", "poetry_dynamic_versioning.backend"})
PDM_PEP517 = frozenset({"pdm.pep517.api"})
PDM = frozenset({"pdm.backend"}) | PDM_PEP517
