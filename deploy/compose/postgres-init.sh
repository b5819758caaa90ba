#!/bin/bash
# Run once by the database image when its volume is new: the roles and databases of every service.
set -eu
for service in auth order_intake rma_engine exchange warehouse_notifier; do
    delivers=true
    case $service in auth | order_intake) delivers=false ;; esac
    # Passwords go through psql's standard input: a command line can be read by anyone on the machine.
    {
        printf '\\set password %s\n' "$(cat "/secrets/$service")"
        printf '\\set migrate_password %s\n' "$(cat "/secrets/${service}_migrate")"
        cat /sql/roles.sql
    } | psql -v "service=$service" -v "delivers=$delivers" --username "$POSTGRES_USER" --dbname postgres
    psql -v "service=$service" -v "delivers=$delivers" --username "$POSTGRES_USER" --dbname "backhaul_$service" -f /sql/grants.sql
done
