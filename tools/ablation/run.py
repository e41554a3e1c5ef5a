#!/usr/bin/env python3
"""Which functions of the engine change no finding when they are switched off?

    tools/ablation/run.py FOLDER…

Copies the crate to a temporary folder, and puts a switch at the start of every function of `src/flow` that answers with a bool, an
`Option`, a `Vec`, a set, a map or nothing: where the switch is off, the function answers `false`, `None`, an empty collection, or does
nothing. The copy is built once. Then one group of functions after the other is switched off, together with all that were found to change
nothing before. A group that changes a finding in one of the folders is split until the functions are known that do.

Prints the functions that can be switched off all at once, and those among them that were not even called. Findings of low confidence are
compared as well. A run that fails, or takes ten times as long as before, counts as a change.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from golden import FLAGS  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ["cargo", "build", "--release", "--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"]

# Free functions and methods, as rustfmt writes them. What is `const` runs while the crate is compiled, too, and is left alone.
FUNCTION = re.compile(r"^(?: {4})?(?:pub(?:\([\w: ]+\))? )?fn (\w+)", re.MULTILINE)

SWITCHES = """//! Switches of an experiment: which functions are off, and which were called.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many functions have a switch.
const COUNT: usize = @COUNT@;

/// The numbers in the environment variable, with a comma between them.
static OFF: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let mut off = vec![false; COUNT];
    for number in std::env::var("ABLATION_OFF").unwrap_or_default().split(',') {
        if let Some(switch) = number.parse::<usize>().ok().and_then(|n| off.get_mut(n)) {
            *switch = true;
        }
    }
    off
});

/// The file that gets the number of each function that is called.
static LOG: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("ABLATION_CALLED"));
static CALLED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// Is the function off? Called at its start.
pub fn is_off(function: usize) -> bool {
    if let Some(path) = LOG.as_ref() && !CALLED[function].swap(true, Ordering::Relaxed) {
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
            let _ = file.write_all(format!("{function}\\n").as_bytes());
        }
    }
    OFF[function]
}
"""


class Function(NamedTuple):
    """A function with a switch; its number is its place in the list."""

    file: str
    line: int
    name: str


def neutral(returns: str) -> str | None:
    """What a function of this type answers when it is off; `None` if it gets no switch."""
    if "impl " in returns:
        return None
    if returns in ("", "bool"):
        return {"": "", "bool": "false"}[returns]
    if returns.startswith("Option<"):
        return "None"
    if re.match(r"(Vec|FxHashSet|FxHashMap)<", returns):
        return "Default::default()"
    return None


def body(text: str, start: int) -> tuple[str, int] | None:
    """The type that the function at `start` returns, and the place after the brace that opens its body; `None` without a body."""
    depth, at = 0, text.index("(", start)
    while True:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            break
    opening = re.compile(r"[{;]").search(text, at)
    if opening is None or opening.group() == ";":
        return None
    head = text[at : opening.start()].split("where")[0].strip()
    return head.removeprefix("->").strip(), opening.end()


def add_switches(crate: Path, within: str) -> list[Function]:
    """Puts the switches into a copy of the crate."""
    functions: list[Function] = []
    for path in sorted((crate / within).rglob("*.rs")):
        if path.name == "tests.rs" or "tests" in path.parent.parts:
            continue
        text = path.read_text()
        tests = text.find("#[cfg(test)]\nmod")
        new, done = [], 0
        for match in FUNCTION.finditer(text, 0, tests if tests >= 0 else len(text)):
            found = body(text, match.end(1))
            answer = found and neutral(found[0])
            if found is None or answer is None:
                continue
            switch = f" if crate::ablation::is_off({len(functions)}) {{ return {answer}; }} "
            new += [text[done : found[1]], switch]
            done = found[1]
            line = text.count("\n", 0, match.start()) + 1
            functions.append(Function(str(path.relative_to(crate)), line, match.group(1)))
        path.write_text("".join([*new, text[done:]]))
    (crate / "src/ablation.rs").write_text(SWITCHES.replace("@COUNT@", str(len(functions))))
    lib = crate / "src/lib.rs"
    head = "#![allow(warnings)]\n#![allow(clippy::all)]\n"
    # Inner documentation comes first.
    lib.write_text(re.sub(r"^pub mod ", f"{head}pub mod ablation;\npub mod ", lib.read_text(), count=1, flags=re.MULTILINE))
    return functions


class Experiment:
    """The build with switches, and what it said of each folder with all of them on."""

    def __init__(self, binary: Path, folders: list[Path], called: Path) -> None:
        self.binary, self.folders = binary, folders
        self.runs, self.limit = 0, {}
        self.before = {}
        for folder in folders:
            start = time.monotonic()
            self.before[folder] = self.findings(folder, {"ABLATION_CALLED": str(called)})
            if self.before[folder] is None:
                sys.exit(f"{binary} fails on {folder}")
            self.limit[folder] = 10 * (time.monotonic() - start) + 1

    def findings(self, folder: Path, switches: dict[str, str]) -> list[str] | None:
        """What the build says of a folder; `None` if it fails."""
        self.runs += 1
        environment = {**os.environ, **switches}
        command = [self.binary, *FLAGS, "."]
        try:
            limit = self.limit.get(folder)
            run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=limit)
            found = json.loads(run.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            return None
        return sorted(json.dumps([f["filename"], f["location"], f["severity"], f["code"], f["message"]]) for f in found)

    def is_silent(self, off: list[int]) -> bool:
        """Does every folder have the same findings with these functions off?"""
        switches = {"ABLATION_OFF": ",".join(map(str, off))}
        return all(self.findings(folder, switches) == self.before[folder] for folder in self.folders)

    def add_silent(self, group: list[int], silent: list[int]) -> None:
        """Adds those of the group that change nothing together with what is in `silent` already."""
        if self.is_silent(silent + group):
            silent += group
        elif len(group) > 1:
            half = len(group) // 2
            self.add_silent(group[:half], silent)
            self.add_silent(group[half:], silent)


def build(work: Path, within: str) -> tuple[Path, list[Function]]:
    """The copy with switches, built, and its functions."""
    crate = work / "crate"
    shutil.copytree(ROOT, crate, ignore=shutil.ignore_patterns("target", ".git", "__pycache__"))
    functions = add_switches(crate, within)
    if not functions:
        sys.exit(f"{within} has no functions that can be switched off")
    target = work / "target"
    subprocess.run(BUILD, cwd=crate, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, check=True)
    return target / "release/samedevice", functions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="a folder of real code, with findings")
    parser.add_argument("--within", default="src/flow", help="the part of the crate whose functions get switches (src/flow)")
    parser.add_argument("--group", type=int, default=32, help="how many functions are switched off at once at first (32)")
    args = parser.parse_args()
    folders = [folder.resolve() for folder in args.folders]
    with tempfile.TemporaryDirectory(prefix="ablation-") as name:
        work = Path(name)
        binary, functions = build(work, args.within)
        log = work / "called"
        experiment = Experiment(binary, folders, log)
        called = sorted({int(n) for n in log.read_text().split()})
        silent: list[int] = []
        for start in range(0, len(called), args.group):
            experiment.add_silent(called[start : start + args.group], silent)
            print(f"{min(start + args.group, len(called))} of {len(called)}", end="\r", file=sys.stderr)
        print(file=sys.stderr)
    unused = set(range(len(functions))) - set(called)
    for number in sorted(unused | set(silent)):
        function = functions[number]
        note = " (not called)" if number in unused else ""
        print(f"{function.file}:{function.line} {function.name}{note}")
    found = sum(len(f) for f in experiment.before.values())
    print(
        f"{len(functions)} functions, {len(called)} of them called; {len(silent)} of these change none of {found} findings "
        f"in {len(folders)} folders when they are off together ({experiment.runs} runs)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
