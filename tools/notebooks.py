"""Do changes of notebooks leave everything else in them alone?

    tools/notebooks.py FOLDER [--bin BINARY] [-- ARGUMENTS]
    tools/notebooks.py --compare BEFORE AFTER

The first form copies the notebooks (and Python files) of FOLDER, runs `samedevice check ARGUMENTS` on the copy (by default `--fix
--unsafe-fixes`), and compares the copy with FOLDER; the second one compares two folders. Compared is, notebook by notebook:

- as JSON: metadata, outputs, execution counts, the number and kinds of cells, the text of every cell that is not code;
- byte for byte: everything but the `source` of code cells.

Prints a line for each notebook that is not as it should be, and a summary; exits with 1 if there was one.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class Scanner:
    """Finds the source of each code cell in a notebook's text, as ranges of characters, without changing a byte of it."""

    def __init__(self, text):
        self.text = text
        self.decoder = json.JSONDecoder()

    def blank(self, at):
        while self.text[at] in " \t\r\n":
            at += 1
        return at

    def members(self, at):
        """The keys and values of the object at this place: name, start and end of the value; gives the end of the object last."""
        at = self.blank(at + 1)
        while self.text[at] != "}":
            if self.text[at] == ",":
                at = self.blank(at + 1)
            name, at = self.decoder.raw_decode(self.text, at)
            start = self.blank(self.blank(at) + 1)
            _, at = self.decoder.raw_decode(self.text, start)
            yield name, start, at
            at = self.blank(at)

    def items(self, at):
        """The start and end of each item of the list at this place."""
        at = self.blank(at + 1)
        while self.text[at] != "]":
            if self.text[at] == ",":
                at = self.blank(at + 1)
            _, end = self.decoder.raw_decode(self.text, at)
            yield at, end
            at = self.blank(end)

    def sources(self):
        top = self.blank(1 if self.text.startswith("\ufeff") else 0)
        for name, start, _ in self.members(top):
            if name != "cells":
                continue
            for cell, _ in self.items(start):
                parts = {name: (start, end) for name, start, end in self.members(cell)}
                kind = parts.get("cell_type")
                if kind and self.text[kind[0] : kind[1]] == '"code"' and "source" in parts:
                    yield parts["source"]

    def without_sources(self):
        """The text with nothing in place of the code, and the code of each cell."""
        kept, codes, at = [], [], 0
        for start, end in self.sources():
            kept.append(self.text[at:start])
            code = json.loads(self.text[start:end])
            codes.append(code if isinstance(code, str) else "".join(code))
            at = end
        return kept + [self.text[at:]], codes


def without_code(document):
    for cell in document.get("cells", []):
        if cell.get("cell_type") == "code":
            cell.pop("source", None)
    return document


def differences(before, after):
    """What differs besides the code of cells, and how many cells' code differs. Takes bytes."""
    if before == after:
        return [], 0
    texts = [data.decode("utf-8") for data in (before, after)]
    wrong = []
    documents = [without_code(json.loads(text.removeprefix("\ufeff"))) for text in texts]
    # Not a number is not equal to itself.
    if json.dumps(documents[0]) != json.dumps(documents[1]):
        wrong.append("metadata, outputs or cells differ")
    (kept, codes), (kept_after, codes_after) = [Scanner(text).without_sources() for text in texts]
    if kept != kept_after:
        wrong.append("bytes outside of code differ")
    if len(codes) != len(codes_after):
        wrong.append(f"{len(codes)} code cells became {len(codes_after)}")
    changed = sum(a != b for a, b in zip(codes, codes_after))
    return wrong, changed


def compare(before, after):
    seen = changed_files = changed_cells = failures = 0
    for path in sorted(before.rglob("*.ipynb")):
        name = path.relative_to(before)
        seen += 1
        try:
            wrong, changed = differences(path.read_bytes(), (after / name).read_bytes())
        except (ValueError, KeyError, IndexError, OSError) as error:
            same = (after / name).is_file() and path.read_bytes() == (after / name).read_bytes()
            wrong, changed = ([] if same else [str(error)]), 0
        changed_files += changed > 0
        changed_cells += changed
        failures += bool(wrong)
        for reason in wrong:
            print(f"{name}: {reason}")
    print(f"{seen} notebooks, {changed_files} changed ({changed_cells} cells), {failures} not as they should be")
    return failures


def main():
    arguments = sys.argv[1:]
    rest = ["--fix", "--unsafe-fixes"]
    if "--" in arguments:
        rest = arguments[arguments.index("--") + 1 :]
        arguments = arguments[: arguments.index("--")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--bin", default="samedevice")
    parser.add_argument("--compare", action="store_true")
    given = parser.parse_args(arguments)
    if given.compare:
        before, after = given.folders
        return compare(before, after)
    failures = 0
    for folder in given.folders:
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(temporary) / "copy"
            keep = {".ipynb", ".py", ".toml", ".cfg"}

            def ignored(parent, names):
                paths = [Path(parent) / name for name in names]
                return [path.name for path in paths if path.is_file() and path.suffix not in keep]

            shutil.copytree(folder, copy, ignore=ignored)
            run = subprocess.run([given.bin, "check", "--isolated", "--exit-zero", *rest, str(copy)], capture_output=True)
            if run.returncode not in (0, 1):
                print(f"{folder}: exit code {run.returncode}: {run.stderr.decode()[-500:]}")
                failures += 1
            failures += compare(folder, copy)
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 1))
