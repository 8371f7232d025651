"""The PFC watchdog on real ports: a host that pauses its port for ever costs its own traffic, and nobody else's.

    host A ── a ┌ switch ┐ b ── host B   scapy's PFC frames, without end
                └────────┘ c ── host C
"""
import threading

import frames
from frames import SMALL_ROCE
from harness import check, limit, need_root, wait_for
from hosts import IP_A, IP_B, MAC_A, MAC_B, ROUTER_A, ROUTER_B, af_packet, routes, switch_section
from switch import Switch

MAC_C, ROUTER_C, IP_C = '02:00:00:00:00:0c', '02:00:00:00:00:f5', '203.0.113.3'
CLASS = 3
FRAMES = 20


class PauseStorm:
    """Sends PFC frames with the longest pause, 335 ms at 100 Mbit/s, every 20 ms until it is stopped."""

    def __init__(self, port):
        self._port = port
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        frame = pfc(0xffff)
        while not self._end.wait(0.02):
            self._port.send(frame)

    def stop(self):
        self._end.set()
        self._thread.join()


def pfc(quanta):
    """A PFC frame for class 3, as scapy makes it."""
    from scapy.contrib.mac_control import MACControlClassBasedFlowControl
    from scapy.layers.l2 import Ether
    frame = bytes(Ether(src=MAC_B, dst='01:80:c2:00:00:01') /
                  MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=quanta))
    return frame.ljust(60, b'\0')


class ThreeHosts:
    def __init__(self, scene, watchdog):
        need_root()
        hosts = [scene.namespace(name) for name in 'abc']
        middle = scene.namespace('sw')
        for host, name, mac in zip(hosts, 'abc', (MAC_A, MAC_B, MAC_C)):
            host.veth('eth0', middle, f'veth-{name}', mac=mac)
        self.switch = Switch(
            scene, switch_section() + 'ports:\n' +
            ''.join(af_packet(name, index, f'veth-{name}', mac, rate='100M')
                    for index, (name, mac) in enumerate(zip('abc', (ROUTER_A, ROUTER_B, ROUTER_C)))) +
            routes(('198.51.100.0/24', 'b', MAC_B), ('203.0.113.0/24', 'c', MAC_C)) +
            'buffer: {size: 8MB, packets: 4096}\n'
            f'classes: {{queues: {{{CLASS}: {{lossless: true, shared: 1MB}}}}}}\n'
            f'watchdog: {watchdog}\n', namespace=middle)
        self.a, self.b, self.c = (host.port('eth0') for host in hosts)

    def send(self, target):
        template = frames.roce(IP_A, target, qp=0x11, size=SMALL_ROCE, smac=MAC_A, dmac=ROUTER_A)
        for number in range(FRAMES):
            self.a.send(frames.with_psn(template, number))

    def row(self, view, port):
        return next(row for row in self.switch.get(f'/{view}')[view] if row['port'] == port and row['class'] == CLASS)

    def charged_groups(self):
        groups = self.switch.get('/buffer?all=1')['buffer']['groups']
        return [group for group in groups if group['reserved'] + group['shared'] + group['headroom']]

    def wait_for_state(self, state):
        wait_for(lambda: self.row('watchdog', 'b')['state'] == state, f'port b to be {state}', 10.0)

    def check_c_receives(self, why):
        self.send(IP_C)
        got = self.c.collect(FRAMES, idle=3.0)
        check(len(got) == FRAMES, f'{why}: {len(got)} of {FRAMES} frames reached C; {self.switch.drops()}')


@limit(90)
def test_drops_what_a_storm_holds(scene):
    """Port b is paused for ever: its queue is dropped, port c goes on, and b is restored when the storm ends."""
    hosts = ThreeHosts(scene, '{detect: 200ms, restore: 200ms}')
    storm = PauseStorm(hosts.b)
    wait_for(lambda: hosts.row('pfc', 'b')['paused'], 'port b to be paused')
    hosts.send(IP_B)
    hosts.wait_for_state('stormed')
    wait_for(lambda: hosts.switch.drops().get('pfc_storm') == FRAMES, f'what waited at b to be dropped')
    hosts.send(IP_B)
    wait_for(lambda: hosts.row('watchdog', 'b')['dropped'] == 2 * FRAMES, 'what comes to be dropped')
    check(hosts.switch.drops() == {'pfc_storm': 2 * FRAMES}, f'{hosts.switch.drops()}')
    hosts.check_c_receives('beside the storm')
    wait_for(lambda: not hosts.charged_groups(), 'the buffer to be charged for nothing that was dropped or sent')
    check(hosts.row('pfc', 'a')['tx_pause'] == 0, 'nobody had to pause host A')
    check(not hosts.b.collect(idle=0.2), 'something left port b')

    storm.stop()
    hosts.wait_for_state('operational')
    hosts.send(IP_B)
    got = hosts.b.collect(FRAMES, idle=3.0)
    check(len(got) == FRAMES, f'{len(got)} of {FRAMES} frames after the storm; {hosts.switch.drops()}')
    rows = {row['port']: row for row in hosts.switch.get('/watchdog')['watchdog']}
    check((rows['b']['storms'], rows['b']['restores']) == (1, 1), f'{rows["b"]}')
    check(all(rows[port]['storms'] == 0 for port in 'ac'), f'{rows}')
    wait_for(lambda: len(hosts.switch.get('/watchdog')['events']) == 2, 'both events')
    events = hosts.switch.get('/watchdog')['events']
    check([(event['port'], event['event']) for event in events] == [('b', 'storm'), ('b', 'restored')], f'{events}')
    page = hosts.switch.show('watchdog')
    check('operational' in page and 'b class 3: storm' in page, page)
    log = hosts.switch.process.err()
    check('port b class 3: PFC storm, its packets are dropped' in log and 'PFC storm is over' in log, log)


@limit(60)
def test_forward_ignores_the_pause(scene):
    """With `forward` the same storm costs nothing but the time until it is found; XON frames end a pause all the while."""
    hosts = ThreeHosts(scene, '{detect: 100ms, restore: 100ms, action: forward}')
    storm = PauseStorm(hosts.b)
    wait_for(lambda: hosts.row('pfc', 'b')['paused'], 'port b to be paused')
    hosts.send(IP_B)
    got = hosts.b.collect(FRAMES, idle=5.0)
    check(len(got) == FRAMES, f'{len(got)} of {FRAMES} frames in spite of the pause; {hosts.switch.drops()}')
    check(hosts.row('watchdog', 'b')['state'] == 'stormed', 'the storm goes on')
    hosts.check_c_receives('beside the storm')
    check(not hosts.switch.drops(), f'{hosts.switch.drops()}')
    storm.stop()
    hosts.b.send(pfc(0))
    hosts.wait_for_state('operational')
