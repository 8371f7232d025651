"""heddle subnet: the real OpenSM over ibsim, on the command line."""
import json
import os
import pathlib
import re
import signal
import subprocess

from harness import check, limit, need_tools, wait_for

NOBODY = 65534
FAT_TREE = '{topology: {kind: fat-tree, hosts: 432}}\n'
LEAF_SPINE = '{topology: {kind: leaf-spine, hosts: 324, leaves: 18, spines: 18}}\n'
RING = '''topology:
  kind: graph
  switches: [{name: a, hosts: 4}, {name: b, hosts: 4}, {name: c, hosts: 4}, {name: d, hosts: 4}, {name: e, hosts: 4}]
  links: [{a: a, b: b}, {a: b, b: c}, {a: c, b: d}, {a: d, b: e}, {a: e, b: a}]
'''


def need_opensm():
    need_tools('opensm', 'ibsim')


def write(scene, name, text):
    path = pathlib.Path(scene.dir) / name
    path.write_text(text)
    path.parent.chmod(0o755)
    return path


def subnet(scene, scenario, *options, accept=(0,)):
    text = scene.run(scene.heddle, 'subnet', scenario, '--json', *options, timeout=100, accept=accept)
    return json.loads(text[text.index('{'):])


def reaches_all(result):
    reach = result['reachability']
    return reach['paths'] == result['hosts'] * (result['hosts'] - 1) * 2 ** result['lmc'] == reach['reachable']


@limit(200)
def test_fat_trees_are_routed_and_compared(scene):
    """2 and 3 tiers, 324 and 432 hosts: minhop, updn and ftree reach all pairs; ftree's shifts are free of contention."""
    need_opensm()
    for name, text in (('two.yaml', LEAF_SPINE), ('three.yaml', FAT_TREE)):
        scenario = write(scene, name, text)
        for engine in ('minhop', 'updn', 'ftree'):
            result = subnet(scene, scenario, '--engine', engine)
            check(result['engine'] == engine and 'OpenSM' in result['by'], result)
            check(reaches_all(result), f'{name} {engine}: {result["reachability"]}')
            check(result['credit_loops']['channels_in_loops'] == 0, result['credit_loops'])
            loads = {of['engine']: of for of in result['loads']}
            check(set(loads) == {engine, 'shortest-path'}, loads)
            for of in loads.values():
                paths = of['paths_per_link']
                check(0 <= paths['least'] <= paths['mean'] <= paths['most'], of)
            if engine == 'ftree':
                shifts = loads['ftree']['shifts_in_ftree_order']
                check(shifts['shifts'] == shifts['free_of_contention'] == result['hosts'] - 1, shifts)


@limit(60)
def test_a_ring_loops_with_minhop_only(scene):
    """5 switches in a ring: minhop's tables have a credit loop, named; updn's and up-down's have none."""
    need_opensm()
    scenario = write(scene, 'ring.yaml', RING)
    loops = subnet(scene, scenario, '--engine', 'minhop')['credit_loops']
    check(loops['shortest'] == 5 and re.fullmatch(r'(\w:\d-\w:\d VL 0 → ){5}\w:\d-\w:\d VL 0', loops['loop']), loops)
    for engine in ('updn', 'up-down', 'dfsssp'):
        result = subnet(scene, scenario, '--engine', engine)
        check(result['credit_loops']['channels_in_loops'] == 0 and reaches_all(result), result)
    page = scene.run(scene.heddle, 'subnet', scenario, '--engine', 'shortest-path')
    check('10 of 10 channels are on loops: deadlock is possible' in page, page)


@limit(60)
def test_what_is_written_is_read_again(scene):
    """--out writes a subnet that imports as a topology, and tables that --tables takes, without OpenSM."""
    need_opensm()
    scenario = write(scene, 'small.yaml', '{topology: {kind: leaf-spine, hosts: 32, leaves: 4, spines: 4}}\n')
    out = pathlib.Path(scene.dir) / 'out'
    first = subnet(scene, scenario, '--engine', 'ftree', '--out', out)
    check(sorted(path.name for path in out.iterdir()) ==
          ['fabric.net', 'opensm-ftree-ca-order.dump', 'opensm-lfts.dump'], list(out.iterdir()))
    again = subnet(scene, scenario, '--tables', out)
    check(again['engine'] == 'file' and reaches_all(again), again)
    check(again['loads'][0]['paths_per_link'] == first['loads'][0]['paths_per_link'], again['loads'])
    shifted = subnet(scene, scenario, '--engine', 'updn', '--lmc', 1, '--out', out)
    check(shifted['lmc'] == 1 and reaches_all(shifted), shifted)
    check(not (out / 'opensm-ftree-ca-order.dump').exists(), 'the order of an earlier run is left')
    imported = write(scene, 'imported.yaml', '{topology: {kind: file, format: ibnetdiscover, file: out/fabric.net}}\n')
    from_file = subnet(scene, imported, '--tables', out)
    check(from_file['hosts'] == 32 and reaches_all(from_file), from_file)
    check(from_file['lmc'] == 1, from_file)
    check(from_file['loads'][0]['paths_per_link'] == shifted['loads'][0]['paths_per_link'], from_file['loads'])


@limit(60)
def test_a_resweep_goes_around_a_link(scene):
    """The tables of the whole fabric lose pairs without a link; those of a re-sweep, --without-link, lose none."""
    need_opensm()
    scenario = write(scene, 'small.yaml', '{topology: {kind: leaf-spine, hosts: 32, leaves: 4, spines: 4}}\n')
    out = pathlib.Path(scene.dir) / 'out'
    subnet(scene, scenario, '--engine', 'updn', '--out', out)
    stale = subnet(scene, scenario, '--tables', out, '--without-link', 'leaf1-spine2', accept=(1,))
    check(stale['reachability']['dropped'] > 0 and 'whose link to' in stale['reachability']['first'], stale)
    swept = subnet(scene, scenario, '--engine', 'updn', '--without-link', 'leaf1-spine2')
    check(reaches_all(swept) and swept['without_links'] == ['leaf1-spine2'], swept)


@limit(60)
def test_needs_no_root_and_leaves_nothing(scene):
    """As nobody, twice at once: both succeed, nothing is left running or lying about."""
    need_opensm()
    scenario = write(scene, 'ring.yaml', RING)
    scenario.chmod(0o644)
    own = pathlib.Path(scene.dir) / 'tmp'
    own.mkdir()
    own.chmod(0o777)
    drop = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []} if os.geteuid() == 0 else {}
    runs = [subprocess.Popen([scene.heddle, 'subnet', scenario, '--engine', 'minhop'], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, cwd='/', env={**os.environ, 'TMPDIR': str(own)}, **drop)
            for _ in range(2)]
    for run in runs:
        text = run.communicate(timeout=50)[0]
        check(run.returncode == 0 and '380 of 380 paths arrive' in text, text)
    check(not list(own.iterdir()), list(own.iterdir()))
    check(not children_in(own), 'ibsim or opensm still runs')


@limit(60)
def test_ctrl_c_ends_opensm_too(scene):
    """Ctrl-C while OpenSM runs: exit 1 in one line, no ibsim left, no file left."""
    need_opensm()
    scenario = write(scene, 'big.yaml', '{topology: {kind: fat-tree, k: 24}}\n')
    own = pathlib.Path(scene.dir) / 'tmp'
    own.mkdir()
    run = scene.start('subnet', scene.heddle, 'subnet', scenario, '--engine', 'minhop', env={'TMPDIR': str(own)})
    wait_for(lambda: any(own.glob('*/osm.log')) or run.exit_code() is not None, 'OpenSM to start', 30)
    run.signal(signal.SIGINT)
    code = run.wait(10)
    check(code == 1 and run.text().strip() == 'heddle: subnet: interrupted', f'{code}: {run.text()}')
    check(not list(own.iterdir()) and not children_in(own), 'something is left')


def test_what_cannot_be_is_said_in_a_line(scene):
    """An unknown engine, a link there is not, a directory without tables: exit 2 and one line."""
    scenario = write(scene, 'ring.yaml', RING)
    for options, words in ((('--engine', 'magic'), "no engine 'magic'; accepted: shortest-path, up-down, minhop"),
                           (('--engine', 'up-down', '--without-link', 'a-c'), 'a-c'),
                           (('--tables', scene.dir), 'opensm-lfts.dump: cannot be opened')):
        done = subprocess.run([scene.heddle, 'subnet', scenario, *options], capture_output=True, text=True, timeout=20)
        check(done.returncode == 2 and words in done.stderr and done.stderr.count('\n') == 1, done)


def lab(scene, scenario, *options, accept=(0,)):
    text = scene.run(scene.heddle, 'lab', scenario, '--json', *options, timeout=100, accept=accept)
    return json.loads(text[text.index('{'):])


@limit(90)
def test_the_lab_runs_on_opensms_tables(scene):
    """A ring with credits deadlocks on minhop's tables, and does not on updn's, nor on those written before."""
    need_opensm()
    flows = ', '.join(f'{{src: {i}, dst: {(i + 8) % 20}}}' for i in range(20))
    scenario = write(scene, 'ring.yaml', RING + 'fabric: {link_layer: infiniband}\n'
                     f'workload: {{kind: flows, size: 4MB, flows: [{flows}]}}\n')
    stuck = lab(scene, scenario, '--set', 'fabric.routing=minhop', accept=(0, 1))
    check(stuck['deadlock'] and len(stuck['deadlock']['cycle']) == 5, stuck['deadlock'])
    done = lab(scene, scenario, '--set', 'fabric.routing=updn')
    check(done['completed'] == 20 and not done['deadlock'], done['deadlock'])
    out = pathlib.Path(scene.dir) / 'out'
    subnet(scene, scenario, '--engine', 'updn', '--out', out)
    again = lab(scene, scenario, '--set', f'fabric.tables={out}')
    check(again['makespan_us'] == done['makespan_us'], (again['makespan_us'], done['makespan_us']))
    for engine, expected in (('minhop', 'credits can deadlock on minhop paths'), ('updn', '')):
        warning = subprocess.run([scene.heddle, 'check', scenario, '--set', f'fabric.routing={engine}'],
                                 capture_output=True, text=True, timeout=50).stderr
        check(expected in warning and bool(expected) == bool(warning), warning)


@limit(120)
def test_ftree_shifts_run_at_line_rate(scene):
    """432 hosts, shifts in the order of OpenSM's ftree: every host sends at line rate (utilization >= 0.95)."""
    need_opensm()
    out = pathlib.Path(scene.dir) / 'out'
    subnet(scene, write(scene, 'tree.yaml', FAT_TREE), '--engine', 'ftree', '--out', out)
    names = [line.split()[1] for line in (out / 'opensm-ftree-ca-order.dump').read_text().splitlines()]
    order = [int(name.removeprefix('host')) for name in names]
    for shift in (1, 217):
        flows = ', '.join(f'{{src: {host}, dst: {order[(i + shift) % len(order)]}}}' for i, host in enumerate(order))
        scenario = write(scene, f'shift{shift}.yaml', FAT_TREE[1:-2] + f'''
fabric: {{link_layer: infiniband, tables: out}}
workload: {{kind: flows, size: 2MB, flows: [{flows}]}}
''')
        result = lab(scene, scenario)
        check(result['utilization'] >= 0.95, f'shift {shift}: {result["utilization"]}')


def test_check_warns_of_a_loop(scene):
    """heddle check: a ring with lossless classes gets a warning that names the loop, without them it gets none."""
    def warning(path, *options):
        done = subprocess.run([scene.heddle, 'check', path, *options], capture_output=True, text=True, timeout=20)
        check(done.returncode == 0, done)
        return done.stderr
    scenario = write(scene, 'ring.yaml', RING)
    check(not warning(scenario), warning(scenario))
    lossless = ('--set', 'fabric.buffer=9MB', '--set', 'fabric.lossless=[3]')
    text = warning(scenario, *lossless)
    check(re.search(r'warning: lossless classes can deadlock .*: (\w:\d-\w:\d → ){5}\w:\d-\w:\d$', text.strip()), text)
    shipped = pathlib.Path(__file__).resolve().parent.parent.parent / 'examples' / 'lab' / 'pfc-deadlock.yaml'
    check('can deadlock' in warning(shipped), 'no warning of the shipped deadlock')
    check(not warning(shipped, '--set', 'events=[]'), 'a warning where all links are up')


def children_in(directory):
    """Processes that work in a directory."""
    found = []
    for place in pathlib.Path('/proc').glob('[0-9]*/cwd'):
        try:
            if str(place.readlink()).startswith(str(directory)):
                found.append(place)
        except OSError:
            pass
    return found
