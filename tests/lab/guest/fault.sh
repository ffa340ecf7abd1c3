# Cases that have to fail: a message that says why, an exit code, nothing left.

# What the kernel holds for RDMA programs, device by device.
held_resources() { /usr/bin/rdma resource show; }

# Says what is wrong with the end of a command that had to fail, nothing if it is as
# it should be: wrong_failure EXIT FILE REGEX
wrong_failure() {
    local exit=$1 file=$2 regex=$3
    case $exit in
        0) echo "did not notice" ;;
        143 | 137) echo "did not end in time" ;;
        101 | 12[5-7] | 1[3-5][0-9]) echo "ended by a signal, a panic, or not begun" ;;
        *) grep -q -i -E "$regex" "$file" || echo "does not say /$regex/" ;;
    esac
}

# Says what is there beside what was there before, nothing if nothing is: what a
# process held goes with it, but not always at once.
left_behind() {
    local before=$1 i
    for ((i = 0; i < 20; i++)); do
        [ "$(held_resources)" != "$before" ] || return 0
        sleep 0.1
    done
    echo "leaves resources: $(diff <(echo "$before") <(held_resources) | grep '^[<>]' | xargs)"
}

# One case: a command is refused. refused NAME REGEX COMMAND...
refused() {
    local name=$1 regex=$2
    shift 2
    selected "$name" || return 0
    local log=$logs/${name//\//.} exit=0 held problem start
    held=$(held_resources)
    start=$(now)
    timeout -k 5 30 "$@" >"$log.ours" 2>&1 </dev/null || exit=$?
    problem=$(wrong_failure "$exit" "$log.ours" "$regex")
    [ -n "$problem" ] || problem=$(left_behind "$held")
    case_line "$name" "$problem" "exit $exit" $(($(now) - start)) "$(message_of "$log.ours")" "$log.ours"
}

# Waits some seconds for an end that may never learn what became of its peer, and
# ends it then. Returns its exit code.
end_soon() {
    local i
    for ((i = 0; i < 50; i++)); do
        kill -0 "$1" || break
        sleep 0.1
    done
    kill "$1"
    wait "$1"
}

# One case: a server and a client of ours, of which WATCHED (server, client or both)
# have to fail. broken NAME WATCHED REGEX BREAK OPTION... BREAK is a command that is
# run some seconds after the client has begun; it finds the ends' process ids in
# $server_pid and $client_pid. Where nothing is to be broken, it is `true`.
broken() {
    local name=$1 watched=$2 regex=$3 break=$4
    shift 4
    selected "$name" || return 0
    local log=$logs/${name//\//.} held start server_pid client_pid server_exit=0 client_exit=0 problem=""
    held=$(held_resources)
    start=$(now)
    timeout -k 5 60 "$run" -d rxe_a -F "$@" >"$log.server" 2>&1 &
    server_pid=$!
    await_listener "$server_pid"
    timeout -k 5 60 "$run" -d rxe_b -F "$@" 10.0.0.1 >"$log.client" 2>&1 &
    client_pid=$!
    [ "$break" = true ] || sleep 5
    $break
    # bash would report a process that was ended.
    {
        [ "$watched" = server ] || wait "$client_pid" || client_exit=$?
        [ "$watched" = client ] || wait "$server_pid" || server_exit=$?
        mend
        case $watched in
            server) end_soon "$client_pid" || client_exit=$? ;;
            client) end_soon "$server_pid" || server_exit=$? ;;
        esac
    } 2>/dev/null
    [ "$watched" = server ] || problem=$(wrong_failure "$client_exit" "$log.client" "$regex")
    [ "$watched" = client ] || [ -n "$problem" ] || problem=$(wrong_failure "$server_exit" "$log.server" "$regex")
    [ -n "$problem" ] || problem=$(left_behind "$held")
    local told=$log.client
    [ "$watched" != server ] || told=$log.server
    case_line "$name" "$problem" "server $server_exit client $client_exit" $(($(now) - start)) \
        "$(message_of "$told")" "$log.server" "$log.client"
}

# Prints the last line of an output.
message_of() { grep -v -E '^[ -]*$' "$1" | tail -n 1 | cut -c 1-140 | sed 's/^ *//'; }
