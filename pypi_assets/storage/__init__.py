"""The object store, where extracts, dumps, LevelDBs and exports lie. What objects mean does not belong here."""
