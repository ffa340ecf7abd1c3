# What the perftest tools and their options are to the suites.

# Tools: name, what it measures, transports, and what it takes: s sizes, b
# bidirectional and several queue pairs, e events, R rdma_cm.
perftest_tools='
ib_write_bw    bandwidth  RC,UC     s,b,R
ib_write_lat   latency    RC,UC     s,R
ib_read_bw     bandwidth  RC        s,b,e,R
ib_read_lat    latency    RC        s,e,R
ib_send_bw     bandwidth  RC,UC,UD  s,b,e,R
ib_send_lat    latency    RC,UC,UD  s,e,R
ib_atomic_bw   bandwidth  RC        b,e,R
ib_atomic_lat  latency    RC        e,R
'

# Cases: name, what a tool has to have for it, options. Runs are short: the guest
# is emulated. Datagrams and UC are shorter still, since a packet that is lost for
# want of a buffer stays lost, and a ping-pong then waits for ever.
perftest_cases='
default  -   -n 200
a        s   -a -n 5
b        b   -b -n 200
q4       b   -q 4 -n 100
D2       -   -D 2
uc       UC  -c UC -n 50 -s 1024
ud       UD  -c UD -n 50 -s 1024
m1024    -   -m 1024 -n 100
ipv6     -   --ipv6 -n 100
events   e   -e -n 100
cm       R   -R -n 100
loss     -   -n 200
'

# Prints a column of a tool's row: tool_column TOOL NUMBER.
tool_column() { awk -v tool="$1" -v column="$2" '$1 == tool { print $column }' <<<"$perftest_tools"; }

# Leaves the options of a case in $options: case_options TOOL CASE. Fails for a case
# that isn't one for this tool.
case_options() {
    local tool=$1 case=$2 needs row
    read -r _ needs row < <(awk -v name="$case" '$1 == name' <<<"$perftest_cases")
    if [ "$needs" != - ]; then
        [[ ,$(tool_column "$tool" 3),$(tool_column "$tool" 4), == *,$needs,* ]] || return 1
    fi
    read -ra options <<<"$row"
    # Half a second before RC sends again: a busy host stops the guest for longer
    # than the default of 67 ms, and seven times of that in a row end the connection.
    [[ " ${options[*]} " == *" -c "* ]] || options+=(-u 17)
    # A size that shows, where the tool takes one and the case has none.
    [[ ,$(tool_column "$tool" 4), == *,s,* ]] || return 0
    [[ " ${options[*]} " == *" -a "* || " ${options[*]} " == *" -s "* ]] && return 0
    if [ "$(tool_column "$tool" 2)" = bandwidth ]; then
        options+=(-s 65536)
    else
        options+=(-s 64)
    fi
}

# Prints the value of an option among words: value_of OPTION WORD...
value_of() {
    local option=$1
    shift
    while [ $# -gt 1 ]; do
        [ "$1" != "$option" ] || { echo "$2"; return; }
        shift
    done
}

# Prints the sizes and counts that a run with these options shows, a row each:
# expected_rows TOOL OPTION... A count of * is any.
expected_rows() {
    local tool=$1 size count pairs power
    shift
    count=$(value_of -n "$@")
    pairs=$(value_of -q "$@")
    [ -z "$pairs" ] || count=$((count * pairs))
    if [[ " $* " == *" -a "* ]]; then
        for power in {1..23}; do echo "$((1 << power)) ${count:-*}"; done
        return
    fi
    size=$(value_of -s "$@")
    echo "${size:-8} ${count:-*}"
}

# Prints the rows of figures in a tool's output.
figures() { grep -E '^ *[0-9]+ +[0-9]+ +[^ ]' "$1"; }

# Says what is wrong with the figures that a tool has printed, nothing if they are
# as they should be: wrong_figures FILE ROWS TOOL OPTION... ROWS is "all", or "last"
# where the last row alone is right, too.
wrong_figures() {
    local file=$1 rows=$2
    shift 2
    local shown expected
    expected=$(expected_rows "$@")
    shown=$(figures "$file" | awk '{ print $1, $2 }')
    if [ "$rows" = last ] && [ "$(wc -l <<<"$shown")" = 1 ]; then
        expected=$(tail -n 1 <<<"$expected")
    fi
    [[ $expected != *\* ]] || shown=$(sed 's/ .*/ */' <<<"$shown")
    [ "$shown" = "$expected" ] || {
        echo "shows sizes and counts $(xargs <<<"$shown"), not $(xargs <<<"${expected//\*/any}")"
        return
    }
    # The seventh column of latency is the standard deviation, for which stock gets
    # the root of a negative number now and then.
    figures "$file" | awk '
        { positive = 0
          for (i = 3; i <= NF; i++) {
              if (i == 7) continue
              if ($i !~ /^[0-9.]+$/) { print "shows " $i " for " $1 " bytes"; exit }
              if ($i > 0) positive = 1
          }
          if (!positive) { print "shows no figure above 0 for " $1 " bytes"; exit } }'
}

# Prints the figure that matters in the last row: average bandwidth or typical time.
headline() {
    local tool=$1 file=$2
    if [ "$(tool_column "$tool" 2)" = bandwidth ]; then
        figures "$file" | awk 'END { if (NF) print $4 " MiB/s" }'
    else
        figures "$file" | awk 'END { if (NF) print (NF > 5 ? $5 : $3) " us" }'
    fi
}
