#!/bin/sh
# Generates the secrets of the compose stack in the volume at /secrets. Only the owner can read each file.
# Existing secrets are kept, because the data in other volumes depends on them.
#
#   /secrets/postgres/password          password of the superuser
#   /secrets/postgres/<role>            password of a role
#   /secrets/rabbitmq/definitions.json  definitions with passwords
#   /secrets/<service>/settings.toml    secret settings of a service
#   /secrets/<service>/migrate.toml     secret settings of its migration job
#   /secrets/operator/env               client of the first operator, for people, the command line and the job `demo`
set -eu
umask 077
here=${HERE:-}
cd "$here/secrets"

# own USER FOLDER...: changes the owner. Does nothing in the test, which sets HERE and may not run as root.
own() {
    user=$1
    shift
    [ -n "$here" ] || chown -R "$user:$user" "$@"
}

# random NAME: prints 32 random bytes in hex, which are generated once and stored under the name.
random() {
    [ -s "$1" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$1"
    cat "$1"
}

# key NAME: prints a key of 32 random bytes, which is generated once and stored under the name.
key() {
    [ -s "$1" ] || printf 'k1:%s' "$(head -c 32 /dev/urandom | base64 | tr -d '\n')" >"$1"
    cat "$1"
}

delivering="rma-engine exchange warehouse-notifier"
services="auth order-intake $delivering"
nobody=65532

mkdir -p postgres rabbitmq operator seeds
random postgres/password >/dev/null
operator_secret=$(random seeds/operator)
portal_secret=$(random seeds/portal)

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
            echo "keys = \"$(key seeds/sealing)\""
        fi
        if [ "$service" = rma-engine ] || [ "$service" = exchange ]; then
            echo '[shopper]'
            echo "proof_keys = \"$(key seeds/shopper)\""
        fi
        if [ "$service" = auth ]; then
            echo '[bootstrap]'
            echo 'client_id = "operator"'
            echo "client_secret = \"$operator_secret\""
            echo 'portal_client_id = "portal"'
            echo "portal_client_secret = \"$portal_secret\""
        fi
    } >"$service/settings.toml"
    sed "/^url = \"postgres:/s|//.*@|//${role}_migrate:$migrate@|" \
        "$service/settings.toml" >"$service/migrate.toml"
    own "$nobody" "$service"
done

mkdir -p portal
{
    echo '[client]'
    echo 'id = "portal"'
    echo "secret = \"$portal_secret\""
    echo '[sealing]'
    echo "keys = \"$(key seeds/portal.sealing)\""
} >portal/settings.toml
own "$nobody" portal

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

# The images of the servers run as this user.
own 999 postgres rabbitmq
