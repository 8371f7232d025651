"""What a test stands on: a scratch folder, network namespaces and processes that all end with it.

A test is a function `test_NAME(scene)` whose first docstring line says what it shows. It fails by raising, and is
skipped by `skip(reason)` or by a need that this machine does not meet. Every scene lives in a process of its own
(tests/e2e/run forks), so that a hanging test can be ended whole.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import time

from frames import RawPort

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
DEFAULT_LIMIT = 60
OFFLOADS = ('rx', 'tx', 'sg', 'tso', 'gso', 'gro')


class Skip(Exception):
    """This machine lacks something; the text says what."""


class Failure(AssertionError):
    """The product did not do what it should; the text says what it did instead."""


def skip(reason):
    raise Skip(reason)


def check(condition, message):
    """Fails the test with `message` unless the condition holds."""
    if not condition:
        raise Failure(message)


def need_root():
    if os.geteuid() != 0:
        skip('needs root')


def need_tools(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        skip(f'needs {", ".join(missing)} (scripts/setup installs it)')


def limit(seconds):
    """Gives a test more or less time than DEFAULT_LIMIT."""
    def mark(test):
        test.limit = seconds
        return test
    return mark


def wait_for(condition, what, seconds=5.0, step=0.02):
    """Polls `condition` until it returns something true, and returns that; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f'waited {seconds:g} s for {what}')
        time.sleep(step)


class Scene:
    """One test's world. `heddle` is the binary under test, `cache` a folder that outlives the test run."""

    def __init__(self, heddle, cache, prefix, directory):
        self.heddle = pathlib.Path(heddle)
        self.cache = pathlib.Path(cache)
        self.dir = pathlib.Path(directory)
        self._prefix = prefix
        self._namespaces = []
        self._processes = []

    def namespace(self, name, *, ipv6=False):
        """A new network namespace with its loopback up. Needs root.

        Without `ipv6` its kernel says nothing by itself (an IPv6 host reports its multicast groups).
        """
        need_root()
        need_tools('ip', 'ethtool', 'sysctl')
        namespace = Namespace(self, name, f'{self._prefix}{name}', ipv6)
        self._namespaces.append(namespace)
        return namespace

    def run(self, *command, timeout=20, accept=(0,)):
        """Runs a command to its end and returns its standard output; fails on an exit code that is not accepted."""
        words = [str(word) for word in command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if done.returncode not in accept:
            raise Failure(f'exit {done.returncode} of {" ".join(words)}: {(done.stderr or done.stdout).strip()[-600:]}')
        return done.stdout

    def start(self, name, *command, env=None):
        """Starts a process whose output goes to NAME.out and NAME.err in the scratch folder."""
        process = Process(name, [str(word) for word in command], self.dir, env)
        self._processes.append(process)
        return process

    def close(self):
        for process in reversed(self._processes):
            process.end()
        for namespace in self._namespaces:
            namespace.delete()


class Process:
    """A child that is ended with its scene. Ended by its own id, never by name."""

    def __init__(self, name, command, directory, env):
        self.name = name
        self._out, self._err = directory / f'{name}.out', directory / f'{name}.err'
        with open(self._out, 'wb') as out, open(self._err, 'wb') as err:
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                           env=None if env is None else {**os.environ, **env})

    @property
    def pid(self):
        return self._child.pid

    def exit_code(self):
        """None while it runs."""
        return self._child.poll()

    def out(self):
        return self._out.read_text(errors='replace')

    def err(self):
        return self._err.read_text(errors='replace')

    def text(self):
        return self.out() + self.err()

    def signal(self, number):
        self._child.send_signal(number)

    def wait(self, seconds):
        """The exit code; fails if the process still runs after `seconds`."""
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f'{self.name} still runs after {seconds:g} s') from None

    def end(self):
        if self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            self._child.wait(3)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


class Namespace:
    """A network namespace of the scene; `name` is what the test calls it, `path_name` what `ip netns` calls it."""

    def __init__(self, scene, name, path_name, ipv6):
        self.name, self.path_name = name, path_name
        self._scene = scene
        self._ports = []
        scene.run('ip', 'netns', 'add', path_name)
        self.run('ip', 'link', 'set', 'lo', 'up')
        if ipv6:  # without link-local addresses and router solicitations, which no test wants
            self.sysctl('net.ipv6.conf.default.addr_gen_mode=1', 'net.ipv6.conf.default.accept_ra=0')
        else:
            self.sysctl('net.ipv6.conf.default.disable_ipv6=1')

    def command(self, *command):
        return ['ip', 'netns', 'exec', self.path_name, *command]

    def run(self, *command, timeout=20, accept=(0,)):
        return self._scene.run(*self.command(*command), timeout=timeout, accept=accept)

    def start(self, name, *command, env=None):
        return self._scene.start(name, *self.command(*command), env=env)

    def sysctl(self, *settings):
        self.run('sysctl', '-qw', *settings)

    def veth(self, interface, peer_namespace, peer, *, mtu=1500, mac=None, peer_mac=None):
        """Joins this namespace and another by a veth pair, both ends up, offloads off: frames are as on a wire."""
        self._scene.run('ip', '-n', self.path_name, 'link', 'add', interface, 'type', 'veth',
                        'peer', 'name', peer, 'netns', peer_namespace.path_name)
        self.bring_up(interface, mtu=mtu, mac=mac)
        peer_namespace.bring_up(peer, mtu=mtu, mac=peer_mac)

    def bring_up(self, interface, *, mtu=1500, mac=None):
        """Sets MAC and MTU of an interface, switches its offloads off and brings it up."""
        if mac:
            self.run('ip', 'link', 'set', interface, 'address', mac)
        self.run('ethtool', '-K', interface, *(word for offload in OFFLOADS for word in (offload, 'off')), accept=(0, 1))
        self.run('ip', 'link', 'set', interface, 'mtu', mtu, 'up')

    def address(self, interface, *addresses):
        for address in addresses:
            nodad = ['nodad'] if ':' in address else []
            self.run('ip', 'address', 'add', address, 'dev', interface, *nodad)

    def default_route(self, interface, gateway, mac):
        """A default route through a gateway whose MAC is given: nobody has to answer ARP."""
        self.run('ip', 'neigh', 'replace', gateway, 'lladdr', mac, 'dev', interface, 'nud', 'permanent')
        self.run('ip', '-6' if ':' in gateway else '-4', 'route', 'add', 'default', 'via', gateway, 'dev', interface)

    def link(self, interface, state):
        self.run('ip', 'link', 'set', interface, state)

    def port(self, interface):
        """A raw port on an interface of this namespace; a socket stays where it was opened."""
        port = self._inside(lambda: RawPort(interface))
        self._ports.append(port)
        return port

    def delete(self):
        for port in self._ports:
            port.close()
        subprocess.run(['ip', 'netns', 'del', self.path_name], stdin=subprocess.DEVNULL, capture_output=True)

    def _inside(self, action):
        home = os.open('/proc/self/ns/net', os.O_RDONLY)
        there = os.open(f'/run/netns/{self.path_name}', os.O_RDONLY)
        try:
            _enter(there)
            try:
                return action()
            finally:
                _enter(home)
        finally:
            os.close(home)
            os.close(there)


def _enter(namespace):
    if LIBC.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), 'setns')


def end_leftovers(prefix):
    """Ends every process in the namespaces with this prefix and deletes them: what a killed test left behind."""
    if os.geteuid() != 0 or not shutil.which('ip'):
        return
    listed = subprocess.run(['ip', 'netns', 'list'], capture_output=True, text=True).stdout
    for name in (line.split()[0] for line in listed.splitlines() if line.startswith(prefix)):
        pids = subprocess.run(['ip', 'netns', 'pids', name], capture_output=True, text=True).stdout.split()
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        subprocess.run(['ip', 'netns', 'del', name], capture_output=True)
