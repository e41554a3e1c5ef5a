#!/usr/bin/env python3
"""What do fixes do to real code?

    fixes.py FOLDER... --bin PROGRAM [--sample N --seed S] [--safe]

Each folder is copied, and `--fix --unsafe-fixes` (with `--safe`: `--fix`) applied to the copy.  A table says for each

  files, lines     how much there is,
  before, after    the findings,
  fixed            how many of them fixes mended, in how many files,
  broken           changed files that Python does not parse,
  again            files that a second run changes,
  new              findings of other rules that were not there before, at changed or moved lines,
  errors           what the program complained of.

With `--sample N`, N fixes drawn at random are shown as diffs, to be read.  Exits with 1 if anything is broken, changes again or is new.
"""

import argparse
import ast
import collections
import difflib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import warnings


def run(binary, folder, *options):
    """One run over a folder: its findings, or what it printed, and what it complained of."""
    command = [binary, "check", "--isolated", "--no-cache", *options, "."]
    return subprocess.run(command, cwd=folder, capture_output=True)


def findings(binary, folder, *options):
    result = run(binary, folder, "--output-format", "json", *options)
    if result.returncode not in (0, 1, 2) or not result.stdout:
        raise SystemExit(f"{folder}: {result.stderr.decode(errors='replace')}")
    return json.loads(result.stdout), result.stderr.decode(errors="replace").splitlines()


def sources(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*.py")) if p.is_file()}


def parses(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(data)
        except (SyntaxError, ValueError):
            return False
    return True


def keys(found, folder):
    """The findings as counts by file and rule: lines move."""
    root = str(folder.resolve()) + "/"
    return collections.Counter((f["filename"].removeprefix(root), f["code"]) for f in found)


def hunks(before, after, name):
    """The changes of a file, each as a diff of its own."""
    old, new = (data.decode("utf-8", errors="replace").splitlines() for data in (before, after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(0):
        for tag, a, b, c, d in group:
            if tag == "equal":
                continue
            context = 12
            lines = [f"{name}:{a + 1}"]
            lines += [f"    {line}" for line in old[max(a - context, 0):a]]
            lines += [f"  - {line}" for line in old[a:b]] + [f"  + {line}" for line in new[c:d]]
            lines += [f"    {line}" for line in old[b:b + context // 2]]
            yield "\n".join(lines)


def examine(folder, args):
    """The row of the table for a folder, and its changes."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / folder.name
        ignored = shutil.ignore_patterns(".git")
        shutil.copytree(folder, copy, ignore=ignored, copy_function=shutil.copyfile, symlinks=True)
        old = sources(copy)
        before, _ = findings(args.bin, copy)
        options = ["--fix"] if args.safe else ["--fix", "--unsafe-fixes"]
        after, said = findings(args.bin, copy, *options)
        new = sources(copy)
        changed = [name for name in old if old[name] != new[name]]
        broken = [name for name in changed if parses(old[name]) and not parses(new[name])]
        findings(args.bin, copy, *options)
        again = [name for name, data in sources(copy).items() if data != new[name]]
        more = keys(after, copy) - keys(before, copy)
        fixed = [line for line in said if line.startswith("Fixed ")]
        errors = [line for line in said if line.startswith("error")]
        changes = [(folder.name, text) for name in changed for text in hunks(old[name], new[name], f"{folder.name}/{name}")]
        row = {
            "folder": folder.name,
            "files": len(old),
            "lines": sum(data.count(b"\n") for data in old.values()),
            "before": len(before),
            "after": len(after),
            "fixed": fixed[0].split()[1] if fixed else "0",
            "in files": len(changed),
            "broken": len(broken),
            "again": len(again),
            "new": sum(more.values()),
            "errors": len(errors),
        }
        notes = [f"{folder.name}: broken {name}" for name in broken]
        notes += [f"{folder.name}: changed again {name}" for name in again]
        notes += [f"{folder.name}: new {code} in {name}" for name, code in more]
        notes += [f"{folder.name}: {line}" for line in errors]
        return row, changes, notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--bin", required=True, type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--safe", action="store_true", help="safe fixes only")
    parser.add_argument("--sample", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    args = parser.parse_args()
    rows, changes, notes = [], [], []
    for folder in args.folders:
        row, found, said = examine(folder, args)
        rows.append(row)
        changes += found
        notes += said
    widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
    print("  ".join(f"{key:>{width}}" for key, width in widths.items()))
    for row in rows:
        print("  ".join(f"{row[key]:>{width}}" for key, width in widths.items()))
    print(*notes, sep="\n")
    for n, (_, text) in enumerate(random.Random(args.seed).sample(changes, min(args.sample, len(changes)))):
        print(f"\n--- {n + 1}. {text}")
    sys.exit(any(row["broken"] or row["again"] or row["new"] for row in rows))


if __name__ == "__main__":
    main()
