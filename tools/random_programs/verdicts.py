#!/usr/bin/env python3
"""Asks PyTorch about the programs of fixtures/oracle, whose first line has its verdict.

    python tools/random_programs/verdicts.py [--write] fixtures/oracle/*.py

Without `--write` it says where a first line is not what PyTorch says.
"""

import argparse
import pathlib
import sys

import simulate

START = "# PyTorch: "


def verdict(path):
    """What happens on each machine, as the first line has it."""
    parts = []
    for run in simulate.simulate(str(path)):
        if "plain" not in run:
            continue
        name = "1 GPU" if run["gpus"] == 1 else f"{run['gpus']} GPUs"
        first = run["failures"][0] if run["failures"] else None
        if first and first["kind"] == "other":
            raise SystemExit(f"{path}: {first['message']}")
        parts.append(f"{name}: " + (f"line {first['lines'][-1]} raises" if first else "works"))
    return START + ", ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    simulate.install()
    wrong = 0
    for path in options.programs:
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines[0].startswith(START):
            lines.insert(0, START)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        said = verdict(path)
        if lines[0] != said:
            wrong += 1
            print(f"{path}: {said}")
            if options.write:
                path.write_text("\n".join([said, *lines[1:]]) + "\n", encoding="utf-8")
    sys.exit(bool(wrong) and not options.write)


if __name__ == "__main__":
    main()
