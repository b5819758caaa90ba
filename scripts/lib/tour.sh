# shellcheck shell=bash
# A walk through the running stack that leaves a demo merchant behind: each step proves one thing and
# says so in one line. Steps run in the order of the list; a new service adds its steps at the end.
# Wants $run, $bin, the services' addresses and the operator's client; sets what the merchant needs.
# shellcheck disable=SC2154

# What to tell the story with, for example --patience 5s.
tour_flags=()

# tour_heard LINE: called for each line of it.
tour_heard() { :; }

tour_steps=(
    operator_token
    demo_merchant
    demo_client
    demo_token
    demo_orders
    story
)

tour() {
    local name
    if [[ ! -x $bin/backhaul ]]; then
        say "no tour: the backhaul command line is not part of this checkout yet"
        return 0
    fi
    step "a short tour"
    recall "$run/demo"
    for name in "${tour_steps[@]}"; do
        "tour_$name" || die "the tour failed at $name: see above, and the logs in $run/logs"
    done
}

# backhaul ARGUMENT...: the command line, told where to go, since .run/env is not written yet.
backhaul() {
    local name
    (
        for name in $(services_table | awk '{ print $3 }') OPERATOR_CLIENT_ID OPERATOR_CLIENT_SECRET MERCHANT_ID \
            CLIENT_ID CLIENT_SECRET RABBITMQ_CONSOLE_URL RABBITMQ_USER RABBITMQ_PASSWORD BROKER_NAMESPACE; do
            [[ -z ${!name:-} ]] || export "$name=${!name}"
        done
        exec "$bin/backhaul" "$@" </dev/null
    )
}

# grant CLIENT_ID CLIENT_SECRET: what the token service answers a merchant's own program.
grant() {
    http -H 'Content-Type: application/json' --data @- "$AUTH_URL/oauth/token" \
        <<<"{\"grant_type\":\"client_credentials\",\"client_id\":\"$1\",\"client_secret\":\"$2\"}"
}

# token CLIENT_ID CLIENT_SECRET: the access token in it.
token() { grant "$1" "$2" | json_field access_token; }

tour_operator_token() {
    [[ -n $(token "$OPERATOR_CLIENT_ID" "$OPERATOR_CLIENT_SECRET") ]] || return 1
    say "the operator has a token"
}

tour_demo_merchant() {
    MERCHANT_ID=demo
    if backhaul merchant show "$MERCHANT_ID" --json >/dev/null 2>&1; then
        say "the merchant $MERCHANT_ID is there"
    else
        backhaul merchant add "$MERCHANT_ID" --name "Demo merchant" --json >/dev/null || return 1
        say "created the merchant $MERCHANT_ID"
    fi
}

# A secret is shown once, so the client is kept in .run/demo and made anew only when it no longer works.
tour_demo_client() {
    local made
    if [[ -n ${CLIENT_ID:-} && $(grant "$CLIENT_ID" "$CLIENT_SECRET" 2>/dev/null | json_field scope) == *warehouse* ]]; then
        say "the merchant's API client is there"
        return
    fi
    made=$(backhaul client add "$MERCHANT_ID" --name "Demo shop" --scope orders --scope returns \
        --scope carrier --scope warehouse --json) || return 1
    CLIENT_ID=$(json_field client_id <<<"$made")
    CLIENT_SECRET=$(json_field client_secret <<<"$made")
    [[ -n $CLIENT_ID && -n $CLIENT_SECRET ]] || return 1
    remember "$run/demo" CLIENT_ID CLIENT_SECRET
    say "created an API client for the merchant"
}

tour_demo_token() {
    [[ -n $(token "$CLIENT_ID" "$CLIENT_SECRET") ]] || return 1
    say "the merchant has a token"
}

# The orders are made up once: a refund among them must not change from one run to the next.
tour_demo_orders() {
    local file=$run/demo-orders.ndjson
    [[ -n ${ORDERS_URL:-} ]] || return 0
    [[ -s $file ]] || backhaul orders generate --count 20 >"$file" || return 1
    backhaul orders import "$file" >"$run/logs/tour.log" 2>&1 || { cat "$run/logs/tour.log" && return 1; }
    say "the merchant has published its orders"
}

# The whole product at work; needs every service.
tour_story() {
    local name line
    while read -r name _; do
        [[ -d $root/crates/$name ]] || { say "no story: $name is not part of this checkout" && return; }
    done < <(services_table)
    step "the story"
    backhaul tour "${tour_flags[@]}" | while IFS= read -r line; do
        say "$line"
        tour_heard "$line"
    done
}
