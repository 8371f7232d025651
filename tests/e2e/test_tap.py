"""The same two hosts over net_tap: the switch's taps are moved into their namespaces."""
import frames
from frames import LARGE_ROCE, SMALL_ROCE, forwarded
from harness import check, limit, need_tools
from hosts import (IP6_A, IP6_B, IP_A, IP_B, JUMBO_MTU, MAC_A, MAC_B, ROUTER_A, ROUTER_B, TWO_SUBNETS, TwoHosts, af_packet,
                   routes, switch_section)
from switch import Switch

A_TO_B = {'smac': MAC_A, 'dmac': ROUTER_A}


def test_ping(scene):
    """IPv4 and IPv6 pings up to 1500 bytes are answered although the taps left the switch's namespace."""
    need_tools('ping')
    hosts = TwoHosts(scene).with_taps()
    for target, largest in ((IP_B, 1472), (IP6_B, 1452)):
        for size in (56, largest):
            hosts.ping(target, size=size)


@limit(90)
def test_iperf3(scene):
    """iperf3 over TCP moves data in both directions; over UDP nothing is lost at 10 Mbit/s."""
    need_tools('iperf3', 'ss')
    hosts = TwoHosts(scene).with_taps()
    hosts.serve_iperf3()
    for target in (IP_B, IP6_B):
        for reverse in ((), ('-R',)):
            moved = hosts.iperf3(target, *reverse)['end']['sum_received']['bytes']
            check(moved > 500_000, f'TCP to {target} {reverse}: only {moved} bytes in 2 s')
        udp = hosts.iperf3(target, '-u', '-b', '10M', '-l', '1200')['end']['sum']
        check(udp['lost_packets'] == 0, f'UDP to {target}: {udp["lost_packets"]} of {udp["packets"]} packets lost, '
              f'switch drops {hosts.drops()}')


def test_roce_1086(scene):
    """RoCEv2 frames of path MTU 1024 arrive byte for byte, IPv4 and IPv6."""
    hosts = TwoHosts(scene, addresses=False).with_taps()
    for source, target in ((IP_A, IP_B), (IP6_A, IP6_B)):
        send_and_expect(hosts.a.port('eth0'), hosts.b.port('eth0'),
                        [frames.roce(source, target, psn=number, size=SMALL_ROCE, **A_TO_B) for number in range(100)])


def send_and_expect(sender, receiver, sent, **changes):
    """Sends frames and checks that exactly these come out, in order."""
    for frame in sent:
        sender.send(frame)
    want = [forwarded(frame, smac=ROUTER_B, dmac=MAC_B, **changes) for frame in sent]
    got = receiver.collect(len(sent))
    check(len(got) == len(want), f'{len(got)} of {len(want)} frames came')
    for number, (have, should) in enumerate(zip(got, want)):
        check(have == should, f'frame {number}: {len(have)} bytes {have[:64].hex()} should be {should[:64].hex()}')


def jumbo_to_tap(scene, *, vlan=''):
    """A on a veth with MTU 4200, B on a tap: (port at A, port at B, the switch)."""
    a, b, middle = scene.namespace('a'), scene.namespace('b'), scene.namespace('sw')
    a.veth('eth0', middle, 'veth-a', mtu=JUMBO_MTU, mac=MAC_A)
    ports = ('ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A, mtu=JUMBO_MTU) +
             f'  - {{name: b, device: "net_tap0,iface=tap-b", mac: "{ROUTER_B}", rate: 10G, link_state: always-up{vlan}}}\n')
    table = routes(('198.51.100.0/24', 'b', MAC_B, 200)) if vlan else TWO_SUBNETS
    switch = Switch(scene, switch_section() + ports + table, namespace=middle)
    middle.run('ip', 'link', 'set', 'tap-b', 'netns', b.path_name, 'name', 'eth0')
    b.bring_up('eth0', mac=MAC_B)
    return a.port('eth0'), b.port('eth0'), switch


def test_too_long_never_blocks(scene):
    """Frames beyond the tap's limit (DPDK 22.11 would keep them at the queue's head for ever) are drops by name; all others pass."""
    sender, receiver, switch = jumbo_to_tap(scene)
    fits = [frames.roce(IP_A, IP_B, psn=number, size=size, **A_TO_B)
            for number, size in enumerate((1086, 1514, 90, 1510, 1086))]
    too_long = [frames.roce(IP_A, IP_B, psn=1000 + number, size=size, **A_TO_B)
                for number, size in enumerate((1526, 1600, 2048, LARGE_ROCE))]
    for frame in too_long:  # alone first, so that nothing else pushes the queue on
        sender.send(frame)
    check(not receiver.collect(1, idle=0.3), 'a frame beyond the limit came out')
    send_and_expect(sender, receiver, fits)
    for frame in too_long * 25:
        sender.send(frame)
    send_and_expect(sender, receiver, fits * 5)
    check(switch.drops() == {'frame_too_long': 26 * len(too_long)}, f'drops {switch.drops()}')


def test_largest_tagged_frame(scene):
    """With an egress tag, 1514 bytes become 1518 and still fit the driver's 1522."""
    sender, receiver, switch = jumbo_to_tap(scene, vlan=', vlans: [{id: 200}]')
    sent = [frames.roce(IP_A, IP_B, psn=number, size=size, **A_TO_B) for number, size in enumerate((1086, 1514))]
    send_and_expect(sender, receiver, sent, vlan=200, pcp=3)
    check(not switch.drops(), f'drops {switch.drops()}')


def test_tag_in_the_frame(scene):
    """A tap hands over frames with their tag inside: VLAN 100 selects the sub-interface, VLAN 300 has none."""
    a, b, middle = scene.namespace('a'), scene.namespace('b'), scene.namespace('sw')
    b.veth('eth0', middle, 'veth-b', mac=MAC_B)
    ports = (f'ports:\n  - {{name: a, device: "net_tap0,iface=tap-a", mac: "{ROUTER_A}", rate: 10G, '
             'link_state: always-up, vlans: [{id: 100}]}\n' + af_packet('b', 0, 'veth-b', ROUTER_B))
    switch = Switch(scene, switch_section() + ports + routes(('198.51.100.0/24', 'b', MAC_B)), namespace=middle)
    middle.run('ip', 'link', 'set', 'tap-a', 'netns', a.path_name, 'name', 'eth0')
    a.bring_up('eth0', mac=MAC_A)
    sender, receiver = a.port('eth0'), b.port('eth0')
    sender.send(frames.roce(IP_A, IP_B, vlan=300, **A_TO_B))
    send_and_expect(sender, receiver, [frames.roce(IP_A, IP_B, vlan=100, psn=number, **A_TO_B) for number in range(10)])
    check(switch.drops() == {'vlan_unknown': 1}, f'drops {switch.drops()}')
