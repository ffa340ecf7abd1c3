# The layouts of the guest's network. All have a veth pair:
# va 10.0.0.1 fd00::1, vb 10.0.0.2 fd00::2.

# Makes the pair: va stays, vb goes to a network namespace if one is named.
veth() {
    local b=(ip)
    ip link add va address 02:00:00:00:00:01 type veth peer name vb address 02:00:00:00:00:02
    if [ -n "${1:-}" ]; then
        ip netns add "$1"
        ip link set vb netns "$1"
        b=(ip -n "$1")
        "${b[@]}" link set lo up
    fi
    ip link set va mtu "$mtu" up
    "${b[@]}" link set vb mtu "$mtu" up
    ip addr add 10.0.0.1/24 dev va
    ip -6 addr add fd00::1/64 dev va nodad
    "${b[@]}" addr add 10.0.0.2/24 dev vb
    "${b[@]}" -6 addr add fd00::2/64 dev vb nodad
}

# Both ends in one namespace. Linux would send packets between two addresses of its
# own over lo, where rxe doesn't find its device: rules send them over the pair.
veth_here() {
    veth
    local i v a b
    for i in all va vb; do
        echo 1 >/proc/sys/net/ipv4/conf/$i/accept_local
        echo 0 >/proc/sys/net/ipv4/conf/$i/rp_filter
        echo 1 >/proc/sys/net/ipv4/conf/$i/arp_ignore
    done
    for v in -4 -6; do
        a=10.0.0.1 b=10.0.0.2
        [ $v = -4 ] || a=fd00::1 b=fd00::2
        ip $v route add $b dev va src $a table 101
        ip $v route add $a dev vb src $b table 102
        ip $v rule add pref 10 iif lo to $b lookup 101
        ip $v rule add pref 11 iif lo to $a lookup 102
        # rdma_cm looks up the way back, by the interface.
        ip $v rule add pref 12 oif va to $b lookup 101
        ip $v rule add pref 13 oif vb to $a lookup 102
        ip $v rule add pref 100 lookup local
        ip $v rule del pref 0
        ip neigh add $b lladdr 02:00:00:00:00:02 dev va nud permanent
        ip neigh add $a lladdr 02:00:00:00:00:01 dev vb nud permanent
    done
}

# Kernel rxe on va, and vb bare in namespace b, for a NIC in userspace. (An rxe
# device answers in the first namespace only, wherever its interface is.)
net_peer() {
    veth b
    rdma link add rxe_a type rxe netdev va
}

# Kernel rxe on both.
net_pair() {
    veth_here
    rdma link add rxe_a type rxe netdev va
    rdma link add rxe_b type rxe netdev vb
}

# Kernel siw on both.
net_siw() {
    veth_here
    rdma link add siw_a type siw netdev va
    rdma link add siw_b type siw netdev vb
}

net_none() { :; }
