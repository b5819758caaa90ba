#!/bin/sh
# Makes every secret of the compose stack once, each where only its owner reads it, in the volume
# mounted at /secrets. What is there already stays: the data in the other volumes depends on it.
#
#   /secrets/postgres/password        the server's own user
#   /secrets/postgres/<role>          the password of a role
#   /secrets/rabbitmq/definitions.json  users, rights, queues; passwords filled in
#   /secrets/<service>/settings.toml  what a service must know and nobody else may
#   /secrets/<service>/migrate.toml   the same for its migration job, as the owner of the tables
#   /secrets/operator/env             the first operator's client, for people, the command line and the job `demo`
set -eu
umask 077
here=${HERE:-}
cd "$here/secrets"

# own USER FOLDER...: in the container we are root; in the test, which sets HERE, perhaps not.
own() {
    user=$1
    shift
    [ -n "$here" ] || chown -R "$user:$user" "$@"
}

# random NAME: 32 random bytes in hex, made once and kept under that name.
random() {
    [ -s "$1" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$1"
    cat "$1"
}

delivering="rma-engine exchange warehouse-notifier"
services="auth order-intake $delivering"
nobody=65532

mkdir -p postgres rabbitmq operator seeds
[ -s seeds/sealing ] || printf 'k1:%s' "$(head -c 32 /dev/urandom | base64 | tr -d '\n')" >seeds/sealing
random postgres/password >/dev/null
operator_secret=$(random seeds/operator)

for service in $services; do
    mkdir -p "$service"
    role=$(echo "$service" | tr - _)
    broker=$(random "seeds/$service.broker")
    runtime=$(random "postgres/$role")
    migrate=$(random "postgres/${role}_migrate")
    {
        echo '[database]'
        echo "url = \"postgres://$role:$runtime@postgres:5432/backhaul_$role\""
        echo '[broker]'
        echo "url = \"amqp://$service:$broker@rabbitmq:5672/%2f\""
        if [ "$service" != order-intake ]; then
            echo '[sealing]'
            echo "keys = \"$(cat seeds/sealing)\""
        fi
        if [ "$service" = auth ]; then
            echo '[bootstrap]'
            echo 'client_id = "operator"'
            echo "client_secret = \"$operator_secret\""
        fi
    } >"$service/settings.toml"
    sed "/^url = \"postgres:/s|//.*@|//${role}_migrate:$migrate@|" \
        "$service/settings.toml" >"$service/migrate.toml"
    own "$nobody" "$service"
done

operator_broker=$(random seeds/operator.broker)
cp "$here/definitions.json" rabbitmq/definitions.json
for service in $services; do
    "$here/set-password.sh" rabbitmq/definitions.json "$service" <"seeds/$service.broker"
done
"$here/set-password.sh" rabbitmq/definitions.json operator <seeds/operator.broker
{
    echo "OPERATOR_CLIENT_ID=operator"
    echo "OPERATOR_CLIENT_SECRET=$operator_secret"
    echo "RABBITMQ_USER=operator"
    echo "RABBITMQ_PASSWORD=$operator_broker"
} >operator/env

own "$nobody" operator

# The servers' images run as users of their own.
own 999 postgres rabbitmq
