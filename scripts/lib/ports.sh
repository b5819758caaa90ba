# shellcheck shell=bash
# TCP ports. All are below 32768, outside the range of outgoing connections.

# listening PORT
listening() {
    local in_use
    in_use=$(listening_ports)
    is_in_use "$1"
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

# claim_ports SETTINGS VARIABLE...: claims one port for each variable: the one that it contains, if it is free, or
# else the next free one.
claim_ports() {
    local settings=$1 variable port next=$first_port in_use
    shift
    # Read once: the kernel needs milliseconds for the list, and a search passes all claimed ports.
    in_use=$(listening_ports)
    for variable; do
        port=${!variable:-$next}
        while is_in_use "$port" || claimed_by_another "$port" "$settings" "$variable"; do
            ((++port < 32768)) || die "no free port below 32768 for $variable"
        done
        [[ -z ${!variable:-} || ${!variable} == "$port" ]] ||
            say "port ${!variable} is in use: $variable is now $port"
        printf -v "$variable" %s "$port"
        remember "$settings" "$variable"
        echo "$variable $settings" >"$port_claims/$port"
        ((port < next)) || next=$((port + 1))
    done
}

# listening_ports: prints the ports of all listening sockets in hexadecimal, as the kernel does.
listening_ports() {
    { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true; } | awk '$4 == "0A" { sub(/.*:/, "", $2); print $2 }'
}

# is_in_use PORT: whether the port is in the list in_use.
is_in_use() {
    local port
    printf -v port '%04X' "$1"
    [[ $'\n'$in_use$'\n' == *$'\n'$port$'\n'* ]]
}

claimed_by_another() {
    local claimant settings
    { read -r claimant settings <"$port_claims/$1"; } 2>/dev/null || return 1
    [[ "$claimant $settings" != "$3 $2" && -r $settings ]] || return 1
    [[ $'\n'$(<"$settings")$'\n' == *$'\n'$claimant=$1$'\n'* ]]
}
