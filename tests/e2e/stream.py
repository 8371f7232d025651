"""Traffic while something else happens: numbered RoCEv2 frames at a steady pace, and an account of what arrived."""
import collections
import threading
import time

from frames import flow, psn, with_psn
from harness import check

BURST_SECONDS = 0.005  # frames go out in bursts this far apart


class Stream:
    """Sends the flows of `templates` in turn from a thread of its own, `rate` frames a second in all.

    Every flow numbers its frames 0, 1, 2… in the PSN. With `run`, so many frames of a flow go out one after another
    before the next flow has its turn, and the flow pauses until it comes round again. Use as a context manager; at its end `sent` holds how many
    frames of each flow went out.
    """

    def __init__(self, port, templates, *, rate=5000, run=1):
        self._port, self._templates = port, templates
        self._run = run
        self._burst = max(1, round(rate * BURST_SECONDS))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.sent = collections.Counter()
        self.error = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self._stop.set()
        self._thread.join(10)
        if kind is None and self.error:
            raise self.error

    def total(self):
        return sum(self.sent.values())

    def _send(self):
        flows = [flow(template) for template in self._templates]
        turn = 0
        due = time.monotonic()
        try:
            while not self._stop.is_set():
                for _ in range(self._burst):
                    which = turn // self._run % len(flows)
                    self._port.send(with_psn(self._templates[which], self.sent[flows[which]]))
                    self.sent[flows[which]] += 1
                    turn += 1
                due = max(due + BURST_SECONDS, time.monotonic() - 0.1)
                time.sleep(max(0, due - time.monotonic()))
        except OSError as error:
            self.error = error


def check_all_arrived(sent, received):
    """Fails unless every frame of every flow that was sent arrived exactly once; says which did not."""
    numbers = collections.defaultdict(list)
    for frame in received:
        numbers[flow(frame)].append(psn(frame))
    for which, count in sent.items():
        got = sorted(numbers[which])
        if got == list(range(count)):
            continue
        missing = sorted(set(range(count)) - set(got))
        check(not missing, f'{sum(sent.values()) - len(received)} of {sum(sent.values())} frames lost; flow {which}: '
              f'PSN {missing[:8]} of {count} never arrived')
        twice = [number for number, times in collections.Counter(got).items() if times > 1]
        check(False, f'flow {which}: PSN {twice[:8]} arrived more than once')


def check_in_order(received):
    """Fails if a frame overtook another of its flow."""
    last = {}
    for frame in received:
        which, number = flow(frame), psn(frame)
        before = last.get(which, -1)
        check(number > before, f'flow {which}: PSN {number} arrived after {before}')
        last[which] = number
