"""What a newcomer meets: the demo, the live view, and one clear line for each thing done wrong."""
import os
import pathlib
import re
import signal
import subprocess

import frames
from harness import check, limit, need_root, need_tools, wait_for
from hosts import switch_section
from pcap_ports import pcap_port
from switch import Switch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAPTURES = ROOT / 'tests' / 'captures'
NOBODY = 65534


# The demo of ./scripts/run

@limit(120)
def test_demo_leaf_forwards_everything(scene):
    """scripts/demo-leaf: every captured frame comes out right, 64 flows are spread, nothing is lost, exit 0."""
    text = scene.run(ROOT / 'scripts' / 'demo-leaf', '--heddle', scene.heddle, '--seconds', 2, timeout=100)
    sent = sum(len(frames.read_pcap(path)) for path in CAPTURES.glob('*.pcap'))
    check(f'{sent} of {sent} frames forwarded, nothing lost' in text, text)
    flows = re.search(r'spread +((?:\d+ ){4})of 64 flows', text)
    check(flows and sum(map(int, flows[1].split())) == 64, f'64 flows are not spread over four uplinks:\n{text}')
    check(re.search(r'throughput +\d+\.\d+ Mpps', text) and re.search(r'cost +\d+ TSC cycles', text), text)
    check(re.search(r'drops +none', text), text)


@limit(90)
def test_demo_leaf_ends_on_ctrl_c(scene):
    """Ctrl-C in the middle of the demo: exit 130, no switch left running, no file left behind."""
    demo = scene.start('demo', ROOT / 'scripts' / 'demo-leaf', '--heddle', scene.heddle, '--seconds', 50,
                       env={'TMPDIR': str(scene.dir), 'PYTHONUNBUFFERED': '1'})
    wait_for(lambda: re.search(r'^ +1 s ', demo.out(), re.M) or demo.exit_code() is not None, 'the first second', 60)
    demo.signal(signal.SIGINT)
    code = demo.wait(8)
    check(code == 130, f'left with {code}: {demo.text()[-600:]}')
    left = [str(path) for path in scene.dir.glob('heddle-demo-*')]
    check(not left, f'left behind: {left}')
    check(not processes_naming(scene.dir), f'still running: {processes_naming(scene.dir)}')


def processes_naming(directory):
    """Command lines of the heddle processes that have something in this folder."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            words = path.read_bytes().decode(errors='replace').split('\0')
        except OSError:
            continue
        if 'run' in words and any(str(directory) in word for word in words[1:]):
            found.append(' '.join(words))
    return found


# heddle top

def endless_switch(scene):
    """A switch that never lacks packets. How fast it ends is test_lifecycle's matter; here the scene ends it."""
    ports = pcap_port('in', 0, 'any', source=f'{CAPTURES / "rxe-multiqp-write.pcap"},infinite_rx=1')
    null = ''.join(f'  - {{name: up{i}, device: "net_null{i},no-rx=1", mac: "02:00:00:00:00:e{i}", rate: 10G}}\n'
                   for i in range(2))
    members = ', '.join(f'{{port: up{i}, mac: "02:00:00:00:0c:0{i}"}}' for i in range(2))
    return Switch(scene, switch_section() + 'ports:\n' + ports + null +
                  f'groups:\n  - {{name: up, members: [{members}]}}\nroutes:\n  - {{prefix: 0.0.0.0/0, via: up}}\n')


def test_top_prints_a_line_per_interval(scene):
    """`heddle top` away from a terminal: a line per interval with rates and shares, and an end after --count."""
    switch = endless_switch(scene)
    lines = scene.run(scene.heddle, 'top', '--socket', switch.socket_path, '--interval', '300ms', '--count',
                      3).splitlines()
    check(len(lines) == 3, f'{len(lines)} lines: {lines}')
    for line in lines:
        match = re.search(r'rx (\S+) pps .* busy (\d+)% +up: up0 (\S+)% up1 (\S+)%', line)
        check(match, f'not a line of top: {line}')
        check(match[1] != '0' and abs(float(match[3]) + float(match[4]) - 100) < 0.2, line)


def test_top_ends_with_ctrl_c_and_with_its_switch(scene):
    """Ctrl-C ends `heddle top` with 0; the end of the switch ends it with 1 and one line."""
    switch = endless_switch(scene)
    words = (scene.heddle, 'top', '--socket', switch.socket_path, '--interval', '200ms')
    first, second = scene.start('first', *words), scene.start('second', *words)
    wait_for(lambda: first.out() and second.out(), 'both to print', 10)
    first.signal(signal.SIGINT)
    check(first.wait(8) == 0, f'SIGINT: {first.text()[-300:]}')
    switch.process.signal(signal.SIGTERM)
    check(second.wait(20) == 1 and second.err().count('\n') == 1, f'the switch ended: {second.text()[-300:]}')


# Things done wrong

def refusal(scene, *arguments, status, wrapper=()):
    """The one line that heddle prints on standard error before it leaves with `status`."""
    done = subprocess.run([*map(str, wrapper), str(scene.heddle), *map(str, arguments)], capture_output=True, text=True,
                          timeout=30, stdin=subprocess.DEVNULL)
    what = f'heddle {" ".join(map(str, arguments))}: exit {done.returncode}, {done.stderr!r}'
    check(done.returncode == status, what)
    lines = [line for line in done.stderr.splitlines() if ': warning: ' not in line]
    check(len(lines) == 1 and lines[0].startswith('heddle: ') and not done.stdout, what)
    return lines[0]


def test_command_lines_that_are_wrong(scene):
    """No command, an unknown one, a missing or unknown argument: one line that names what is accepted, exit 2."""
    for arguments, words in (((), 'see heddle --help'), (('runn',), "found 'runn'; accepted: a command (run, "),
                             (('--fast',), "found '--fast'"), (('run',), 'see heddle run --help'),
                             (('show', 'everything'), 'see heddle show --help'),
                             (('run', 'x.yaml', '--fast'), '--fast'), (('top', '--interval', 'soon'), "found 'soon'"),
                             (('check', 'missing.yaml'), 'found no such file')):
        line = refusal(scene, *arguments, status=2)
        check(words in line, f'{arguments}: {line!r} lacks {words!r}')


def test_every_command_has_help_with_an_example(scene):
    """`heddle --help` names every command, and each of their --help has an example."""
    commands = re.findall(r'^  ([a-z]+) {3,}\S', scene.run(scene.heddle, '--help').partition('Subcommands:')[2], re.M)
    check({'run', 'check', 'show', 'top'} <= set(commands), f'commands: {commands}')
    for command in commands:
        check('Example: heddle ' + command in scene.run(scene.heddle, command, '--help'), f'{command} has no example')


def test_captures_of_the_wrong_kind(scene):
    """A capture that is missing, no capture, or not of Ethernet: file, line and what is accepted, exit 2."""
    text, raw = scene.dir / 'text.pcap', scene.dir / 'raw.pcap'
    text.write_text('not a capture, but long enough to be one')
    frames.write_pcap(raw, [bytes(60)])
    data = bytearray(raw.read_bytes())
    data[20] = 101  # the link type of bare IP packets
    raw.write_bytes(data)
    path = scene.dir / 'wrong.yaml'
    for source, words in ((scene.dir / 'missing.pcap', 'No such file'), (text, 'found a file of another kind'),
                          (raw, 'found frames of link type 101 (raw IP)')):
        path.write_text('switch: {control: none}\nports:\n' + pcap_port('in', 0, 'any', source=source))
        line = refusal(scene, 'run', path, status=2)
        check(f'{path}:3: port in: rx_pcap={source}: {words}' in line, line)


def test_two_switches_with_one_control_socket(scene):
    """The second of two switches with the same control socket does not start, and the first goes on."""
    switch = endless_switch(scene)
    done = subprocess.run([str(scene.heddle), 'run', str(switch.configuration_path)], capture_output=True, text=True,
                          timeout=30, stdin=subprocess.DEVNULL)
    check(done.returncode == 1 and f'control socket {switch.socket_path}: another process serves it' in done.stderr,
          f'exit {done.returncode}: {done.stderr}')
    check(switch.ports()['in']['rx_packets'] > 0, 'the first no longer answers')


def test_without_root(scene):
    """A user who is not root runs a switch on pcap ports; an af_packet port is refused in one line that says why."""
    need_root()
    need_tools('setpriv')
    drop = ('setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups')
    os.chmod(scene.dir, 0o777)
    sink, path = scene.dir / 'out.pcap', scene.dir / 'user.yaml'
    source = scene.dir / 'in.pcap'
    source.write_bytes((CAPTURES / 'rxe-rc-send.pcap').read_bytes())
    path.write_text(switch_section().replace('{control}', str(scene.dir / 'user.sock')) + 'ports:\n' +
                    pcap_port('in', 0, 'any', source=source) + pcap_port('out', 1, 'any', sink=sink) +
                    'routes:\n  - {prefix: 0.0.0.0/0, via: {port: out, mac: "02:00:00:00:0a:01"}}\n')
    scene.run(*drop, scene.heddle, 'run', path, '--until-idle', '300ms', timeout=40)
    check(len(frames.read_pcap(sink)) == len(frames.read_pcap(source)), 'not all frames came out')
    path.write_text('switch: {control: none}\nports:\n  - {name: a, device: "net_af_packet0,iface=lo", mac: any}\n')
    line = refusal(scene, 'run', path, status=1, wrapper=drop)
    check('net_af_packet ports need root' in line, line)
