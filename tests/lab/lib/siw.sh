# Debian's kernels come without siw (CONFIG_RDMA_SIW is not set): it is built here
# from Debian's own source and headers of the same version.

# Builds siw.ko and adds it to the guest's modules: add_siw SUITE WORK ROOT. Where
# that fails, the guest goes without, and suites that need siw say so.
add_siw() {
    local suite=$1 work=$2 root=$3
    local log=${work%/*}/siw.log
    if find "$root" -name 'siw.ko*' | grep -q .; then return; fi
    if (build_siw "$suite" "$work/siw") >"$log" 2>&1; then
        install -D -m 644 "$work/siw/siw.ko" "$root/lib/modules/$release/extra/siw.ko"
    else
        say "no siw in this guest: $(grep -m 1 -i -E 'error|cannot' "$log" || tail -n 1 "$log") (all of it: $log)"
    fi
}

# Prints the C compiler for a kernel's modules: the release that the kernel was
# built with, where there is one, since the configuration holds options of it.
module_compiler() {
    local built_with
    built_with=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="[^ ]*gcc-\([0-9]*\).*/gcc-\1/p' "$1")
    if [ -n "$built_with" ] && command -v "$built_with" >/dev/null; then
        echo "$built_with"
    else
        echo gcc
    fi
}

# build_siw SUITE FOLDER: leaves FOLDER/siw.ko.
build_siw() {
    local suite=$1 work=$2
    local abi=${release%-*}
    local version package
    version=$(sed 's/^\([0-9]*\.[0-9]*\).*/\1/' <<<"$release")
    local kbuild=linux-kbuild-$version
    if has_package "$suite" "linux-kbuild-$abi"; then kbuild=linux-kbuild-$abi; fi
    download "$suite" "$work/debs" "linux-headers-$release" "linux-headers-$abi-common" "$kbuild" "linux-source-$version"
    for package in "$work/debs"/*.deb; do dpkg-deb --extract "$package" "$work/tree" || return; done

    local source=linux-source-$version
    tar --extract --file "$work/tree/usr/src/$source.tar.xz" --directory "$work" \
        "$source/drivers/infiniband/sw/siw" || return
    source=$work/$source/drivers/infiniband/sw/siw

    # The headers name each other by their place in an installed system.
    local headers=$work/tree/usr/src/linux-headers-$release link to
    find "$work/tree/usr/src" -maxdepth 2 -type l | while read -r link; do
        to=$(readlink "$link")
        case $to in
            /usr/*) ln -sfn "$work/tree$to" "$link" ;;
            */lib/linux-kbuild-*) ln -sfn "$work/tree/usr/lib/${to##*/lib/}" "$link" ;;
        esac
    done
    local file
    for file in "$headers/Makefile" "$headers/.kernelvariables"; do
        [ ! -f "$file" ] || sed -i "s#/usr/src/#$work/tree/usr/src/#g; s#/usr/lib/#$work/tree/usr/lib/#g" "$file"
    done

    sed -i 's/\$(CONFIG_RDMA_SIW)/m/' "$source/Makefile"
    # Type information would need a program more, and nothing here reads it.
    timeout 300 make -s -C "$headers" "M=$source" "CC=$(module_compiler "$headers/.config")" \
        CONFIG_DEBUG_INFO_BTF_MODULES= modules || return
    strip --strip-debug -o "$work/siw.ko" "$source/siw.ko" || return
}
