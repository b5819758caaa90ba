# shellcheck shell=bash
# A walk through the running stack that leaves a demo merchant behind.
# Wants $run, $bin, the services' addresses and the operator's client; sets what the merchant needs.
# shellcheck disable=SC2154

# What to tell the story with, for example --patience 5s.
tour_flags=()

# tour_heard LINE: called for each line of it.
tour_heard() { :; }

tour() {
    local line
    step "a tour with a demo merchant"
    backhaul tour --demo "$run/demo-merchant" "${tour_flags[@]}" | while IFS= read -r line; do
        say "$line"
        tour_heard "$line"
    done || die "the tour failed: see above, and the logs in $run/logs"
    recall "$run/demo-merchant/env"
}

# backhaul ARGUMENT...: the command line, told where to go, since .run/env is not written yet.
backhaul() {
    local name
    (
        for name in $(services_table | awk '{ print $3 }') OPERATOR_CLIENT_ID OPERATOR_CLIENT_SECRET MERCHANT_ID \
            CLIENT_ID CLIENT_SECRET AMQP_URL RABBITMQ_CONSOLE_URL RABBITMQ_USER RABBITMQ_PASSWORD BROKER_NAMESPACE; do
            [[ -z ${!name:-} ]] || export "$name=${!name}"
        done
        exec "$bin/backhaul" "$@" </dev/null
    )
}
