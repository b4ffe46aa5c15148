-- The role of the service: it may read the catalog, and nothing else. Run it in the database `catalog`, as its owner:
--   psql --set password="$(cat secrets/service_password)" --file postgres/reader.sql "$CATALOG_URL"
CREATE ROLE pypi_assets_reader LOGIN PASSWORD :'password';
GRANT USAGE ON SCHEMA public TO pypi_assets_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO pypi_assets_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO pypi_assets_reader;
