# shellcheck shell=bash
# Databases and roles on the server of POSTGRES_URL. Requires postgres.sh and $root (the checkout).
# shellcheck disable=SC2154

# database_url NAME: POSTGRES_URL with that database.
database_url() {
    [[ $POSTGRES_URL =~ ^([^:]+://[^/?]*)(/[^?]*)?(\?.*)?$ ]] || die "POSTGRES_URL is not a URL"
    echo "${BASH_REMATCH[1]}/$1${BASH_REMATCH[3]}"
}

# sql STATEMENT: runs a statement in the database "postgres" and prints the result as plain text.
sql() { run_psql postgres -c "$1" </dev/null; }

# run_psql DATABASE ARGUMENT...: passes the password in the environment, because every user of the machine
# can read command lines.
run_psql() {
    local url psql password=''
    url=$(database_url "$1")
    shift
    psql=$(postgres_bin)/psql 2>/dev/null || psql=psql
    if [[ $url =~ ^([^:]+://[^:@/]*):([^@/]*)(@.*)$ ]]; then
        url=${BASH_REMATCH[1]}${BASH_REMATCH[3]}
        password=$(decoded "${BASH_REMATCH[2]}")
    fi
    PGPASSWORD=$password "$psql" -XAtq -v ON_ERROR_STOP=1 "$@" "$url"
}

create_database() {
    local found
    found=$(sql "SELECT 1 FROM pg_database WHERE datname = '$1'") || die "PostgreSQL is not reachable at POSTGRES_URL"
    [[ -n $found ]] || sql "CREATE DATABASE \"$1\""
}

drop_database() { sql "DROP DATABASE IF EXISTS \"$1\" WITH (FORCE)" 2>/dev/null; }

# create_roles NAME PASSWORD: creates the roles and the database of one service with the SQL of
# deploy/postgres. The migration role runs the grants, as in a cluster without superuser access.
create_roles() {
    { printf '\\set password %s\n\\set migrate_password %s\n' "$2" "$2" && cat "$root/deploy/postgres/roles.sql"; } |
        run_psql postgres -v "service=$1" &&
        (POSTGRES_URL=$(role_url "${1}_migrate" "$2") &&
            run_psql "backhaul_$1" -v "service=$1" -f "$root/deploy/postgres/grants.sql" </dev/null)
}

drop_roles() {
    drop_database "backhaul_$1" && sql "DROP ROLE IF EXISTS $1, ${1}_migrate, ${1}_owner" 2>/dev/null
}

# role_url NAME PASSWORD: POSTGRES_URL for that role.
role_url() {
    [[ $POSTGRES_URL =~ ^([^:]+://)([^@/]*@)?(.*)$ ]]
    echo "${BASH_REMATCH[1]}$1:$2@${BASH_REMATCH[3]}"
}
