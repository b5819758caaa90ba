# shellcheck shell=bash
# The services: their names, settings, start and stop.
# Requires $root (the checkout), $run (folder for logs and pid files), $bin (folder of the built programs),
# POSTGRES_URL and AMQP_URL, and the secrets of make_secrets.
# shellcheck disable=SC2154

# name, default port, variable with the URL
services_table() {
    cat <<'END'
auth                8081  AUTH_URL
order-intake        8082  ORDERS_URL
rma-engine          8083  RMA_URL
exchange            8084  EXCHANGE_URL
warehouse-notifier  8085  WAREHOUSE_URL
console             8086  CONSOLE_URL
portal              8080  PORTAL_URL
sandbox             8090  SANDBOX_URL
END
}

# services: prints the names of the services in this checkout.
services() {
    local name rest
    # shellcheck disable=SC2034
    while read -r name rest; do
        [[ ! -d $root/crates/$name ]] || echo "$name"
    done < <(services_table)
}

# The second replica of a service is called SERVICE.2; the names of its port, log and pid file have this
# suffix too.
service_of() { echo "${1%.*}"; }
replica_suffix() { [[ $1 != *.* ]] || echo "_${1##*.}"; }

# replicas: prints the names of the services in this checkout, and of a second replica of those with a database.
replicas() {
    local name
    for name in $(services); do
        echo "$name"
        ! has_database "$name" || echo "$name.2"
    done
}

# replica_ports REPLICA...: prints the names of the variables with their ports.
replica_ports() {
    local name
    for name; do echo "$(service_url_variable "$name")_PORT"; done
}

# use_replica_ports REPLICA...: sets the URL of each replica from its port.
use_replica_ports() {
    local name variable port
    for name; do
        variable=$(service_url_variable "$name")
        port=${variable}_PORT
        printf -v "$variable" 'http://127.0.0.1:%s' "${!port}"
    done
}

# prepare_services VARIABLE...: stops the services of an earlier run and sets each variable to a free port.
prepare_services() {
    mkdir -p "$run"/{logs,pids}
    make_secrets "$run/secrets"
    recall "$run/settings"
    stop_services
    with_port_lock claim_ports "$run/settings" "$@"
}

# service_url_variable SERVICE, service_url SERVICE: print the name and the value of the variable.
service_url_variable() { services_table | awk -v name="$(service_of "$1")" -v suffix="$(replica_suffix "$1")" '$1 == name { print $3 suffix }'; }

service_url() {
    local variable
    variable=$(service_url_variable "$1")
    echo "${!variable}"
}

# The sandbox, which acts as the merchant, and the web pages have no database.
has_database() { [[ $1 != sandbox && $1 != console && $1 != portal ]]; }

# order-intake stores no secrets and would reject the unknown setting.
needs_sealing_keys() { [[ $1 != order-intake ]]; }

# rma-engine issues the proofs of shoppers; exchange accepts them too.
needs_proof_keys() { [[ $1 == rma-engine || $1 == exchange ]]; }

delivers() { [[ $1 == rma-engine || $1 == exchange || $1 == warehouse-notifier ]]; }

# has_short_retries: false if BACKHAUL_RETRIES selects the retries of production.
has_short_retries() { [[ ${BACKHAUL_RETRIES:-short} != production ]]; }

# database_name SERVICE: database_prefix separates the databases of different stacks.
database_name() { echo "${database_prefix:-backhaul}_${1//-/_}"; }

# export_environment SERVICE: exports the settings of a service. Call it in a subshell.
export_environment() {
    local name prefix url
    name=$(service_of "$1")
    prefix=${name^^}
    prefix=${prefix//-/_}__
    url=$(service_url "$1")
    export "${prefix}HTTP__HOST=127.0.0.1"
    export "${prefix}HTTP__PORT=${url##*:}"
    if [[ $name == sandbox && -n ${SANDBOX_MAIL_PORT:-} ]]; then
        export SANDBOX__MAIL__ENABLED=true SANDBOX__MAIL__PORT=$SANDBOX_MAIL_PORT
    fi
    if [[ $name == console ]]; then
        export CONSOLE__SERVICES__AUTH=$AUTH_URL CONSOLE__SERVICES__ORDERS=$ORDERS_URL CONSOLE__SERVICES__RETURNS=$RMA_URL
        export CONSOLE__SERVICES__EXCHANGE=$EXCHANGE_URL CONSOLE__SERVICES__WAREHOUSE=$WAREHOUSE_URL
    fi
    if [[ $name == portal ]]; then
        export PORTAL__SERVICES__AUTH=$AUTH_URL PORTAL__SERVICES__RETURNS=$RMA_URL PORTAL__SERVICES__EXCHANGE=$EXCHANGE_URL
        export PORTAL__PUBLIC_URL=$PORTAL_URL PORTAL__SEALING__KEYS=$PORTAL_SEALING_KEYS
        export PORTAL__CLIENT__ID=$PORTAL_CLIENT_ID PORTAL__CLIENT__SECRET=$PORTAL_CLIENT_SECRET
    fi
    has_database "$name" || return 0
    # The console and the portal name the address of the browser.
    export "${prefix}HTTP__TRUSTED_PROXIES=127.0.0.0/8"
    export "${prefix}DATABASE__URL=$(database_url "${database:-$(database_name "$name")}")"
    export "${prefix}BROKER__URL=$AMQP_URL"
    export "${prefix}BROKER__NAMESPACE=${BROKER_NAMESPACE:-}"
    [[ -z ${BACKHAUL_OTLP_ENDPOINT:-} ]] || export "${prefix}TELEMETRY__OTLP_ENDPOINT=$BACKHAUL_OTLP_ENDPOINT"
    ! needs_sealing_keys "$name" || export "${prefix}SEALING__KEYS=$SEALING_KEYS"
    ! needs_proof_keys "$name" || export "${prefix}SHOPPER__PROOF_KEYS=$SHOPPER_PROOF_KEYS"
    if [[ $name == rma-engine ]]; then
        [[ -z ${PORTAL_URL:-} ]] || export RMA_ENGINE__PORTAL__PUBLIC_URL=$PORTAL_URL
        [[ -z ${CONSOLE_URL:-} ]] || export RMA_ENGINE__CONSOLE__PUBLIC_URL=$CONSOLE_URL
        # The sandbox shows the mails at /mails.
        if [[ -n ${SANDBOX_MAIL_PORT:-} ]]; then
            export RMA_ENGINE__MAIL__URL=smtp://127.0.0.1:$SANDBOX_MAIL_PORT
            export RMA_ENGINE__MAIL__FROM='Backhaul <returns@mail.example>'
        fi
    fi
    if [[ $name == auth ]] || delivers "$name"; then
        # The sandbox merchant is on this machine and uses plain HTTP.
        export "${prefix}DELIVERY__HTTPS_ONLY=false"
        export "${prefix}DELIVERY__ALLOWED_NETWORKS=127.0.0.0/8"
    fi
    if delivers "$name" && has_short_retries; then
        # Six attempts take three seconds instead of an hour.
        export "${prefix}DELIVERY__RETRY_BASE=100ms"
        export "${prefix}DELIVERY__RETRY_FACTOR=2"
    fi
    if [[ $name == auth ]]; then
        export "${prefix}BOOTSTRAP__CLIENT_ID=$OPERATOR_CLIENT_ID"
        export "${prefix}BOOTSTRAP__CLIENT_SECRET=$OPERATOR_CLIENT_SECRET"
        export "${prefix}BOOTSTRAP__PORTAL_CLIENT_ID=$PORTAL_CLIENT_ID"
        export "${prefix}BOOTSTRAP__PORTAL_CLIENT_SECRET=$PORTAL_CLIENT_SECRET"
        export "${prefix}TOKENS__ISSUER=$AUTH_URL"
        [[ -z ${CONSOLE_URL:-} ]] || export "${prefix}PEOPLE__CONSOLE_URL=$CONSOLE_URL"
    else
        export "${prefix}IDENTITY__ISSUER=$AUTH_URL"
        export "${prefix}IDENTITY__JWKS_URL=$AUTH_URL/.well-known/jwks.json"
    fi
}

# host_of SERVICE: browsers store the cookies of web pages over plain HTTP for localhost only.
host_of() { [[ $1 == console || $1 == portal ]] && echo localhost || echo 127.0.0.1; }

# choose_addresses: sets the URL of each service to its default port, or to the next free port, and the port to which
# mails go.
choose_addresses() {
    local name port variable reserved
    reserved=$(services_table | awk '{ print $2 }')
    while read -r name port variable; do
        [[ -d $root/crates/$name ]] || continue
        if listening "$port"; then
            while listening "$port" || grep -qx "$port" <<<"$reserved"; do port=$((port + 1)); done
            reserved+=$'\n'$port
        fi
        printf -v "$variable" 'http://%s:%s' "$(host_of "$name")" "$port"
    done < <(services_table)
    SANDBOX_MAIL_PORT=8025
    while listening "$SANDBOX_MAIL_PORT"; do SANDBOX_MAIL_PORT=$((SANDBOX_MAIL_PORT + 1)); done
}

# make_secrets FILE: reads the secrets from the file, or generates them. They must be kept as long as the data.
make_secrets() {
    recall "$1"
    OPERATOR_CLIENT_ID=operator
    OPERATOR_CLIENT_SECRET=${OPERATOR_CLIENT_SECRET:-$(random_hex 32)}
    PORTAL_CLIENT_ID=portal
    PORTAL_CLIENT_SECRET=${PORTAL_CLIENT_SECRET:-$(random_hex 32)}
    SEALING_KEYS=${SEALING_KEYS:-$(random_key)}
    SHOPPER_PROOF_KEYS=${SHOPPER_PROOF_KEYS:-$(random_key)}
    PORTAL_SEALING_KEYS=${PORTAL_SEALING_KEYS:-$(random_key)}
    remember "$1" OPERATOR_CLIENT_ID OPERATOR_CLIENT_SECRET PORTAL_CLIENT_ID PORTAL_CLIENT_SECRET SEALING_KEYS \
        SHOPPER_PROOF_KEYS PORTAL_SEALING_KEYS
}

# random_key: prints a new key that encrypts or signs.
random_key() { echo "k1:$(head -c 32 /dev/urandom | base64 -w 0)"; }

# mark_external_data FILE, protects_external_data FILE: record and check that the keys in the file encrypt
# data in an external PostgreSQL.
mark_external_data() {
    # shellcheck disable=SC2034
    EXTERNAL_DATA=true
    remember "$1" EXTERNAL_DATA
}

protects_external_data() { grep -qs '^EXTERNAL_DATA=true$' "$1"; }

migrate_service() {
    local name=$1 log=$run/logs/$1.migrate.log
    create_database "${database:-$(database_name "$name")}"
    (export_environment "$name" && "$bin/$name" migrate) </dev/null >"$log" 2>&1 ||
        { show_tail "$name migrate" "$log" && die "$name could not migrate its database"; }
}

start_service() {
    local name=$1 log=$run/logs/$1.log
    [[ ! -e $log ]] || mv "$log" "$log.1"
    (export_environment "$name" && spawn "$run/pids/$name" "$log" "$bin/$(service_of "$name")" serve)
}

# await_service SERVICE: waits up to 240 s until the service is ready.
await_service() {
    local name=$1 url failure
    url=$(service_url "$name")
    if within 240 ready_or_exited "$name" "$url"; then
        ! gone "$run/pids/$name" && say "$name is ready at $url" && return
        failure="exited while starting"
    else
        failure="was not ready within 240 s"
    fi
    show_tail "$name" "$run/logs/$name.log"
    die "$name $failure: see $run/logs/$name.log"
}

ready_or_exited() { http --output /dev/null "$2/readyz" 2>/dev/null || gone "$run/pids/$1"; }

# stop_services: sends SIGTERM to all services, then waits for each.
stop_services() {
    local pidfile pid
    for pidfile in "$run"/pids/*; do
        ! pid=$(running "$pidfile") || kill -TERM "$pid" 2>/dev/null || true
    done
    for pidfile in "$run"/pids/*; do
        [[ ! -e $pidfile ]] || finish "${pidfile##*/}" "$pidfile" TERM 30
    done
}

# stop_stack [--wipe]: stops the services, then the private servers. External servers are not stopped.
stop_stack() {
    stop_services
    rm -f "$run/env" "$run/owner"
    "$root/scripts/servers" stop "$@"
    : >"$run/users"
}

# remove_test_servers: removes the servers of interrupted tests.
remove_test_servers() {
    local settings
    for settings in "$root"/.run/test-*/settings "$root"/.run/test-*/*/settings; do
        [[ -e $settings ]] || continue
        "$root/scripts/servers" kill --dir "${settings%/*}"
        "$root/scripts/servers" stop --wipe --dir "${settings%/*}"
    done
    rm -rf "$root"/.run/test-*
}
