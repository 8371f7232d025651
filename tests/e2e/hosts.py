"""Two hosts in two subnets with a switch between them, over af_packet on veth or over taps.

      host A                          switch                          host B
      192.0.2.1       eth0 ---- a  02:..:f1 | 02:..:f2  b ---- eth0   198.51.100.2
      2001:db8:1::1                                                   2001:db8:2::2
"""
import json

from harness import need_root, wait_for
from switch import Switch

MAC_A, MAC_B = '02:00:00:00:00:0a', '02:00:00:00:00:0b'
ROUTER_A, ROUTER_B = '02:00:00:00:00:f1', '02:00:00:00:00:f2'
IP_A, IP_B = '192.0.2.1', '198.51.100.2'
IP6_A, IP6_B = '2001:db8:1::1', '2001:db8:2::2'
JUMBO_MTU = 4200
# The af_packet driver of DPDK 22.11 reports at most 1518 bytes, yet carries whatever fits a ring slot.
RING = 'framesz=2048,blocksz=4096,framecnt=2048'
JUMBO_RING = 'framesz=8192,blocksz=65536,framecnt=512'


def switch_section(name='t0', **more):
    """The `switch:` line of a configuration in anonymous memory with a control socket; small tables start sooner."""
    fields = {'name': name, 'seed': 1, 'memory': 'anonymous', 'idle': 'sleep', 'control': '"{control}"',
              'max_routes': 1000, **more}
    return 'switch: {' + ', '.join(f'{key}: {value}' for key, value in fields.items()) + '}\n'


def af_packet(name, index, interface, mac, *, mtu=1500, rate='10G', more=''):
    """The entry of an af_packet port under `ports:`."""
    ring = RING if mtu <= 1500 else JUMBO_RING
    return (f'  - {{name: {name}, device: "net_af_packet{index},iface={interface},{ring}", mac: "{mac}", '
            f'netdev: {interface}, mtu: {mtu}, rate: {rate}{more}}}\n')


def routes(*entries):
    """The `routes:` section from (prefix, port, MAC[, VLAN])."""
    return 'routes:\n' + ''.join(
        f'  - {{prefix: "{prefix}", via: {{port: {port}, mac: "{mac}"{", vlan: %d" % vlan[0] if vlan else ""}}}}}\n'
        for prefix, port, mac, *vlan in entries)


TWO_SUBNETS = routes(('192.0.2.0/24', 'a', MAC_A), ('198.51.100.0/24', 'b', MAC_B),
                     ('2001:db8:1::/64', 'a', MAC_A), ('2001:db8:2::/64', 'b', MAC_B))


class TwoHosts:
    """The two namespaces, joined to a third one for the switch. Without `addresses` they are mere wires to send into."""

    def __init__(self, scene, *, mtu=1500, addresses=True):
        need_root()
        self.scene = scene
        self.mtu = mtu
        self.a, self.b = scene.namespace('a', ipv6=addresses), scene.namespace('b', ipv6=addresses)
        self.middle = scene.namespace('sw')
        self._addresses = addresses
        self.switch = None

    def with_veth(self, configuration=None, **options):
        """Joins them by veth pairs and starts the switch on the middle ends veth-a and veth-b."""
        self.a.veth('eth0', self.middle, 'veth-a', mtu=self.mtu, mac=MAC_A)
        self.b.veth('eth0', self.middle, 'veth-b', mtu=self.mtu, mac=MAC_B)
        self._set_addresses()
        ports = ('ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A, mtu=self.mtu) +
                 af_packet('b', 1, 'veth-b', ROUTER_B, mtu=self.mtu))
        self.switch = Switch(self.scene, configuration or switch_section() + ports + TWO_SUBNETS,
                             namespace=self.middle, **options)
        return self

    def with_taps(self, **options):
        """Starts the switch on two taps and moves these into the hosts' namespaces, where they are called eth0."""
        ports = 'ports:\n' + ''.join(
            f'  - {{name: {name}, device: "net_tap{index},iface=tap-{name}", mac: "{mac}", mtu: {self.mtu}, rate: 10G, '
            'link_state: always-up}\n' for index, (name, mac) in enumerate((('a', ROUTER_A), ('b', ROUTER_B))))
        self.switch = Switch(self.scene, switch_section() + ports + TWO_SUBNETS, namespace=self.middle, **options)
        for host, tap, mac in ((self.a, 'tap-a', MAC_A), (self.b, 'tap-b', MAC_B)):
            self.middle.run('ip', 'link', 'set', tap, 'netns', host.path_name, 'name', 'eth0')
            host.bring_up('eth0', mtu=self.mtu, mac=mac)
        self._set_addresses()
        return self

    def _set_addresses(self):
        if not self._addresses:
            return
        for host, ip, ip6, gateway, gateway6, mac in (
                (self.a, IP_A, IP6_A, '192.0.2.254', '2001:db8:1::fe', ROUTER_A),
                (self.b, IP_B, IP6_B, '198.51.100.254', '2001:db8:2::fe', ROUTER_B)):
            host.address('eth0', f'{ip}/24', f'{ip6}/64')
            host.default_route('eth0', gateway, mac)
            host.default_route('eth0', gateway6, mac)

    def drops(self):
        """The switch's drops without the hosts' own IPv6 group reports, which go to multicast MACs."""
        return {reason: count for reason, count in self.switch.drops().items()
                if not (self._addresses and reason == 'not_our_mac')}

    # What hosts do

    def ping(self, target, *, count=5, size=56):
        """Pings from A; returns nothing, fails if one answer is missing."""
        self.a.run('ping', '-q', '-c', count, '-i', '0.05', '-W', '2', '-s', size, target, timeout=30)

    def serve_iperf3(self):
        """Starts an iperf3 server on B that outlives its clients."""
        server = self.b.start('iperf3-server', 'iperf3', '-s')
        wait_for(lambda: 'listening' in server.out() or ':5201' in self.b.run('ss', '-Hltn'), 'the iperf3 server')
        return server

    def iperf3(self, target, *arguments, seconds=2):
        """Runs iperf3 from A and returns its JSON report."""
        return json.loads(self.a.run('iperf3', '-J', '-t', seconds, *arguments, '-c', target, timeout=seconds + 20))
