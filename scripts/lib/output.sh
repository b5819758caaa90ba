# shellcheck shell=bash
# Messages for people. They go to stderr; stdout is for results. Scripts continue when the terminal or the
# pipe is closed, because they may be stopping the stack.
trap '' PIPE

step() { printf '==> %s\n' "$*" >&2 || true; }
say() { printf '    %s\n' "$*" >&2 || true; }
warn() { printf 'warning: %s\n' "$*" >&2 || true; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# help: prints the comment at the top of the calling script.
help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"; }

usage_error() {
    printf '%s: %s\n\n' "${0##*/}" "$*" >&2
    help >&2
    exit 2
}

# show_tail TITLE FILE: prints the last lines of a log.
show_tail() {
    printf -- '---- %s (%s)\n' "$1" "$2" >&2
    tail -n 25 "$2" >&2 || true
    printf -- '----\n' >&2
}
