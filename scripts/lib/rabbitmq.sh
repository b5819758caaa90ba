# shellcheck shell=bash
# A private RabbitMQ with its management console, and its own epmd.
# Requires $root, $home (folder of all server data), $state (pid files, settings), as_user (command that changes user).
# shellcheck disable=SC2034,SC2154

rabbitmq_ports=(RABBITMQ_PORT RABBITMQ_CONSOLE_PORT RABBITMQ_DISTRIBUTION_PORT RABBITMQ_EPMD_PORT)

# A node of a cluster gets its name, the names of all nodes and the shared settings from the environment:
# the port of a running epmd, the cookie and RABBITMQ_PASSWORD.
rabbitmq_node=${BACKHAUL_RABBITMQ_NODE:-backhaul}
if [[ -n ${BACKHAUL_RABBITMQ_PEERS:-} ]]; then
    RABBITMQ_EPMD_PORT=$BACKHAUL_RABBITMQ_EPMD_PORT
    unset 'rabbitmq_ports[3]'
fi

# Above this much memory the broker blocks publishers.
rabbitmq_memory=1GB

# The wrappers in sbin always use the cookie, data and logs of the system.
rabbitmq_programs=/usr/lib/rabbitmq/bin

rabbitmq_package() { [[ -x $rabbitmq_programs/rabbitmq-server ]] || echo rabbitmq-server; }
rabbitmq_user() { echo rabbitmq; }
rabbitmq_running() { running "$state/rabbitmq.pid"; }

rabbitmq_start() {
    local folder=$home/rabbitmq
    rabbitmq_configure "$folder"
    [[ -n ${BACKHAUL_RABBITMQ_PEERS:-} ]] ||
        spawn "$state/epmd.pid" "$folder/console.log" "${as_user[@]}" epmd -port "$RABBITMQ_EPMD_PORT" -address 127.0.0.1
    within 5 listening "$RABBITMQ_EPMD_PORT" || die "epmd does not listen on port $RABBITMQ_EPMD_PORT"
    rabbitmq_environment "$folder"
    (
        ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
        spawn "$state/rabbitmq.pid" "$folder/console.log" "${as_user[@]}" "${environment[@]}" \
            "${no_fsync[@]}" "$rabbitmq_programs/rabbitmq-server"
    )
}

# rabbitmq_environment FOLDER: sets environment to a command prefix that runs a program of the broker with
# only these variables.
rabbitmq_environment() {
    local folder=$1
    environment=(
        env -i -C "$folder"
        PATH=/usr/local/bin:/usr/bin:/bin
        LANG=C.UTF-8
        HOME="$folder"
        ERL_CRASH_DUMP="$folder/erl_crash.dump"
        ERL_EPMD_ADDRESS=127.0.0.1
        ERL_EPMD_PORT="$RABBITMQ_EPMD_PORT"
        RABBITMQ_NODENAME="$rabbitmq_node@localhost"
        RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
        RABBITMQ_NODE_PORT="$RABBITMQ_PORT"
        RABBITMQ_DIST_PORT="$RABBITMQ_DISTRIBUTION_PORT"
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
        RABBITMQ_CONF_ENV_FILE="$folder/none.conf"
        RABBITMQ_CONFIG_FILE="$folder/rabbitmq.conf"
        RABBITMQ_ADVANCED_CONFIG_FILE="$folder/advanced.config"
        RABBITMQ_ENABLED_PLUGINS_FILE="$folder/enabled_plugins"
        RABBITMQ_FEATURE_FLAGS_FILE="$folder/data/feature_flags"
        RABBITMQ_MNESIA_BASE="$folder/data"
        RABBITMQ_LOG_BASE="$folder/log"
        RABBITMQ_GENERATED_CONFIG_DIR="$folder/generated"
        RABBITMQ_PID_FILE="$folder/broker.pid"
        # Makes the shell exec the broker, so that the pid is the pid of the broker.
        RUNNING_UNDER_SYSTEMD=true
    )
}

# rabbitmq_recover: triggers an election in quorum queues without a leader. On a single node, a queue that
# was declared within a second of a kill -9 never elects a leader, and its users hang. A cluster recovers
# on its own.
rabbitmq_recover() {
    [[ -z ${BACKHAUL_RABBITMQ_PEERS:-} ]] || return 0
    rabbitmq_control eval '
        [ra:trigger_election(Member) || Queue <- rabbit_amqqueue:list(),
            amqqueue:get_type(Queue) =:= rabbit_quorum_queue,
            {Name, _} = Member <- [amqqueue:get_pid(Queue)],
            ra_leaderboard:lookup_leader(Name) =:= undefined].
        ' || warn "could not elect the leaders of quorum queues: see $home/rabbitmq/console.log"
}

rabbitmq_fill() { rabbitmq_watermark 1MB; }
rabbitmq_drain() { rabbitmq_watermark "$rabbitmq_memory"; }

# rabbitmq_watermark SIZE: sets the memory above which the broker blocks publishers.
rabbitmq_watermark() {
    rabbitmq_control set_vm_memory_high_watermark absolute "$1" ||
        die "could not set the watermark: see $home/rabbitmq/console.log"
}

# rabbitmq_isolate: cuts a node off from the other nodes of its cluster. It closes its connections to them and
# accepts none, because it expects another cookie from them. rabbitmq_rejoin ends it.
rabbitmq_isolate() { rabbitmq_use_cookie isolated; }
rabbitmq_rejoin() { rabbitmq_use_cookie "$BACKHAUL_RABBITMQ_COOKIE"; }

# rabbitmq_use_cookie COOKIE: sets the cookie for the other nodes, and closes the connections to them.
rabbitmq_use_cookie() {
    local peer peers=''
    for peer in $BACKHAUL_RABBITMQ_PEERS; do
        [[ $peer == "$rabbitmq_node" ]] || peers+=", '$peer@localhost'"
    done
    rabbitmq_control eval "[begin erlang:set_cookie(Node, '$1'), erlang:disconnect_node(Node) end || Node <- [${peers#, }]]." ||
        die "could not set the cookie: see $home/rabbitmq/console.log"
}

# rabbitmq_control ARGUMENT...: runs rabbitmqctl.
rabbitmq_control() {
    rabbitmq_environment "$home/rabbitmq"
    "${as_user[@]}" "${environment[@]}" "$rabbitmq_programs/rabbitmqctl" --quiet "$@" \
        >>"$home/rabbitmq/console.log" 2>&1 </dev/null 7>&- 8>&- 9>&-
}

rabbitmq_configure() {
    local folder=$1
    mkdir -p "$folder"/{data,log,generated}
    rm -f "$folder/.erlang.cookie"
    (
        umask 077
        cat >"$folder/rabbitmq.conf" <<END
listeners.tcp.1 = 127.0.0.1:$RABBITMQ_PORT
management.tcp.ip = 127.0.0.1
management.tcp.port = $RABBITMQ_CONSOLE_PORT
default_user = backhaul
default_pass = $RABBITMQ_PASSWORD
default_user_tags.administrator = true
vm_memory_high_watermark.absolute = $rabbitmq_memory
disk_free_limit.absolute = 200MB
END
        # The other settings are those of an installation.
        grep -vE '^(#|vm_memory_high_watermark|disk_free_limit|load_definitions|prometheus)' "$root/deploy/rabbitmq/rabbitmq.conf" >>"$folder/rabbitmq.conf"
        rabbitmq_peers >>"$folder/rabbitmq.conf"
        cat "$root/deploy/rabbitmq/advanced.config" >"$folder/advanced.config"
        echo '[rabbitmq_management].' >"$folder/enabled_plugins"
        echo -n "${BACKHAUL_RABBITMQ_COOKIE:-$(random_hex 24)}" >"$folder/.erlang.cookie"
        chmod 400 "$folder/.erlang.cookie"
    )
    ((EUID != 0)) || chown -R "$(rabbitmq_user):" "$folder"
}

# rabbitmq_peers: prints the peer discovery settings of a cluster.
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

# drop_namespace PATTERN: deletes the queues, exchanges and policies of a namespace, or of all namespaces that match a
# pattern of grep, from the broker of AMQP_URL.
drop_namespace() {
    local kind name host api=(http --user "$RABBITMQ_USER:$RABBITMQ_PASSWORD")
    host=$(virtual_host)
    for kind in queues exchanges policies; do
        for name in $("${api[@]}" "$RABBITMQ_API_URL/$kind/$host?columns=name" | grep -o "\"$1\\.[^\"]*\"" | tr -d '"'); do
            "${api[@]}" --request DELETE "$RABBITMQ_API_URL/$kind/$host/$name" || true
        done
    done
}

# virtual_host: prints the virtual host of AMQP_URL, percent-encoded.
virtual_host() {
    [[ $AMQP_URL =~ ://[^/?]*/([^?]+) ]] && echo "${BASH_REMATCH[1]}" || echo %2f
}
