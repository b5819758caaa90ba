# shellcheck shell=bash
# Where PostgreSQL and RabbitMQ are: those named in the environment, or private ones.
# Wants $root (the checkout).
# shellcheck disable=SC2034,SC2154

provisioned=()

# find_missing: wanted holds the private servers that are needed, provisioned those that do not run yet.
find_missing() {
    local server
    wanted=()
    [[ -n ${BACKHAUL_POSTGRES_URL:-} ]] || wanted+=(postgres)
    [[ -n ${BACKHAUL_AMQP_URL:-} ]] || wanted+=(rabbitmq)
    for server in "${wanted[@]}"; do
        "$root/scripts/servers" status "$server" >/dev/null || provisioned+=("$server")
    done
}

# provision: sets POSTGRES_URL, AMQP_URL and RABBITMQ_*; provisioned holds the servers it had to start.
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
            die "BACKHAUL_AMQP_URL is set: set BACKHAUL_RABBITMQ_API_URL as well (like http://host:15672/api)"
        AMQP_URL=$BACKHAUL_AMQP_URL
        RABBITMQ_API_URL=$BACKHAUL_RABBITMQ_API_URL
        RABBITMQ_CONSOLE_URL=${RABBITMQ_API_URL%/api*}
        [[ $AMQP_URL =~ ://([^:@/]*):([^@/]*)@ ]] || die "BACKHAUL_AMQP_URL names no user and password"
        RABBITMQ_USER=$(decoded "${BASH_REMATCH[1]}")
        RABBITMQ_PASSWORD=$(decoded "${BASH_REMATCH[2]}")
    fi
    ((${#wanted[@]})) || return 0
    lines=$("$root/scripts/servers" start "${wanted[@]}") || exit 1
    eval "$lines"
}

# use_servers: until we end, nobody who asks stops the private servers. Called before provision; whoever
# is stopping them now is waited for.
use_servers() {
    users=$root/.run/users
    mkdir -p "${users%/*}"
    exec 7>>"$users"
    flock -s 7
}

# release: stops what provision started. If others use it, the last of them does: we write down for them
# what there is to stop. A stack that runs keeps its servers.
release() {
    local pidfile left
    [[ -n ${users:-} ]] || return 0
    # Before we let go of our lock, or the last one may not find it.
    ((${#provisioned[@]} == 0)) || echo "${provisioned[*]}" >&7
    flock -n 7 || return 0
    read -r -d '' -a left <"$users" || true
    ((${#left[@]})) || return 0
    for pidfile in "$root"/.run/pids/*; do
        ! running "$pidfile" >/dev/null || return 0
    done
    "$root/scripts/servers" stop "${left[@]}"
    : >"$users"
}

export_test_environment() {
    export BACKHAUL_TEST_POSTGRES_URL=$POSTGRES_URL
    export BACKHAUL_TEST_AMQP_URL=$AMQP_URL
    export BACKHAUL_TEST_RABBITMQ_API_URL=$RABBITMQ_API_URL
}
