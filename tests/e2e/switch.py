"""A running `heddle run`: its configuration, its start and end, and its control socket."""
import http.client
import json
import os
import re
import signal
import socket

from harness import Failure, check, wait_for

START_SECONDS = 20
STOP_SECONDS = 2.0
READY = re.compile(r'^heddle: switch \S+ is forwarding$', re.M)


class Switch:
    """One instance of the binary under test.

    `configuration` is YAML with the placeholder {control} for the control socket's path. `wrapper` are words in front
    of the command (`setpriv …`).
    """

    def __init__(self, scene, configuration, *, name='heddle', namespace=None, arguments=(), wrapper=(), env=None,
                 binary=None, wait=True):
        self._scene = scene
        self.socket_path = scene.dir / f'{name}.sock'
        self.summary_path = scene.dir / f'{name}.json'
        self.configuration_path = scene.dir / f'{name}.yaml'
        self.configuration_path.write_text(configuration.replace('{control}', str(self.socket_path)))
        command = [*wrapper, binary or scene.heddle, 'run', self.configuration_path, '--json', self.summary_path,
                   *arguments]
        self.process = (namespace or scene).start(name, *command, env=env)
        if wait:
            self.wait_ready()

    def wait_ready(self):
        """Waits for the line that says that frames flow."""
        def is_ready():
            if self.process.exit_code() is not None:
                raise Failure(f'heddle ended at start with {self.process.exit_code()}: {self.process.text()[-800:]}')
            return READY.search(self.process.err())
        wait_for(is_ready, 'heddle to forward', START_SECONDS)

    # Its end

    def stop(self, number=signal.SIGTERM):
        """Ends it by a signal, checks that it left with 0 in time, and returns its final counters."""
        check(self.process.exit_code() is None, f'heddle ended by itself with {self.process.exit_code()}')
        self.process.signal(number)
        code = self.process.wait(STOP_SECONDS)
        check(code == 0, f'heddle left with {code} on signal {number}: {self.process.text()[-800:]}')
        return self.summary()

    def wait(self, seconds):
        """Waits for an end that the switch decides itself (--for, --until-idle) and returns its final counters."""
        code = self.process.wait(seconds)
        check(code == 0, f'heddle left with {code}: {self.process.text()[-800:]}')
        return self.summary()

    def summary(self):
        return json.loads(self.summary_path.read_text())

    # Its control socket

    def get(self, path):
        """The JSON that GET on the control socket answers."""
        return self._request('GET', path)

    def post(self, path, body):
        return self._request('POST', path, body)

    def delete(self, path, body):
        return self._request('DELETE', path, body)

    def show(self, what, *arguments):
        """What `heddle show` prints."""
        return self._scene.run(self._scene.heddle, 'show', what, *arguments, '--socket', self.socket_path)

    def ports(self):
        """The counters of GET /ports by port name."""
        return {port['name']: port for port in self.get('/ports')['ports']}

    def drops(self):
        """Drop reason -> packets, without those that never happened.

        Without kernel_ring too: hosts multicast on their own while interfaces come up (MLD, router solicitations), and
        such a frame may reach an interface before the port's ring. What a test sends is counted where it arrives.
        """
        drops = nonzero(self.get('/drops')['drops'])
        drops.pop('kernel_ring', None)
        return drops

    def try_request(self, method, path, body=None):
        """(HTTP status, text) of a request that may be refused."""
        connection = UnixConnection(self.socket_path)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {'Content-Type': 'application/json'})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def _request(self, method, path, body=None):
        status, text = self.try_request(method, path, body)
        check(status < 300, f'{method} {path} {body or ""} answered {status}: {text[:300]}')
        return json.loads(text) if text.strip() else None


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__('localhost', timeout=10)
        self._path = os.fspath(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def nonzero(drops):
    """A `drops` map without the reasons that never happened."""
    return {reason: count for reason, count in drops.items() if count}
