# Suites: what a file in suites/ says of itself, and running one.
#
# A suite is bash that the guest runs after guest/cases.sh. Its first comment lines
# say what it needs, one word and its values each:
#
#   # net: peer            layout of the guest's network
#   # seconds: 240         how long the guest may take, its boot included
#   # ours: ib_write_bw    commands of ours that it runs
#   # quick: /default/      regular expression of the cases that --quick takes

# Prints a value of a suite's head: head_of SUITE WORD.
head_of() { sed -n "/^[^#]/q; s/^# $2: *//p" "$lab/suites/$1"; }

list_suites() {
    local file suite
    for file in "$lab/suites"/*; do
        suite=${file##*/}
        printf '%-10s %s\n' "$suite" "$(sed -n '1s/^# //p' "$file")"
        printf '%-10s commands: %s\n' "" "$(head_of "$suite" ours)"
    done
}

check_suite() {
    [ -f "$lab/suites/$1" ] || die "there is no suite $1; --list prints them"
}

# The programs of this machine that the lab runs, and the packages they are in.
need_programs() {
    local missing=() program package
    while read -r program package; do
        command -v "$program" >/dev/null || missing+=("$package")
    done <<'END'
qemu-system-x86_64 qemu-system-x86
cpio cpio
depmod kmod
dpkg-deb dpkg
apt-get apt
flock util-linux
END
    [ ${#missing[@]} = 0 ] || die "missing here, install: ${missing[*]}"
}

# Puts our commands into a folder: built, or from --bin.
collect_commands() {
    local into=$1 from=$bin host file
    mkdir -p "$into"
    [ -z "$stock" ] || return 0
    if [ -z "$from" ]; then
        host=$(rustc -vV | sed -n 's/^host: //p')
        say "building the commands"
        (cd "$project" && RUSTFLAGS="-C target-feature=+crt-static" \
            cargo build --quiet --release --target "$host" -p ironverbs) || die "the commands don't build"
        from=${CARGO_TARGET_DIR:-$project/target}/$host/release
        # The next suite takes the same.
        bin=$from
    fi
    [ -d "$from" ] || die "there is no folder $from"
    for file in "$from"/*; do
        [ ! -f "$file" ] || [ ! -x "$file" ] || cp "$file" "$into/"
    done
}

# Makes the folder that the guest shares: what it is to do, and our commands.
share() {
    local into=$1 arguments=""
    mkdir -p "$into/logs"
    collect_commands "$into/bin"
    cp -r "$lab/guest" "$into/guest"
    [ ${#script_arguments[@]} = 0 ] || printf -v arguments '%q ' "${script_arguments[@]}"
    {
        printf '%s=%q\n' mode "$mode" net "$net" mtu "$mtu" cases "${cases:-.}" stock "$stock"
        echo "arguments=($arguments)"
    } >"$into/settings"
}

keep_logs() {
    [ -n "$logs" ] || return 0
    mkdir -p "$logs/$2"
    cp -r "$1"/logs/. "$1"/console "$logs/$2/"
}

# Runs a suite in a guest of its own.
run_suite() {
    local suite=$1 shared=$scratch/$1 command status=0
    mode=suite net=$(head_of "$suite" net)
    [ -z "$quick" ] || cases=$(head_of "$suite" quick)
    share "$shared"
    cp "$lab/suites/$suite" "$shared/suite"
    if [ -z "$stock" ]; then
        for command in $(head_of "$suite" ours); do
            [ -f "$shared/bin/$command" ] || {
                say "the suite $suite needs our $command, which isn't built yet (--bin: ${bin:-none})"
                return 1
            }
        done
    fi
    echo "== $suite on kernel $release"
    boot "$shared" "${limit:-$(head_of "$suite" seconds)}" || status=$?
    keep_logs "$shared" "$suite"
    rm -rf "$shared"
    return "$status"
}
