# shellcheck shell=bash
# Processes we started, known by pid and start time, so that a pid which the system
# has given to someone else since is never mistaken for ours.

# identity PID: a line that no other process of this machine shares.
# Fails when the process is gone; one that ended but was never reaped is gone too. Its first thread may
# end before the others, which hold its ports until the last of them is gone.
identity() {
    local stat fields
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    read -r -a fields <<<"${stat##*) }"
    [[ ${fields[0]} != [ZX] ]] || ((fields[17] > 1)) || return 1
    echo "$1 ${fields[19]} $(</proc/sys/kernel/random/boot_id)"
}

# running PIDFILE: prints the pid if the process recorded there still runs.
running() {
    local line
    [[ -s $1 ]] || return 1
    line=$(<"$1")
    [[ $(identity "${line%% *}") == "$line" ]] || return 1
    echo "${line%% *}"
}

# spawn PIDFILE LOG COMMAND...: starts a process of its own session, away from our terminal
# and without the locks we hold (descriptors 7, 8 and 9).
spawn() {
    local pidfile=$1 log=$2
    shift 2
    rm -f "$pidfile"
    setsid "$@" </dev/null >>"$log" 2>&1 7>&- 8>&- 9>&- &
    identity $! >"$pidfile" || true
    disown
}

# become USER: sets as_user to the words that run a command as that user, in the same process.
# shellcheck disable=SC2034
become() { as_user=(setpriv "--reuid=$1" "--regid=$1" --init-groups --); }

# within SECONDS COMMAND...: repeats the command until it succeeds or time is up.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

gone() { ! running "$1" >/dev/null; }

# finish NAME PIDFILE SIGNAL SECONDS: asks a process to end; insists when it does not.
finish() {
    local pid
    if pid=$(running "$2"); then
        kill "-$3" "$pid" 2>/dev/null || true
        if ! within "$4" gone "$2"; then
            warn "$1 (pid $pid) did not end within $4 s of SIG$3: killing it"
            kill -KILL -- "-$pid" 2>/dev/null || true
            within 10 gone "$2" || die "$1 (pid $pid) cannot be killed"
        fi
    fi
    rm -f "$2"
}

random_hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
