# shellcheck shell=bash
# The demo scenario on the running stack, and the programs it needs.
# Requires $run, $bin, the service URLs and the operator's client; sets the demo merchant's client and
# portal_variables.
# shellcheck disable=SC2154

# Flags of the scenario, for example --timeout 5s.
scenario_flags=()

# The variables with the demo orders that can be returned in the portal.
# shellcheck disable=SC2034
portal_variables=(PORTAL_ORDER PORTAL_SECOND_ORDER PORTAL_EMAIL PORTAL_ORDER_URL PORTAL_GIFT_ORDER PORTAL_GIFT_CODE
    PORTAL_GIFT_URL)

# on_scenario_line LINE: called for each line of the scenario.
on_scenario_line() { :; }

run_scenario() {
    local line
    step "the demo scenario"
    demo scenario --seed "$run/demo-merchant" "${scenario_flags[@]}" | while IFS= read -r line; do
        say "$line"
        on_scenario_line "$line"
    done || die "the scenario failed: see above, and the logs in $run/logs"
    recall "$run/demo-merchant/env"
    recall "$run/demo-merchant/portal"
}

backhaul() { with_settings backhaul "$@"; }
demo() { with_settings demo "$@"; }

# with_settings PROGRAM ARGUMENT...: runs a program with the settings in its environment, since .run/env
# is not written yet.
with_settings() {
    local name
    (
        for name in $(services_table | awk '{ print $3 }') OPERATOR_CLIENT_ID OPERATOR_CLIENT_SECRET MERCHANT_ID \
            CLIENT_ID CLIENT_SECRET AMQP_URL RABBITMQ_CONSOLE_URL RABBITMQ_USER RABBITMQ_PASSWORD BROKER_NAMESPACE; do
            [[ -z ${!name:-} ]] || export "$name=${!name}"
        done
        exec "$bin/$1" "${@:2}" </dev/null
    )
}
