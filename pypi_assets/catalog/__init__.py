"""The catalog: a database of what the index showed, what follows from it, and what is still to be done.

All SQL of the project is here, in rooms. Each room's `__init__.py` describes what belongs there;
`pypi_assets_tests/test_layering.py` lists which room may import which.
"""
