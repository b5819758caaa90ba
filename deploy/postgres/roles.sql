-- The roles and the database of one service. A superuser runs it, then grants.sql in the new database.
-- Repeating it changes nothing.
--   psql -v service=order_intake -v password=… -v migrate_password=… -f roles.sql postgres
--
--   <service>_owner    owns the database and all tables; cannot log in
--   <service>_migrate  runs migrations, as the owner
--   <service>          serves: reads and writes rows, but cannot change tables
--
-- A service that delivers messages creates and drops partitions, which only the owner can do. With
-- -v delivers=true its serving role acts as the owner.
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
