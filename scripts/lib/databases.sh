# shellcheck shell=bash
# Databases on the server of POSTGRES_URL. Wants the functions of postgres.sh.

# database_url NAME: POSTGRES_URL with that database, whatever else it says.
database_url() {
    [[ $POSTGRES_URL =~ ^([^:]+://[^/?]*)(/[^?]*)?(\?.*)?$ ]] || die "POSTGRES_URL is not a URL"
    echo "${BASH_REMATCH[1]}/$1${BASH_REMATCH[3]}"
}

# sql STATEMENT: as plain text from the server's "postgres" database. The password travels in the
# environment, since every user of the machine can read a command line.
sql() {
    local url psql password=''
    url=$(database_url postgres)
    psql=$(postgres_bin)/psql 2>/dev/null || psql=psql
    if [[ $url =~ ^([^:]+://[^:@/]*):([^@/]*)(@.*)$ ]]; then
        url=${BASH_REMATCH[1]}${BASH_REMATCH[3]}
        printf -v password %b "${BASH_REMATCH[2]//%/\\x}"
    fi
    PGPASSWORD=$password "$psql" -XAtq -v ON_ERROR_STOP=1 -c "$1" "$url" </dev/null
}

create_database() {
    local found
    found=$(sql "SELECT 1 FROM pg_database WHERE datname = '$1'") || die "PostgreSQL does not answer at the given URL"
    [[ -n $found ]] || sql "CREATE DATABASE \"$1\""
}

drop_database() { sql "DROP DATABASE IF EXISTS \"$1\" WITH (FORCE)" 2>/dev/null; }
