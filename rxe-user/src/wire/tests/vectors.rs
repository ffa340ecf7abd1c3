//! Whole IP packets with known contents.
//!
//! V1 was captured from a ConnectX-4 Lx, V2 is a published test capture of another
//! implementation; V3 to V6 were made by hand, with an ICRC that Wireshark and scapy agree with.

/// A congestion notification of a ConnectX-4 Lx: UDP source port 0, B = 1.
pub(super) const V1: &str = "
    45c2003c 718c4000 40119161 0a001101 0a001201 000012b7 00280000 8100ffff
    40000118 00000000 00000000 00000000 00000000 00000000 82fd002a";

/// UC Send Only with two pad bytes and a UDP checksum.
pub(super) const V2: &str = "
    45010040 04784000 4011b4d5 c0a80007 c0a80007 c00012b7 002caca2 2460ffff
    000000d3 00cf1710 4630818b e28935d9 0e9a9550 5401be88 5e500000 78f353f3";

/// RC Send Only of "hello" over IPv4.
pub(super) const V3: &str = "
    45020034 00004000 4011b6b3 c0000201 c0000202 c12312b7 00200000 0470ffff
    00000011 80123456 68656c6c 6f000000 6c49be03";

/// RC Write Only with immediate over IPv6.
pub(super) const V4: &str = "
    66812345 003411ff 20010db8 00000000 00000000 00000001 20010db8 00000000
    00000000 00000002 c7b112b7 00340000 0be0ffff 00abcdef 80ffffff 00007f00
    12345678 00010203 00000006 deadbeef 01020304 05060000 ce1fc748";

/// RC Acknowledge of V3.
pub(super) const V5: &str = "
    45020030 00004000 4011b6b7 c0000202 c0000201 c12312b7 001c0000 1140ffff
    00000012 00123456 1f000001 6597a0ee";

/// UD Send Only with a connection request.
pub(super) const V6: &str = "
    45000134 00004000 4011b5b5 c0000201 c0000202 c12312b7 01200000 6440ffff
    00000001 00000000 80010000 00000001
    01070203 00000000 00000005 11223344 00100000 00000000 11223344 00000000
    00000000 01064853 020000ff fe000001 00000000 00000000 00001104 00000004
    000000a0 123456a7 ffff37f0 ffffffff 00000000 00000000 0000ffff c0000201
    00000000 00000000 0000ffff c0000202 12345000 68400098 00000000 00000000
    00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
    00000000 0040d431 00000000 00000000 00000000 c0000201 00000000 00000000
    00000000 c0000202 68656c6c 6f000000 00000000 00000000 00000000 00000000
    00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
    8ceec706";

/// All of them.
pub(super) const ALL: [&str; 6] = [V1, V2, V3, V4, V5, V6];

/// The bytes of hex digits, blanks ignored.
pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}
