"""Data dumps: full dumps in shards and dumps of ranges, their manifests, the cover, compaction and restore."""
