# shellcheck shell=bash
# TCP ports. All are below 32768, outside the range of outgoing connections.

listening() {
    awk -v port=":$(printf '%04X' "$1")\$" '$4 == "0A" && $2 ~ port { found = 1 } END { exit !found }' \
        < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
}

# All checkouts of a user share a folder with one file per claimed port. The file names the settings file
# that contains the port, and the claim is valid as long as that settings file contains it. A stopped
# server therefore keeps its port. Each user starts the search at a different port.
port_claims="/tmp/backhaul-ports-$EUID"
first_port=$((21000 + EUID % 40 * 250))

# with_port_lock COMMAND...: runs the command with exclusive access to the claims.
with_port_lock() {
    [[ -d $port_claims ]] || mkdir -m 700 "$port_claims" 2>/dev/null || true
    [[ -O $port_claims ]] || die "$port_claims belongs to another user: remove it"
    exec 8>"$port_claims/lock"
    flock 8
    "$@"
    exec 8>&-
}

# claim_ports SETTINGS VARIABLE...: claims one port for each variable.
claim_ports() {
    local settings=$1 variable
    shift
    for variable; do claim_port "$settings" "$variable"; done
}

# claim_port SETTINGS VARIABLE: claims the port in VARIABLE if it is free, otherwise the next free port.
claim_port() {
    local settings=$1 variable=$2 port=${!2:-$first_port}
    while listening "$port" || claimed_by_another "$port" "$settings" "$variable"; do
        ((++port < 32768)) || die "no free port below 32768 for $variable"
    done
    [[ -z ${!variable:-} || ${!variable} == "$port" ]] ||
        say "port ${!variable} is in use: $variable is now $port"
    printf -v "$variable" %s "$port"
    remember "$settings" "$variable"
    echo "$variable $settings" >"$port_claims/$port"
}

claimed_by_another() {
    local claimant settings
    { read -r claimant settings <"$port_claims/$1"; } 2>/dev/null || return 1
    [[ "$claimant $settings" != "$3 $2" ]] && grep -qs "^$claimant=$1\$" "$settings"
}
