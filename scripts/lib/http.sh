# shellcheck shell=bash
# HTTP requests to local processes, without a proxy and with a timeout.

http() { curl --noproxy '*' --silent --show-error --fail --max-time 5 "$@"; }
