#!/bin/bash
# Creates the roles and databases of all services. The image runs it once, when the volume is new.
set -eu
for service in auth order_intake rma_engine exchange warehouse_notifier; do
    delivers=true
    case $service in auth | order_intake) delivers=false ;; esac
    # psql reads the passwords from standard input, because anyone on the machine can read command lines.
    {
        printf '\\set password %s\n' "$(cat "/secrets/$service")"
        printf '\\set migrate_password %s\n' "$(cat "/secrets/${service}_migrate")"
        cat /sql/roles.sql
    } | psql -v "service=$service" -v "delivers=$delivers" --username "$POSTGRES_USER" --dbname postgres
    psql -v "service=$service" -v "delivers=$delivers" --username "$POSTGRES_USER" --dbname "backhaul_$service" -f /sql/grants.sql
done
