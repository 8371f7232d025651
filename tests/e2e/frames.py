"""Frames of the tests: RoCEv2 built with scapy, what a router should make of them, and raw ports to send and receive."""
import select
import socket
import struct
import time

from icrc import ETHER_IPV4, ETHER_IPV6, VLAN_TYPES, icrc, ip_offset, roce_bounds

SMALL_ROCE, LARGE_ROCE = 1086, 4158  # frames of path MTU 1024 and 4096 with an AETH
READ_RESPONSE_ONLY = 0x10  # the BTH opcode whose only extension is the AETH
RECEIVE_BUFFER = 64 << 20
SOL_PACKET, PACKET_AUXDATA, PACKET_QDISC_BYPASS, PACKET_IGNORE_OUTGOING = 263, 8, 20, 23
ETH_P_ALL = 3
VLAN_VALID, VLAN_TPID_VALID = 1 << 4, 1 << 6


def roce(source, target, *, smac, dmac, sport=0xC123, qp=0x11, psn=0, size=SMALL_ROCE, vlan=None, pcp=0, dscp=26,
         ttl=64, opcode=READ_RESPONSE_ONLY):
    """A RoCEv2 frame of `size` bytes (tag not counted), built by scapy with its AETH, its ICRC by our own oracle."""
    scapy = _scapy()
    v6 = ':' in source
    tos = dscp << 2 | 2  # ECT(0), as RDMA hosts send
    ether = scapy.Ether(src=smac, dst=dmac)
    if vlan is not None:
        ether /= scapy.Dot1Q(vlan=vlan, prio=pcp)
    ip = scapy.IPv6(src=source, dst=target, tc=tos, hlim=ttl) if v6 else \
        scapy.IP(src=source, dst=target, tos=tos, ttl=ttl, flags='DF', id=psn & 0xFFFF)
    head = 14 + (40 if v6 else 20) + 8 + 12 + 4
    payload = bytes(i & 0xFF for i in range(size - head - 4))
    # The UDP checksum is 0 in RoCEv2, over IPv6 too; scapy would compute it if it were left out.
    packet = ether / ip / scapy.UDP(sport=sport, dport=4791, chksum=0) / \
        scapy.BTH(opcode=opcode, dqpn=qp, psn=psn, icrc=0) / scapy.AETH(syndrome=0, msn=1) / scapy.Raw(payload)
    frame = bytearray(bytes(packet))
    frame[-4:] = icrc(frame)
    return bytes(frame)


def udp(source, target, *, smac, dmac, sport=4000, dport=5000, payload=b'heddle', **ip_fields):
    """A plain UDP frame built by scapy; `ip_fields` go to its IP header (ttl=1, frag=…)."""
    scapy = _scapy()
    ip = (scapy.IPv6 if ':' in source else scapy.IP)(src=source, dst=target, **ip_fields)
    return bytes(scapy.Ether(src=smac, dst=dmac) / ip / scapy.UDP(sport=sport, dport=dport) / scapy.Raw(payload))


def with_psn(frame, psn):
    """The same RoCEv2 frame with another PSN and the ICRC that belongs to it: cheap enough for a stream."""
    _, udp_at, end = roce_bounds(frame)
    changed = bytearray(frame)
    changed[udp_at + 17:udp_at + 20] = psn.to_bytes(3, 'big')
    changed[end - 4:end] = icrc(changed)
    return bytes(changed)


def forwarded(frame, *, smac, dmac, vlan=None, pcp=0):
    """What a router should send on: new MACs and tag, TTL or hop limit one less, the IPv4 checksum anew (RFC 1071)."""
    at, ether_type = ip_offset(frame)
    packet = bytearray(frame[at:])
    if ether_type == ETHER_IPV4:
        packet[8] -= 1
        header = (packet[0] & 15) * 4
        packet[10:12] = b'\0\0'
        packet[10:12] = struct.pack('!H', ipv4_checksum(packet[:header]))
    elif ether_type == ETHER_IPV6:
        packet[7] -= 1
    tag = b'' if vlan is None else struct.pack('!HH', 0x8100, pcp << 13 | vlan)
    return mac_bytes(dmac) + mac_bytes(smac) + tag + ether_type.to_bytes(2, 'big') + bytes(packet)


def ipv4_checksum(header):
    """The ones' complement checksum of an IPv4 header whose checksum field is zero; 0 over a header that is right."""
    total = sum(struct.unpack(f'!{len(header) // 2}H', bytes(header)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def flow(frame):
    """(source IP, target IP, UDP source port, destination QP) of a RoCEv2 frame: what keeps its order."""
    ip, udp_at, _ = roce_bounds(frame)
    width, first = (4, 12) if frame[ip] >> 4 == 4 else (16, 8)
    addresses = frame[ip + first:ip + first + 2 * width]
    return (ip_text(addresses[:width]), ip_text(addresses[width:]), int.from_bytes(frame[udp_at:udp_at + 2], 'big'),
            int.from_bytes(frame[udp_at + 13:udp_at + 16], 'big'))


def psn(frame):
    """The packet sequence number of a RoCEv2 frame."""
    udp_at = roce_bounds(frame)[1]
    return int.from_bytes(frame[udp_at + 17:udp_at + 20], 'big')


def ip_text(address):
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)


def mac_bytes(text):
    return bytes.fromhex(text.replace(':', ''))


def mac_text(address):
    return ':'.join(f'{byte:02x}' for byte in address)


def read_pcap(path):
    """The frames of a classic pcap file."""
    with open(path, 'rb') as file:
        data = file.read()
    order = {b'\xd4\xc3\xb2\xa1': '<', b'\x4d\x3c\xb2\xa1': '<', b'\xa1\xb2\xc3\xd4': '>', b'\xa1\xb2\x3c\x4d': '>'}
    endian = order[data[:4]]
    frames, at = [], 24
    while at + 16 <= len(data):
        captured = struct.unpack(endian + 'I', data[at + 8:at + 12])[0]
        frames.append(data[at + 16:at + 16 + captured])
        at += 16 + captured
    return frames


def write_pcap(path, frames):
    """Writes frames as a classic pcap file, a microsecond apart."""
    with open(path, 'wb') as file:
        file.write(struct.pack('<IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack('<IIII', number // 1000000, number % 1000000, len(frame), len(frame)) + frame)


class RawPort:
    """A packet socket on one interface. What it receives has its VLAN tag where the wire had it."""

    def __init__(self, interface):
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._socket.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, getattr(socket, 'SO_RCVBUFFORCE', 33), RECEIVE_BUFFER)
        self._socket.bind((interface, ETH_P_ALL))

    def send(self, frame):
        """Puts one frame on the wire; waits while the interface has no room."""
        while True:
            try:
                self._socket.send(frame)
                return
            except OSError as error:
                if error.errno != 105:  # ENOBUFS
                    raise
                time.sleep(0.0005)

    def receive(self, timeout):
        """The next frame, None when `timeout` seconds passed without one."""
        if not select.select([self._socket], [], [], timeout)[0]:
            return None
        frame, ancillary, _, _ = self._socket.recvmsg(65536, 64)
        for level, kind, data in ancillary:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = struct.unpack('IIIHHHH', data[:20])
                if status & VLAN_VALID:
                    tag = struct.pack('!HH', tpid if status & VLAN_TPID_VALID else 0x8100, tci)
                    frame = frame[:12] + tag + frame[12:]
        return frame

    def collect(self, count=None, *, idle=1.0, matching=roce_bounds):
        """Frames until `count` of them came or none came for `idle` seconds; only those that match count."""
        frames = []
        deadline = time.monotonic() + idle
        while (count is None or len(frames) < count) and (left := deadline - time.monotonic()) > 0:
            frame = self.receive(left)
            if frame is not None and matching(frame):
                frames.append(frame)
                deadline = time.monotonic() + idle
        return frames

    def close(self):
        self._socket.close()


def has_tag(frame):
    return int.from_bytes(frame[12:14], 'big') in VLAN_TYPES


def _scapy():
    """scapy's layers in one namespace. Imported on first use: it takes a second."""
    import logging
    import types
    logging.getLogger('scapy').setLevel(logging.ERROR)
    from scapy.contrib.roce import AETH, BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Dot1Q, Ether
    from scapy.packet import Raw
    return types.SimpleNamespace(AETH=AETH, BTH=BTH, IP=IP, UDP=UDP, IPv6=IPv6, Dot1Q=Dot1Q, Ether=Ether, Raw=Raw)
