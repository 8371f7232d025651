"""Where `heddle lab` and `heddle bench` put their results, and what they leave alone."""
import json
import subprocess

from harness import check

SCENARIO = """topology: {kind: leaf-spine, hosts: 8, leaves: 2, spines: 2}
workload: {kind: permutation, size: 20kB}
run: {threads: 1}
"""


def scenario_in(scene):
    path = scene.dir / 'small.yaml'
    path.write_text(SCENARIO)
    return path


def refused(scene, *arguments, status=2):
    """The line with which it ends."""
    done = subprocess.run([str(word) for word in (scene.heddle, *arguments)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    lines = done.stderr.splitlines()
    check(done.returncode == status and len(lines) == 1, f'{arguments}: exit {done.returncode}, {done.stderr!r}')
    return lines[0]


def test_a_scenario_is_no_place_for_results(scene):
    """`--json SCENARIO.yaml`, which takes the scenario for the results' file, is refused; the scenario stays."""
    path = scenario_in(scene)
    line = refused(scene, 'bench', '--json', path)
    check('the scenario goes before --json' in line, line)
    check(path.read_text() == SCENARIO, 'the scenario was overwritten')


def test_outputs_that_would_meet(scene):
    """Two outputs in one file, one that cannot be written, and - where it means nothing: refused before the run."""
    path = scenario_in(scene)
    out = scene.dir / 'out'
    for arguments, status, words in ((('--flows', out, '--timeline', out), 2, 'where --flows goes, too'),
                                     (('--capture', f'leaf0:0={out}', '--capture', f'leaf0:1={out}'), 2, 'where --capture'),
                                     (('--capture', f'leaf0:0={out}', '--capture', f'leaf0:0={out}2'), 2, 'a second time'),
                                     (('--flows', '-'), 2, "found '-'"),
                                     (('--json', scene.dir / 'none' / 'out'), 1, 'No such file or directory')):
        line = refused(scene, 'lab', path, *arguments, status=status)
        check(words in line, f'{arguments}: {line!r} lacks {words!r}')
    check(not out.exists(), 'a run that was refused left a file')


def test_a_run_that_fails_leaves_earlier_results(scene):
    """The results of an earlier run stay where a run cannot begin."""
    path = scenario_in(scene)
    out = scene.dir / 'results.json'
    scene.run(scene.heddle, 'lab', path, '--json', out)
    before = out.read_bytes()
    check(json.loads(before)['completed'] == 8, 'the run was not done')
    refused(scene, 'lab', path, '--json', out, '--set', 'run.window=2us')
    check(out.read_bytes() == before, 'the results were overwritten')


def test_numbers_of_options(scene):
    """--seed and --threads take whole numbers in decimal, as the scenario's keys do."""
    path = scenario_in(scene)
    for option in ('--seed', '--threads'):
        for text in ('-1', '0x10', '010', '1.5', '18446744073709551616'):
            line = refused(scene, 'lab', path, f'{option}={text}')
            check(f'found \'{text}\'' in line and option in line, line)
    result = json.loads(scene.run(scene.heddle, 'lab', path, '--seed', '10', '--json'))
    check(result['configuration']['run']['seed'] == 10, 'the seed is another')


def test_a_full_disk_is_noticed(scene):
    """Standard output that takes nothing: one line, exit 1."""
    with open('/dev/full', 'w', encoding='ascii') as full:
        done = subprocess.run([str(scene.heddle), 'lab', str(scenario_in(scene))], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60)
    check(done.returncode == 1 and 'cannot write standard output' in done.stderr, f'{done.returncode}: {done.stderr!r}')
