"""How a switch starts, ends, and survives what happens around it."""
import json
import os
import pathlib
import shutil
import signal
import stat
import time

import frames
from harness import check, limit, need_root, need_tools, wait_for
from hosts import IP_A, IP_B, MAC_A, MAC_B, ROUTER_A, ROUTER_B, TWO_SUBNETS, TwoHosts, af_packet, switch_section
from pcap_ports import pcap_port
from stream import Stream
from switch import STOP_SECONDS, Switch, nonzero

A_TO_B = {'smac': MAC_A, 'dmac': ROUTER_A}
NULL_PORTS = '''ports:
  - {name: a, device: "net_null0,no-rx=1", mac: "02:00:00:00:00:f1", rate: 10G, link_state: always-up}
  - {name: b, device: "net_null1,no-rx=1", mac: "02:00:00:00:00:f2", rate: 10G, link_state: always-up}
'''
ONE_ROUTE = 'routes:\n  - {prefix: 198.51.100.0/24, via: {port: b, mac: "02:00:00:00:00:0b"}}\n'


# Ends

def end_under_load(scene, number):
    hosts = TwoHosts(scene, addresses=False)
    ports = 'ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) + af_packet('b', 1, 'veth-b', ROUTER_B)
    hosts.with_veth(switch_section(max_routes=100_000) + ports + TWO_SUBNETS)  # tables of full size
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    templates = [frames.roce(IP_A, IP_B, qp=0x100 + qp, size=200, **A_TO_B) for qp in range(8)]
    with Stream(sender, templates) as stream:
        wait_for(lambda: stream.total() > 3000, 'traffic', 10)
        summary = hosts.switch.stop(number)
    got = receiver.collect(idle=0.3)
    counters = {port['name']: port for port in summary['ports']}
    check(counters['b']['tx_packets'] == len(got), f'{counters["b"]["tx_packets"]} frames counted, {len(got)} came')
    check(counters['a']['rx_packets'] == len(got) + sum(nonzero(summary['drops']).values()),
          f'{counters["a"]["rx_packets"]} received, {len(got)} sent, drops {nonzero(summary["drops"])}')
    table = hosts.switch.process.out()
    for word in ('a', 'b', str(len(got))):
        check(word in table.split(), f'the final table lacks {word!r}:\n{table}')


def test_sigterm_under_load(scene):
    """SIGTERM under load: exit 0 within 2 s, final counters as a table and as JSON, every received frame accounted for."""
    end_under_load(scene, signal.SIGTERM)


def test_sigint_under_load(scene):
    """SIGINT under load ends it the same way."""
    end_under_load(scene, signal.SIGINT)


def test_sigterm_with_slow_port(scene):
    """Queues that a slow port cannot empty in time do not hold up the end: the rest is the drop `shutdown`."""
    hosts = TwoHosts(scene, addresses=False)
    ports = 'ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) + af_packet('b', 1, 'veth-b', ROUTER_B, rate='1M')
    hosts.with_veth(switch_section() + ports + TWO_SUBNETS)
    sender = hosts.a.port('eth0')
    for number in range(500):  # 4.4 s at 1 Mbit/s
        sender.send(frames.roce(IP_A, IP_B, psn=number, **A_TO_B))
    wait_for(lambda: hosts.switch.ports()['a']['rx_packets'] == 500, 'all frames to be received')
    summary = hosts.switch.stop()
    drops = nonzero(summary['drops'])
    check(drops.get('shutdown', 0) > 0, f'1 Mbit/s sent 500 frames of 1086 bytes in no time: drops {drops}')
    counters = {port['name']: port for port in summary['ports']}
    check(counters['b']['tx_packets'] + sum(drops.values()) == 500, f'{counters["b"]["tx_packets"]} sent, drops {drops}')


def test_ends_by_itself(scene):
    """`--for 2s` ends the run after two seconds with exit code 0."""
    switch = Switch(scene, switch_section() + NULL_PORTS + ONE_ROUTE, arguments=('--for', '2s'))
    begun = time.monotonic()
    switch.wait(6)
    took = time.monotonic() - begun
    check(1.8 < took < 2 + STOP_SECONDS, f'it ran {took:.1f} s')


def test_signal_during_start(scene):
    """SIGTERM while the switch still starts ends it, with exit code 0 once its handler is in place."""
    for delay in (0.05, 0.2, 0.5):
        switch = Switch(scene, switch_section() + NULL_PORTS + ONE_ROUTE, name=f'early{delay}', wait=False)
        time.sleep(delay)
        switch.process.signal(signal.SIGTERM)
        code = switch.process.wait(20)
        # Before the handler is in place the signal simply ends the process, as with any program.
        check(code in (0, -signal.SIGTERM), f'{delay} s after its start, SIGTERM ended it with {code}')


# What may go wrong around it

def preload(scene, name, source):
    """The environment that puts C functions in front of a library's."""
    need_tools('cc')
    (scene.dir / f'{name}.c').write_text(source)
    scene.run('cc', '-shared', '-fPIC', '-o', scene.dir / f'{name}.so', scene.dir / f'{name}.c')
    return {'LD_PRELOAD': str(scene.dir / f'{name}.so')}


def watched_ports(scene, *, env, stderr=None):
    """A process that runs a switch without a control socket whose port a follows the loopback interface."""
    path = scene.dir / 'watched.yaml'
    path.write_text(switch_section(control='none') + NULL_PORTS.replace('always-up}', 'netlink, netdev: lo}', 1) + ONE_ROUTE)
    return scene.start('watched', 'sh', '-c', f'exec "$@" {"2>" + str(stderr) if stderr else ""}', 'sh', scene.heddle, 'run',
                       path, env=env)


def test_refused_netlink(scene):
    """Where netlink is refused, a switch that needs it says so in one line and leaves with 1, in good order."""
    refusal = preload(scene, 'refuse', 'struct nl_sock; int nl_connect(struct nl_sock *s, int p) { return -1; }\n')
    switch = watched_ports(scene, env=refusal)
    code = switch.wait(20)
    check(code == 1 and switch.err() == 'heddle: cannot follow link state: netlink refused the subscription\n',
          f'it left with {code}: {switch.text()}')


# The kernel's word on a link: up, and down once the file `down` exists; lo itself stays as it is. `looked` appears with
# the first answer, `noticed` with the second "down", when the notice of the first is out.
LINK_GOES_DOWN = """
#include <fcntl.h>
#include <unistd.h>
struct rtnl_link;
unsigned rtnl_link_get_flags(struct rtnl_link *link) {
  static int downs;
  close(creat("FOLDER/looked", 0600));
  if (access("FOLDER/down", F_OK) != 0) return 0x10001;
  if (++downs == 2) close(creat("FOLDER/noticed", 0600));
  return 0;
}
"""


def notice_that_nobody_reads(scene, place, go_away):
    """A link goes down when standard error, `place`, takes no more lines since `go_away`."""
    down, looked, noticed = (scene.dir / name for name in ('down', 'looked', 'noticed'))
    switch = watched_ports(scene, stderr=place,
                           env=preload(scene, 'links', LINK_GOES_DOWN.replace('FOLDER', str(scene.dir))))
    wait_for(looked.exists, 'the first look at the link', 20)
    go_away()
    down.touch()
    wait_for(lambda: noticed.exists() or switch.exit_code() is not None, 'the link to be seen down', 10)
    check(switch.exit_code() is None, f'it ended with {switch.exit_code()}')
    switch.signal(signal.SIGTERM)
    code = switch.wait(STOP_SECONDS)
    check(code == 0, f'SIGTERM ended it with {code}')


def test_notice_without_a_reader(scene):
    """Whoever read the remarks of a switch goes away: the next one is lost and the switch goes on."""
    pipe = scene.dir / 'pipe'
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    notice_that_nobody_reads(scene, pipe, lambda: os.close(reader))


def test_notice_on_a_full_disk(scene):
    """The disk of a switch's log is full: it goes on without one."""
    notice_that_nobody_reads(scene, '/dev/full', lambda: None)


def test_exit_status_with_a_full_disk(scene):
    """The exit status tells what went wrong even when the line that says it cannot be written."""
    for arguments, wanted in (((), 2), (('run', 'missing.yaml'), 2), (('show', 'ports', '--socket', 'none.sock'), 1)):
        command = scene.start('full', 'sh', '-c', 'exec "$@" 2>/dev/full', 'sh', scene.heddle, *arguments)
        code = command.wait(10)
        check(code == wanted, f'{arguments}: {code}')


# Control socket and instances

def test_control_socket(scene):
    """The control socket is a Unix socket of mode 0660; `heddle show` prints tables and JSON of what it answers."""
    hosts = TwoHosts(scene, addresses=False).with_veth()
    mode = os.stat(hosts.switch.socket_path).st_mode
    check(stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660, f'mode {stat.filemode(mode)}')
    hosts.a.port('eth0').send(frames.roce(IP_A, IP_B, **A_TO_B))
    wait_for(lambda: hosts.switch.ports()['b']['tx_packets'] == 1, 'one frame to be forwarded')
    for what, word in (('ports', ROUTER_A), ('routes', '198.51.100.0/24'), ('paths', MAC_B), ('queues', 'b'), ('drops', '')):
        answer = hosts.switch.get(f'/{what}')
        shown = json.loads(hosts.switch.show(what, '--json'))
        check(type(shown) is type(answer), f'show {what} --json prints a {type(shown).__name__}')
        table = hosts.switch.show(what)
        check(table.strip() and word in table, f'`heddle show {what}` lacks {word!r}:\n{table}')
    hosts.switch.stop()
    check(not hosts.switch.socket_path.exists(), 'the socket is still there after the end')


def test_show_without_switch(scene):
    """`heddle show` on a socket where nothing listens says so and exits 1."""
    show = scene.start('show', scene.heddle, 'show', 'ports', '--socket', scene.dir / 'none.sock')
    code = show.wait(10)
    check(code == 1, f'it ended with {code}')
    check('none.sock' in show.err() and show.err().count('\n') == 1, f'not one line that names the socket: {show.err()}')


def test_stale_socket_is_replaced(scene):
    """A control socket left by a killed switch does not keep the next one from starting at the same path."""
    configuration = switch_section() + NULL_PORTS + ONE_ROUTE
    first = Switch(scene, configuration)
    first.process.signal(signal.SIGKILL)
    first.process.wait(5)
    check(first.socket_path.exists(), 'SIGKILL should have left the socket')
    second = Switch(scene, configuration)
    check('b' in second.ports(), 'the second switch does not answer at the socket')
    second.stop()


def test_live_socket_is_left_alone(scene):
    """A second switch at the control socket of a running one refuses to start, and the first goes on."""
    configuration = switch_section() + NULL_PORTS + ONE_ROUTE
    first = Switch(scene, configuration)
    shutil.copy(first.configuration_path, scene.dir / 'second.yaml')
    second = scene.start('second', scene.heddle, 'run', scene.dir / 'second.yaml')
    code = second.wait(20)
    check(code == 1, f'the second switch ended with {code}: {second.err()}')
    check(str(first.socket_path) in second.err(), f'its message does not name the socket: {second.err()}')
    check('a' in first.ports(), 'the first switch no longer answers')
    first.stop()


def test_regular_file_at_socket_path(scene):
    """A file that is no socket at the control path is not deleted: the switch refuses to start."""
    precious = scene.dir / 'heddle.sock'
    precious.write_text('mine')
    switch = Switch(scene, switch_section() + NULL_PORTS + ONE_ROUTE, wait=False)
    code = switch.process.wait(20)
    check(code in (1, 2), f'it ended with {code}')
    check(precious.read_text() == 'mine', 'the file was touched')


@limit(90)
def test_two_side_by_side(scene):
    """Two switches on one machine, each with ports of the same device names, do not disturb each other."""
    worlds = []
    for name in ('first', 'second'):
        host_a, host_b, middle = (scene.namespace(f'{name[0]}{end}') for end in ('a', 'b', 'm'))
        host_a.veth('eth0', middle, 'veth-a', mac=MAC_A)
        host_b.veth('eth0', middle, 'veth-b', mac=MAC_B)
        ports = 'ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) + af_packet('b', 1, 'veth-b', ROUTER_B)
        worlds.append((Switch(scene, switch_section(name) + ports + TWO_SUBNETS, name=name, namespace=middle),
                       host_a.port('eth0'), host_b.port('eth0')))
    for count, (switch, sender, receiver) in enumerate(worlds, 5):
        for number in range(count):
            sender.send(frames.roce(IP_A, IP_B, psn=number, **A_TO_B))
        check(len(receiver.collect(count)) == count, 'frames lost')
        check(switch.ports()['b']['tx_packets'] == count, f'it counts {switch.ports()["b"]["tx_packets"]}, not {count}')
    worlds[0][0].stop()
    _, sender, receiver = worlds[1]
    sender.send(frames.roce(IP_A, IP_B, **A_TO_B))
    check(len(receiver.collect(1)) == 1, 'the second switch stopped with the first')
    worlds[1][0].stop()


def test_without_root(scene):
    """As user nobody, without hugepages, pcap ports forward and the control socket answers."""
    need_root()  # to become nobody
    need_tools('setpriv')
    binary, home = scene.dir / 'heddle', scene.dir / 'home'
    shutil.copy(scene.heddle, binary)  # the build folder may be closed to others
    binary.chmod(0o755)
    home.mkdir()
    for path in (scene.dir, home):
        shutil.chown(path, 'nobody')
    source, sink = scene.dir / 'in.pcap', home / 'out.pcap'
    frames.write_pcap(source, [frames.roce(IP_A, IP_B, psn=number, **A_TO_B) for number in range(50)])
    ports = 'ports:\n' + pcap_port('in', 0, f'"{ROUTER_A}"', source=source) + pcap_port('b', 1, f'"{ROUTER_B}"', sink=sink)
    switch = Switch(scene, switch_section() + ports + ONE_ROUTE, binary=binary, env={'HOME': str(home)},
                    wrapper=('setpriv', '--reuid', 'nobody', '--regid', 'nogroup', '--clear-groups'))
    status = pathlib.Path(f'/proc/{switch.process.pid}/status').read_text()
    check('\nUid:\t65534\t' in status, 'it does not run as nobody')
    wait_for(lambda: switch.ports()['b']['tx_packets'] == 50, '50 frames to be forwarded')
    switch.stop()
    check(len(frames.read_pcap(sink)) == 50, f'{len(frames.read_pcap(sink))} of 50 frames in the output')
