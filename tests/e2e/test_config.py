"""Configuration errors: exit code 2 and one line that names file, line, what was found and what is accepted."""
import re

from harness import check

GOOD = '''switch:
  name: t0
  memory: anonymous
ports:
  - name: a
    device: "net_null0,no-rx=1"
    mac: "02:00:00:00:00:f1"
    rate: 10G
  - name: b
    device: "net_null1,no-rx=1"
    mac: "02:00:00:00:00:f2"
    rate: 10G
groups:
  - name: up
    scheduler: ecmp
    members:
      - {port: a, mac: "02:00:00:00:0a:01"}
      - {port: b, mac: "02:00:00:00:0a:02"}
routes:
  - {prefix: 198.51.100.0/24, via: up}
  - {prefix: "2001:db8:2::/64", via: {port: b, mac: "02:00:00:00:00:0b"}}
'''

# (what is wrong, text to replace, replacement, line that must be named, words that must be in the message)
MISTAKES = [
    ('unknown key in switch', 'memory: anonymous', 'memmory: anonymous', 3, ['memmory', 'memory']),
    ('memory that does not exist', 'memory: anonymous', 'memory: hugepage', 3, ['hugepage', 'hugepages', 'anonymous']),
    ('unknown section', 'routes:', 'route:', 19, ['route', 'routes']),
    ('unknown key in a port', '    rate: 10G\n  - name: b', '    rates: 10G\n  - name: b', 8, ['rates', 'rate']),
    ('rate without a unit', '    rate: 10G\n  - name: b', '    rate: 10\n  - name: b', 8, ['10', '100G']),
    ('rate of zero', '    rate: 10G\n  - name: b', '    rate: 0G\n  - name: b', 8, ['0G']),
    ('MAC with too few bytes', '"02:00:00:00:00:f1"', '"02:00:00:00:f1"', 7, ['02:00:00:00:f1']),
    ('multicast router MAC', '"02:00:00:00:00:f1"', '"01:00:00:00:00:f1"', 7, ['01:00:00:00:00:f1']),
    ('two ports of one name', '  - name: b\n', '  - name: a\n', 9, ['a']),
    ('port without a device', '    device: "net_null0,no-rx=1"\n', '', 5, ['device']),
    ('scheduler that does not exist', 'scheduler: ecmp', 'scheduler: ecpm', 15, ['ecpm', 'ecmp']),
    ('member on an unknown port', '{port: a, mac: "02:00:00:00:0a:01"}', '{port: c, mac: "02:00:00:00:0a:01"}', 17, ['c']),
    ('member of weight zero', '"02:00:00:00:0a:02"}', '"02:00:00:00:0a:02", weight: 0}', 18, ['weight']),
    ('route to an unknown group', 'via: up', 'via: down', 20, ['down', 'up']),
    ('prefix longer than its address', '198.51.100.0/24', '198.51.100.0/33', 20, ['198.51.100.0/33']),
    ('prefix with host bits', '198.51.100.0/24', '198.51.100.7/24', 20, ['198.51.100.7/24']),
    ('the same prefix twice', '"2001:db8:2::/64"', '198.51.100.0/24', 21, ['198.51.100.0/24']),
    ('VLAN id out of range', 'via: {port: b, mac: "02:00:00:00:00:0b"}', 'via: {port: b, mac: "02:00:00:00:00:0b", vlan: 4095}',
     21, ['4095']),
    ('list where a map belongs', 'switch:\n  name: t0\n  memory: anonymous', 'switch: [t0]', 1, ['switch']),
    ('text that is no YAML', 'routes:\n', 'routes: [\n', None, []),
]


def run_to_end(scene, name, text, *, command='run', arguments=('--for', '100ms')):
    """(exit code, standard error) of a command on a configuration that is NAME.yaml."""
    path = scene.dir / f'{name}.yaml'
    path.write_text(text)
    process = scene.start(f'{name}-{command}', scene.heddle, command, path, *arguments)
    return process.wait(15), process.err()


def check_message(what, err, line, words):
    lines = err.strip().split('\n')
    check(len(lines) == 1, f'{what}: not one line but {len(lines)}: {err}')
    place = re.search(r'\.yaml:(\d+)', err)
    check(place, f'{what}: no file:line in {err}')
    check(line is None or int(place[1]) == line, f'{what}: names line {place[1]}, the mistake is in line {line}: {err}')
    for word in words:
        check(word in err, f'{what}: the message lacks {word!r}: {err}')


def test_mistakes_in_run(scene):
    """`heddle run` refuses each mistake with exit code 2 and a line that names file and line, before any port opens."""
    for number, (what, old, new, line, words) in enumerate(MISTAKES):
        check(old in GOOD, f'the table is wrong: {old!r} is not in the configuration')
        code, err = run_to_end(scene, f'bad{number}', GOOD.replace(old, new, 1))
        check(code == 2, f'{what}: exit code {code}: {err}')
        check_message(what, err, line, words)


def test_mistakes_in_check(scene):
    """`heddle check` says the same about each mistake, and accepts the configuration without one."""
    for number, (what, old, new, line, words) in enumerate(MISTAKES):
        code, err = run_to_end(scene, f'bad{number}', GOOD.replace(old, new, 1), command='check', arguments=())
        check(code == 2, f'{what}: exit code {code}: {err}')
        check_message(what, err, line, words)
    code, err = run_to_end(scene, 'good', GOOD, command='check', arguments=())
    check(code == 0, f'a good configuration: exit code {code}: {err}')


def test_good_one_runs(scene):
    """The configuration that the mistakes are made in does run: the test above fails for the mistake alone."""
    code, err = run_to_end(scene, 'good', GOOD)
    check(code == 0, f'exit code {code}: {err}')


def test_missing_file(scene):
    """A configuration that is not there is exit code 2 and one line with its name."""
    process = scene.start('missing', scene.heddle, 'run', scene.dir / 'nothing.yaml')
    code = process.wait(10)
    check(code == 2, f'exit code {code}')
    check('nothing.yaml' in process.err() and process.err().count('\n') == 1, process.err())


def test_device_that_does_not_exist(scene):
    """A port whose device cannot be opened is one line that names the port; no half of the switch runs."""
    code, err = run_to_end(scene, 'device', GOOD.replace('net_null1,no-rx=1', 'net_af_packet0,iface=no-such-if'))
    check(code in (1, 2), f'exit code {code}: {err}')
    check(re.search(r'\bb\b', err) and 'no-such-if' in err, f'it does not name port b and its device: {err}')
