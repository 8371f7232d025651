"""Routes and next-hop members change through the control socket while traffic flows: no frame lost, none astray."""
import time

import frames
from frames import flow, mac_text
from harness import check, limit
from hosts import MAC_A, MAC_B, ROUTER_A, ROUTER_B, TwoHosts, af_packet, switch_section
from stream import Stream, check_all_arrived

A_TO_B = {'smac': MAC_A, 'dmac': ROUTER_A}
# Next hops behind port b: told apart by the MAC that the switch writes.
FIRST, SECOND, THIRD, FOURTH = (f'02:00:00:00:0b:0{number}' for number in range(1, 5))
MEMBERS = (FIRST, SECOND, THIRD, FOURTH)
CHANGE_SECONDS = 4


def via(mac):
    return {'port': 'b', 'mac': mac}


def start(scene, table):
    """The two wires and a switch whose routes (and groups) are `table`."""
    hosts = TwoHosts(scene, addresses=False)
    ports = 'ports:\n' + af_packet('a', 0, 'veth-a', ROUTER_A) + af_packet('b', 1, 'veth-b', ROUTER_B)
    return hosts.with_veth(switch_section() + ports + table)


def check_next_hops(received, allowed):
    """Fails if a frame left for a next hop that its destination never had. `allowed`: destination -> MACs."""
    for frame in received:
        target, mac = flow(frame)[1], mac_text(frame[:6])
        check(mac in allowed[target], f'a frame to {target} went to next hop {mac}; its routes: {allowed[target]}')


@limit(90)
def test_longer_routes_under_traffic(scene):
    """Routes longer than /24 (and /64) come and go 100 times under traffic: every frame takes one of its valid next hops."""
    hosts = start(scene, 'routes:\n'
                  f'  - {{prefix: 198.51.100.0/24, via: {{port: b, mac: "{FIRST}"}}}}\n'
                  f'  - {{prefix: 203.0.113.0/24, via: {{port: b, mac: "{FIRST}"}}}}\n'
                  f'  - {{prefix: 203.0.113.64/26, via: {{port: b, mac: "{THIRD}"}}}}\n'
                  f'  - {{prefix: "2001:db8:2::/48", via: {{port: b, mac: "{FIRST}"}}}}\n'
                  f'  - {{prefix: "2001:db8:2:3::/64", via: {{port: b, mac: "{THIRD}"}}}}\n')
    # Prefixes that come and go. The /25s elsewhere take and give back tbl8 groups, which a table without quiescence
    # would hand to the next route while packets still look at them.
    changing = ['198.51.100.16/28', '198.51.100.18/32', '203.0.113.128/25', '2001:db8:2:4::/64', '2001:db8:2:4::8/128']
    elsewhere = [f'198.18.{number}.128/25' for number in range(8)]
    both, kept, first = {FIRST, SECOND}, {THIRD}, {FIRST}
    allowed = {'198.51.100.17': both, '198.51.100.18': both, '198.51.100.40': first, '203.0.113.70': kept,
               '203.0.113.130': both, '203.0.113.2': first, '2001:db8:2:3::1': kept, '2001:db8:2:4::8': both,
               '2001:db8:2:4::9': both, '2001:db8:2:5::1': first}
    templates = [frames.roce('2001:db8:1::1' if ':' in target else '192.0.2.1', target, size=110, **A_TO_B)
                 for target in allowed]
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    rounds = 0
    with Stream(sender, templates) as stream:
        until = time.monotonic() + CHANGE_SECONDS
        while time.monotonic() < until or rounds < 100:
            for prefix in (*changing, elsewhere[rounds % len(elsewhere)]):
                hosts.switch.post('/routes', {'prefix': prefix, 'via': via(FOURTH if prefix in elsewhere else SECOND)})
            for prefix in (*changing, elsewhere[rounds % len(elsewhere)]):
                hosts.switch.delete('/routes', {'prefix': prefix})
            rounds += 1
    got = receiver.collect(stream.total())
    check_all_arrived(stream.sent, got)
    check_next_hops(got, allowed)
    taken = {(flow(frame)[1], mac_text(frame[:6])) for frame in got}
    for target in ('198.51.100.18', '2001:db8:2:4::8'):
        for mac in both:
            check((target, mac) in taken, f'no frame to {target} ever took next hop {mac}: {rounds} rounds changed nothing')
    check(not hosts.drops(), f'drops {hosts.drops()}')


def test_change_holds_once_answered(scene):
    """When the control socket has answered, the very next frame takes the new route, and after DELETE the old one."""
    hosts = start(scene, f'routes:\n  - {{prefix: 198.51.100.0/24, via: {{port: b, mac: "{FIRST}"}}}}\n')
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    frame = frames.roce('192.0.2.1', '198.51.100.18', size=110, **A_TO_B)

    def next_hop():
        sender.send(frame)
        got = receiver.collect(1)
        return mac_text(got[0][:6]) if got else None

    check(next_hop() == FIRST, 'the first route does not work')
    for number in range(20):
        hosts.switch.post('/routes', {'prefix': '198.51.100.18/32', 'via': via(SECOND)})
        mac = next_hop()
        check(mac == SECOND, f'round {number}: after POST the frame went to {mac}')
        hosts.switch.delete('/routes', {'prefix': '198.51.100.18/32'})
        mac = next_hop()
        check(mac == FIRST, f'round {number}: after DELETE the frame went to {mac}')
    hosts.switch.delete('/routes', {'prefix': '198.51.100.0/24'})
    check(next_hop() is None, 'without any route the frame still came')
    check(hosts.drops() == {'no_route': 1}, f'drops {hosts.drops()}')


@limit(90)
def test_members_under_traffic(scene):
    """Members of a group come and go under traffic: nothing is lost, only members carry frames, and each change shows."""
    members = ', '.join(f'{{port: b, mac: "{mac}"}}' for mac in MEMBERS)
    hosts = start(scene, f'groups:\n  - {{name: up, scheduler: ecmp, members: [{members}]}}\n'
                  'routes:\n  - {prefix: 198.51.100.0/24, via: up}\n')
    templates = [frames.roce('192.0.2.1', '198.51.100.2', qp=0x100 + number, size=110, **A_TO_B) for number in range(64)]
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    rounds = 0
    with Stream(sender, templates) as stream:
        until = time.monotonic() + CHANGE_SECONDS
        while time.monotonic() < until or rounds < 20:
            member = {'port': 'b', 'mac': MEMBERS[1 + rounds % 3]}  # the first one stays throughout
            hosts.switch.delete('/groups/up/members', member)
            time.sleep(0.02)
            hosts.switch.post('/groups/up/members', {**member, 'weight': 1})
            rounds += 1
    got = receiver.collect(stream.total())
    check_all_arrived(stream.sent, got)
    check_next_hops(got, {'198.51.100.2': set(MEMBERS)})
    check({mac_text(frame[:6]) for frame in got} == set(MEMBERS), 'not every member carried frames')
    check(not hosts.drops(), f'drops {hosts.drops()}')
    for mac in MEMBERS[1:]:
        hosts.switch.delete('/groups/up/members', {'port': 'b', 'mac': mac})
    for template in templates:
        sender.send(template)
    left = {mac_text(frame[:6]) for frame in receiver.collect(len(templates))}
    check(left == {FIRST}, f'with one member left, frames went to {left}')


@limit(90)
def test_schedulers_at_run_time(scene):
    """A group's scheduler changes over the socket: one flow keeps one member under ecmp, meets all by weight under
    spray-wcmp, and its ACKs keep one where they have a scheduler of their own."""
    weights = (1, 1, 2, 4)
    members = ', '.join(f'{{port: b, mac: "{mac}", weight: {weight}}}' for mac, weight in zip(MEMBERS, weights))
    hosts = start(scene, f'groups:\n  - {{name: up, members: [{members}]}}\n'
                  'routes:\n  - {prefix: 198.51.100.0/24, via: up}\n')
    sender, receiver = hosts.a.port('eth0'), hosts.b.port('eth0')
    data = frames.roce('192.0.2.1', '198.51.100.2', qp=0x123, size=110, **A_TO_B)
    ack = frames.roce('192.0.2.1', '198.51.100.2', qp=0x123, opcode=0x11, size=110, **A_TO_B)

    def members_of(frame, count):
        got = []
        for _ in range(count // 40):
            for _ in range(40):
                sender.send(frame)
            got += receiver.collect(40)
        check(len(got) == count, f'{len(got)} of {count} frames came')
        macs = [mac_text(frame[:6]) for frame in got]
        return [macs.count(mac) / count for mac in MEMBERS]

    shares = members_of(data, 200)
    check(max(shares) == 1, f'under ecmp one flow met {shares}')
    hosts.switch.post('/groups/up/scheduler', {'scheduler': 'spray-wcmp', 'control_scheduler': 'ecmp'})
    shares = members_of(data, 1600)
    for share, weight in zip(shares, weights):
        check(abs(share - weight / 8) < 0.06, f'under spray-wcmp shares are {shares}, weights {weights}')
    shares = members_of(ack, 200)
    check(max(shares) == 1, f'ACKs by ecmp met {shares}')
    group = hosts.switch.get('/paths')['groups'][0]
    check((group['scheduler'], group['control_scheduler']) == ('spray-wcmp', 'ecmp'), f'the view says {group}')
    hosts.switch.post('/groups/up/scheduler', {'scheduler': 'flowlet'})
    shares = members_of(data, 40)
    check(hosts.switch.get('/paths')['flowlets']['begun'] > 0, 'no flowlet began')
    check(not hosts.drops(), f'drops {hosts.drops()}')


def test_bad_requests_change_nothing(scene):
    """Requests that cannot be carried out are refused with a reason, and the table stays as it was."""
    hosts = start(scene, f'routes:\n  - {{prefix: 198.51.100.0/24, via: {{port: b, mac: "{FIRST}"}}}}\n')
    before = hosts.switch.get('/routes')
    bad = [('POST', '/routes', {'prefix': '198.51.100.0/33', 'via': via(FIRST)}),
           ('POST', '/routes', {'prefix': '198.51.100.1/24', 'via': via(FIRST)}),
           ('POST', '/routes', {'prefix': '198.51.100.16/28', 'via': {'port': 'nowhere', 'mac': FIRST}}),
           ('POST', '/routes', {'prefix': '198.51.100.16/28', 'via': {'port': 'b', 'mac': 'not a mac'}}),
           ('POST', '/routes', {'prefix': '198.51.100.16/28', 'via': 'no-such-group'}),
           ('POST', '/routes', {'via': via(FIRST)}),
           ('POST', '/routes', 'no object'),
           ('DELETE', '/routes', {'prefix': '203.0.113.0/24'}),
           ('POST', '/groups/none/members', via(FIRST)),
           ('POST', '/groups/none/scheduler', {'scheduler': 'rps'}),
           ('GET', '/nothing', None)]
    for method, path, body in bad:
        status, text = hosts.switch.try_request(method, path, body)
        check(400 <= status < 500, f'{method} {path} {body} answered {status}')
        check(text.strip(), f'{method} {path} {body} was refused without a reason')
    check(hosts.switch.get('/routes') == before, 'a refused request changed the routes')
