-- Privileges of the roles of a service in its database. A superuser or the migration role runs it in that
-- database, before the first migration. Repeating it changes nothing.
--   psql -v service=order_intake -f grants.sql backhaul_order_intake
-- Add -v delivers=true for a service that delivers messages (see roles.sql).
\set ON_ERROR_STOP on
\if :{?delivers}
\else
    \set delivers false
\endif
SET ROLE NONE;

-- Roles of other services cannot connect.
SELECT format('GRANT CONNECT ON DATABASE %I TO %I, %I', current_database(), :'service', :'service' || '_migrate') \gexec
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec

-- Tables are created by the owner role, so that they all have the same owner.
\if :delivers
    SELECT format('ALTER DATABASE %I SET role = %L', current_database(), :'service' || '_owner') \gexec
\else
    SELECT format('ALTER ROLE %I IN DATABASE %I SET role = %L', :'service' || '_migrate', current_database(), :'service' || '_owner') \gexec
\endif

-- The serving role can read and write rows, also in tables of later migrations.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
SELECT format('GRANT CREATE, USAGE ON SCHEMA public TO %I', :'service' || '_owner') \gexec
SELECT format('GRANT USAGE ON SCHEMA public TO %I', :'service') \gexec
SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO %I', :'service') \gexec
SELECT format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO %I', :'service') \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I',
              :'service' || '_owner', :'service') \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA public GRANT USAGE ON SEQUENCES TO %I',
              :'service' || '_owner', :'service') \gexec
