# The two ends of a suite that runs perftest on kernel devices: which device, which
# address, and the roles that we take.

# Devices of the server and the client; a suite for siw sets them to its own.
server_device=rxe_a client_device=rxe_b

end_command() {
    local end=$1 role=$2 tool=$3 device=$server_device
    [ "$role" = server ] || device=$client_device
    case $end in
        stock) command=(timeout "$end_limit" "/usr/bin/$tool" -d "$device" -F) ;;
        ours) command=(timeout "$end_limit" "$ours/$tool" -d "$device") ;;
    esac
}

server_address() { echo 10.0.0.1; }

# Runs a case with ours at both ends, and with ours at one and stock at the other:
# every_role TOOL CASE OPTION...
every_role() {
    local tool=$1 case=$2 ends
    shift 2
    for ends in ours-ours ours-stock stock-ours; do
        pair "$tool/$case/$ends" "${ends%-*}" "${ends#*-}" "$tool" "$@"
    done
}
