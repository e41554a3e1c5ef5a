#!/usr/bin/env python3
"""Does fixing a buggy program mend it?  PyTorch itself is asked with a simulator of machines.

    fix_cases.py CASES --bin PROGRAM --oracle ORACLE [--python PYTHON] [--only TEXT] [--diff]

CASES has a folder for each case, with `case.toml`, `buggy/` and `fixed/`.  `case.toml` names the program to run (`run`) and the
findings that are expected (`[[expect]]` with `code`, `accept`, `file` and `lines`).  A case counts if a code that is expected, or
one of those accepted for it, is of a rule with a fix, as `samedevice rule` says.  For each, the fixes are applied to a copy of `buggy/` with
`--fix --unsafe-fixes`, and then

  gone       no finding is left at the expected place,
  no other   no finding of a rule is there that was not found in `buggy/`,
  runs       the oracle accepts the program in all worlds in which it accepts `fixed/`.

ORACLE is a script that is called as `PYTHON ORACLE --worlds PROGRAM` and prints a JSON object a line, with `world` and `verdict`.
Exits with 1 if fewer than 90 % of the cases are mended.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib


def lint(binary, folder, *options):
    """The findings in a folder, or none if the program failed."""
    command = [binary, "check", "--isolated", "--no-cache", "--output-format", "json", *options, "."]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(f"{folder}: {run.stderr.strip()}")
    return json.loads(run.stdout), run.stderr


def fixable_codes(binary):
    """The codes of rules that have fixes."""
    run = subprocess.run([binary, "rule", "--output-format", "json"], capture_output=True, text=True, check=True)
    return {rule["code"] for rule in json.loads(run.stdout) if rule["fix"] != "none"}


def worlds(python, oracle, folder, program):
    """What the oracle says of a program, by world."""
    run = subprocess.run([python, oracle, "--worlds", program], cwd=folder, capture_output=True, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {line["world"]: line for line in lines}


def at_place(finding, expected, folder):
    name = pathlib.Path(finding["filename"]).resolve().relative_to(folder.resolve()).as_posix()
    codes = [expected["code"], *expected.get("accept", [])]
    first, last = expected["lines"]
    places = [(name, finding["location"]["row"])]
    places += [
        (pathlib.Path(r["filename"]).resolve().relative_to(folder.resolve()).as_posix(), r["location"]["row"])
        for r in finding["related"]
    ]
    return finding["code"] in codes and any(n == expected["file"] and first <= row <= last for n, row in places)


def judge(case, args, fixable):
    """The verdicts on one case, or nothing if no fix is expected there."""
    with open(case / "case.toml", "rb") as file:
        about = tomllib.load(file)
    expected = [e for e in about.get("expect", []) if fixable & {e["code"]}]
    if not expected:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "case"
        shutil.copytree(case / "buggy", folder, copy_function=shutil.copyfile)
        before, _ = lint(args.bin, folder)
        found = [f for f in before if any(at_place(f, e, folder) for e in expected)]
        if not found:
            return {"case": case.name, "found": False}
        after, said = lint(args.bin, folder, "--fix", "--unsafe-fixes")
        if args.diff:
            subprocess.run(["diff", "-ru", "-U1", case / "buggy", folder])
        left = [f for f in after if any(at_place(f, e, folder) for e in expected)]
        codes = {f["code"] for f in before}
        ours = worlds(args.python, args.oracle, folder, about["run"])
        theirs = worlds(args.python, args.oracle, case / "fixed", about["run"])
        refused = {w: ours.get(w, {}) for w, t in theirs.items() if t["verdict"] == "ok" and ours.get(w, {}).get("verdict") != "ok"}
        changed = subprocess.run(["diff", "-rq", case / "buggy", folder], capture_output=True).returncode != 0
        return {
            "case": case.name,
            "found": True,
            "codes": sorted({e["code"] for e in expected}),
            "changed": changed,
            "gone": not left,
            "others": sorted({f["code"] for f in after} - codes),
            "refused": {w: f"{o.get('verdict')} {o.get('error', '')} line {o.get('line')}" for w, o in refused.items()},
            "judged": sum(t["verdict"] == "ok" for t in theirs.values()),
            "said": said.strip(),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--bin", required=True, type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--oracle", required=True, type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--codes", help="count only cases that expect one of these, instead of all rules with fixes")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--diff", action="store_true", help="show what the fixes change")
    args = parser.parse_args()
    fixable = set(args.codes.split(",")) if args.codes else fixable_codes(args.bin)
    results = []
    for case in sorted(args.cases.iterdir()):
        if args.only in case.name and (case / "case.toml").is_file() and (case / "buggy").is_dir():
            result = judge(case, args, fixable)
            if result is None:
                continue
            results.append(result)
            if not result["found"]:
                print(f"{case.name:45} not found")
                continue
            good = result["gone"] and result["changed"] and not result["others"] and not result["refused"]
            result["good"] = good
            notes = [
                "" if result["changed"] else "no fix",
                "" if result["gone"] else "still found",
                f"also {', '.join(result['others'])}" if result["others"] else "",
                str(result["refused"]) if result["refused"] else "",
                "" if result["judged"] else "no world judged",
                result["said"],
            ]
            print(f"{case.name:45} {','.join(result['codes'])} {'mended' if good else 'NOT MENDED'} {'; '.join(n for n in notes if n)}")
    found = [r for r in results if r["found"]]
    mended = sum(r["good"] for r in found)
    print(f"{len(results)} cases with a fixable code, {len(found)} of them found, {mended} mended")
    sys.exit(mended * 10 < len(results) * 9)


if __name__ == "__main__":
    main()
