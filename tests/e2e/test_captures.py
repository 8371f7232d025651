"""Real RoCEv2 captures through pcap ports: every byte that comes out is known beforehand."""
import collections
import pathlib

import frames
from frames import flow, forwarded, ip_offset
from harness import check, limit, need_tools
from hosts import ROUTER_A, ROUTER_B, switch_section
from icrc import icrc_is_right
from pcap_ports import pcap_port, through
from switch import nonzero

CAPTURES = pathlib.Path(__file__).resolve().parent.parent / 'captures'
NEXT_A, NEXT_B = '02:00:00:00:0a:01', '02:00:00:00:0b:01'


def order_key(frame):
    """What must keep its order: a flow in one traffic class."""
    at, _ = ip_offset(frame)
    dscp = frame[at + 1] >> 2 if frame[at] >> 4 == 4 else int.from_bytes(frame[at:at + 2], 'big') >> 6 & 0x3F
    return flow(frame), dscp


def by_flow(some_frames):
    flows = collections.defaultdict(list)
    for frame in some_frames:
        flows[order_key(frame)].append(frame)
    return flows


def all_captures():
    paths = sorted(CAPTURES.glob('rxe-*.pcap'))
    check(len(paths) >= 10, f'only {len(paths)} captures in {CAPTURES}')
    return [frame for path in paths for frame in frames.read_pcap(path)]


def capture_switch(scene):
    """One input port, two output ports: frames to A leave by `a`, those to B by `b`. (configuration, sinks)"""
    source, sinks = scene.dir / 'in.pcap', [scene.dir / 'a.pcap', scene.dir / 'b.pcap']
    frames.write_pcap(source, all_captures())
    via_a, via_b = f'{{port: a, mac: "{NEXT_A}"}}', f'{{port: b, mac: "{NEXT_B}"}}'
    configuration = (
        switch_section() + 'ports:\n' + pcap_port('in', 0, 'any', source=source) +
        pcap_port('a', 1, f'"{ROUTER_A}"', sink=sinks[0]) + pcap_port('b', 2, f'"{ROUTER_B}"', sink=sinks[1]) +
        'routes:\n' + ''.join(f'  - {{prefix: "{prefix}", via: {via}}}\n' for prefix, via in (
            ('192.0.2.1/32', via_a), ('192.0.2.2/32', via_b), ('2001:db8::1/128', via_a), ('2001:db8::2/128', via_b))))
    return source, configuration, sinks


def test_every_byte_of_every_capture(scene):
    """All captures pass: TTL-1, MACs, checksum anew, nothing lost, nothing else changed, per-flow order kept."""
    source, configuration, sinks = capture_switch(scene)
    summary, outputs = through(scene, source, configuration, sinks)
    sent = frames.read_pcap(source)
    for name, got, target, smac, dmac in (('a', outputs[0], ('192.0.2.1', '2001:db8::1'), ROUTER_A, NEXT_A),
                                          ('b', outputs[1], ('192.0.2.2', '2001:db8::2'), ROUTER_B, NEXT_B)):
        want = [forwarded(frame, smac=smac, dmac=dmac) for frame in sent if flow(frame)[1] in target]
        check(len(got) == len(want), f'port {name}: {len(got)} frames came out, {len(want)} should; '
              f'drops {nonzero(summary["drops"])}')
        expected, actual = by_flow(want), by_flow(got)
        for key, wanted in expected.items():
            check(actual[key] == wanted, first_difference(name, key, wanted, actual[key]))
    counters = {port['name']: port for port in summary['ports']}
    check(counters['in']['rx_packets'] == len(sent), f'rx_packets of in is {counters["in"]["rx_packets"]}')
    check(counters['in']['rx_bytes'] == sum(map(len, sent)), f'rx_bytes of in is {counters["in"]["rx_bytes"]}')
    for name, got in zip('ab', outputs):
        check(counters[name]['tx_packets'] == len(got), f'tx_packets of {name} is {counters[name]["tx_packets"]}')
        check(counters[name]['tx_bytes'] == sum(map(len, got)), f'tx_bytes of {name} is {counters[name]["tx_bytes"]}')


def first_difference(name, key, wanted, got):
    for number, (want, have) in enumerate(zip(wanted, got)):
        if want != have:
            at = next((i for i, (x, y) in enumerate(zip(want, have)) if x != y), min(len(want), len(have)))
            return (f'port {name}, flow {key}, frame {number}: differs from byte {at} (length {len(have)}, should be '
                    f'{len(want)}): {have[at:at + 16].hex()} should be {want[at:at + 16].hex()}')
    return f'port {name}, flow {key}: {len(got)} frames, should be {len(wanted)}'


def test_outputs_hold_up_in_tshark(scene):
    """tshark decodes the output: IPv4 checksums good, TTL or hop limit 63, BTH opcodes as sent, nothing malformed."""
    need_tools('tshark')
    source, configuration, sinks = capture_switch(scene)
    through(scene, source, configuration, sinks)
    sent = collections.Counter(opcode for opcode, *_ in tshark_fields(scene, source))
    got = collections.Counter()
    for sink in sinks:
        for opcode, status, ttl, hops in tshark_fields(scene, sink):
            got[opcode] += 1
            check((status, ttl, hops) in (('1', '63', ''), ('', '', '63')),
                  f'{sink.name}: checksum status {status!r}, TTL {ttl!r}, hop limit {hops!r}')
        malformed = scene.run('tshark', '-n', '-r', sink, '--disable-protocol', 'rpcordma', '-Y', '_ws.malformed')
        check(not malformed, f'tshark calls frames of {sink.name} malformed: {malformed[:200]}')
    check(got == sent, f'BTH opcodes that came out {dict(got)} are not those that went in {dict(sent)}')


def tshark_fields(scene, path):
    """[(BTH opcode, IPv4 checksum status, TTL, hop limit)] of a capture. Status 1 is good."""
    fields = ('infiniband.bth.opcode', 'ip.checksum.status', 'ip.ttl', 'ipv6.hlim')
    text = scene.run('tshark', '-n', '-r', path, '--disable-protocol', 'rpcordma', '-o', 'ip.check_checksum:TRUE',
                     '-T', 'fields', '-E', 'separator=,', *(word for field in fields for word in ('-e', field)))
    return [tuple(line.split(',')) for line in text.splitlines()]


@limit(90)
def test_outputs_hold_up_in_scapy(scene):
    """scapy, from its own code, computes the IPv4 checksum and the ICRC that the output frames carry."""
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether
    source, configuration, sinks = capture_switch(scene)
    _, outputs = through(scene, source, configuration, sinks)
    checked = 0
    for frame in (frame for output in outputs for frame in output):
        check(icrc_is_right(frame), f'wrong ICRC: {frame[:80].hex()}')
        packet = Ether(frame)
        if IP not in packet:
            continue
        header = IP(frame[14:34])
        del header.chksum
        computed = IP(bytes(header)).chksum
        check(computed == packet[IP].chksum, f'IPv4 checksum {packet[IP].chksum:#x}, scapy says {computed:#x}')
        check(packet[BTH].compute_icrc(None) == frame[-4:], f'scapy computes another ICRC than {frame[-4:].hex()}')
        checked += 1
    check(checked > 500, f'only {checked} frames came out')


def test_ecmp_keeps_flows_together(scene):
    """Four uplinks: each flow of the captures takes one of them, whole and in order, and all four are used."""
    source, sinks = scene.dir / 'in.pcap', [scene.dir / f'up{i}.pcap' for i in range(4)]
    # 64 flows that differ in the queue pair only, as when all pairs share one source port, between the real ones.
    stream = [frames.roce('192.0.2.1', '192.0.2.2', smac=NEXT_A, dmac=ROUTER_A, sport=0xC000, qp=0x100 + number % 64,
                          psn=number // 64, size=90) for number in range(640)]
    sent = [frame for pair in zip(stream, all_captures()) for frame in pair]
    frames.write_pcap(source, sent)
    members = ', '.join(f'{{port: up{i}, mac: "02:00:00:00:0c:0{i}"}}' for i in range(4))
    configuration = (
        switch_section() + 'ports:\n' + pcap_port('in', 0, 'any', source=source) +
        ''.join(pcap_port(f'up{i}', i + 1, f'"02:00:00:00:00:e{i}"', sink=sinks[i]) for i in range(4)) +
        f'groups:\n  - {{name: up, scheduler: ecmp, members: [{members}]}}\n'
        'routes:\n  - {prefix: 0.0.0.0/0, via: up}\n  - {prefix: "::/0", via: up}\n')
    summary, outputs = through(scene, source, configuration, sinks)
    want, homes, seen = by_flow(sent), collections.defaultdict(set), 0
    for number, output in enumerate(outputs):
        check(output, f'uplink {number} carried nothing')
        for key, got in by_flow(output).items():
            homes[key[0]].add(number)
            wanted = [forwarded(frame, smac=f'02:00:00:00:00:e{number}', dmac=f'02:00:00:00:0c:0{number}')
                      for frame in want[key]]
            check(got == wanted, first_difference(f'up{number}', key, wanted, got))
            seen += len(got)
    check(seen == len(sent), f'{len(sent) - seen} of {len(sent)} frames lost; drops {nonzero(summary["drops"])}')
    split = {key: ports for key, ports in homes.items() if len(ports) > 1}
    check(not split, f'flows on more than one uplink: {split}')
