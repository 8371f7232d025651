"""Odd, malformed and hostile frames: each comes out as a router should send it, or is one drop of the right name."""
import collections
import socket
import struct

import frames
from frames import forwarded
from harness import check
from hosts import ROUTER_A, ROUTER_B, switch_section
from pcap_ports import pcap_port, through
from switch import nonzero

HOST, NEXT = '02:00:00:00:00:0a', '02:00:00:00:0b:01'
TO_B = {'smac': HOST, 'dmac': ROUTER_A}
UDP_BODY = b'\x0f\xa0\x13\x88\x00\x0e\x00\x00heddle'


def ipv4(*, ttl=64, version_ihl=0x45, total=None, target='198.51.100.2', options=b'', protocol=17, fragment=0,
         payload=UDP_BODY, checksum=None, source='192.0.2.1', dmac=ROUTER_A):
    """An IPv4 frame with every field free to lie."""
    size = 20 + len(options) + len(payload)
    header = bytearray(struct.pack('!BBHHHBBH4s4s', version_ihl, 0, size if total is None else total, 1, fragment, ttl,
                                   protocol, 0, socket.inet_aton(source), socket.inet_aton(target)) + options)
    header[10:12] = struct.pack('!H', frames.ipv4_checksum(header) if checksum is None else checksum)
    return ethernet(0x0800, bytes(header) + payload, dmac)


def ipv6(*, hops=64, version=6, length=None, next_header=17, target='2001:db8:2::2', source='2001:db8:1::1',
         payload=UDP_BODY):
    """An IPv6 frame with every field free to lie."""
    header = struct.pack('!IHBB', version << 28, len(payload) if length is None else length, next_header, hops)
    return ethernet(0x86DD, header + socket.inet_pton(socket.AF_INET6, source) +
                    socket.inet_pton(socket.AF_INET6, target) + payload)


def ethernet(ether_type, packet, dmac=ROUTER_A):
    return frames.mac_bytes(dmac) + frames.mac_bytes(HOST) + struct.pack('!H', ether_type) + packet


def tagged(frame, tag):
    return frame[:12] + struct.pack('!HH', 0x8100, tag) + frame[12:]


def hop_by_hop(payload):
    """An IPv6 hop-by-hop header (router alert left out: only padding) in front of a UDP payload."""
    return bytes((17, 0, 1, 4, 0, 0, 0, 0)) + payload


ROCE_V4 = ('192.0.2.1', '198.51.100.2')
FORWARDED = None

EDGES = [
    ('RoCEv2 over IPv4', lambda: frames.roce(*ROCE_V4, **TO_B), FORWARDED),
    ('RoCEv2 over IPv6', lambda: frames.roce('2001:db8:1::1', '2001:db8:2::2', **TO_B), FORWARDED),
    ('path MTU 4096', lambda: frames.roce(*ROCE_V4, size=frames.LARGE_ROCE, **TO_B), FORWARDED),
    ('plain UDP', lambda: ipv4(), FORWARDED),
    ('IPv4 options', lambda: ipv4(version_ihl=0x47, options=b'\x07\x07\x04\0\0\0\0\0'), FORWARDED),
    ('first fragment', lambda: ipv4(fragment=0x2000), FORWARDED),
    ('later fragment', lambda: ipv4(fragment=0x0003), FORWARDED),
    ('IPv6 hop-by-hop header', lambda: ipv6(next_header=0, payload=hop_by_hop(UDP_BODY)), FORWARDED),
    ('port 4791 without room for a BTH', lambda: ipv4(payload=b'\xc0\x00\x12\xb7\x00\x0c\x00\x00abcd'), FORWARDED),
    ('UDP length that lies', lambda: ipv4(payload=b'\xc0\x00\x12\xb7\xff\xff\x00\x00heddle'), FORWARDED),
    ('protocol that is neither UDP nor TCP', lambda: ipv4(protocol=89), FORWARDED),
    ('TTL 2, the last that passes', lambda: ipv4(ttl=2), FORWARDED),
    ('tag in the frame, VLAN of a sub-interface', lambda: tagged(ipv4(), 3 << 13 | 100), FORWARDED),
    ('priority tag (VLAN 0)', lambda: tagged(ipv4(), 5 << 13), FORWARDED),
    ('TTL 1', lambda: ipv4(ttl=1), 'ttl_expired'),
    ('TTL 0', lambda: ipv4(ttl=0), 'ttl_expired'),
    ('hop limit 1', lambda: ipv6(hops=1), 'ttl_expired'),
    ('no route', lambda: ipv4(target='203.0.113.1'), 'no_route'),
    ('no IPv6 route', lambda: ipv6(target='2001:db8:ff::1'), 'no_route'),
    ('another MAC', lambda: ipv4(dmac='02:00:00:00:00:99'), 'not_our_mac'),
    ('VLAN without a sub-interface', lambda: tagged(ipv4(), 300), 'vlan_unknown'),
    ('ARP', lambda: ethernet(0x0806, bytes(46)), 'not_ip'),
    ('PFC frame', lambda: ethernet(0x8808, b'\x01\x01\x00\x08' + bytes(42), '01:80:c2:00:00:01'), 'mac_control'),
    ('LLDP', lambda: ethernet(0x88CC, bytes(46), '01:80:c2:00:00:0e'), 'link_local_control'),
    ('IHL 4', lambda: ipv4(version_ihl=0x44), 'ipv4_header_length'),
    ('IHL beyond the packet', lambda: ipv4(version_ihl=0x4F), 'ipv4_header_length'),
    ('version 5 in IPv4', lambda: ipv4(version_ihl=0x55), 'ipv4_version'),
    ('total length beyond the frame', lambda: ipv4(total=1000), 'ipv4_total_length'),
    ('total length below the header', lambda: ipv4(total=19), 'ipv4_total_length'),
    ('wrong checksum', lambda: ipv4(checksum=0x1234), 'ipv4_checksum'),
    ('version 7 in IPv6', lambda: ipv6(version=7), 'ipv6_version'),
    ('IPv6 payload beyond the frame', lambda: ipv6(length=2000), 'ipv6_payload_length'),
    ('to loopback', lambda: ipv4(target='127.0.0.1'), 'martian'),
    ('from loopback', lambda: ipv4(source='127.0.0.1'), 'martian'),
    ('multicast', lambda: ipv4(target='224.0.0.5'), 'multicast'),
    ('Ethernet header only', lambda: ethernet(0x0800, b''), 'too_short'),
    ('cut inside the IPv4 header', lambda: ipv4()[:30], 'too_short'),
    ('cut inside the IPv6 header', lambda: ipv6()[:50], 'too_short'),
    ('cut inside a tag', lambda: tagged(ipv4(), 100)[:15], 'too_short'),
]


def test_edges(scene):
    """Each of the hand-made frames comes out exactly as a router should send it, or is one drop of the right name."""
    source, sink = scene.dir / 'in.pcap', scene.dir / 'out.pcap'
    sent = [make() for _, make, _ in EDGES]
    frames.write_pcap(source, sent)
    via = f'{{port: out, mac: "{NEXT}", vlan: 200}}'
    configuration = (
        switch_section() + 'ports:\n' +
        pcap_port('in', 0, f'"{ROUTER_A}"', source=source, more=', vlans: [{id: 100}]') +
        pcap_port('out', 1, f'"{ROUTER_B}"', sink=sink, more=', vlans: [{id: 200}]') +
        f'routes:\n  - {{prefix: 198.51.100.0/24, via: {via}}}\n  - {{prefix: "2001:db8:2::/64", via: {via}}}\n')
    summary, (got,) = through(scene, source, configuration, [sink])
    wanted_drops = collections.Counter(reason for *_, reason in EDGES if reason)
    for (what, _, reason), frame in zip(EDGES, sent):
        if reason is not FORWARDED:
            continue
        want = forwarded(frame, smac=ROUTER_B, dmac=NEXT, vlan=200)
        # The tag's PCP is the class's: not told apart here (test_veth does).
        check(any(without_pcp(have) == want for have in got), f'{what}: did not come out as {want[:60].hex()}…')
    check(len(got) == len(EDGES) - sum(wanted_drops.values()),
          f'{len(got)} frames came out, {len(EDGES) - sum(wanted_drops.values())} should')
    drops = nonzero(summary['drops'])
    check(drops == dict(wanted_drops), f'drops {difference(drops, wanted_drops)} (what came: what should)')


def without_pcp(frame):
    return frame[:14] + bytes((frame[14] & 0x1F,)) + frame[15:] if frames.has_tag(frame) else frame


def difference(got, wanted):
    """{reason: (got, wanted)} where they differ."""
    return {reason: (got.get(reason, 0), wanted.get(reason, 0)) for reason in {*got, *wanted}
            if got.get(reason, 0) != wanted.get(reason, 0)}
