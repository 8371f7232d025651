"""Priority-based flow control between two switches: nothing is lost on the way to a slow port, and the frames that see
to that are what a foreign decoder says they are.

    host A ── a ┌ up ┐ x ────── y ┌ down ┐ b ── host B        b sends at 20 Mbit/s, the link between x and y at 100
"""
import collections
import time

import frames
from frames import SMALL_ROCE, forwarded
from harness import check, limit, need_tools, wait_for
from hosts import IP_A, IP_B, MAC_A, MAC_B, ROUTER_A, ROUTER_B, af_packet, routes, switch_section
from switch import Switch

MAC_X, MAC_Y = '02:00:00:00:00:f3', '02:00:00:00:00:f4'
QUANTA = 20_000  # of 5.12 us at 100 Mbit/s
PAUSE_SECONDS = QUANTA * 512 / 100e6  # repeated at half of it; long enough for a machine that is busy with other things
SLOW = '20M'
FRAMES = 2500  # of 1086 bytes: more than a second at 20 Mbit/s


class TwoSwitches:
    """The chain above, with both switches running; the raw ports of the hosts are `sender` and `receiver`."""

    def __init__(self, scene, *, headroom='1500kB', force=False):
        a, b = scene.namespace('a'), scene.namespace('b')
        up, down = scene.namespace('up'), scene.namespace('down')
        a.veth('eth0', up, 'veth-a', mac=MAC_A)
        up.veth('veth-x', down, 'veth-y')
        b.veth('eth0', down, 'veth-b', mac=MAC_B)
        self.wire = up
        lossless = f'lossless: true, headroom: {headroom}, force: {"true" if force else "false"}'
        # A host's kernel does not obey pause frames: what it sends must fit into the first switch.
        self.up = Switch(scene, switch_section('up') + 'ports:\n' +
                         af_packet('a', 0, 'veth-a', ROUTER_A, more=', pfc: none') +
                         af_packet('x', 1, 'veth-x', MAC_X, rate='100M', more=f', pfc_quanta: {QUANTA}') +
                         routes(('198.51.100.0/24', 'x', MAC_Y)) +
                         'buffer: {size: 24MB, packets: 8192}\n'
                         'classes: {queues: {3: {lossless: true, shared: 20MB}}}\n', name='up', namespace=up)
        self.down = Switch(scene, switch_section('down') + 'ports:\n' +
                           af_packet('y', 0, 'veth-y', MAC_Y, rate='100M', more=f', pfc_quanta: {QUANTA}') +
                           af_packet('b', 1, 'veth-b', ROUTER_B, rate=SLOW) +
                           routes(('198.51.100.0/24', 'b', MAC_B)) +
                           'buffer: {size: 8MB, packets: 8192}\n'
                           f'classes: {{queues: {{3: {{{lossless}, shared: 100kB}}}}}}\n', name='down', namespace=down)
        self.sender, self.receiver = a.port('eth0'), b.port('eth0')

    def send(self, count):
        template = frames.roce(IP_A, IP_B, qp=0x11, size=SMALL_ROCE, smac=MAC_A, dmac=ROUTER_A)
        sent = [frames.with_psn(template, number) for number in range(count)]
        for number, frame in enumerate(sent):
            self.sender.send(frame)
            if number % 100 == 99:
                time.sleep(0.01)  # the kernel's ring towards the first switch is not endless
        return sent


def pfc_of(switch, port):
    """The row of `heddle show pfc` for class 3 of a port."""
    return next(row for row in switch.get('/pfc')['pfc'] if row['port'] == port and row['class'] == 3)


@limit(90)
def test_slow_port_pauses_the_sender(scene):
    """A port at 20 Mbit/s fills its switch: PFC frames pause the other switch, and every frame arrives, in order."""
    need_tools('tcpdump', 'tshark')
    chain = TwoSwitches(scene)
    capture = scene.dir / 'pfc.pcap'
    dump = chain.wire.start('tcpdump', 'tcpdump', '-i', 'veth-x', '-U', '--immediate-mode', '-w', capture,
                            'ether', 'proto', '0x8808')
    wait_for(lambda: 'listening' in dump.err(), 'tcpdump')
    sent = chain.send(FRAMES)
    got = chain.receiver.collect(FRAMES, idle=3.0)
    state = f'up {chain.up.drops()} {chain.up.get("/pfc")}, down {chain.down.drops()} {chain.down.get("/pfc")}'
    check(len(got) == FRAMES, f'{len(got)} of {FRAMES} frames arrived; {state}')
    for number, (have, want) in enumerate(zip(got, sent)):
        want = forwarded(forwarded(want, smac=MAC_X, dmac=MAC_Y), smac=ROUTER_B, dmac=MAC_B)
        check(have == want, f'frame {number}: {have[:64].hex()} should be {want[:64].hex()}')
    check(not chain.up.drops() and not chain.down.drops(), f'drops: {state}')

    wait_for(lambda: not pfc_of(chain.up, 'x')['paused'], 'the last pause to end')
    paused, pausing = pfc_of(chain.up, 'x'), pfc_of(chain.down, 'y')
    check(paused['rx_pause'] > 0 and paused['rx_resume'] > 0, f'the sender heard {paused}')
    check(paused['paused_us'] > 200_000, f'over a second at 20 Mbit/s, and paused for {paused["paused_us"]} us')
    check((paused['rx_pause'], paused['rx_resume']) == (pausing['tx_pause'], pausing['tx_resume']),
          f'sent {pausing}, heard {paused}')
    check(pfc_of(chain.up, 'a')['tx_pause'] == 0, 'port a does not do PFC')
    groups = {(row['port'], row['class']): row for row in chain.down.get('/buffer')['buffer']['groups']}
    held = groups['y', 3]
    check(held['peak_bytes'] > 100_000 and held['peak_headroom'] > 0, f'XOFF is at 100 kB: {held}')
    check(held['reserved'] + held['shared'] + held['headroom'] == 0, f'drained, and still charged: {held}')
    check(held['lossless_violations'] == 0, f'{held}')
    check('paused us' in chain.up.show('pfc') and 'lossless' in chain.down.show('buffer'), 'heddle show')

    wait_for(lambda: len(frames.read_pcap(capture)) >= pausing['tx_pause'] + pausing['tx_resume'], 'tcpdump to write')
    dump.signal(2)
    dump.wait(5)
    check_capture(scene, capture, pausing)


def check_capture(scene, capture, counted):
    """What tshark makes of the PFC frames on the wire, beside what the switch says it sent."""
    columns = ['eth.src', 'eth.dst', 'frame.len', 'macc.opcode', 'macc.cbfc.enbv', 'macc.cbfc.pause_time.c3',
               'macc.cbfc.enbv.not_zero', 'macc.dst_address_invalid', 'frame.time_relative']
    words = [word for column in columns for word in ('-e', column)]
    out = scene.run('tshark', '-r', capture, '-T', 'fields', *words, timeout=60)
    rows = [line.split('\t') for line in out.splitlines()]
    kinds = collections.Counter()
    for source, destination, length, opcode, enabled, quanta, reserved, invalid, _ in rows:
        check((source, destination, length) == (MAC_Y, '01:80:c2:00:00:01', '60'), f'{source} {destination} {length}')
        check(int(opcode, 0) == 0x0101 and int(enabled, 0) == 0x08, f'opcode {opcode}, classes {enabled}')
        check(not reserved and not invalid, f'tshark complains: {reserved} {invalid}')
        kinds[int(quanta, 0)] += 1
    check(kinds == {QUANTA: counted['tx_pause'], 0: counted['tx_resume']}, f'{kinds} on the wire, {counted}')
    # While the peer is told to wait it must hear so again before its pause runs out, a busy machine's scheduling aside.
    times = [(float(row[-1]), int(row[5], 0)) for row in rows]
    gaps = sorted(after - before for (before, quanta), (after, _) in zip(times, times[1:]) if quanta)
    check(gaps and gaps[len(gaps) // 2] < PAUSE_SECONDS, f'half of them were repeated after {gaps[len(gaps) // 2]} s')


@limit(90)
def test_too_little_headroom_is_counted(scene):
    """Without headroom (forced) the same stream loses frames, and every one is a counted violation."""
    chain = TwoSwitches(scene, headroom='0', force=True)
    chain.send(FRAMES)
    got = chain.receiver.collect(FRAMES, idle=3.0)
    lost = FRAMES - len(got)
    check(lost > 0, 'no headroom, and nothing was lost')
    check(chain.down.drops() == {'headroom_full': lost}, f'{lost} lost, {chain.down.drops()}')
    groups = {(row['port'], row['class']): row for row in chain.down.get('/buffer')['buffer']['groups']}
    check(groups['y', 3]['lossless_violations'] == lost, f'{lost} lost, {groups["y", 3]}')


def test_headroom_is_refused(scene):
    """Too little headroom stops the start with the calculation, pfc: ethdev with the reason."""
    def refused(configuration, *words):
        switch = Switch(scene, configuration, name='refused', wait=False)
        check(switch.process.wait(20) == 2, f'exit {switch.process.exit_code()}')
        for word in words:
            check(word in switch.process.err(), f'{word!r} is not in {switch.process.err()}')

    def configuration(port, queue):
        return (switch_section() + f'ports: [{{name: a, device: net_null0, rate: 10G{port}}}]\n'
                f'buffer: {{size: 4MB}}\nclasses: {{queues: {{3: {{lossless: true{queue}}}}}}}\n')
    refused(configuration('', ', headroom: 1kB'), 'headroom', 'burst in hand', 'pfc_reaction', 'force: true')
    refused(configuration(', pfc: ethdev', ''), "found pfc 'ethdev'", 'trust: pcp')
    refused(configuration(', pfc: ethdev, trust: pcp', ''), "found pfc 'ethdev'", 'net_null', 'neither PFC per queue nor DCB')
