# shellcheck shell=bash
# The services: which there are, how they are configured, how they start and stop.
# Wants $root (the checkout), $run (folder for logs and pid files), $bin (folder of the built programs),
# POSTGRES_URL and AMQP_URL, SEALING_KEYS, OPERATOR_CLIENT_ID and OPERATOR_CLIENT_SECRET.
# shellcheck disable=SC2154

# name, preferred port, variable that holds the address
services_table() {
    cat <<'END'
auth                8081  AUTH_URL
order-intake        8082  ORDERS_URL
rma-engine          8083  RMA_URL
exchange            8084  EXCHANGE_URL
warehouse-notifier  8085  WAREHOUSE_URL
sandbox             8090  SANDBOX_URL
END
}

# services: the names of those that this checkout holds.
services() {
    local name rest
    # shellcheck disable=SC2034
    while read -r name rest; do
        [[ ! -d $root/crates/$name ]] || echo "$name"
    done < <(services_table)
}

# A second process of a service is called SERVICE.2, and what is its own has that ending: port, log, pid.
kind_of() { echo "${1%.*}"; }
copy_of() { [[ $1 != *.* ]] || echo "_${1##*.}"; }

# service_url_variable SERVICE, service_url SERVICE: the name of that variable, and what it holds.
service_url_variable() { services_table | awk -v name="$(kind_of "$1")" -v copy="$(copy_of "$1")" '$1 == name { print $3 copy }'; }

service_url() {
    local variable
    variable=$(service_url_variable "$1")
    echo "${!variable}"
}

# The sandbox plays the merchant's side: it has no database, trusts no one and does one thing only.
has_database() { [[ $1 != sandbox ]]; }

# Orders hold no secrets of ours, and a setting nobody knows is refused.
seals() { [[ $1 != order-intake ]]; }

delivers() { [[ $1 == rma-engine || $1 == exchange || $1 == warehouse-notifier ]]; }

# database_name SERVICE, ${database_prefix:-backhaul} keeps one stack's databases from another's.
database_name() { echo "${database_prefix:-backhaul}_${1//-/_}"; }

# export_environment SERVICE: every setting the scripts give a service. Called in the service's own subshell.
export_environment() {
    local name prefix url
    name=$(kind_of "$1")
    prefix=${name^^}
    prefix=${prefix//-/_}__
    url=$(service_url "$1")
    export "${prefix}HTTP__HOST=127.0.0.1"
    export "${prefix}HTTP__PORT=${url##*:}"
    has_database "$name" || return 0
    export "${prefix}DATABASE__URL=$(database_url "${database:-$(database_name "$name")}")"
    export "${prefix}BROKER__URL=$AMQP_URL"
    export "${prefix}BROKER__NAMESPACE=${BROKER_NAMESPACE:-}"
    [[ -z ${BACKHAUL_OTLP_ENDPOINT:-} ]] || export "${prefix}TELEMETRY__OTLP_ENDPOINT=$BACKHAUL_OTLP_ENDPOINT"
    ! seals "$name" || export "${prefix}SEALING__KEYS=$SEALING_KEYS"
    if delivers "$name"; then
        # The sandbox merchant is on this machine and speaks plain HTTP; and nobody wants to wait an
        # hour for a dead letter: six attempts take three seconds here.
        export "${prefix}DELIVERY__HTTPS_ONLY=false"
        export "${prefix}DELIVERY__ALLOWED_NETWORKS=127.0.0.0/8"
        export "${prefix}DELIVERY__RETRY_BASE=100ms"
        export "${prefix}DELIVERY__RETRY_FACTOR=2"
    fi
    if [[ $name == auth ]]; then
        export "${prefix}BOOTSTRAP__CLIENT_ID=$OPERATOR_CLIENT_ID"
        export "${prefix}BOOTSTRAP__CLIENT_SECRET=$OPERATOR_CLIENT_SECRET"
        export "${prefix}TOKENS__ISSUER=$AUTH_URL"
    else
        export "${prefix}IDENTITY__ISSUER=$AUTH_URL"
        export "${prefix}IDENTITY__JWKS_URL=$AUTH_URL/.well-known/jwks.json"
    fi
}

# choose_addresses: the preferred port of each service, or the next one that is free and preferred by none.
choose_addresses() {
    local name port variable spoken_for
    spoken_for=$(services_table | awk '{ print $2 }')
    while read -r name port variable; do
        [[ -d $root/crates/$name ]] || continue
        if listening "$port"; then
            while listening "$port" || grep -qx "$port" <<<"$spoken_for"; do port=$((port + 1)); done
            spoken_for+=$'\n'$port
        fi
        printf -v "$variable" 'http://127.0.0.1:%s' "$port"
    done < <(services_table)
}

# make_secrets FILE: keys that live as long as the data they protect.
make_secrets() {
    recall "$1"
    OPERATOR_CLIENT_ID=operator
    OPERATOR_CLIENT_SECRET=${OPERATOR_CLIENT_SECRET:-$(random_hex 32)}
    SEALING_KEYS=${SEALING_KEYS:-k1:$(head -c 32 /dev/urandom | base64 -w 0)}
    remember "$1" OPERATOR_CLIENT_ID OPERATOR_CLIENT_SECRET SEALING_KEYS
}

# note_foreign_data FILE, protects_foreign_data FILE: that its keys protect data in a PostgreSQL that is not
# ours, and whether they do. The note stands in the file itself and stays as long as the keys.
note_foreign_data() {
    # shellcheck disable=SC2034
    FOREIGN_DATA=true
    remember "$1" FOREIGN_DATA
}

protects_foreign_data() { grep -qs '^FOREIGN_DATA=true$' "$1"; }

migrate_service() {
    local name=$1 log=$run/logs/$1.migrate.log
    create_database "${database:-$(database_name "$name")}"
    (export_environment "$name" && "$bin/$name" migrate) </dev/null >"$log" 2>&1 ||
        { show_tail "$name migrate" "$log" && die "$name could not migrate its database"; }
}

start_service() {
    local name=$1 log=$run/logs/$1.log
    [[ ! -e $log ]] || mv "$log" "$log.1"
    (export_environment "$name" && spawn "$run/pids/$name" "$log" "$bin/$(kind_of "$name")" serve)
}

# await_service SERVICE: until it says that it is ready.
await_service() {
    local name=$1 url verdict
    url=$(service_url "$name")
    if within 60 ready_or_ended "$name" "$url"; then
        ! gone "$run/pids/$name" && say "$name is ready at $url" && return
        verdict="ended while starting"
    else
        verdict="was not ready within 60 s"
    fi
    show_tail "$name" "$run/logs/$name.log"
    die "$name $verdict: its log is $run/logs/$name.log"
}

ready_or_ended() { http --output /dev/null "$2/readyz" 2>/dev/null || gone "$run/pids/$1"; }

# stop_services: asks all of them at once, then waits for each.
stop_services() {
    local pidfile pid
    for pidfile in "$run"/pids/*; do
        ! pid=$(running "$pidfile") || kill -TERM "$pid" 2>/dev/null || true
    done
    for pidfile in "$run"/pids/*; do
        [[ ! -e $pidfile ]] || finish "${pidfile##*/}" "$pidfile" TERM 30
    done
}

# stop_stack [--wipe]: services first, then the private servers; external ones are left alone.
stop_stack() {
    stop_services
    rm -f "$run/env" "$run/owner"
    "$root/scripts/servers" stop "$@"
    : >"$run/users"
}

# remove_test_servers: those of tests that were interrupted before they could do it themselves.
remove_test_servers() {
    local settings
    for settings in "$root"/.run/test-*/settings "$root"/.run/test-*/*/settings; do
        [[ -e $settings ]] || continue
        "$root/scripts/servers" kill --dir "${settings%/*}"
        "$root/scripts/servers" stop --wipe --dir "${settings%/*}"
    done
    rm -rf "$root"/.run/test-*
}
