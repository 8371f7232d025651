#!/usr/bin/python3
"""The RoCEv2 invariant CRC, recomputed with zlib: an oracle that shares no code with the switch.

IBTA annex A17: CRC-32 over eight bytes of ones (the place of the LRH), the IP header, the UDP header, the BTH and the
payload, with every field that a router may change set to ones, stored least significant byte first.

    icrc.py FILE.pcap...      checks every RoCEv2 frame of these captures; exit 1 if one is wrong
"""
import struct
import sys
import zlib

ROCE_PORT = 4791
ETHER_IPV4, ETHER_IPV6 = 0x0800, 0x86DD
VLAN_TYPES = (0x8100, 0x88A8)
BTH_BYTES, UDP_BYTES, ICRC_BYTES = 12, 8, 4


def ip_offset(frame):
    """Offset of the IP header behind any VLAN tags, and the Ethernet type found there."""
    offset = 12
    while int.from_bytes(frame[offset:offset + 2], 'big') in VLAN_TYPES:
        offset += 4
    return offset + 2, int.from_bytes(frame[offset:offset + 2], 'big')


def roce_bounds(frame):
    """(IP offset, UDP offset, end of the IP packet) of a RoCEv2 frame, None for any other frame."""
    ip, ether_type = ip_offset(frame)
    if ether_type == ETHER_IPV4:
        if len(frame) < ip + 20 or frame[ip + 9] != 17:
            return None
        udp = ip + (frame[ip] & 15) * 4
        end = ip + int.from_bytes(frame[ip + 2:ip + 4], 'big')
    elif ether_type == ETHER_IPV6:
        if len(frame) < ip + 40 or frame[ip + 6] != 17:
            return None
        udp = ip + 40
        end = udp + int.from_bytes(frame[ip + 4:ip + 6], 'big')
    else:
        return None
    if end > len(frame) or end < udp + UDP_BYTES + BTH_BYTES + ICRC_BYTES:
        return None
    return (ip, udp, end) if int.from_bytes(frame[udp + 2:udp + 4], 'big') == ROCE_PORT else None


def icrc(frame):
    """The four ICRC bytes that a RoCEv2 frame (Ethernet header to ICRC, whatever stands there) should end with."""
    ip, udp, end = roce_bounds(frame)
    packet = bytearray(frame[ip:end - ICRC_BYTES])
    udp -= ip
    if packet[0] >> 4 == 4:
        packet[1] = packet[8] = 0xFF  # DS field, TTL
        packet[10:12] = b'\xff\xff'  # header checksum
    else:
        packet[0] |= 0x0F  # traffic class and flow label
        packet[1:4] = b'\xff\xff\xff'
        packet[7] = 0xFF  # hop limit
    packet[udp + 6:udp + 8] = b'\xff\xff'  # UDP checksum
    packet[udp + UDP_BYTES + 4] = 0xFF  # BTH: FECN, BECN, reserved
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(packet)))


def icrc_is_right(frame):
    """True if a RoCEv2 frame carries the ICRC it should."""
    end = roce_bounds(frame)[2]
    return bytes(frame[end - ICRC_BYTES:end]) == icrc(frame)


def check_capture(path):
    """(RoCEv2 frames, those with a wrong ICRC) of a capture file."""
    import frames
    roce = [frame for frame in frames.read_pcap(path) if roce_bounds(frame)]
    return len(roce), sum(not icrc_is_right(frame) for frame in roce)


def main(paths):
    bad = 0
    for path in paths:
        total, wrong = check_capture(path)
        bad += wrong
        print(f'{path}: {total} RoCEv2 frames, {wrong} with a wrong ICRC')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
