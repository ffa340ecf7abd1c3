# A server and a client of perftest, run and judged.
#
# The suite says how an end is started: `end_command END ROLE TOOL` leaves the words
# in $command, `server_address END` prints where a client finds it. END is ours or
# stock, ROLE server or client.

# Longest time for one end, in seconds.
end_limit=90

# Whether a process has its perftest port open, or rdma_cm has a listener.
listens() {
    grep -q -i ':4853 0\+:0000 0A' "/proc/$1/net/tcp" "/proc/$1/net/tcp6" 2>/dev/null ||
        rdma resource show cm_id 2>/dev/null | grep -q 'state LISTEN'
}

# Waits for a server to listen, or to end.
await_listener() {
    local i
    for ((i = 0; i < 100; i++)); do
        listens "$1" && return
        kill -0 "$1" 2>/dev/null || return
        sleep 0.1
    done
}

# Whether an end runs our command (--stock puts the stock one in its place).
is_ours() { [ "$1" = ours ] && [ -z "$stock" ]; }

# Whether stock failed to measure the CPU's clock, as it does on a busy machine: it
# gives up, or all its times are infinite and its rates 0. Looks at the output of the ends that are
# stock's: clock_upset SERVER_END CLIENT_END.
clock_upset() {
    local outputs=()
    is_ours "$1" || outputs+=("$log.server")
    is_ours "$2" || outputs+=("$log.client")
    [ ${#outputs[@]} -gt 0 ] && grep -q -s -w -E "Can't produce a report|inf|0\.00[[:space:]]+0\.00[[:space:]]+0\.000000" "${outputs[@]}"
}

# Runs both ends once: one_run SERVER_END CLIENT_END TOOL OPTION... Leaves exit codes
# in $server_exit and $client_exit, output in $log.server and $log.client.
one_run() {
    local server=$1 client=$2 tool=$3 server_pid i
    local command=()
    shift 3
    end_command "$server" server "$tool"
    "${command[@]}" "$@" >"$log.server" 2>&1 &
    server_pid=$!
    await_listener "$server_pid"
    end_command "$client" client "$tool"
    client_exit=0
    "${command[@]}" "$@" "$(server_address "$server" "$@")" >"$log.client" 2>&1 || client_exit=$?
    # The server ends with its client; one that doesn't gets some seconds.
    for ((i = 0; i < 50; i++)); do
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.1
    done
    kill "$server_pid" 2>/dev/null
    server_exit=0
    # bash would report a process that was ended.
    { wait "$server_pid" || server_exit=$?; } 2>/dev/null
}

# Says what is wrong with the run, nothing if it is as it should be.
wrong_run() {
    local tool=$1
    shift
    local wrong
    case $server_exit,$client_exit in
        0,0) ;;
        143,0) echo "the server did not end with its client"; return ;;
        *,143) echo "the client did not end in $end_limit s"; return ;;
        *) echo "exit codes"; return ;;
    esac
    wrong=$(wrong_figures "$log.client" all "$tool" "$@")
    [ -z "$wrong" ] || { echo "the client $wrong"; return; }
    # Not every server prints figures, and some for the last size only.
    [ -n "$(figures "$log.server")" ] || return
    wrong=$(wrong_figures "$log.server" last "$tool" "$@")
    [ -z "$wrong" ] || echo "the server $wrong"
}

# One case: pair NAME SERVER_END CLIENT_END TOOL OPTION...
pair() {
    local name=$1 server=$2 client=$3 tool=$4
    shift 4
    selected "$name" || return 0
    local log=$logs/${name//\//.} server_exit client_exit problem again note="" start
    start=$(now)
    one_run "$server" "$client" "$tool" "$@"
    problem=$(wrong_run "$tool" "$@")
    for again in once twice; do
        if [ -z "$problem" ] || ! clock_upset "$server" "$client"; then break; fi
        note="run again $again: stock could not measure its clock"
        one_run "$server" "$client" "$tool" "$@"
        problem=$(wrong_run "$tool" "$@")
    done
    [ -n "$problem" ] || note="$(headline "$tool" "$log.client")${note:+; $note}"
    case_line "$name" "$problem" "server $server_exit client $client_exit" $(($(now) - start)) "$note" \
        "$log.server" "$log.client"
}
