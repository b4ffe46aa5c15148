"""The object store for extracts, dumps, LevelDBs and exports. The meaning of the objects does not belong here."""
