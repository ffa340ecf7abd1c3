# Debian packages without touching the machine: apt with directories of its own
# under the cache, one set for each Debian suite. The mirror is the one that this
# machine's apt uses, the proxy and such are the machine's, too.

# Prints the address of the Debian archive.
debian_mirror() {
    local mirror=${LAB_MIRROR:-}
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
        grep -m 1 -E '/debian/?$') ||
        die "apt of this machine has no Debian archive in its sources: give one in LAB_MIRROR"
    echo "${mirror%/}"
}

# Runs an apt command on the packages of a suite: apt_of SUITE COMMAND ARGUMENT...
apt_of() {
    local suite=$1 program=$2
    shift 2
    local own=$cache/apt/$suite
    local options=(
        -o "Dir::State=$own/state" -o "Dir::State::status=/dev/null"
        -o "Dir::Cache=$own/cache" -o "Dir::Cache::pkgcache=$own/pkgcache"
        -o "Dir::Etc::SourceList=$own/sources.list" -o "Dir::Etc::SourceParts=-"
        -o "Dir::Etc::Preferences=/dev/null" -o "Dir::Etc::PreferencesParts=$own/none"
        -o "APT::Architecture=amd64" -o "APT::Architectures=amd64" -o "APT::Default-Release="
        -o "APT::Sandbox::User=" -o "Acquire::Languages=none" -o "Acquire::Retries=3"
        # Suites that Debian has closed are still what they were.
        -o "Acquire::Check-Valid-Until=false"
        -o "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"
        -o "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false"
    )
    timeout 600 "$program" -qq "${options[@]}" "$@"
}

# Fetches the package lists of a suite.
update_lists() {
    local suite=$1 own=$cache/apt/$1 mirror signed=""
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror=$(debian_mirror)
    [ ! -f "$keys" ] || signed="[signed-by=$keys] "
    mkdir -p "$own/state/lists/partial" "$own/cache/archives/partial" "$own/none"
    echo "deb ${signed}$mirror $suite main" >"$own/sources.list"
    apt_of "$suite" apt-get update ||
        die "no package lists of Debian $suite from $mirror"
}

# The lists of a suite, once: they stay as they are until `run --refresh`.
need_lists() {
    [ -f "$cache/apt/$1/sources.list" ] && [ -n "$(ls "$cache/apt/$1/state/lists/"*_Packages* 2>/dev/null)" ] ||
        update_lists "$1"
}

# Downloads packages into a folder: download SUITE FOLDER PACKAGE...
download() {
    local suite=$1 folder=$2
    shift 2
    mkdir -p "$folder"
    need_lists "$suite"
    (cd "$folder" && apt_of "$suite" apt-get download "$@") && return
    # The archive has moved on since the lists were fetched.
    update_lists "$suite"
    (cd "$folder" && apt_of "$suite" apt-get download "$@") ||
        die "cannot download from Debian $suite: $*"
}

# Whether a suite has a package.
has_package() {
    need_lists "$1"
    [ -n "$(apt_of "$1" apt-cache --no-all-versions show "$2" 2>/dev/null)" ]
}

# Prints the kernel that a suite's linux-image-amd64 stands for: 6.1.0-50-amd64.
kernel_release() {
    need_lists "$1"
    local release
    release=$(apt_of "$1" apt-cache --no-all-versions show linux-image-amd64 |
        sed -n 's/^Depends:.*linux-image-\([0-9][^ ,]*\).*/\1/p' | head -n 1)
    [ -n "$release" ] || die "Debian $1 has no linux-image-amd64"
    echo "$release"
}
