"""Two QEMU guests with Debian's kernel, its soft-RoCE driver and its RDMA tools, behind the taps tapA and tapB."""
import hashlib
import pathlib
import re
import shutil
import subprocess

from harness import Failure, need_tools, skip
from hosts import IP6_A, IP6_B, IP_A, IP_B, MAC_A, MAC_B, ROUTER_A, ROUTER_B

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ('qemu-system-x86_64', 'cpio', 'depmod', 'dpkg-deb', 'strip', 'apt-get', 'rdma', 'rping', 'ibv_rc_pingpong',
         'ib_send_bw', 'ib_write_bw', 'ib_read_bw')
MEMORY_MB = 384
TAP_MTU = 9500
# Checksum and segmentation offloads off: a switch forwards frames as they are, so they have to be finished.
NIC = ('csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,mrg_rxbuf=on,'
       f'host_mtu={TAP_MTU},romfile=')
# Emulated: the rep-movsb and carry-less-multiply instructions of newer CPU models are slow helpers there.
CPU = 'Nehalem,pclmulqdq=off'
KERNEL_ARGUMENTS = ('console=ttyS0 quiet loglevel=4 panic=-1 nokaslr mitigations=off audit=0 apparmor=0 '
                    'cryptomgr.notests random.trust_cpu=on no_timer_check tsc=reliable')


def image(cache):
    """The folder with the guests' kernel and initramfs, made anew when its sources or packages changed."""
    need_tools(*TOOLS)
    folder = pathlib.Path(cache) / 'soft-roce'
    stamp = folder / 'made-from'
    sources = hashlib.sha256(b''.join((HERE / name).read_bytes() for name in ('build-guest', 'guest-init')) +
                             subprocess.run(['dpkg-query', '-W', 'perftest', 'rdma-core', 'busybox-static'],
                                            capture_output=True).stdout).hexdigest()
    if stamp.exists() and stamp.read_text() == sources:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    built = subprocess.run([HERE / 'build-guest', folder], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if built.returncode == 3:
        skip(f'the guest kernel cannot be fetched: {built.stderr.strip()[-200:]}')
    if built.returncode != 0:
        raise Failure(f'build-guest left with {built.returncode}: {built.stderr.strip()[-600:]}')
    shutil.rmtree(folder / 'work/root', ignore_errors=True)
    stamp.write_text(sources)
    return folder


class Guests:
    """A (server) at tapA and B (client) at tapB of a namespace, in the two subnets of hosts.py."""

    def __init__(self, scene, namespace):
        self._scene, self._namespace = scene, namespace
        for tap in ('tapA', 'tapB'):
            namespace.run('ip', 'tuntap', 'add', 'dev', tap, 'mode', 'tap')
            namespace.run('ip', 'link', 'set', tap, 'mtu', TAP_MTU, 'up')

    def run(self, job, *, mtu, limit, step_limit=60):
        """Boots both, lets them run jobs/JOB.job, and returns their Reports (A's, B's) after both powered off."""
        folder = image(self._scene.cache)
        ends = (('A', 'server', MAC_A, ROUTER_A, (IP_A, IP6_A), (IP_B, IP6_B), ('192.0.2.254', '2001:db8:1::fe')),
                ('B', 'client', MAC_B, ROUTER_B, (IP_B, IP6_B), (IP_A, IP6_A), ('198.51.100.254', '2001:db8:2::fe')))
        running = []
        for name, role, mac, gateway_mac, own, peer, gateway in ends:
            options = {'role': role, 'ip': own[0], 'ip6': own[1], 'peer': peer[0], 'peer6': peer[1],
                       'gateway': gateway[0], 'gateway6': gateway[1], 'gateway_mac': gateway_mac, 'mtu': mtu,
                       'path_mtu': 4096 if mtu >= 4200 else 1024, 'limit': step_limit}
            console = self._scene.dir / f'guest-{name}.console.out'
            process = self._boot(f'guest-{name}', folder, console, HERE / f'jobs/{job}.job', f'tap{name}', mac, options)
            running.append((process, console))
        for process, _ in running:
            code = process.wait(limit)
            if code != 0:
                raise Failure(f'{process.name}: QEMU left with {code}: {process.text()[-400:]}')
        return [Report(process.name, console) for process, console in running]

    def _boot(self, name, folder, console, job, tap, mac, options):
        words = ' '.join(f'rdma.{key}={value}' for key, value in options.items())
        return self._namespace.start(
            name, 'qemu-system-x86_64', '-accel', 'tcg,thread=multi', '-cpu', CPU, '-M', 'pc', '-m', MEMORY_MB,
            '-smp', 1, '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-serial', f'file:{console}',
            '-kernel', folder / 'vmlinux', '-initrd', folder / 'initramfs.cpio.gz',
            '-append', f'{KERNEL_ARGUMENTS} tsc_early_khz={tsc_khz()} {words}',
            '-fw_cfg', f'name=opt/rdma/job,file={job}',
            '-netdev', f'tap,id=n0,ifname={tap},script=no,downscript=no,vnet_hdr=off',
            '-device', f'virtio-net-pci,netdev=n0,mac={mac},{NIC}')


class Report:
    """What one guest said: exit code of every step, counters of its rxe device, complaints of its /init."""

    def __init__(self, name, console):
        self.name = name
        self.text = re.sub(r'\x1b[^a-zA-Z]*[a-zA-Z]|\r', '', console.read_text(errors='replace'))
        said = [line.split(' ', 1)[1] for line in self.text.splitlines() if re.match(r'##[\d.]+ ', line)]
        self.steps = {words[1]: int(words[2]) for words in map(str.split, said) if words[0] == 'STEP'}
        self.failures = [line for line in said if line.startswith('FAILED')]
        self.done = 'DONE' in said
        counters = next((line.split()[3:] for line in said if line.startswith('COUNTERS')), [])
        self.counters = {key: int(value) for key, value in zip(counters[::2], counters[1::2])}


def steps_of(job):
    """The names of a job's steps."""
    return re.findall(r'^step (\S+)', (HERE / f'jobs/{job}.job').read_text(), re.M)


def tsc_khz():
    """The host's clock rate for the guests: left to measure it on busy cores, their clocks run up to 3 times fast."""
    mhz = re.search(r'^cpu MHz\s*:\s*([\d.]+)', pathlib.Path('/proc/cpuinfo').read_text(), re.M)
    return int(float(mhz[1]) * 1000)
