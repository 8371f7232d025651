"""The control socket among clients that err, dawdle or mean harm: each gets one clear line, and the switch goes on."""
import json
import signal
import socket
import subprocess
import threading
import time

from harness import check, need_tools
from hosts import switch_section
from switch import STOP_SECONDS, Switch

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
    for length, status, words in ((900, 400, 'xxx'), (2000, 414, 'the path is too long; accepted: up to 1024 characters'),
                                  (9000, 414, 'the path is too long')):
        check_refused(curl(switch, f'/groups/{"x" * length}/scheduler', '-d', '{"scheduler": "rps"}'), status, words)
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


# Long lists

MANY = 9000


def routes_to(group, count):
    return [{'prefix': f'10.{number >> 8}.{number & 255}.0/24', 'via': group} for number in range(count)]


def test_long_lists_as_curl_sends_them(scene):
    """`curl -d @FILE` with thousands of routes works as it is, whatever it calls the content, and so do chunks."""
    switch = start(scene, max_routes=20_000)
    path = scene.dir / 'list.json'
    path.write_text(json.dumps(routes_to('up', MANY)))
    ways = ((), ('-H', 'Content-Type: application/json'), ('-H', 'Content-Type:'), ('-H', 'Transfer-Encoding: chunked'),
            ('-H', 'Expect:'))
    for words in ways:
        answer = curl(switch, '/routes', *words, '-d', f'@{path}')
        check(answer == (200, '{"done":true}\n'), f'{words}: {answer}')
        check(len(switch.get('/routes')['routes']) == MANY + 1, f'{words}: not all routes are there')
        answer = curl(switch, '/routes', '-X', 'DELETE', '-d', f'@{path}')
        check(answer[0] == 200 and len(switch.get('/routes')['routes']) == 1, f'DELETE: {answer}')
    switch.stop()


def test_bodies_that_are_refused(scene):
    """What is wrong with a body is said of the body: too long, a form, none at all, cut short."""
    switch = start(scene)
    path = scene.dir / 'long.json'
    path.write_text('[' + ' ' * (17 << 20) + ']')
    for words in ((), ('-H', 'Transfer-Encoding: chunked'), ('-H', 'Expect:')):
        check_refused(curl(switch, '/routes', *words, '-d', f'@{path}'), 413, 'the body is too long; accepted: up to 16 MiB')
    check_refused(curl(switch, '/routes', '-F', f'list=@{path}'), 400, 'found a form; accepted: JSON')
    begun = time.monotonic()
    check_refused(curl(switch, '/routes', '-X', 'POST'), 400, 'the body is not JSON')
    check_refused(curl(switch, '/nothing', '-X', 'POST'), 404, 'no such view or action: POST /nothing')
    check_refused(curl(switch, '/ports', '-X', 'PUT', '-d', '{}'), 404, 'no such view or action: PUT /ports')
    check(time.monotonic() - begun < 2, 'requests without a body were waited for')
    with connection(switch) as cut:
        cut.sendall(b'POST /routes HTTP/1.1\r\nContent-Length: 100\r\n\r\n[]')
        cut.shutdown(socket.SHUT_WR)
        answer = cut.makefile('rb').read()
    check(b' 400 ' in answer and b'was not whole within 3 s' in answer, f'cut short: {answer}')
    switch.stop()


# Clients that take their time

def connection(switch):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect(str(switch.socket_path))
    return client


class Drip(threading.Thread):
    """A client that sends a header without an end, byte by byte."""

    def __init__(self, switch):
        super().__init__(daemon=True)
        self._client = connection(switch)
        self._client.sendall(b'GET /ports HTTP/1.1\r\n')
        self.start()

    def run(self):
        try:
            while True:
                self._client.sendall(b'X')
                time.sleep(0.2)
        except OSError:
            self._client.close()


def test_slow_clients(scene):
    """Slow and idle clients hold up neither others nor the end of the switch; none stays for ever."""
    switch = start(scene)
    drips = [Drip(switch) for _ in range(2)]
    begun = time.monotonic()
    check(curl(switch, '/ports')[0] == 200 and time.monotonic() - begun < 2, 'two slow clients hold up a third')
    drips += [Drip(switch) for _ in range(8)]
    begun = time.monotonic()
    check('a' in switch.show('ports'), '`heddle show` beside ten slow clients')
    check(time.monotonic() - begun < 8, f'it took {time.monotonic() - begun:.1f} s')
    for drip in drips:
        drip.join(15)
        check(not drip.is_alive(), 'a slow client is still served')
    drips = [Drip(switch) for _ in range(10)]
    idle = [connection(switch) for _ in range(3)]
    time.sleep(0.3)  # until threads wait for them
    begun = time.monotonic()
    switch.stop()
    check(time.monotonic() - begun < 1, f'the end took {time.monotonic() - begun:.1f} s')
    for client in idle:
        client.close()


def test_one_answer_a_connection(scene):
    """A client that keeps its connection after an answer finds it closed, and does not hold up the end."""
    switch = start(scene)
    with connection(switch) as client:
        client.sendall(b'GET /ports HTTP/1.1\r\nConnection: keep-alive\r\n\r\n')
        answer = client.makefile('rb').read()
        check(b'Connection: close' in answer and b'"ports"' in answer, f'{answer[:300]}')
        begun = time.monotonic()
        switch.process.signal(signal.SIGTERM)
        check(switch.process.wait(STOP_SECONDS) == 0 and time.monotonic() - begun < 1, 'the end waited')
