#!/usr/bin/env python3
"""Shrinks a program on which PyTorch and the linter disagree.

    python tools/random_programs/minimise.py --bin target/release/samedevice PROGRAM...

Statements are taken away, and blocks replaced by their bodies, as long as the disagreement stays: the same rule's false
alarm, or the same failure missed on the same machine.
"""

import argparse
import ast
import pathlib
import tempfile
import textwrap

import simulate
from compare import judge, lint


class Shrinker:
    """Knows what the disagreement is."""

    def __init__(self, text, binary):
        self.binary = binary
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="minimise_"))
        self.path = self.folder / "program.py"
        self.target = self.disagreements(text)

    def disagreements(self, text):
        """What differs: rules of false alarms, and machines and kinds of failures that were missed."""
        self.path.write_text(text, encoding="utf-8")
        try:
            runs = list(simulate.simulate(str(self.path)))
            claims = lint(self.binary, str(self.folder))
        except (SyntaxError, SystemExit):
            return set()
        verdict = judge(str(self.path), runs, claims.get(str(self.path), []))
        if verdict.discarded:
            return set()
        missed = {(gpus, failure["kind"]) for gpus, failure in verdict.missed}
        return missed | {c.code for c in verdict.false_alarms}

    def stays(self, text):
        return bool(self.target) and bool(self.target & self.disagreements(text))

    def shrink(self, text):
        """The shortest program found; the first of the disagreements is the one that is kept."""
        if not self.target:
            return text
        self.target = {sorted(self.target, key=str)[0]}
        changed = True
        while changed:
            changed = False
            for candidate in candidates(text):
                if len(candidate) < len(text) and self.stays(candidate):
                    text, changed = candidate, True
                    break
        return text


def candidates(text):
    """Programs with one thing less, large things first."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# call:"):
            yield join(lines[:i] + lines[i + 1 :])
    found = []
    for node in ast.walk(ast.parse(text)):
        for field in ("body", "orelse", "finalbody", "handlers"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                found += [(statement, len(body)) for statement in body]
    found.sort(key=lambda f: f[0].lineno - f[0].end_lineno)
    for statement, siblings in found:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))]) - 1
        before, own, after = lines[:first], lines[first : statement.end_lineno], lines[statement.end_lineno :]
        indent = own[0][: len(own[0]) - len(own[0].lstrip())]
        yield join(before + after)
        if siblings == 1:
            yield join([*before, indent + "pass", *after])
        for field in ("body", "orelse"):
            inner = getattr(statement, field, None)
            if isinstance(inner, list) and inner and not isinstance(statement, ast.ClassDef):
                body = textwrap.dedent("\n".join(lines[inner[0].lineno - 1 : inner[-1].end_lineno]))
                yield join(before + textwrap.indent(body, indent).splitlines() + after)


def join(lines):
    """A text without needless lines; one that does not parse is caught later."""
    text = "\n".join(lines) + "\n"
    try:
        ast.parse(text)
    except SyntaxError:
        return text + "#" * 1_000_000
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    parser.add_argument("--bin", default="target/release/samedevice", help="the linter")
    options = parser.parse_args()
    simulate.install()
    for path in options.programs:
        shrinker = Shrinker(path.read_text(encoding="utf-8"), options.bin)
        text = shrinker.shrink(path.read_text(encoding="utf-8"))
        print(f"# {path}: {shrinker.target}\n{text}")


if __name__ == "__main__":
    main()
