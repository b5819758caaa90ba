# shellcheck shell=bash
# Debian packages. Requires $lib (this folder).
# shellcheck disable=SC2154

# install_packages [PACKAGE...]
install_packages() {
    (($#)) || return 0
    local log sudo=()
    command -v apt-get >/dev/null ||
        die "missing packages: $*. There is no apt-get: install the equivalent packages of your system"
    if ((EUID != 0)); then
        can_sudo ||
            die "missing packages: $*. Installing needs root: ask an administrator to run scripts/lib/install_packages $*"
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

# can_sudo: whether sudo works without a password or can ask for it at a terminal.
can_sudo() { command -v sudo >/dev/null && { [[ -t 0 || -t 2 ]] || sudo -n true 2>/dev/null; }; }

# need COMMAND PACKAGE: installs the package if the command is missing.
need() { command -v "$1" >/dev/null || install_packages "$2"; }

# need_disk DIR: fails if less than 1 GiB is free.
need_disk() {
    local free
    free=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
    ((free >= 1024 * 1024)) ||
        die "less than 1 GiB is free on the disk of $1 ($((free / 1024)) MiB): free some space and try again"
}
