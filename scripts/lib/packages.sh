# shellcheck shell=bash
# Debian packages, installed only when what they bring is missing. Wants $lib (this folder).
# shellcheck disable=SC2154

# install_packages PACKAGE...: does nothing when called with none.
install_packages() {
    (($#)) || return 0
    local log sudo=()
    command -v apt-get >/dev/null ||
        die "missing: $*. There is no apt-get here: install the like of these Debian packages yourself"
    if ((EUID != 0)); then
        may_sudo ||
            die "missing: $*. Installing takes root: have an administrator run scripts/lib/install_packages $*"
        sudo=(sudo)
    fi
    log=$(mktemp)
    step "installing $* (apt)"
    if ! "${sudo[@]}" "$lib/install_packages" "$@" >"$log" 2>&1; then
        show_tail "apt" "$log"
        die "could not install $*: see above, then try again"
    fi
    rm -f "$log"
}

# may_sudo: there is sudo, and either a person who can answer it or no need to ask. It asks at the
# terminal, wherever our input comes from.
may_sudo() { command -v sudo >/dev/null && { [[ -t 0 || -t 2 ]] || sudo -n true 2>/dev/null; }; }

# need COMMAND PACKAGE: installs the package when there is no such command.
need() { command -v "$1" >/dev/null || install_packages "$2"; }

# need_disk DIR: servers that run out of space lose more time than a refusal here.
need_disk() {
    local free
    free=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
    ((free >= 1024 * 1024)) ||
        die "less than 1 GiB is free on the disk of $1 ($((free / 1024)) MiB): make room and try again"
}
