"""The catalog: a database of observations of the index, the history derived from them, and the queues of pending work.

All SQL of the project is in this package. The `__init__.py` of each subpackage describes what belongs in it;
`pypi_assets_tests/test_layering.py` lists which subpackage may import which.
"""
