# Single commands, run and judged.

# Runs a command in its time: run_in_time OUTPUT ERRORS COMMAND... The first two are
# files; returns the exit code, 143 when time was up (the guest's
# timeout is busybox's, which becomes the command and has a child that watches).
run_in_time() {
    local output=$1 errors=$2
    shift 2
    timeout -k 5 30 "$@" >"$output" 2>"$errors" </dev/null
}

# One case: our command prints what the stock one does, line by line, and ends with
# the same exit code. Standard error is ours to use, for userspace devices and such.
# same NAME PROGRAM ARGUMENT... A sed script in $mask is applied to both first.
same() {
    local name=$1 program=$2
    shift 2
    selected "$name" || return 0
    local log=$logs/${name//[\/ ]/.} problem="" our_exit=0 stock_exit=0 start
    start=$(now)
    run_in_time "$log.stock" "$log.stock-errors" "/usr/bin/$program" "$@" || stock_exit=$?
    run_in_time "$log.ours" "$log.errors" "$ours/$program" "$@" || our_exit=$?
    sed -i "${mask:-}" "$log.stock" "$log.ours"
    if ! diff "$log.stock" "$log.ours" >"$log.diff"; then
        problem="lines differ ('-' is stock)"
    elif [ "$our_exit" != "$stock_exit" ]; then
        problem="exit codes differ"
    fi
    case_line "$name" "$problem" "ours $our_exit stock $stock_exit" $(($(now) - start)) \
        "$(wc -l <"$log.stock") lines" "$log.diff" "$log.errors"
}
