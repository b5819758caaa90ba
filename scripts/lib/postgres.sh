# shellcheck shell=bash
# A private PostgreSQL on a loopback TCP port, with the superuser "backhaul".
# Requires $home (folder of all server data), $state (pid files, settings), as_user (command that changes user),
# no_fsync (command that makes a program not wait for the disk).
# shellcheck disable=SC2034,SC2154

postgres_ports=(POSTGRES_PORT)

postgres_settings=(
    -c listen_addresses=127.0.0.1
    -c unix_socket_directories=
    -c max_connections=400
    -c default_toast_compression=lz4
    -c max_wal_size=4GB
    -c checkpoint_timeout=15min
    -c log_line_prefix='%m [%p] %a '
)

postgres_package() { postgres_bin >/dev/null || echo postgresql; }

# postgres_bin: the folder with the programs of the newest installed version.
postgres_bin() {
    local bins
    mapfile -t bins < <(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V)
    [[ -x ${bins[-1]} ]] || bins=("$(readlink -f "$(command -v initdb)")")
    [[ -x ${bins[-1]} ]] && dirname "${bins[-1]}"
}

postgres_user() { echo postgres; }
postgres_running() { running "$state/postgres.pid"; }

postgres_start() {
    local bin data=$home/postgres/data own
    bin=$(postgres_bin)
    if [[ ! -d $data && -n ${BACKHAUL_POSTGRES_PRIMARY:-} ]]; then
        postgres_copy "$bin" "$data"
    elif [[ ! -d $data ]]; then
        postgres_create "$bin" "$data"
    fi
    # Only the version that created the data can read it, and a newer version may be installed.
    own=/usr/lib/postgresql/$(<"$data/PG_VERSION")/bin
    [[ ! -x $own/postgres ]] || bin=$own
    spawn "$state/postgres.pid" "$home/postgres/log" "${as_user[@]}" env -i -C / LC_ALL=C.UTF-8 \
        "${no_fsync[@]}" "$bin/postgres" -D "$data" -p "$POSTGRES_PORT" "${postgres_settings[@]}"
}

postgres_create() {
    local bin=$1 data=$2
    say "creating the database cluster in $data"
    rm -rf "$data.new"
    (umask 077 && echo "$POSTGRES_PASSWORD" >"$data.password")
    ((EUID != 0)) || chown "$(postgres_user):" "$data.password"
    "${as_user[@]}" env -i -C / LC_ALL=C.UTF-8 "${no_fsync[@]}" "$bin/initdb" -D "$data.new" --username=backhaul \
        --pwfile="$data.password" --auth=scram-sha-256 --locale=C.UTF-8 --encoding=UTF8 --data-checksums \
        >>"$home/postgres/log" 2>&1 ||
        { show_tail initdb "$home/postgres/log"; die "could not create the database cluster"; }
    rm "$data.password"
    mv "$data.new" "$data"
}

# postgres_copy BIN DATA: creates a standby of the server on port BACKHAUL_POSTGRES_PRIMARY, which has the same
# password.
postgres_copy() {
    local bin=$1 data=$2
    say "copying the database cluster to $data"
    rm -rf "$data.new"
    "${as_user[@]}" env -i -C / PGPASSWORD="$POSTGRES_PASSWORD" "$bin/pg_basebackup" -D "$data.new" \
        -d "host=127.0.0.1 port=$BACKHAUL_POSTGRES_PRIMARY user=backhaul" \
        --write-recovery-conf --checkpoint=fast --wal-method=stream >>"$home/postgres/log" 2>&1 ||
        { show_tail pg_basebackup "$home/postgres/log"; die "could not copy the database cluster"; }
    mv "$data.new" "$data"
}

postgres_has_exited() { [[ -z $(postgres_processes) ]]; }

postgres_processes() {
    local cwd pid
    for cwd in /proc/[0-9]*/cwd; do
        [[ $cwd -ef $home/postgres/data ]] || continue
        pid=${cwd//[^0-9]/}
        [[ $(<"/proc/$pid/comm") == postgres ]] && identity "$pid" >/dev/null && echo "$pid"
    done 2>/dev/null
    return 0
}

postgres_ready() {
    [[ $(PGPASSWORD=$POSTGRES_PASSWORD PGCONNECT_TIMEOUT=5 "$(postgres_bin)/psql" -XAtq -h 127.0.0.1 \
        -p "$POSTGRES_PORT" -U backhaul -d postgres -c 'SELECT 1' 2>/dev/null) == 1 ]]
}

# postgres_recover: does nothing, because PostgreSQL recovers from a crash on its own.
postgres_recover() { :; }

postgres_stop() { finish postgres "$state/postgres.pid" INT 30; }

# Only processes with the data folder as their current directory are killed: child processes can outlive a
# killed server, and the lock file can name a pid that was reused after a reboot.
postgres_kill() {
    local pids
    pids=$(postgres_processes)
    # shellcheck disable=SC2086
    [[ -z $pids ]] || kill -KILL $pids 2>/dev/null || true
    within 10 postgres_has_exited || die "processes with the data folder $home/postgres/data cannot be killed: $(postgres_processes)"
    rm -f "$home/postgres/data/postmaster.pid" "$state/postgres.pid"
}

postgres_log() { echo "$home/postgres/log"; }
postgres_wipe() { rm -rf "$home/postgres"; }
postgres_describe() { echo "POSTGRES_URL=postgres://backhaul:$POSTGRES_PASSWORD@127.0.0.1:$POSTGRES_PORT"; }
