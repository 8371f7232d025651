"""Links that go down, come up and vanish: the switch follows them and heals its groups."""
import time

import frames
from harness import check, wait_for
from hosts import IP_A, IP_B, MAC_A, MAC_B, ROUTER_A, ROUTER_B, af_packet, switch_section
from stream import Stream, check_all_arrived
from switch import Switch

A_TO_B = {'smac': MAC_A, 'dmac': ROUTER_A}
ROUTER_C, MAC_C = '02:00:00:00:00:f3', '02:00:00:00:00:0c'


def three_wires(scene, group):
    """A and, on the other side, B and C behind the ports of one group. (switch, port at A, at B, at C)"""
    a, b, c, middle = (scene.namespace(name) for name in ('a', 'b', 'c', 'sw'))
    a.veth('eth0', middle, 'veth-a', mac=MAC_A)
    b.veth('eth0', middle, 'veth-b', mac=MAC_B)
    c.veth('eth0', middle, 'veth-c', mac=MAC_C)
    ports = ('ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) + af_packet('b', 1, 'veth-b', ROUTER_B) +
             af_packet('c', 2, 'veth-c', ROUTER_C))
    switch = Switch(scene, switch_section() + ports + group, namespace=middle)
    return switch, a.port('eth0'), (b, b.port('eth0')), (c, c.port('eth0')), middle


GROUP_OF_B_AND_C = (f'groups:\n  - {{name: up, scheduler: ecmp, members: [{{port: b, mac: "{MAC_B}"}}, '
                    f'{{port: c, mac: "{MAC_C}"}}]}}\nroutes:\n  - {{prefix: 198.51.100.0/24, via: up}}\n')


def spread(sender, receivers, flows=64):
    """Sends one frame of each of `flows` queue pairs; how many came out at each receiver."""
    for number in range(flows):
        sender.send(frames.roce(IP_A, IP_B, qp=0x100 + number, size=110, **A_TO_B))
    return [len(receiver.collect(flows, idle=0.4)) for receiver in receivers]


def test_link_down_and_up(scene):
    """A veth whose far end goes down leaves the group, and joins it again when it comes up; nothing else suffers."""
    switch, sender, (_, at_b), (c, at_c), _ = three_wires(scene, GROUP_OF_B_AND_C)
    both = spread(sender, (at_b, at_c))
    check(sum(both) == 64 and min(both) > 0, f'with both links up, B and C got {both} of 64')
    for _ in range(2):
        c.link('eth0', 'down')
        wait_for(lambda: not is_up(switch, 'c'), 'the switch to see the link go down')
        check(spread(sender, (at_b,)) == [64], 'with C down, B did not get all flows')
        c.link('eth0', 'up')
        wait_for(lambda: is_up(switch, 'c'), 'the switch to see the link come up')
        at_c = c.port('eth0')
        again = spread(sender, (at_b, at_c))
        check(again == both, f'after the link healed, B and C got {again}, before {both}')


def is_up(switch, name):
    return switch.ports()[name]['up']


def test_no_live_next_hop(scene):
    """With the links of all members down, frames are the drop no_live_next_hop."""
    switch, sender, (b, _), (c, _), _ = three_wires(scene, GROUP_OF_B_AND_C)
    b.link('eth0', 'down')
    c.link('eth0', 'down')
    wait_for(lambda: not is_up(switch, 'b') and not is_up(switch, 'c'), 'the switch to see both links go down')
    for number in range(10):
        sender.send(frames.roce(IP_A, IP_B, psn=number, **A_TO_B))
    wait_for(lambda: switch.drops() == {'no_live_next_hop': 10}, '10 drops no_live_next_hop')


def test_port_that_vanishes(scene):
    """A veth deleted under the switch takes its port down; the other ports forward on, and the end is still clean."""
    switch, sender, (_, at_b), (_, at_c), middle = three_wires(scene, GROUP_OF_B_AND_C)
    check(sum(spread(sender, (at_b, at_c))) == 64, 'not all frames came while every port was there')
    middle.run('ip', 'link', 'delete', 'veth-c')
    wait_for(lambda: not is_up(switch, 'c'), 'the switch to see that the port vanished')
    check(spread(sender, (at_b,)) == [64], 'with C gone, B did not get all flows')
    templates = [frames.roce(IP_A, IP_B, qp=0x100 + number, size=110, **A_TO_B) for number in range(16)]
    with Stream(sender, templates) as stream:
        time.sleep(1)
    check_all_arrived(stream.sent, at_b.collect(stream.total()))
    switch.stop()
