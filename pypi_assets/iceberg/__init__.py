"""Apache Iceberg tables of the dumps' files, their requirements, modules and commands, and of the index's events."""
