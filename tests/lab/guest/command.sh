# Single commands, run and judged.

# Runs a command in its time: run_in_time FILE COMMAND... Output and errors go to
# FILE; returns the exit code, 124 when time was up.
run_in_time() {
    local file=$1
    shift
    timeout -k 5 "${command_limit:-30}" "$@" >"$file" 2>&1 </dev/null
}

# One case: our command prints what the stock one does, line by line, beside the
# lines of our userspace devices, and ends with the same exit code.
# same NAME PROGRAM ARGUMENT...
same() {
    local name=$1 program=$2
    shift 2
    selected "$name" || return 0
    local log=$logs/${name//[\/ ]/.} problem="" our_exit=0 stock_exit=0 start
    start=$(now)
    run_in_time "$log.stock" "/usr/bin/$program" "$@" || stock_exit=$?
    run_in_time "$log.all" "$ours/$program" "$@" || our_exit=$?
    grep -v urxe_ "$log.all" >"$log.ours"
    if ! diff "$log.stock" "$log.ours" >"$log.diff"; then
        problem="lines differ ('<' is stock)"
    elif [ "$our_exit" != "$stock_exit" ]; then
        problem="exit codes differ"
    fi
    case_line "$name" "$problem" "ours $our_exit stock $stock_exit" $(($(now) - start)) \
        "$(wc -l <"$log.stock") lines" "$log.diff"
}

# What the kernel holds for RDMA programs: device by device, and by kind.
held_resources() { /usr/bin/rdma resource show; }

# Says what is wrong with the end of a command that had to fail, nothing if it is as
# it should be: wrong_failure EXIT FILE REGEX HELD_BEFORE
wrong_failure() {
    local exit=$1 file=$2 regex=$3 held=$4 i
    case $exit in
        0) echo "did not notice"; return ;;
        124 | 137) echo "did not end in time"; return ;;
        101 | 1[2-5][0-9]) echo "ended by a signal or a panic"; return ;;
    esac
    grep -q -i -E "$regex" "$file" || { echo "does not say /$regex/"; return; }
    # What a process held goes with it, but not always at once.
    for ((i = 0; i < 20; i++)); do
        [ "$(held_resources)" != "$held" ] || return 0
        sleep 0.1
    done
    echo "leaves resources: $(held_resources | diff - <(echo "$held") | grep '^[<>]' | xargs)"
}

# One case: a command is refused, in time, by an exit code and a message that
# matches REGEX, and leaves nothing behind. refused NAME REGEX COMMAND...
refused() {
    local name=$1 regex=$2
    shift 2
    selected "$name" || return 0
    local log=$logs/${name//\//.} exit=0 held start
    held=$(held_resources)
    start=$(now)
    run_in_time "$log.ours" "$@" || exit=$?
    case_line "$name" "$(wrong_failure "$exit" "$log.ours" "$regex" "$held")" "exit $exit" $(($(now) - start)) \
        "$(message_of "$log.ours")" "$log.ours"
}

# Prints the last line of an output.
message_of() { grep -v -E '^[ -]*$' "$1" | tail -n 1 | cut -c 1-120 | sed 's/^ *//'; }
