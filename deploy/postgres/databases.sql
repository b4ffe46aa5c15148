-- Run once on a new PostgreSQL server. One database for both will not do: both have a table `snapshots`.
CREATE DATABASE catalog;
CREATE DATABASE dagster;
