"""Packets of a queue pair leave for their host in order, whatever order they came in: the resequencer on real ports."""
import random

import frames
from frames import roce_bounds
from harness import check, limit
from hosts import MAC_A, MAC_B, ROUTER_A, ROUTER_B, TwoHosts, af_packet, switch_section

WRITE_FIRST, WRITE_MIDDLE = 0x06, 0x07
A_TO_B = {'smac': MAC_A, 'dmac': ROUTER_A}


def psn_of(frame):
    _, udp_at, _ = roce_bounds(frame)
    return int.from_bytes(frame[udp_at + 17:udp_at + 20], 'big')


@limit(60)
def test_order_is_restored(scene):
    """A shuffled stream that wraps comes out in order; a lost packet holds the others no longer than the hold time."""
    hosts = TwoHosts(scene, addresses=False)
    ports = ('ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) +
             af_packet('b', 1, 'veth-b', ROUTER_B, more=', resequence: true'))
    hosts.with_veth(switch_section() + ports + 'resequencer: {hold_time: 300ms}\nroutes:\n'
                    f'  - {{prefix: 198.51.100.0/24, via: {{port: b, mac: "{MAC_B}"}}}}\n')
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')

    def frame(psn, opcode=WRITE_MIDDLE):
        return frames.roce('192.0.2.1', '198.51.100.2', qp=0x77, psn=psn % 2**24, opcode=opcode, size=110, **A_TO_B)

    first = 2**24 - 50
    order = list(range(first + 1, first + 120))
    shuffled = sorted(order, key=lambda psn, r=random.Random(1): psn + r.uniform(0, 30))
    sender.send(frame(first, WRITE_FIRST))
    for psn in shuffled:
        sender.send(frame(psn))
    got = [psn_of(received) for received in receiver.collect(120)]
    check(got == [psn % 2**24 for psn in range(first, first + 120)], f'order {got}')
    for psn in (first + 121, first + 122):  # first + 120 is lost
        sender.send(frame(psn))
    got = [psn_of(received) for received in receiver.collect(2)]
    check(got == [(first + 121) % 2**24, (first + 122) % 2**24], f'behind the gap came {got}')
    counters = hosts.switch.get('/paths')['resequencer']
    check(counters['timed_out'] >= 1 and counters['held'] > 40, f'counters {counters}')
    check(not hosts.drops(), f'drops {hosts.drops()}')
