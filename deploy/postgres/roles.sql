-- The roles and the database of one service. Run by a superuser, as often as you like:
--   psql -v service=order_intake -v password=… -v migrate_password=… -f roles.sql postgres
-- then grants.sql in the new database.
--
--   <service>_owner    owns the database and every table in it; nobody logs in as it
--   <service>_migrate  logs in to run migrations, and acts as the owner
--   <service>          logs in to serve: reads and writes rows, changes no table
--
-- A service that delivers messages makes and drops the partitions of its log, which takes the
-- owner: with -v delivers=true its serving role acts as the owner too.
\set ON_ERROR_STOP on
\if :{?delivers}
\else
    \set delivers false
\endif

SELECT format('CREATE ROLE %I NOLOGIN', :'service' || '_owner')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'service' || '_owner') \gexec
SELECT format('CREATE ROLE %I LOGIN', :'service' || '_migrate')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'service' || '_migrate') \gexec
SELECT format('CREATE ROLE %I LOGIN', :'service')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'service') \gexec

SELECT format('ALTER ROLE %I PASSWORD %L', :'service' || '_migrate', :'migrate_password') \gexec
SELECT format('ALTER ROLE %I PASSWORD %L CONNECTION LIMIT 200', :'service', :'password') \gexec
-- The services read error messages in English.
SELECT format('ALTER ROLE %I SET lc_messages = %L', role, 'C')
FROM unnest(ARRAY[:'service', :'service' || '_migrate']) AS role \gexec
SELECT format('GRANT %I TO %I', :'service' || '_owner', :'service' || '_migrate') \gexec
\if :delivers
    SELECT format('GRANT %I TO %I', :'service' || '_owner', :'service') \gexec
\endif

SELECT format('CREATE DATABASE %I OWNER %I', 'backhaul_' || :'service', :'service' || '_owner')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'backhaul_' || :'service') \gexec
