# shellcheck shell=bash
# TCP ports. All below 32768: above, they collide with outgoing connections.

listening() {
    awk -v port=":$(printf '%04X' "$1")\$" '$4 == "0A" && $2 ~ port { found = 1 } END { exit !found }' \
        < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
}

# Ports of private servers are claimed in a book that all checkouts of a user share. A claim names
# the settings file that holds the port, and lasts as long as that file says so: a server that is
# stopped keeps its port. Each user searches from another place, so that users rarely meet.
port_book="/tmp/backhaul-ports-$EUID"
port_floor=$((21000 + EUID % 40 * 250))

# with_port_book COMMAND...: runs the command while nobody else reads or writes the book.
with_port_book() {
    [[ -d $port_book ]] || mkdir -m 700 "$port_book" 2>/dev/null || true
    [[ -O $port_book ]] || die "$port_book belongs to another user: remove it"
    exec 8>"$port_book/lock"
    flock 8
    "$@"
    exec 8>&-
}

# claim_ports SETTINGS VARIABLE...: claims one port for each.
claim_ports() {
    local settings=$1 variable
    shift
    for variable; do claim_port "$settings" "$variable"; done
}

# claim_port SETTINGS VARIABLE: keeps the port in VARIABLE if it is ours to use, else picks one.
claim_port() {
    local settings=$1 variable=$2 port=${!2:-$port_floor}
    while listening "$port" || claimed_by_another "$port" "$settings" "$variable"; do
        ((++port < 32768)) || die "no free port below 32768 for $variable"
    done
    [[ -z ${!variable:-} || ${!variable} == "$port" ]] ||
        say "port ${!variable} is taken by someone else: $variable is now $port"
    printf -v "$variable" %s "$port"
    remember "$settings" "$variable"
    echo "$variable $settings" >"$port_book/$port"
}

claimed_by_another() {
    local claimant settings
    { read -r claimant settings <"$port_book/$1"; } 2>/dev/null || return 1
    [[ "$claimant $settings" != "$3 $2" ]] && grep -qs "^$claimant=$1\$" "$settings"
}
