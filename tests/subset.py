#!/usr/bin/env python3
"""The causes that runs over single files tell, taken together, are those that a run over everything tells, each once.

    tests/subset.py BINARY [PROJECT…]

Without projects, three real ones are downloaded from PyPI. For each: one run over everything; then every file that has a part in
a finding alone, and others drawn at random, the same through standard input, and lists of files such as pre-commit hands over. A
fingerprint belongs to the cause, so fingerprints are compared. At last, a baseline made by the run over everything must hold for
all of these. Reads nothing else, needs no PyTorch. Exits with 1 and the difference if any two runs disagree.
"""

import collections
import json
import pathlib
import random
import subprocess
import sys
import zipfile

PROJECTS = ["torch_geometric==2.8.1", "trl==1.16.0", "peft==0.21.2"]
# Files without findings of which each is checked alone.
OTHERS = 20
OPTIONS = ["--isolated", "--no-cache", "--output-format", "json", "--extend-select", "SD6"]


def download(project, into):
    """The project's wheel, unpacked; its folder."""
    target = into / project.replace("==", "-")
    if not target.is_dir():
        wheels = into / "wheels"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--only-binary", ":all:", "--dest", wheels, project], check=True)
        (wheel,) = wheels.glob(project.replace("==", "-") + "-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    return target


def run(binary, arguments, folder, text=None):
    ran = subprocess.run([binary, "check", *OPTIONS, *arguments], cwd=folder, input=text, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        sys.exit(f"samedevice failed on {arguments}: {ran.stderr}")
    return ran


def causes(binary, arguments, folder, text=None):
    """What a run tells, by its fingerprints."""
    findings = json.loads(run(binary, arguments, folder, text).stdout)
    found = {f["fingerprint"]: f"{f['code']} {f['filename']}:{f['location']['row']}" for f in findings}
    if len(found) < len(findings):
        twice = collections.Counter(f["fingerprint"] for f in findings)
        sys.exit(f"FAILED: {arguments} tell a cause twice: {[found[print] for print, n in twice.items() if n > 1]}")
    return found


def compare(what, got, expected):
    if got.keys() != expected.keys():
        print(f"FAILED: {what}")
        print(f"  only in the part:  {[got[p] for p in got.keys() - expected.keys()]}")
        print(f"  only in the whole: {[expected[p] for p in expected.keys() - got.keys()]}")
        sys.exit(1)


def check(binary, project):
    # Names of files are absolute in JSON.
    project = project.resolve()
    whole = causes(binary, ["."], project)
    if not whole:
        sys.exit(f"no findings in {project}: this proves nothing")
    # It lists, for each cause, the files whose check tells it, by their paths from its folder.
    baseline = project / ".samedevice-baseline.json"
    options = ["--baseline", str(baseline)]
    try:
        run(binary, [*options, "--update-baseline", "."], project)
        parts_agree(binary, project, whole, options, json.loads(baseline.read_text()))
    finally:
        baseline.unlink(missing_ok=True)


def parts_agree(binary, project, whole, options, document):
    telling = {path for path in document["findings"]}
    telling |= {path for lines in document["findings"].values() for line in lines for path in line.get("reached-from", [])}
    others = sorted({str(p.relative_to(project)) for p in project.rglob("*.py")} - telling)
    chance = random.Random(0)
    drawn = chance.sample(others, min(OTHERS, len(others)))
    alone = {name: causes(binary, [name], project) for name in [*sorted(telling), *drawn]}
    compare("all files alone", {p: f for found in alone.values() for p, f in found.items()}, whole)
    for name in telling:
        text = (project / name).read_text()
        compare(f"{name} through standard input", causes(binary, ["--stdin-filename", name, "-"], project, text), alone[name])
    for _ in range(10):
        some = sorted(chance.sample(sorted(telling), min(6, len(telling))) + chance.sample(drawn, min(12, len(drawn))))
        together = {p: f for name in some for p, f in alone[name].items()}
        compare(f"the list {some}", causes(binary, some, project), together)
        compare(f"the list {some} with a baseline", causes(binary, [*options, *some], project), {})
    compare("everything with a baseline", causes(binary, [*options, "."], project), {})
    print(f"{project.name}: {len(others) + len(telling)} files, {len(whole)} causes told for {len(telling)} files: parts agree with the whole")


if __name__ == "__main__":
    binary = pathlib.Path(sys.argv[1]).resolve()
    cache = pathlib.Path(__file__).resolve().parent.parent / "target" / "ci-projects"
    for project in [pathlib.Path(p) for p in sys.argv[2:]] or [download(p, cache) for p in PROJECTS]:
        check(binary, project)
