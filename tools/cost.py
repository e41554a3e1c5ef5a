#!/usr/bin/env python3
"""What checking a folder costs: CPU time and memory of several linters, in turns.

    tools/cost.py [-n ROUNDS] FOLDER PROGRAM...

Each PROGRAM is run as `PROGRAM check --isolated --no-cache FOLDER`, which samedevice and Ruff both understand. Times of one run mean
little where others use the machine, so the programs take turns, and every round is a ratio to the first of them:

    cargo build --release && pip install ruff && pip download --no-deps transformers && unzip -q transformers-*.whl -d wheel
    tools/cost.py wheel ruff target/release/samedevice
"""

import argparse
import os
import statistics
import subprocess


def run(program, folder):
    """CPU seconds, of the user and of the system together, and the most memory in MiB."""
    command = [program, "check", "--isolated", "--no-cache", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def summary(values, digits):
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=9, help="rounds (9)")
    parser.add_argument("folder")
    parser.add_argument("programs", nargs="+", metavar="program")
    args = parser.parse_args()
    # The first run of each reads the files from the disk.
    for program in args.programs:
        run(program, args.folder)
    rounds = [[run(program, args.folder) for program in args.programs] for _ in range(args.n)]
    print(f"{args.n} rounds, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}: medians and ranges")
    for n, program in enumerate(args.programs):
        seconds = [round_[n][0] for round_ in rounds]
        ratios = [round_[n][0] / round_[0][0] for round_ in rounds]
        memory = statistics.median(round_[n][1] for round_ in rounds)
        print(f"{program}: {summary(seconds, 2)} s CPU, {summary(ratios, 3)} of the first, {memory:.0f} MiB")


if __name__ == "__main__":
    main()
