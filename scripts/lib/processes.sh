# shellcheck shell=bash
# Processes that the scripts started, identified by pid and start time because pids are reused.

# identity PID: prints a unique line for the process. Fails if the process has exited, even if it is a
# zombie. A zombie with other threads still running has not exited: they hold its ports.
identity() {
    local stat fields
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    read -r -a fields <<<"${stat##*) }"
    [[ ${fields[0]} != [ZX] ]] || ((fields[17] > 1)) || return 1
    echo "$1 ${fields[19]} $(</proc/sys/kernel/random/boot_id)"
}

# running PIDFILE: prints the pid if the process in the file is still running.
running() {
    local line
    [[ -s $1 ]] || return 1
    line=$(<"$1")
    [[ $(identity "${line%% *}") == "$line" ]] || return 1
    echo "${line%% *}"
}

# spawn PIDFILE LOG COMMAND...: starts a process in its own session, without the terminal and without the
# locks of the script (descriptors 7, 8 and 9).
spawn() {
    local pidfile=$1 log=$2
    shift 2
    rm -f "$pidfile"
    setsid "$@" </dev/null >>"$log" 2>&1 7>&- 8>&- 9>&- &
    identity $! >"$pidfile" || true
    disown
}

# become USER: sets as_user to a command prefix that runs a command as that user, in the same process.
# shellcheck disable=SC2034
become() { as_user=(setpriv "--reuid=$1" "--regid=$1" --init-groups --); }

# within SECONDS COMMAND...: repeats the command until it succeeds or the time has passed.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

gone() { ! running "$1" >/dev/null; }

# finish NAME PIDFILE SIGNAL SECONDS: stops a process with the signal, or with SIGKILL after the timeout.
finish() {
    local pid
    if pid=$(running "$2"); then
        kill "-$3" "$pid" 2>/dev/null || true
        if ! within "$4" gone "$2"; then
            warn "$1 (pid $pid) did not exit within $4 s of SIG$3: killing it"
            kill -KILL -- "-$pid" 2>/dev/null || true
            within 10 gone "$2" || die "$1 (pid $pid) cannot be killed"
        fi
    fi
    rm -f "$2"
}

random_hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
