#!/usr/bin/env python3
"""Compares the findings of two builds over folders of real code.

    tools/golden.py OLD NEW FOLDER…

Prints every finding that only one of the two builds reports, `-` for OLD and `+` for NEW, and ends with 1 if there is one. Findings of
low confidence are compared as well. Place, severity, rule and message are compared; with `--places`, not the message. The findings of OLD
are kept in `--cache` for each build and folder.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Place, severity and rule. A path may contain blanks.
WITHOUT_MESSAGE = re.compile(r".*?:\d+:\d+ \w+ SD\d+")

FLAGS = ["check", "--isolated", "--no-cache", "--min-confidence", "low", "--output-format", "json"]


def findings(binary: Path, folder: Path) -> list[str]:
    """What a build says of a folder, one line for each finding, paths relative to the folder."""
    run = subprocess.run([binary, *FLAGS, "."], cwd=folder, capture_output=True, text=True, check=False)
    try:
        found = json.loads(run.stdout)
    except ValueError:
        sys.exit(f"{binary} on {folder}: exit code {run.returncode}\n{run.stderr[-500:]}")
    return sorted(
        f"{f['filename'].removeprefix(str(folder.resolve())).lstrip('/')}:{f['location']['row']}:{f['location']['column']} "
        f"{f['severity']} {f['code']} {f['message']}"
        for f in found
    )


def remembered(binary: Path, folder: Path, cache: Path) -> list[str]:
    """The same, computed once for each content of the binary."""
    text = hashlib.sha256(binary.read_bytes()).hexdigest()[:16] + str(folder.resolve())
    kept = cache / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    found = findings(binary, folder)
    cache.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--cache", type=Path, default=Path("target/golden"), help="where OLD's findings are kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many folders at once")
    parser.add_argument("--places", action="store_true", help="do not compare messages")
    args = parser.parse_args()
    old_binary, new_binary = args.old.resolve(), args.new.resolve()

    def compared(lines: list[str]) -> Counter:
        return Counter(WITHOUT_MESSAGE.match(line)[0] if args.places else line for line in lines)

    def both(folder: Path) -> tuple[Path, Counter, Counter]:
        old, new = remembered(old_binary, folder, args.cache), findings(new_binary, folder)
        return folder, compared(old), compared(new)

    total, differences = 0, 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for folder, old, new in pool.map(both, args.folders):
            total += old.total()
            lost, gained = old - new, new - old
            for sign, lines in ("-", lost), ("+", gained):
                for line in sorted(lines.elements()):
                    print(f"{sign} {folder.name}/{line}")
            differences += lost.total() + gained.total()
    print(f"{total} findings in {len(args.folders)} folders, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
