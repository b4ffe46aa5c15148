-- The role of the service: it may read the catalog, and nothing else. The PostgreSQL of compose.yaml runs this file once. For
-- another server, run it as the owner of the database `catalog`:
--   SERVICE_PASSWORD_FILE=secrets/service_password psql --file postgres/reader.sql "$CATALOG_URL"
\connect catalog
\set password `cat "$SERVICE_PASSWORD_FILE"`
CREATE ROLE pypi_assets_reader LOGIN PASSWORD :'password';
GRANT USAGE ON SCHEMA public TO pypi_assets_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO pypi_assets_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO pypi_assets_reader;
