# shellcheck shell=bash
# A private RabbitMQ with its management console, and an epmd of its own beside it.
# Wants $root, $home (folder of all server data), $state (pid files, settings), as_user (words that change user).
# shellcheck disable=SC2034,SC2154

rabbitmq_ports=(RABBITMQ_PORT RABBITMQ_CONSOLE_PORT RABBITMQ_DISTRIBUTION_PORT RABBITMQ_EPMD_PORT)

# A node of a cluster is told its name, all names, and what the nodes share: the port of an epmd that
# somebody else runs, the cookie and RABBITMQ_PASSWORD.
rabbitmq_node=${BACKHAUL_RABBITMQ_NODE:-backhaul}
if [[ -n ${BACKHAUL_RABBITMQ_PEERS:-} ]]; then
    RABBITMQ_EPMD_PORT=$BACKHAUL_RABBITMQ_EPMD_PORT
    unset 'rabbitmq_ports[3]'
fi

# So much memory, and it takes no more messages.
rabbitmq_memory=1GB

# Not the wrappers in sbin: they insist on the system's cookie, data and logs.
rabbitmq_programs=/usr/lib/rabbitmq/bin

rabbitmq_package() { [[ -x $rabbitmq_programs/rabbitmq-server ]] || echo rabbitmq-server; }
rabbitmq_user() { echo rabbitmq; }
rabbitmq_running() { running "$state/rabbitmq.pid"; }

rabbitmq_start() {
    local place=$home/rabbitmq
    rabbitmq_configure "$place"
    [[ -n ${BACKHAUL_RABBITMQ_PEERS:-} ]] ||
        spawn "$state/epmd.pid" "$place/console.log" "${as_user[@]}" epmd -port "$RABBITMQ_EPMD_PORT" -address 127.0.0.1
    within 5 listening "$RABBITMQ_EPMD_PORT" || die "epmd does not listen on port $RABBITMQ_EPMD_PORT"
    rabbitmq_environment "$place"
    (
        ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
        spawn "$state/rabbitmq.pid" "$place/console.log" "${as_user[@]}" "${environment[@]}" \
            "$rabbitmq_programs/rabbitmq-server"
    )
}

# rabbitmq_environment PLACE: sets environment to the words that run a program of the broker with nothing
# of ours or of the system in its surroundings.
rabbitmq_environment() {
    local place=$1
    environment=(
        env -i -C "$place"
        PATH=/usr/local/bin:/usr/bin:/bin
        LANG=C.UTF-8
        HOME="$place"
        ERL_CRASH_DUMP="$place/erl_crash.dump"
        ERL_EPMD_ADDRESS=127.0.0.1
        ERL_EPMD_PORT="$RABBITMQ_EPMD_PORT"
        RABBITMQ_NODENAME="$rabbitmq_node@localhost"
        RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
        RABBITMQ_NODE_PORT="$RABBITMQ_PORT"
        RABBITMQ_DIST_PORT="$RABBITMQ_DISTRIBUTION_PORT"
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
        RABBITMQ_CONF_ENV_FILE="$place/none.conf"
        RABBITMQ_CONFIG_FILE="$place/rabbitmq.conf"
        RABBITMQ_ADVANCED_CONFIG_FILE="$place/advanced.config"
        RABBITMQ_ENABLED_PLUGINS_FILE="$place/enabled_plugins"
        RABBITMQ_FEATURE_FLAGS_FILE="$place/data/feature_flags"
        RABBITMQ_MNESIA_BASE="$place/data"
        RABBITMQ_LOG_BASE="$place/log"
        RABBITMQ_GENERATED_CONFIG_DIR="$place/generated"
        RABBITMQ_PID_FILE="$place/broker.pid"
        # The shell gives way to the broker, so that the pid we hold is the broker's.
        RUNNING_UNDER_SYSTEMD=true
    )
}

# A quorum queue on a single node that was declared within a second of a kill -9 comes back as a member
# that never stands for election, and hangs whoever uses it. Ask the leaderless ones to elect themselves.
# A cluster elects by itself.
rabbitmq_settle() {
    [[ -z ${BACKHAUL_RABBITMQ_PEERS:-} ]] || return 0
    rabbitmq_control eval '
        [ra:trigger_election(Member) || Queue <- rabbit_amqqueue:list(),
            amqqueue:get_type(Queue) =:= rabbit_quorum_queue,
            {Name, _} = Member <- [amqqueue:get_pid(Queue)],
            ra_leaderboard:lookup_leader(Name) =:= undefined].
        ' || warn "could not look after the quorum queues: see $home/rabbitmq/console.log"
}

rabbitmq_fill() { rabbitmq_watermark 1MB; }
rabbitmq_drain() { rabbitmq_watermark "$rabbitmq_memory"; }

# rabbitmq_watermark SIZE: from so much memory on it takes no messages.
rabbitmq_watermark() {
    rabbitmq_control set_vm_memory_high_watermark absolute "$1" ||
        die "could not set the watermark: see $home/rabbitmq/console.log"
}

# rabbitmq_control WORDS: tells the broker something.
rabbitmq_control() {
    rabbitmq_environment "$home/rabbitmq"
    "${as_user[@]}" "${environment[@]}" "$rabbitmq_programs/rabbitmqctl" --quiet "$@" \
        >>"$home/rabbitmq/console.log" 2>&1 </dev/null 7>&- 8>&- 9>&-
}

rabbitmq_configure() {
    local place=$1
    mkdir -p "$place"/{data,log,generated}
    rm -f "$place/.erlang.cookie"
    (
        umask 077
        cat >"$place/rabbitmq.conf" <<END
listeners.tcp.1 = 127.0.0.1:$RABBITMQ_PORT
management.tcp.ip = 127.0.0.1
management.tcp.port = $RABBITMQ_CONSOLE_PORT
default_user = backhaul
default_pass = $RABBITMQ_PASSWORD
default_user_tags.administrator = true
vm_memory_high_watermark.absolute = $rabbitmq_memory
disk_free_limit.absolute = 200MB
END
        # The rest as in an installation, without what speaks of its memory, disk, definitions and metrics.
        grep -vE '^(#|vm_memory_high_watermark|disk_free_limit|load_definitions|prometheus)' "$root/deploy/rabbitmq/rabbitmq.conf" >>"$place/rabbitmq.conf"
        rabbitmq_peers >>"$place/rabbitmq.conf"
        cat "$root/deploy/rabbitmq/advanced.config" >"$place/advanced.config"
        echo '[rabbitmq_management].' >"$place/enabled_plugins"
        echo -n "${BACKHAUL_RABBITMQ_COOKIE:-$(random_hex 24)}" >"$place/.erlang.cookie"
        chmod 400 "$place/.erlang.cookie"
    )
    ((EUID != 0)) || chown -R "$(rabbitmq_user):" "$place"
}

# rabbitmq_peers: how the nodes of a cluster find each other.
rabbitmq_peers() {
    local peer number=0
    [[ -n ${BACKHAUL_RABBITMQ_PEERS:-} ]] || return 0
    echo "cluster_formation.peer_discovery_backend = classic_config"
    echo "cluster_formation.discovery_retry_limit = 1"
    for peer in $BACKHAUL_RABBITMQ_PEERS; do
        echo "cluster_formation.classic_config.nodes.$((++number)) = $peer@localhost"
    done
}

rabbitmq_ready() {
    http --output /dev/null -K - "http://127.0.0.1:$RABBITMQ_CONSOLE_PORT/api/health/checks/port-listener/$RABBITMQ_PORT" \
        <<<"user = \"backhaul:$RABBITMQ_PASSWORD\"" 2>/dev/null
}

rabbitmq_stop() {
    finish rabbitmq "$state/rabbitmq.pid" TERM 60
    finish epmd "$state/epmd.pid" TERM 5
}

rabbitmq_kill() {
    local pid
    if pid=$(rabbitmq_running); then
        kill -KILL -- "-$pid"
        within 10 gone "$state/rabbitmq.pid" || die "rabbitmq (pid $pid) cannot be killed"
    fi
    rm -f "$state/rabbitmq.pid"
    finish epmd "$state/epmd.pid" KILL 5
}

rabbitmq_log() { echo "$home/rabbitmq/log/$rabbitmq_node@localhost.log"; }
rabbitmq_wipe() { rm -rf "$home/rabbitmq"; }

rabbitmq_describe() {
    cat <<END
AMQP_URL=amqp://backhaul:$RABBITMQ_PASSWORD@127.0.0.1:$RABBITMQ_PORT/%2f
RABBITMQ_API_URL=http://127.0.0.1:$RABBITMQ_CONSOLE_PORT/api
RABBITMQ_CONSOLE_URL=http://127.0.0.1:$RABBITMQ_CONSOLE_PORT
RABBITMQ_USER=backhaul
RABBITMQ_PASSWORD=$RABBITMQ_PASSWORD
END
}

# drop_namespace NAME: removes what services told to keep to themselves left in the broker of AMQP_URL.
drop_namespace() {
    local name host api=(http --user "$RABBITMQ_USER:$RABBITMQ_PASSWORD")
    host=$(virtual_host)
    for name in $("${api[@]}" "$RABBITMQ_API_URL/queues/$host?columns=name" | grep -o "\"$1\\.[^\"]*\"" | tr -d '"'); do
        "${api[@]}" --request DELETE "$RABBITMQ_API_URL/queues/$host/$name" || true
    done
    "${api[@]}" --request DELETE "$RABBITMQ_API_URL/exchanges/$host/$1.backhaul.events" 2>/dev/null || true
}

# virtual_host: the one that AMQP_URL names, escaped as it stands there.
virtual_host() {
    [[ $AMQP_URL =~ ://[^/?]*/([^?]+) ]] && echo "${BASH_REMATCH[1]}" || echo %2f
}
