# What the guest boots from: a kernel, and an initramfs of two cpio archives, one
# with the user space, which is Debian's bookworm under every kernel, one with the
# kernel's modules. Each is kept in the cache under a name with a digest of what
# it was made from, and made anew when that changes.

# The user space's suite.
userland=bookworm

# Prints a digest of some files.
digest() { cat "$@" | sha256sum | cut -c 1-12; }

# Prints the words of a list, without its comments.
words() { sed 's/#.*//' "$1" | xargs; }

# Packs a folder into an archive of the initramfs.
pack() {
    (cd "$1" && find . | LC_ALL=C sort | cpio --create --format=newc --owner=0:0 --quiet) >"$2.part"
    mv "$2.part" "$2"
}

# Makes the user space: $cache/user-DIGEST.cpio, its path in $user_cpio.
user_image() {
    local packages=$lab/guest/packages init=$lab/guest/init
    user_cpio=$cache/user-$(digest "$packages" "$init" "$lab/lib/image.sh").cpio
    [ ! -f "$user_cpio" ] || return 0
    say "preparing the guest's user space"
    local work=$cache/work root=$cache/work/root package
    rm -rf "$work" "$cache"/user-*.cpio
    mkdir -p "$root"
    local names
    read -ra names <<<"$(words "$packages")"
    download "$userland" "$work/debs" "${names[@]}"
    for package in "$work/debs"/*.deb; do dpkg-deb --extract "$package" "$root"; done
    (
        cd "$root"
        rm -rf usr/share/{doc,man,locale,info,lintian,bash-completion,bug} lib/systemd lib/udev usr/lib/udev
        mkdir -p proc sys dev run tmp root etc lab var/run
        ln -sf bash bin/sh
        printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/sh\ntcpdump:x:1:1::/:/bin/sh\n' >etc/passwd
        printf 'root:x:0:\nnogroup:x:65534:\ntcpdump:x:1:\n' >etc/group
        printf '127.0.0.1 localhost\n::1 localhost\n' >etc/hosts
        printf 'hosts: files\n' >etc/nsswitch.conf
        install -m 755 "$init" init
    )
    pack "$root" "$user_cpio"
    rm -rf "$work"
}

# Makes a kernel's half: kernel_image NAME SUITE. Leaves the paths in $vmlinuz and
# $kernel_cpio, and the release in $release.
kernel_image() {
    local name=$1 suite=$2
    local folder=$cache/kernel-$name
    local made_from
    made_from=$(digest "$lab/guest/modules" "$lab/lib/image.sh" "$lab/lib/siw.sh")
    vmlinuz=$folder/vmlinuz
    kernel_cpio=$folder/modules-$made_from.cpio
    if [ -f "$kernel_cpio" ]; then
        release=$(cat "$folder/release")
        return 0
    fi
    release=$(kernel_release "$suite")
    say "preparing kernel $release"
    rm -rf "$folder"
    local work=$folder/work root=$folder/work/root
    mkdir -p "$root"
    unpack_kernel "$suite" "$work"
    install -m 644 "$(kernel_file "$work/tree")" "$vmlinuz"
    copy_modules "$work/tree" "$root"
    add_siw "$suite" "$work" "$root"
    depmod -b "$root" "$release"
    echo "$release" >"$folder/release"
    pack "$root" "$kernel_cpio"
    rm -rf "$work"
}

# Unpacks the packages of a kernel into WORK/tree: one package up to Debian 13,
# later one with the kernel, one with its modules, one with their lists.
unpack_kernel() {
    local suite=$1 work=$2 package
    local packages=("linux-image-$release")
    if has_package "$suite" "linux-modules-$release"; then
        packages=(linux-{base,binary,modules}-"$release")
    fi
    download "$suite" "$work/debs" "${packages[@]}"
    for package in "$work/debs"/*.deb; do dpkg-deb --extract "$package" "$work/tree"; done
    # kmod looks in /lib, where newer packages have nothing any more.
    [ -e "$work/tree/lib" ] || ln -s usr/lib "$work/tree/lib"
    depmod -b "$work/tree" "$release"
}

# Prints where an unpacked kernel has its image.
kernel_file() {
    local file
    for file in "$1/boot/vmlinuz-$release" "$1/lib/modules/$release/vmlinuz"; do
        [ ! -f "$file" ] || { echo "$file"; return; }
    done
    die "no kernel image in the packages of $release"
}

# Copies the modules of the list and those that they depend on.
copy_modules() {
    local tree=$1 root=$2 modules=lib/modules/$release name file
    mkdir -p "$root/$modules"
    cp "$tree/$modules"/modules.{builtin,builtin.modinfo,order} "$root/$modules/"
    for name in $(words "$lab/guest/modules"); do
        modprobe -d "$tree" -S "$release" --show-depends "$name" 2>/dev/null || true
    done | sed -n "s#^insmod .*/\($modules/[^ ]*\).*#\1#p" | sort -u |
        while read -r file; do
            mkdir -p "$root/${file%/*}"
            cp "$tree/$file" "$root/$file"
        done
    [ -n "$(find "$root" -name 'rdma_rxe.ko*')" ] || die "kernel $release has no rdma_rxe"
}
