"""The stored scopes: rules in force, edges between projects, the projects that roots lead to, and the state of scopes.

The closure of roots, rules and requirements is computed in `pypi_assets/scopes/`, without the database.
"""
