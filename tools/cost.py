#!/usr/bin/env python3
"""What checking folders costs: CPU time and memory of two linters, in turns.

    tools/cost.py [-n ROUNDS] --against PROGRAM PROGRAM FOLDER...

Each program is run as `PROGRAM check --isolated --no-cache FOLDER`, which samedevice and Ruff both understand. Times of one run mean
little where others use the machine, so the two take turns, and each round gives one ratio. For each folder: the median of the ratios
with its range, CPU seconds and memory; at the end the geometric mean of the medians:

    cargo build --release && pip install ruff
    for name in transformers diffusers torchrl espnet monai accelerate torch_geometric; do
        pip download -q --no-deps --only-binary :all: -d wheels/$name $name && unzip -q wheels/$name/*.whl -d corpora/$name
    done
    tools/cost.py --against ruff target/release/samedevice corpora/*
"""

import argparse
import os
import statistics
import subprocess
import sys


def run(program, folder):
    """CPU seconds, of the user and of the system together, and the most memory in MiB."""
    command = [program, "check", "--isolated", "--no-cache", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    # 0: nothing found, 1: findings. A run that was cut short measures nothing.
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{' '.join(command)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(against, program, folder, rounds):
    """The figures of both programs, round by round."""
    # The first run of each reads the files from the disk.
    for each in (against, program):
        run(each, folder)
    return [(run(against, folder), run(program, folder)) for _ in range(rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=5, help="rounds for each folder (5)")
    parser.add_argument("--against", required=True, metavar="PROGRAM", help="what the program is compared with")
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", metavar="folder")
    args = parser.parse_args()
    print(f"{args.n} rounds, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print("folder: ratio of CPU, median (range); CPU seconds and MiB, medians")
    medians = []
    for folder in args.folders:
        rounds = measure(args.against, args.program, folder, args.n)
        ratios = [ours[0] / theirs[0] for theirs, ours in rounds]
        medians.append(statistics.median(ratios))
        seconds, memory = ([statistics.median(r[n][what] for r in rounds) for n in (1, 0)] for what in (0, 1))
        print(
            f"{folder}: {medians[-1]:.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
            f"{seconds[0]:.2f} against {seconds[1]:.2f} s, {memory[0]:.0f} against {memory[1]:.0f} MiB",
            flush=True,
        )
    print(f"geometric mean {statistics.geometric_mean(medians):.2f}, highest {max(medians):.2f}")


if __name__ == "__main__":
    main()
