"""The control socket among clients that err, dawdle or mean harm: each gets one clear line, and the switch goes on."""
import json
import socket
import subprocess

from harness import check, need_tools
from hosts import switch_section
from switch import Switch

GROUP = '''groups:
  - {name: up, members: [{port: a, mac: "02:00:00:00:00:0a"}, {port: b, mac: "02:00:00:00:00:0b"}]}
'''
PORTS = '''ports:
  - {name: a, device: "net_null0,no-rx=1", mac: "02:00:00:00:00:f1", rate: 10G, link_state: always-up}
  - {name: b, device: "net_null1,no-rx=1", mac: "02:00:00:00:00:f2", rate: 10G, link_state: always-up, vlans: [{id: 7}]}
'''


def start(scene, **more):
    return Switch(scene, switch_section(**more) + PORTS + GROUP + 'routes:\n  - {prefix: 198.51.100.0/24, via: up}\n')


def curl(switch, path, *arguments):
    """(HTTP status, text) of a request as people write it."""
    need_tools('curl')
    done = subprocess.run(['curl', '-sS', '--max-time', '15', '-w', '\\n%{http_code}', '--unix-socket', switch.socket_path,
                           *map(str, arguments), f'http://heddle{path}'], capture_output=True, text=True, timeout=20)
    check(done.returncode == 0, f'curl {path}: exit {done.returncode}, {done.stderr.strip()}')
    text, _, status = done.stdout.rpartition('\n')
    return int(status), text


def check_refused(answer, status, words):
    """The answer has this status and an error of one line that holds `words`."""
    check(answer[0] == status, f'status {answer[0]}, not {status}: {answer[1][:300]}')
    error = json.loads(answer[1])['error']
    check(words in error and '\n' not in error, f'{error!r} lacks {words!r}')


def test_paths_that_are_no_text(scene):
    """Bytes that are no UTF-8 in a path, where a view and where a group's name belongs: an error like any other."""
    switch = start(scene)
    check_refused(curl(switch, '/%ff'), 404, 'no such view or action: GET /\ufffd')
    body = ('-d', '{"port": "a", "mac": "02:00:00:00:00:0c"}')
    check_refused(curl(switch, '/groups/%ff%fe/members', *body), 400, '\ufffd')
    check_refused(curl(switch, '/groups/%ff/scheduler', '-d', '{"scheduler": "rps"}'), 400, '\ufffd')
    check_refused(curl(switch, '/groups/' + 'x' * 8000 + '/scheduler', '-d', '{"scheduler": "rps"}'), 400, 'x')
    switch.stop()


def test_deep_bodies(scene):
    """Bodies nested hundreds of thousands of levels deep are refused in one line, wherever the nest is."""
    switch = start(scene)
    nest = '[' * 300_000 + ']' * 300_000
    path = scene.dir / 'deep.json'
    for text in (nest, '{"prefix": "198.51.100.0/24", "via": {"port": "b", "mac": "02:00:00:00:00:0b", "vlan": %s}}' % nest):
        path.write_text(text)
        answer = curl(switch, '/routes', '-H', 'Content-Type: application/json', '-d', f'@{path}')
        check_refused(answer, 400, 'the body is nested too deeply; accepted: up to 16 levels')
    switch.stop()


def test_vlans_of_next_hops(scene):
    """A next hop needs a VLAN that its port has, wherever it is named; a refused one changes nothing."""
    switch = start(scene)
    before = switch.get('/paths')
    wrong, right = ({'port': port, 'mac': '02:00:00:00:00:0c', 'vlan': 7} for port in 'ab')
    words = "found vlan '7' on port a, which does not accept such frames; accepted: vlan: 0"
    check_refused(switch.try_request('POST', '/groups/up/members', wrong), 400, words)
    check_refused(switch.try_request('POST', '/routes', {'prefix': '203.0.113.0/24', 'via': wrong}), 400, words)
    check(switch.get('/paths') == before, 'a refused request changed the groups')
    switch.post('/groups/up/members', right)
    check([7] == [m['vlan'] for m in switch.get('/paths')['groups'][0]['members'] if m['vlan']], 'no member with VLAN 7')
    switch.stop()
