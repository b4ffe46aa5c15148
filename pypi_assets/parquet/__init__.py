"""Exports of the live files at the end of the dumps, as Parquet files for DuckDB and pandas."""
