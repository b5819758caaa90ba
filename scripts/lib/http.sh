# shellcheck shell=bash
# HTTP to our own processes: never through a proxy, never for long.

http() { curl --noproxy '*' --silent --show-error --fail --max-time 5 "$@"; }
