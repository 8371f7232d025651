"""Path probes between two switches with four parallel links: weights follow what the switches themselves cannot see.

    host A ── a ┌ left ┐ l0 ─── r0 ┌ right ┐ b ── host B
                       │ l1 ─── r1 │
                       │ l2 ─── r2 │        l2 is throttled, or dark: below the switch, in the kernel's queue
                       └ l3 ─── r3 ┘
"""
import dataclasses
import re
import threading

import frames
from harness import check, limit, need_tools, wait_for
from hosts import IP_A, IP_B, IP6_A, IP6_B, MAC_A, MAC_B, RING, ROUTER_A, ROUTER_B, af_packet, switch_section
from stream import Stream, check_in_order
from switch import Switch

LINKS = range(4)
THROTTLED = 2
PERIODS = 100  # of probes, that weights have to follow in
FLOWS, RUN, RATE = 128, 16, 2500  # 5.4 Mbit/s on each of four links; a flow pauses for 800 ms
IDLE_TIME = '650ms'  # longer than any path takes longer than another: flowlets keep order
# Up to 100 ms of queue; what waits in the driver's ring while the kernel drops comes on top.
TBF = ('tbf', 'rate', '2mbit', 'burst', '5kb', 'limit', '25kb')


@dataclasses.dataclass
class Family:
    """Where the switches and the hosts are, in one address family."""
    left: str
    right: str
    prefix_a: str
    prefix_b: str
    ip_a: str
    ip_b: str
    whole: int  # the length of an address as a prefix


IPV4 = Family('10.255.0.1', '10.255.0.2', '192.0.2.0/24', '198.51.100.0/24', IP_A, IP_B, 32)
IPV6 = Family('2001:db8:ff::1', '2001:db8:ff::2', '2001:db8:1::/64', '2001:db8:2::/64', IP6_A, IP6_B, 128)


def mac_of(side, link):
    return f'02:00:00:00:{side:02x}:{link:02x}'


def link_port(port, index, mac):
    """A port whose frames pass the interface's qdisc, which the driver goes round by default."""
    return af_packet(port, index, f'veth-{port}', mac, rate='1G').replace(RING, f'{RING},qdisc_bypass=0')


def configuration(name, host_port, links, peers, group, far, family, host_mac, scheduler):
    """One of the two switches; both probe the other over their group."""
    own, other, own_prefix, other_prefix = (
        (family.left, family.right, family.prefix_a, family.prefix_b) if name == 'left' else
        (family.right, family.left, family.prefix_b, family.prefix_a))
    members = ', '.join(f'{{port: {port}, mac: "{mac}"}}' for port, mac in zip(links, peers))
    return (switch_section(name) + 'ports:\n' + host_port +
            ''.join(link_port(port, index + 1, mac_of(1 if name == 'left' else 2, index))
                    for index, port in enumerate(links)) +
            f'groups:\n  - {{name: {group}, scheduler: {scheduler}, members: [{members}]}}\n'
            f'routes:\n  - {{prefix: "{other_prefix}", via: {group}}}\n'
            f'  - {{prefix: "{other}/{family.whole}", via: {group}}}\n'
            f'  - {{prefix: "{own_prefix}", via: {{port: {host_port.split(",")[0].split()[-1]}, mac: "{host_mac}"}}}}\n'
            f'ars: {{idle_time: {IDLE_TIME}}}\n'
            f'path_delay: {{address: "{own}", timeout: 600ms, '
            f'targets: [{{group: {group}, address: "{other}", name: {far}}}]}}\n')


class FourLinks:
    """The two switches above, forwarding and probing; the raw ports of the hosts are `sender` and `receiver`."""

    def __init__(self, scene, scheduler, family=IPV4):
        need_tools('tc')
        self.a, self.b = scene.namespace('a'), scene.namespace('b')
        self.below_left, below_right = scene.namespace('left'), scene.namespace('right')
        self.a.veth('eth0', self.below_left, 'veth-a', mac=MAC_A)
        self.b.veth('eth0', below_right, 'veth-b', mac=MAC_B)
        for link in LINKS:
            self.below_left.veth(f'veth-l{link}', below_right, f'veth-r{link}')
        left_links, right_links = [f'l{link}' for link in LINKS], [f'r{link}' for link in LINKS]
        left_macs, right_macs = [mac_of(1, link) for link in LINKS], [mac_of(2, link) for link in LINKS]
        self.left = Switch(scene, configuration(
            'left', af_packet('a', 0, 'veth-a', ROUTER_A), left_links, right_macs, 'up', 'right', family,
            MAC_A, scheduler), name='left', namespace=self.below_left)
        self.right = Switch(scene, configuration(
            'right', af_packet('b', 0, 'veth-b', ROUTER_B), right_links, left_macs, 'down', 'left', family,
            MAC_B, scheduler), name='right', namespace=below_right)
        self.sender, self.receiver = self.a.port('eth0'), self.b.port('eth0')
        for switch in (self.left, self.right):
            wait_for(lambda at=switch: all(member['returned'] > 5 for member in members(at)), 'probes to come back', 20)

    def tc(self, *words):
        self.below_left.run('tc', 'qdisc', *words[:1], 'dev', f'veth-l{THROTTLED}', 'root', *words[1:])

    def packets(self):
        """By member: frames that have chosen it."""
        return [member['packets'] for member in self.left.get('/paths')['groups'][0]['members']]


def members(switch):
    """What a switch's probes say of its four members."""
    return switch.get('/paths')['path_delay']['targets'][0]['members']


def shares(switch):
    return [round(member['share'], 3) for member in members(switch)]


def wait_periods(switch, condition, what):
    """Waits until `condition` holds of the members, for as long as PERIODS probes over one of them take."""
    begin = members(switch)[0]['sent']

    def holds():
        now = members(switch)
        if condition(now):
            return now
        passed = now[0]['sent'] - begin
        check(passed <= PERIODS, f'{passed} probe periods later, not {what}: {now}')
        return None
    now = wait_for(holds, what, 30)
    return now[0]['sent'] - begin


class Collector:
    """Takes in what arrives while the test does other things."""

    def __init__(self, port):
        self._port, self._done, self.frames = port, threading.Event(), []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join(10)

    def _run(self):
        while not self._done.is_set():
            self.frames += self._port.collect(500, idle=0.2)
        self.frames += self._port.collect(idle=0.5)


def is_even(now):
    return all(member['measured'] and abs(member['share'] - 0.25) < 0.03 for member in now)


@limit(120)
def test_weights_follow_a_throttled_link(scene):
    """A link throttled by tbf below the switch loses weight within 100 probe periods, and gets it back; flowlets keep
    order, and the other direction does not care."""
    pair = FourLinks(scene, 'flowlet-wcmp')
    templates = [frames.roce(IP_A, IP_B, qp=0x100 + number, size=frames.SMALL_ROCE, smac=MAC_A, dmac=ROUTER_A)
                 for number in range(FLOWS)]
    with Collector(pair.receiver) as arrived, Stream(pair.sender, templates, rate=RATE, run=RUN) as stream:
        wait_for(lambda: stream.total() > FLOWS * RUN, 'every flow to have sent')
        wait_for(lambda: is_even(members(pair.left)), 'equal weights', 20)
        pair.tc('add', *TBF)
        # Its part of the load is 2.7 times what it carries now: a bit more than a third of its weight is what is right.
        down = wait_periods(pair.left, lambda now: now[THROTTLED]['share'] < 0.15, 'less weight for the throttled link')
        before = pair.packets()
        total = sum(before)
        now = wait_for(lambda: sum(pair.packets()) > total + 4000 and pair.packets(), '4000 frames more', 20)
        sent = [late - early for early, late in zip(before, now)]
        check(sent[THROTTLED] / sum(sent) < 0.16, f'traffic does not follow the weights: {sent} of {sum(sent)} frames')
        # A stall of the machine may move weights for a moment; a throttled link would keep them so.
        wait_periods(pair.right, lambda now: all(abs(member['share'] - 0.25) < 0.12 for member in now),
                     'equal weights the other way, which is not throttled')
        pair.tc('del')
        up = wait_periods(pair.left, lambda now: now[THROTTLED]['share'] > 0.21, 'equal weights again')
    print(f'shares {shares(pair.left)}: down after {down} periods, up after {up}; {sent} frames by member meanwhile')

    check(stream.total() * 0.8 < len(arrived.frames) <= stream.total(),
          f'{len(arrived.frames)} of {stream.total()} frames arrived')
    check_in_order(arrived.frames)
    probes = pair.left.get('/paths')['path_delay']
    check(probes['returned'] > 0 and probes['turned_round'] > 0 and probes['overflowed'] == 0, f'{probes}')
    check(all(port['share'] <= 0.001 for port in probes['ports']), f'probes take too much: {probes["ports"]}')
    check(sum(1 for port in probes['ports'] if port['share'] > 0) == 4, f'probes of every link cost: {probes["ports"]}')
    text = pair.left.show('paths')
    check(re.search(r'^right +up +l2 ', text, re.M) and 'a sweep takes' in text, text)
    check(pair.left.drops() == {}, f'drops: {pair.left.drops()}')
    pair.left.stop()
    pair.right.stop()


@limit(90)
def test_weights_follow_over_ipv6(scene):
    """The same in short where switches and hosts have IPv6 alone: probes come back, and the throttled link loses
    weight within 100 probe periods."""
    pair = FourLinks(scene, 'spray-wcmp', IPV6)
    templates = [frames.roce(IP6_A, IP6_B, qp=0x100 + number, size=frames.SMALL_ROCE, smac=MAC_A, dmac=ROUTER_A)
                 for number in range(FLOWS)]
    with Collector(pair.receiver) as arrived, Stream(pair.sender, templates, rate=RATE) as stream:
        wait_for(lambda: is_even(members(pair.left)), 'equal weights', 20)
        pair.tc('add', *TBF)
        down = wait_periods(pair.left, lambda now: now[THROTTLED]['share'] < 0.15, 'less weight for the throttled link')
        print(f'shares {shares(pair.left)}: down after {down} periods')
    check(len(arrived.frames) > stream.total() * 0.8, f'{len(arrived.frames)} of {stream.total()} frames arrived')
    for switch, own, far in ((pair.left, IPV6.left, IPV6.right), (pair.right, IPV6.right, IPV6.left)):
        probes = switch.get('/paths')['path_delay']
        check(probes['address'] == own and probes['targets'][0]['addresses'] == [far], f'{probes}')
        check(probes['returned'] > 0 and probes['turned_round'] > 0 and probes['refused'] == 0, f'{probes}')
    check(pair.left.drops() == {}, f'drops: {pair.left.drops()}')
    pair.left.stop()
    pair.right.stop()


@limit(120)
def test_dark_link_is_avoided(scene):
    """A link that swallows everything while it says that it is up: its probes are lost, and ECMP avoids it as it avoids
    a dead one, until they come back."""
    pair = FourLinks(scene, 'ecmp')

    def spread():
        before = pair.packets()
        for number in range(FLOWS):
            pair.sender.send(frames.roce(IP_A, IP_B, qp=0x100 + number, size=110, smac=MAC_A, dmac=ROUTER_A))
        got = pair.receiver.collect(FLOWS, idle=0.5)
        return len(got), [after - early for early, after in zip(before, pair.packets())]

    arrived, healthy = spread()
    check(arrived == FLOWS and min(healthy) > 0, f'{arrived} of {FLOWS} arrived, {healthy} by member')
    pair.tc('add', 'blackhole')
    wait_for(lambda: members(pair.left)[THROTTLED]['bad'], 'the dark link to be found bad', 20)
    wait_for(lambda: 'over port l2: probes are lost' in pair.left.process.err(), 'a line about it')
    arrived, dark = spread()
    check(arrived == FLOWS and dark[THROTTLED] == 0, f'{arrived} of {FLOWS} arrived, {dark} by member')
    check(sum(late > early for early, late in zip(healthy, dark)) == 3, f'{healthy} before, {dark} now')
    pair.tc('del')
    wait_for(lambda: not members(pair.left)[THROTTLED]['bad'], 'it to be found good again', 20)
    wait_for(lambda: 'over port l2: probes come back' in pair.left.process.err(), 'a line about it')
    arrived, again = spread()
    check(arrived == FLOWS and again == healthy, f'{arrived} of {FLOWS}, {again} by member, {healthy} before')
