"""Real RDMA hosts: two guests with the kernel's soft-RoCE in two subnets, the switch between them.

With HEDDLE_E2E_ROUTER=kernel in the environment the Linux kernel forwards instead: whether a failure is the switch's
or the machine's shows there.
"""
import os

from harness import check, limit, need_root
from hosts import JUMBO_MTU, ROUTER_A, ROUTER_B, TWO_SUBNETS, af_packet, switch_section
from soft_roce.guests import Guests, image, steps_of
from switch import Switch

RUN_SECONDS = 150
# Not completer_retry_err and duplicate_request: a time-out of ibv_rc_pingpong (67 ms) expires on a busy machine, with
# the kernel's own forwarding too.
NEVER = ('out_of_seq_request', 'rcvd_seq_err', 'retry_exceeded_err', 'send_err')


def route_by_kernel(namespace):
    """Lets the kernel of the namespace forward between the taps."""
    namespace.sysctl('net.ipv4.ip_forward=1', 'net.ipv6.conf.all.disable_ipv6=0', 'net.ipv6.conf.default.disable_ipv6=0',
                     'net.ipv6.conf.tapA.disable_ipv6=0', 'net.ipv6.conf.tapB.disable_ipv6=0',
                     'net.ipv6.conf.all.forwarding=1')
    for tap, mac, addresses in (('tapA', ROUTER_A, ('192.0.2.254/24', '2001:db8:1::fe/64')),
                                ('tapB', ROUTER_B, ('198.51.100.254/24', '2001:db8:2::fe/64'))):
        namespace.run('ip', 'link', 'set', tap, 'address', mac)
        namespace.address(tap, *addresses)


def run_job(scene, job, mtu):
    """Runs a job between the guests and checks exit codes and counters (perftest's bandwidths prove nothing)."""
    need_root()
    image(scene.cache)
    middle = scene.namespace('sw')
    guests = Guests(scene, middle)
    switch = None
    if os.environ.get('HEDDLE_E2E_ROUTER') == 'kernel':
        route_by_kernel(middle)
    else:
        ports = ('ports:\n' + af_packet('a', 0, 'tapA', ROUTER_A, mtu=mtu) + af_packet('b', 1, 'tapB', ROUTER_B, mtu=mtu))
        switch = Switch(scene, switch_section() + ports + TWO_SUBNETS, namespace=middle)
    reports = guests.run(job, mtu=mtu, limit=RUN_SECONDS)
    for report in reports:
        check(report.done and not report.failures, f'{report.name} did not come to its end: {report.failures}')
        for step in steps_of(job):
            code = report.steps.get(step)
            check(code == 0, f'{report.name}: {step} left with {code}')
        check(report.counters.get('sent_pkts', 0) > 500, f'{report.name} sent {report.counters.get("sent_pkts")} packets')
        bad = {name: report.counters[name] for name in NEVER if report.counters[name]}
        check(not bad, f'{report.name}: packets out of order or lost: {bad}')
    if switch:
        check_switch(switch, reports)


def check_switch(switch, reports):
    """Everything that the guests' RDMA devices sent went through the switch, and nothing of it was dropped."""
    summary = switch.stop()
    counters = {port['name']: port for port in summary['ports']}
    for name, report in zip('ab', reports):
        sent = report.counters['sent_pkts']
        check(counters[name]['rx_packets'] >= sent, f'port {name} received {counters[name]["rx_packets"]} of {sent} packets')
    # The guests' own IPv6 group reports are no traffic to forward.
    lost = {reason: count for reason, count in summary['drops'].items()
            if count and reason not in ('not_our_mac', 'multicast', 'martian', 'not_ip')}
    check(not lost, f'the switch dropped {lost}')


@limit(240)
def test_mtu_1500_ipv4(scene):
    """rping, ibv_rc_pingpong, ib_send_bw, ib_write_bw, ib_read_bw over IPv4 at MTU 1500: all exit 0, nothing out of order."""
    run_job(scene, 'ipv4', 1500)


@limit(240)
def test_mtu_1500_ipv6(scene):
    """The same over IPv6 at MTU 1500."""
    run_job(scene, 'ipv6', 1500)


@limit(240)
def test_mtu_4200_ipv4(scene):
    """The same over IPv4 at MTU 4200 (path MTU 4096)."""
    run_job(scene, 'ipv4', JUMBO_MTU)


@limit(240)
def test_mtu_4200_ipv6(scene):
    """The same over IPv6 at MTU 4200 (path MTU 4096)."""
    run_job(scene, 'ipv6', JUMBO_MTU)
