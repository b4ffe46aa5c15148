"""The format of LevelDB files: how records are encoded, opened and ordered."""
