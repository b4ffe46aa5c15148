"""Publications from the catalog: the names and states of dumps, LevelDB versions, Parquet exports and journal segments.

The rows of dumps are selected here. Files are written in `dumps/`, `leveldbs/` and `parquet/`.
"""
