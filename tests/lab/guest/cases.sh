#!/bin/bash
# Runs a suite in the guest: one line for each case, a summary, exit status 0 when
# every case passed.
#
# A suite calls `case_line` by way of the helpers of the files below. $ours is the
# folder of our commands; /usr/bin has the stock ones.
. /lab/settings
logs=/lab/logs
ours=/ours
# Tries the suite itself: what it asks of us, the stock programs have to pass.
[ -z "$stock" ] || ours=/usr/bin
passed=0 failed=0

. /lab/guest/perftest.sh
. /lab/guest/pair.sh
. /lab/guest/command.sh
. /lab/guest/fault.sh

# Whether the command line asked for a case.
selected() { [[ $1 =~ $cases ]]; }

# Tenths of seconds since the guest's start.
now() { local up; read -r up _ </proc/uptime; echo $((10#${up/./} / 10)); }

# Prints the line of a case: case_line NAME PROBLEM EXITS TENTHS NOTE FILE...
# PROBLEM is empty when it passed; when not, the end of each FILE is printed, too.
case_line() {
    local name=$1 problem=$2 exits=$3 tenths=$4 note=$5 verdict=ok file
    shift 5
    if [ -n "$problem" ]; then
        verdict=FAIL
        note="$problem${note:+; $note}"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
    printf '%-4s %-44s %-22s %3d.%d s  %s\n' "$verdict" "$name" "$exits" $((tenths / 10)) $((tenths % 10)) "$note"
    [ "$verdict" = FAIL ] || return 0
    for file; do
        [ ! -s "$file" ] || grep -v '^ *$' "$file" | tail -n "${tail_lines:-6}" | sed "s#^#       ${file##*.}| #"
    done
}

. /lab/suite

echo "$passed passed, $failed failed, $(($(now) / 10)) s on $(uname -r)"
if [ $((passed + failed)) = 0 ]; then
    echo "no case matches $cases"
    exit 2
fi
[ "$failed" = 0 ] || exit 1
