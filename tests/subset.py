#!/usr/bin/env python3
"""Linting a part of a project reports what a run over all of it reports for those files.

    tests/subset.py BINARY [PROJECT…]

Without projects, two real ones are downloaded from PyPI. For each: one run over everything; then every file that has
findings alone, the same through standard input, and lists of files such as pre-commit hands over. Reads nothing else, needs
no PyTorch. Exits with 1 and the difference if any two runs disagree.
"""

import json
import pathlib
import random
import subprocess
import sys
import zipfile

PROJECTS = ["torch_geometric==2.8.1", "trl==1.16.0", "peft==0.21.2"]
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


def lint(binary, arguments, folder, text=None):
    run = subprocess.run([binary, "check", *OPTIONS, *arguments], cwd=folder, input=text, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"samedevice failed on {arguments}: {run.stderr}")
    return json.loads(run.stdout)


def compare(what, got, expected):
    if got == expected:
        return
    rows = lambda findings: sorted((f["filename"], f["location"]["row"], f["code"]) for f in findings)
    print(f"FAILED: {what}")
    print(f"  only in the part:  {[r for r in rows(got) if r not in rows(expected)]}")
    print(f"  only in the whole: {[r for r in rows(expected) if r not in rows(got)]}")
    if rows(got) == rows(expected):
        print("  the same findings, told differently")
    sys.exit(1)


def check(binary, project):
    # Names of files are absolute in JSON.
    project = project.resolve()
    whole = lint(binary, ["."], project)
    files = sorted(str(p) for p in project.rglob("*.py"))
    of = lambda names: [f for f in whole if f["filename"] in names]
    with_findings = [f for f in files if of({f})]
    if not with_findings:
        sys.exit(f"no findings in {project}: this proves nothing")
    for name in with_findings:
        compare(name, lint(binary, [name], project), of({name}))
        text = pathlib.Path(name).read_text()
        compare(f"{name} through standard input", lint(binary, ["--stdin-filename", name, "-"], project, text), of({name}))
    chance = random.Random(0)
    for _ in range(10):
        some = sorted({*chance.sample(files, min(30, len(files))), *chance.sample(with_findings, min(3, len(with_findings)))})
        compare(f"the list {some}", lint(binary, some, project), of(set(some)))
    print(f"{project.name}: {len(files)} files, {len(whole)} findings in {len(with_findings)} files: parts agree with the whole")


if __name__ == "__main__":
    binary = pathlib.Path(sys.argv[1]).resolve()
    cache = pathlib.Path(__file__).resolve().parent.parent / "target" / "ci-projects"
    for project in [pathlib.Path(p) for p in sys.argv[2:]] or [download(p, cache) for p in PROJECTS]:
        check(binary, project)
