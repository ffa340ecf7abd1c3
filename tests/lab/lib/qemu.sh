# One guest: a folder shared with it, its output as it comes, its end.

# How long a guest may take until it is up, in seconds: a few on an idle machine.
boot_limit=180

# Hardware virtualisation, where it is real. A machine that is itself a guest may
# offer a /dev/kvm in which Debian's kernel never gets through its first
# instructions, hence the look at the modules.
accelerator() {
    if [ -w /dev/kvm ] && { [ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ]; }; then
        echo "kvm -cpu host"
    else
        echo "tcg,thread=multi -cpu max"
    fi
}

# Boots the guest and waits for its end: boot SHARED SECONDS. SHARED is mounted at
# /lab in the guest, and has what the guest is to do (see guest/init) and gets what
# it leaves. Returns the exit status of the guest's program, 124 when time was up,
# 125 when the guest didn't come up, not even at the second try, or ended by itself.
boot() {
    local status=0
    boot_once "$@" || status=$?
    [ "$status" = 125 ] && ! [ -e "$1/up" ] || return "$status"
    say "the guest did not come up: once more"
    boot_once "$@"
}

# Ends a guest that doesn't come up in time: watch_boot PID SHARED.
watch_boot() {
    local i
    for ((i = 0; i < boot_limit; i++)); do
        sleep 1
        [ ! -e "$2/up" ] && kill -0 "$1" 2>/dev/null || return 0
    done
    kill "$1"
}

boot_once() {
    local shared=$1 seconds=$2
    local initrd=$scratch/initrd accel
    read -ra accel <<<"$(accelerator)"
    cat "$user_cpio" "$kernel_cpio" >"$initrd"
    # tsc=reliable: on a busy machine the kernel would hold the processor's counter for
    # broken, and take a clock that costs the guest a microsecond for each look; stock's
    # measurement of the counter would then fail, too.
    local machine=(
        qemu-system-x86_64 -accel "${accel[@]}" -smp 2 -m "$memory"
        -nodefaults -no-user-config -no-reboot -display none
        -kernel "$vmlinuz" -initrd "$initrd"
        -append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off random.trust_cpu=on net.ifnames=0 tsc=reliable"
        -virtfs "local,path=$shared,mount_tag=lab,security_model=none"
    )
    if [ "$mode" = shell ]; then
        "${machine[@]}" -serial mon:stdio
        return
    fi
    : >"$shared/output"
    machine+=(
        -serial "file:$shared/console"
        -device virtio-serial-pci
        -chardev "file,id=output,path=$shared/output"
        -device "virtserialport,chardev=output,name=output"
    )
    timeout -k 5 "$seconds" "${machine[@]}" </dev/null &
    guest=$!
    watch_boot "$guest" "$shared" &
    tail -n +1 -f --pid="$guest" -s 0.2 "$shared/output" &
    local status=0
    wait "$guest" || status=$?
    guest=
    wait
    rm -f "$initrd"
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
        say "the guest was ended after $seconds s; the last of its console:"
        tail -n 5 "$shared/console" >&2
        return 124
    fi
    if ! [ -s "$shared/status" ]; then
        say "the guest gave no result (qemu ended with $status); the last of its console:"
        tail -n 30 "$shared/console" >&2
        return 125
    fi
    if grep -q -E 'BUG:|Oops|general protection|WARNING:' "$shared/console"; then
        say "the guest's kernel complained (the log is in $shared/console):"
        grep -E 'BUG:|Oops|general protection|WARNING:|RIP:' "$shared/console" | head -n 5 >&2
    fi
    return "$(cat "$shared/status")"
}
