#!/usr/bin/env python3
"""Random programs: what PyTorch does with them, and what the linter says.

    python tools/random_programs/run.py --seed 1 --count 5000 --bin target/release/samedevice

Needs a Python with torch and numpy; no GPU. The programs and what came out stay in the folder of `--out`.
"""

import argparse
import collections
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

from compare import PREDICTS, judge, lint
from generate import program

HERE = pathlib.Path(__file__).parent


def simulate(paths, jobs):
    """The runs of each program on each machine, by path."""
    size = -(-len(paths) // jobs)
    workers = [Worker(paths[i : i + size]) for i in range(0, len(paths), size)]
    runs = collections.defaultdict(list)
    for worker in workers:
        for path, found in worker.finish().items():
            runs[path].extend(found)
    return runs


class Worker:
    """A process that runs programs under the simulation."""

    def __init__(self, paths):
        self.paths = paths
        self.start()

    def start(self):
        self.output = tempfile.TemporaryFile("w+")
        # A file and no pipe: one that is full would hold the next worker up.
        with tempfile.TemporaryFile("w+") as wanted:
            wanted.write("\n".join(self.paths))
            wanted.seek(0)
            command = [sys.executable, HERE / "simulate.py", "--tell"]
            self.process = subprocess.Popen(command, stdin=wanted, stdout=self.output, text=True)

    def finish(self):
        """The runs by path. PyTorch itself crashes now and then (free() of a bad address, a few in 10,000 programs): the program
        that was running is tried once more in a new process, and discarded if it crashes again."""
        runs, crashed = collections.defaultdict(list), set()
        while True:
            code = self.process.wait()
            at = self.read(runs)
            if code == 0:
                return runs
            if code > 0 or at is None:
                raise SystemExit("the simulation gave up")
            runs[at] = []
            if at in crashed:
                failure = {"kind": "other", "message": "PyTorch crashed", "lines": []}
                runs[at] = [{"path": at, "gpus": 0, "failures": [failure], "others": []}]
            self.paths = self.paths[self.paths.index(at) + (at in crashed) :]
            crashed.add(at)
            self.start()

    def read(self, runs):
        """Takes over what the process has written; gives the program that it began last."""
        at = None
        self.output.seek(0)
        for line in self.output:
            run = json.loads(line)
            at = run["path"]
            if "failures" in run:
                runs[at].append(run)
        return at


def report(verdicts):
    """Prints the figures; gives the programs on which the two disagree."""
    judged = [v for v in verdicts if not v.discarded]
    failing = [v for v in judged if v.fails]
    found = [v for v in failing if not v.missed]
    places = [f for v in failing for f in v.failures]
    claims = [c for v in judged for c in v.right]
    false_alarms = [c for v in judged for c in v.false_alarms]
    print(f"{len(judged)} programs ({len(verdicts) - len(judged)} discarded), {len(failing)} fail on some machine")
    print(f"found at the right line on every machine: {len(found)} ({100 * len(found) / max(len(failing), 1):.1f} %)")
    hits = sum(f[2] for f in places)
    print(f"failures (a program on a machine): {len(places)}, found {hits} ({100 * hits / max(len(places), 1):.1f} %)")
    print(f"findings: {len(claims)} right, {len(false_alarms)} false alarms, {sum(len(v.unjudged) for v in judged)} not judged")
    for code in sorted(PREDICTS):
        right, wrong = sum(c.code == code for c in claims), sum(c.code == code for c in false_alarms)
        if right or wrong:
            print(f"    {code}: {right} right, {wrong} false alarms")
    for reason, count in collections.Counter(v.discarded[:100] for v in verdicts if v.discarded).most_common(8):
        print(f"    discarded: {count} x {reason}")
    return [v for v in judged if v.missed or v.false_alarms]


def describe(verdict):
    """A disagreement, a line for each."""
    for claim in verdict.false_alarms:
        yield f"{verdict.path}:{claim.row}: false alarm {claim.code} ({claim.world}) {claim.message}"
    for gpus, failure in verdict.missed:
        yield f"{verdict.path}:{failure['lines'][-1] if failure['lines'] else 0}: missed with {gpus} GPUs: {failure['message']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="the number of the first program")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--bin", default="target/release/samedevice", help="the linter")
    parser.add_argument("--out", help="a folder for the programs; temporary unless given")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="use the programs and runs of --out, lint only")
    options = parser.parse_args()
    folder = pathlib.Path(options.out or tempfile.mkdtemp(prefix="random_programs_"))
    programs, cache = folder / "programs", folder / "runs.json"
    if options.again:
        runs = json.loads(cache.read_text())
    else:
        programs.mkdir(parents=True, exist_ok=True)
        for old in programs.glob("*.py"):
            old.unlink()
        paths = []
        for seed in range(options.seed, options.seed + options.count):
            path = programs / f"p{seed:06}.py"
            path.write_text(program(seed), encoding="utf-8")
            paths.append(str(path))
        runs = simulate(paths, options.jobs)
        cache.write_text(json.dumps(runs))
    claims = lint(options.bin, str(programs))
    verdicts = [judge(path, runs[path], claims.get(path, [])) for path in sorted(runs)]
    wrong = report(verdicts)
    lines = list(itertools.chain.from_iterable(describe(v) for v in wrong))
    (folder / "disagreements.txt").write_text("".join(line + "\n" for line in lines))
    print(f"{len(lines)} disagreements: {folder / 'disagreements.txt'}")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
