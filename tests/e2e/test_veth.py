"""Two host namespaces joined by the switch over af_packet on veth: the hosts' own stacks, and RoCEv2 frames."""
import time

import frames
from frames import LARGE_ROCE, SMALL_ROCE, forwarded
from harness import check, limit, need_tools
from hosts import (IP6_A, IP6_B, IP_A, IP_B, JUMBO_MTU, MAC_A, MAC_B, ROUTER_A, ROUTER_B, TWO_SUBNETS, TwoHosts, af_packet,
                   routes, switch_section)
from stream import Stream, check_all_arrived, check_in_order

A_TO_B = {'smac': MAC_A, 'dmac': ROUTER_A}


def test_ping(scene):
    """IPv4 and IPv6 pings through the switch are all answered, from empty ones to the largest that fit 1500 bytes."""
    need_tools('ping')
    hosts = TwoHosts(scene).with_veth()
    for target, largest in ((IP_B, 1472), (IP6_B, 1452)):
        for size in (0, 56, largest):
            hosts.ping(target, size=size)
    check(not hosts.drops(), f'drops {hosts.drops()}')


def test_ping_jumbo(scene):
    """With MTU 4200 on the veths and a large ring slot, pings of 4200 bytes pass, in IPv4 and IPv6."""
    need_tools('ping')
    hosts = TwoHosts(scene, mtu=JUMBO_MTU).with_veth()
    hosts.ping(IP_B, size=JUMBO_MTU - 28)
    hosts.ping(IP6_B, size=JUMBO_MTU - 48)


def test_traceroute_hop(scene):
    """A packet sent with TTL 1 is the drop ttl_expired and does not reach the other host."""
    hosts = TwoHosts(scene).with_veth()
    hosts.a.run('ping', '-q', '-c', 3, '-i', '0.05', '-W', '0.2', '-t', 1, IP_B, accept=(1,))
    check(hosts.drops() == {'ttl_expired': 3}, f'drops {hosts.drops()}')


@limit(90)
def test_iperf3(scene):
    """iperf3 over TCP moves data in both directions, over UDP loses nothing at 20 Mbit/s; the switch drops nothing."""
    need_tools('iperf3', 'ss')
    hosts = TwoHosts(scene).with_veth()
    hosts.serve_iperf3()
    for target in (IP_B, IP6_B):
        for reverse in ((), ('-R',)):
            moved = hosts.iperf3(target, *reverse)['end']['sum_received']['bytes']
            check(moved > 1_000_000, f'TCP to {target} {reverse}: only {moved} bytes in 2 s')
        udp = hosts.iperf3(target, '-u', '-b', '20M', '-l', '1200')['end']['sum']
        check(udp['packets'] > 3000, f'UDP to {target}: only {udp["packets"]} packets sent')
        check(udp['lost_packets'] == 0, f'UDP to {target}: {udp["lost_packets"]} of {udp["packets"]} packets lost, '
              f'switch drops {hosts.drops()}')


def exchange_roce(hosts, source, target, size, count=200):
    """Sends `count` RoCEv2 frames of 4 queue pairs from A and checks that B gets each one right, in order."""
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    sent = [frames.roce(source, target, qp=0x11 + number % 4, psn=number // 4, size=size, **A_TO_B)
            for number in range(count)]
    for frame in sent:
        sender.send(frame)
    got = receiver.collect(count)
    want = [forwarded(frame, smac=ROUTER_B, dmac=MAC_B) for frame in sent]
    check(len(got) == count, f'{len(got)} of {count} frames of {size} bytes came, drops {hosts.drops()}')
    for number, (have, should) in enumerate(zip(got, want)):
        check(have == should, f'frame {number}: {have[:64].hex()} should be {should[:64].hex()}')


def test_roce_1086(scene):
    """RoCEv2 frames of path MTU 1024 (1086 bytes), IPv4 and IPv6, arrive byte for byte with TTL-1 and a right ICRC."""
    hosts = TwoHosts(scene, addresses=False).with_veth()
    exchange_roce(hosts, IP_A, IP_B, SMALL_ROCE)
    exchange_roce(hosts, IP6_A, IP6_B, SMALL_ROCE)


def test_roce_4158(scene):
    """RoCEv2 frames of path MTU 4096 (4158 bytes) pass the af_packet driver of DPDK 22.11, IPv4 and IPv6."""
    hosts = TwoHosts(scene, mtu=JUMBO_MTU, addresses=False).with_veth()
    exchange_roce(hosts, IP_A, IP_B, LARGE_ROCE)
    exchange_roce(hosts, IP6_A, IP6_B, LARGE_ROCE)


def test_frame_longer_than_port(scene):
    """A frame beyond the egress port's MTU is the drop frame_too_long, and those behind it pass."""
    hosts = TwoHosts(scene, mtu=JUMBO_MTU, addresses=False)
    ports = ('ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A, mtu=JUMBO_MTU) +
             af_packet('b', 1, 'veth-b', ROUTER_B, mtu=1500))
    hosts.with_veth(switch_section() + ports + TWO_SUBNETS)
    sender = hosts.a.port('eth0')
    for _ in range(5):
        sender.send(frames.roce(IP_A, IP_B, size=LARGE_ROCE, **A_TO_B))
    exchange_roce(hosts, IP_A, IP_B, SMALL_ROCE, count=20)
    check(hosts.drops() == {'frame_too_long': 5}, f'drops {hosts.drops()}')


def test_vlans(scene):
    """The kernel moves a tag into vlan_tci: VLAN 100 selects the sub-interface, the next hop sets VLAN 200, the class the PCP."""
    hosts = TwoHosts(scene, addresses=False)
    ports = ('ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A, more=', vlans: [{id: 100}], trust: dscp') +
             af_packet('b', 1, 'veth-b', ROUTER_B, more=', vlans: [{id: 200}]'))
    hosts.with_veth(switch_section() + ports + routes(('198.51.100.0/24', 'b', MAC_B, 200), ('192.0.2.0/24', 'a', MAC_A)))
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    # (frame, PCP it should leave with): RoCE DSCP 26 is class 3, CNP DSCP 48 class 6.
    cases = [(frames.roce(IP_A, IP_B, vlan=100, pcp=1, dscp=26, **A_TO_B), 3),
             (frames.roce(IP_A, IP_B, vlan=100, pcp=1, dscp=48, **A_TO_B), 6),
             (frames.roce(IP_A, IP_B, dscp=26, **A_TO_B), 3)]
    for frame, pcp in cases:
        sender.send(frame)
        want = forwarded(frame, smac=ROUTER_B, dmac=MAC_B, vlan=200, pcp=pcp)
        got = receiver.collect(1)
        check(got == [want], f'{[have[:40].hex() for have in got]} should be {want[:40].hex()}')
    sender.send(frames.roce(IP_A, IP_B, vlan=300, **A_TO_B))
    check(not receiver.collect(1, idle=0.3), 'a frame of a VLAN without a sub-interface was forwarded')
    check(hosts.drops() == {'vlan_unknown': 1}, f'drops {hosts.drops()}')


def test_sub_interfaces(scene):
    """A sub-interface's MAC is for its VLAN alone, a tag of all zeros has PCP 0, a short frame without its tag is padded."""
    mac_of_100 = '02:00:00:00:01:00'
    hosts = TwoHosts(scene, addresses=False)
    vlans = f'vlans: [{{id: 100, mac: "{mac_of_100}"}}, {{id: 300}}]'
    ports = ('ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A, more=f', {vlans}, trust: pcp, default_class: 5') +
             af_packet('b', 1, 'veth-b', ROUTER_B, more=', vlans: [{id: 200}]'))
    hosts.with_veth(switch_section() + ports + routes(('198.51.100.0/24', 'b', MAC_B, 200), ('203.0.113.0/24', 'b', MAC_B)))
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')

    def passes(frame, want, **how):
        sender.send(frame)
        got = receiver.collect(1, **how)
        check(got == [want], f'{[have[:64].hex() for have in got]} should be {want[:64].hex()}')

    to_100 = {'smac': MAC_A, 'dmac': mac_of_100}
    for frame, pcp in [(frames.roce(IP_A, IP_B, vlan=0, pcp=0, **A_TO_B), 0), (frames.roce(IP_A, IP_B, **A_TO_B), 5),
                       (frames.roce(IP_A, IP_B, vlan=100, pcp=4, **to_100), 4),
                       (frames.roce(IP_A, IP_B, vlan=300, pcp=2, **A_TO_B), 2)]:
        passes(frame, forwarded(frame, smac=ROUTER_B, dmac=MAC_B, vlan=200, pcp=pcp))

    sender.send(frames.roce(IP_A, IP_B, vlan=300, **to_100))
    sender.send(frames.roce(IP_A, IP_B, **to_100))
    check(not receiver.collect(1, idle=0.3), 'VLAN 100\'s MAC was accepted elsewhere')
    check(hosts.drops() == {'not_our_mac': 2}, f'drops {hosts.drops()}')

    short = frames.udp(IP_A, '203.0.113.9', **A_TO_B)  # 48 bytes; in a tag and padded to the least, 60
    in_tag = (short[:12] + bytes([0x81, 0, 0, 100]) + short[12:]).ljust(60, b'\0')
    passes(in_tag, forwarded(short, smac=ROUTER_B, dmac=MAC_B).ljust(60, b'\0'),
           matching=lambda frame: b'heddle' in frame)


@limit(90)
def test_two_workers_keep_order(scene):
    """Two workers, each owning one port: a stream of 16 flows handed over between them arrives whole and in order."""
    hosts = TwoHosts(scene, addresses=False)
    ports = 'ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) + af_packet('b', 1, 'veth-b', ROUTER_B)
    hosts.with_veth(switch_section(workers=2) + ports + TWO_SUBNETS)
    run_stream(hosts)


def test_polling_worker(scene):
    """A worker that polls without sleeping forwards the same stream whole and in order."""
    hosts = TwoHosts(scene, addresses=False)
    ports = 'ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) + af_packet('b', 1, 'veth-b', ROUTER_B)
    hosts.with_veth(switch_section(idle='poll') + ports + TWO_SUBNETS)
    run_stream(hosts)


def run_stream(hosts, seconds=2):
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    templates = [frames.roce(IP_A, IP_B, qp=0x100 + number, size=90, **A_TO_B) for number in range(16)]
    with Stream(sender, templates) as stream:
        time.sleep(seconds)
    got = receiver.collect(stream.total())
    check(stream.total() > 1000, f'only {stream.total()} frames sent')
    check_all_arrived(stream.sent, got)
    check_in_order(got)
    counters = hosts.switch.ports()
    check(counters['a']['rx_packets'] == counters['b']['tx_packets'] == stream.total(),
          f'{stream.total()} frames sent, counters: {counters["a"]["rx_packets"]} in, {counters["b"]["tx_packets"]} out')
