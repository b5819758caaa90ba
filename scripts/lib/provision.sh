# shellcheck shell=bash
# The PostgreSQL and RabbitMQ to use: those of the environment variables, or private ones in $server_folder.
# Requires $root (the checkout).
# shellcheck disable=SC2034,SC2154

provisioned=()
server_folder=$root/.run/servers

# find_missing: sets wanted to the required private servers and provisioned to those that are not running.
find_missing() {
    local server
    wanted=()
    [[ -n ${BACKHAUL_POSTGRES_URL:-} ]] || wanted+=(postgres)
    [[ -n ${BACKHAUL_AMQP_URL:-} ]] || wanted+=(rabbitmq)
    for server in "${wanted[@]}"; do
        "$root/scripts/servers" status "$server" --dir "$server_folder" >/dev/null || provisioned+=("$server")
    done
}

# provision: starts the missing servers; sets POSTGRES_URL, AMQP_URL, RABBITMQ_* and provisioned.
provision() {
    local wanted lines
    need curl curl
    find_missing
    if [[ -n ${BACKHAUL_POSTGRES_URL:-} ]]; then
        POSTGRES_URL=$BACKHAUL_POSTGRES_URL
        postgres_bin >/dev/null || need psql postgresql-client
    fi
    if [[ -n ${BACKHAUL_AMQP_URL:-} ]]; then
        [[ -n ${BACKHAUL_RABBITMQ_API_URL:-} ]] ||
            die "BACKHAUL_AMQP_URL is set: set BACKHAUL_RABBITMQ_API_URL too, for example http://host:15672/api"
        AMQP_URL=$BACKHAUL_AMQP_URL
        RABBITMQ_API_URL=$BACKHAUL_RABBITMQ_API_URL
        RABBITMQ_CONSOLE_URL=${RABBITMQ_API_URL%/api*}
        [[ $AMQP_URL =~ ://([^:@/]*):([^@/]*)@ ]] || die "BACKHAUL_AMQP_URL has no user and password"
        RABBITMQ_USER=$(decoded "${BASH_REMATCH[1]}")
        RABBITMQ_PASSWORD=$(decoded "${BASH_REMATCH[2]}")
    fi
    ((${#wanted[@]})) || return 0
    lines=$("$root/scripts/servers" start "${wanted[@]}" --dir "$server_folder") || exit 1
    eval "$lines"
}

# use_servers: takes a shared lock that keeps other scripts from stopping the private servers. Waits for a
# script that is stopping them. Call it before provision.
use_servers() {
    users=$root/.run/users
    mkdir -p "${users%/*}"
    exec 7>>"$users"
    flock -s 7
}

# release: stops the servers that provision started, after it deleted the queues that tests left. While other scripts
# use them, it only adds them to the list of servers that the last user stops. The servers of a running stack are not
# stopped.
release() {
    local pidfile unused
    [[ -n ${users:-} ]] || return 0
    # The list must be complete before the lock is released.
    ((${#provisioned[@]} == 0)) || echo "${provisioned[*]}" >&7
    flock -n 7 || return 0
    drop_test_namespaces
    read -r -d '' -a unused <"$users" || true
    ((${#unused[@]})) || return 0
    for pidfile in "$root"/.run/pids/*; do
        ! running "$pidfile" >/dev/null || return 0
    done
    "$root/scripts/servers" stop "${unused[@]}"
    : >"$users"
}

# drop_test_namespaces: deletes the queues that tests left in the private broker, for example because they were
# killed. Call it only while nothing else uses the broker. The data of scripts/run stays.
drop_test_namespaces() {
    [[ -n ${BACKHAUL_AMQP_URL:-} || -z ${RABBITMQ_API_URL:-} ]] || drop_namespace 't[0-9a-f]\{32\}'
}

export_test_environment() {
    export BACKHAUL_TEST_POSTGRES_URL=$POSTGRES_URL
    export BACKHAUL_TEST_AMQP_URL=$AMQP_URL
    export BACKHAUL_TEST_RABBITMQ_API_URL=$RABBITMQ_API_URL
}
