#!/usr/bin/env python3
"""Mutated programs: does the linter end, in time, with an answer that makes sense?

    tools/fuzz/run.py --bin target/release/samedevice --seed 1 --seconds 120

Exits with 1 if anything is wrong; then what went wrong, a small program that shows it and the command are printed. README.md says more.
"""

import argparse
import collections
import pathlib
import random
import shlex
import shutil
import sys
import tempfile
import time

import seeds
from minimise import minimised, smallest
from mutate import mutated
from oracle import Limits, Oracle
from valid import valid

ROOT = seeds.ROOT
# Seconds, for one failure.
TIME_TO_MINIMISE = 60
LINES_SHOWN = 30
OF_ONE_FILE = ("time", "memory", "hang")


class Fuzzer:
    def __init__(self, options):
        self.options = options
        self.corpus = seeds.load(options.corpus)
        self.oracle = Oracle(options.bin.resolve(), Limits(options.limit, options.memory))
        self.failures = collections.Counter()
        self.files = 0

    def fuzz(self):
        """One batch after the other until the time is over. Each is made of the seed and its number alone."""
        end = time.monotonic() + self.options.seconds
        number = self.options.batch or 0
        while time.monotonic() < end or number == self.options.batch:
            self.batch(number)
            number += 1
            if self.options.batch is not None:
                break
        kinds = "".join(f"\n  {count} × {signature}" for signature, count in self.failures.most_common())
        print(f"{number} batches, {self.files} files, {sum(self.failures.values())} failures{kinds}", flush=True)

    def batch(self, number):
        rng = random.Random(f"{self.options.seed} {number}")
        of_valid = number % 2 == 1 if self.options.mode == "both" else self.options.mode == "valid"
        make = valid if of_valid else mutated
        # In one folder they are a project, and its files call each other; in folders of their own they do not.
        together = rng.random() < 0.3
        files = {}
        for at in range(self.options.files):
            name = rng.choice(("main", "helpers", "model", "train", "setup", "test_x", "utils")) if together else "main"
            path = f"{name}{at}.py" if together else f"p{at}/{name}.py"
            files[path] = make(rng, self.corpus)
        output_format = rng.choice(self.oracle.formats)
        self.files += len(files)
        case = Case(self.oracle, output_format)
        for problem in case.problems(files):
            if problem.kind in OF_ONE_FILE:
                self.each_alone(number, files, case)
            elif problem.file and case.shows({problem.file: files[problem.file]}, problem):
                self.report(number, {problem.file: files[problem.file]}, case, problem)
            else:
                self.report(number, files, case, problem)

    def each_alone(self, number, files, case):
        """All files together may be slow or large. One must not."""
        for name, content in files.items():
            for problem in case.problems({name: content}):
                self.report(number, {name: content}, case, problem)

    def report(self, number, files, case, problem):
        """Counts the problem; the first of a kind is made small, kept and printed."""
        self.failures[problem.signature] += 1
        if self.failures[problem.signature] > 1:
            return
        if self.options.minimise:
            files = smallest_case(files, case, problem)
        folder = self.options.out / f"{self.options.seed}-{number}-{sum(self.failures.values())}"
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, files)
        print(f"\nFAILURE: {problem.signature}\n  seed {self.options.seed}, batch {number}; files in {folder}")
        print(f"  (cd {shlex.quote(str(folder))} && {shlex.join(repeating(problem.command, files))})")
        if len(files) == 1:
            shown = b"".join(files.values()).decode("utf-8", "replace").splitlines()[:LINES_SHOWN]
            print("".join(f"  | {line[:120]}\n" for line in shown))
        sys.stdout.flush()


class Case:
    """How files are run: with which format besides JSON."""

    def __init__(self, oracle, output_format):
        self.oracle = oracle
        self.output_format = output_format

    def problems(self, files):
        """What is wrong with the runs over these contents, by their paths in a fresh folder."""
        with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
            write(folder, files)
            return self.oracle.problems(folder, list(files), self.output_format)

    def shows(self, files, problem):
        return any(one.signature == problem.signature for one in self.problems(files))


def smallest_case(files, case, problem):
    """The fewest files, and the least of each, that still show the problem."""
    names = smallest(list(files), lambda part: case.shows({name: files[name] for name in part}, problem), TIME_TO_MINIMISE)
    files = {name: files[name] for name in names}
    for name in names:
        files[name] = minimised(files[name], lambda content: case.shows({**files, name: content}, problem), TIME_TO_MINIMISE)
    return files


def write(folder, files):
    for path, content in files.items():
        target = pathlib.Path(folder, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def repeating(command, files):
    """The command for the files that are left."""
    return [part for part in command if not part.endswith(".py")] + sorted(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="*", type=pathlib.Path, help="files and folders to start from (rules and fixtures)")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release/samedevice", help="the linter")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the random numbers (random)")
    parser.add_argument("--seconds", type=float, default=60, help="how long (60)")
    parser.add_argument("--mode", choices=("both", "text", "valid"), default="both", help="which mutations (both)")
    parser.add_argument("--files", type=int, default=40, help="files of a batch (40)")
    parser.add_argument("--batch", type=int, help="only the batch of this number")
    parser.add_argument("--limit", type=float, default=10, help="seconds of CPU time for one file (10)")
    parser.add_argument("--memory", type=float, default=1024, help="MiB for one file (1024)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/fuzz", help="where failures are kept (target/fuzz)")
    parser.add_argument("--no-minimise", dest="minimise", action="store_false", help="keep failures as they are")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    fuzzer = Fuzzer(options)
    if not fuzzer.corpus:
        parser.error("no Python programs there")
    print(f"{len(fuzzer.corpus)} programs to start from", flush=True)
    fuzzer.fuzz()
    sys.exit(1 if fuzzer.failures else 0)


if __name__ == "__main__":
    main()
