"""Hosts whose stacks find their router by themselves: ports with addresses answer ARP, solicitations and pings."""
from harness import check, need_tools
from hosts import IP6_B, IP_B, ROUTER_A, ROUTER_B, TWO_SUBNETS, TwoHosts, af_packet, switch_section

GATEWAYS = {'a': ('192.0.2.254', '2001:db8:1::fe', ROUTER_A), 'b': ('198.51.100.254', '2001:db8:2::fe', ROUTER_B)}


def hosts_that_ask(scene):
    """Two hosts with default routes and without a neighbour; the switch's ports have the addresses of their gateways."""
    ports = 'ports:\n' + ''.join(
        af_packet(name, index, f'veth-{name}', mac, more=f', addresses: [{ip}, "{ip6}"]')
        for index, (name, (ip, ip6, mac)) in enumerate(GATEWAYS.items()))
    hosts = TwoHosts(scene).with_veth(switch_section() + ports + TWO_SUBNETS)
    for host in (hosts.a, hosts.b):
        host.run('ip', 'neigh', 'flush', 'nud', 'permanent', 'dev', 'eth0')
    return hosts


def test_hosts_find_their_router(scene):
    """Without static neighbours pings go through, over IPv4 and IPv6, and each host has its port's MAC for a router."""
    need_tools('ping')
    hosts = hosts_that_ask(scene)
    for target in (IP_B, IP6_B):
        hosts.ping(target)
    for name, host in (('a', hosts.a), ('b', hosts.b)):
        ip, ip6, mac = GATEWAYS[name]
        for gateway in (ip, ip6):
            known = host.run('ip', 'neigh', 'show', gateway, 'dev', 'eth0')
            check(mac in known, f'host {name} knows its router {gateway} as: {known!r}')
    check(not hosts.drops(), f'drops {hosts.drops()}')


def test_router_answers_pings(scene):
    """The gateway's own addresses answer pings of any size that fits, and count what they answered."""
    need_tools('ping')
    hosts = hosts_that_ask(scene)
    for gateway, largest in zip(GATEWAYS['a'][:2], (1472, 1452)):
        for size in (0, 56, largest):
            hosts.ping(gateway, count=3, size=size)
    port = next(port for port in hosts.switch.get('/ports')['ports'] if port['name'] == 'a')
    check(port['answered'] >= 18 + 2, f'18 pings and two questions for a MAC, but answered is {port["answered"]}')
    check(not hosts.drops(), f'drops {hosts.drops()}')
