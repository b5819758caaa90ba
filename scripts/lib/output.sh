# shellcheck shell=bash
# What people read. Everything goes to stderr, so that stdout stays free for results. When nobody
# reads any more (a closed pipe, a closed terminal), the work goes on all the same: it may be stopping.
trap '' PIPE

step() { printf '==> %s\n' "$*" >&2 || true; }
say() { printf '    %s\n' "$*" >&2 || true; }
warn() { printf 'warning: %s\n' "$*" >&2 || true; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# help: prints the comment at the top of the calling script, which is its manual.
help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"; }

usage_error() {
    printf '%s: %s\n\n' "${0##*/}" "$*" >&2
    help >&2
    exit 2
}

# show_tail TITLE FILE: the last lines of a log, when something went wrong.
show_tail() {
    printf -- '---- %s (%s)\n' "$1" "$2" >&2
    tail -n 25 "$2" >&2 || true
    printf -- '----\n' >&2
}
