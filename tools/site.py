#!/usr/bin/env python3
"""Builds the site from the Markdown files of the repository, with mdBook.

    tools/site.py [--mdbook PROGRAM] [--out FOLDER]      default: mdbook, target/site

The files are copied to target/site-src at their own paths, so that links between them work. Links to other files of the repository become
links to its web page. The front matter of the rules becomes a heading and a line of facts.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "target" / "site-src"

# Title and file, by part.
PARTS = [
    (
        "Use",
        [
            ("Findings", "docs/findings.md"),
            ("Commands", "docs/commands.md"),
            ("Configuration", "docs/configuration.md"),
            ("CI and pre-commit", "docs/ci.md"),
            ("Baseline", "docs/baseline.md"),
            ("Fixes", "docs/fixes.md"),
            ("Suppression", "docs/suppression.md"),
            ("Editors", "docs/editors.md"),
            ("Notebooks", "docs/notebooks.md"),
            ("Verify", "docs/verify.md"),
            ("Verify: causes", "docs/verify-causes.md"),
            ("Verify: machine reports", "docs/verify-report.md"),
        ],
    ),
    (
        "Evaluate",
        [
            ("Comparison", "docs/comparison.md"),
            ("Precision", "docs/precision.md"),
            ("Performance", "docs/performance.md"),
            ("Changelog", "CHANGELOG.md"),
        ],
    ),
    (
        "Contribute",
        [
            ("Contributing", "CONTRIBUTING.md"),
            ("Design", "docs/design.md"),
            ("Glossary", "docs/glossary.md"),
            ("Dependencies", "docs/dependencies.md"),
            ("Verify: sources and tests", "docs/verify-tests.md"),
        ],
    ),
]
# Files that pages show or link to, besides Markdown.
ASSETS = ["docs/screenshot.svg", "docs/machine.schema.json", "docs/samedevice.schema.json", "docs/looked-at.txt"]
BOOK = """[book]
title = "samedevice"
description = "A linter that finds PyTorch device-placement bugs"
src = "."
language = "en"

[build]
build-dir = "{out}"
create-missing = false

[output.html]
git-repository-url = "{repository}"
default-theme = "light"
"""
FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def repository():
    """The address in Cargo.toml."""
    found = re.search(r'^repository = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1)


def facts(text):
    """A rule's page with a heading in place of its front matter."""
    found = FRONT.match(text)
    if not found:
        return text
    fields = dict(line.split(": ", 1) for line in found.group(1).splitlines())
    default = "on by default" if fields["default"] == "on" else "off by default"
    severity = fields["severity"]
    if "likely" in fields:
        severity += f" ({fields['likely']} unless certain)"
    heading = f"# {fields['code']} {fields['name']}\n\n*{severity} · world `{fields['world']}` · {default} · fix: {fields['fix']}*\n\n"
    return heading + text[found.end() :]


def site(path, text, chapters, web):
    """The text of a page, with links that work on the site."""

    def target(match):
        link = match.group(1)
        file, mark, anchor = link.partition("#")
        if "://" in link or not file:
            return match.group(0)
        place = os.path.relpath((ROOT / path).parent / file, ROOT)
        if not (ROOT / place).exists() or place in ASSETS:
            return match.group(0)
        if place in chapters:
            # mdBook writes a README as the index of its folder.
            return match.group(0).replace("README.md", "index.md")
        kind = "tree" if (ROOT / place).is_dir() else "blob"
        return f"]({web}/{kind}/main/{place}{mark}{anchor})"

    return LINK.sub(target, facts(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mdbook", default="mdbook", metavar="PROGRAM")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target" / "site", metavar="FOLDER")
    args = parser.parse_args()
    rules = sorted((ROOT / "rules").glob("SD*.md"))
    named = {file for _, pages in PARTS for _, file in pages}
    chapters = named | {"README.md", "rules/README.md"} | {rule.relative_to(ROOT).as_posix() for rule in rules}
    missing = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")} - named
    if missing:
        sys.exit(f"{sorted(missing)} are not in the contents (PARTS)")
    summary = ["# Summary", "", "[samedevice](README.md)", ""]
    for title, pages in PARTS:
        summary += [f"# {title}", ""] + [f"- [{name}]({file})" for name, file in pages] + [""]
        if title == "Use":
            summary.append("- [Rules](rules/README.md)")
            for rule in rules:
                code, name = rule.stem.split("-", 1)
                summary.append(f"  - [{code} {name}](rules/{rule.name})")
            summary.append("")
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    web = repository()
    for path in sorted(chapters):
        place = SOURCE / path
        place.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / path).read_text(encoding="utf-8")
        place.write_text(site(path, text, chapters, web), encoding="utf-8")
    for path in ASSETS:
        shutil.copy(ROOT / path, SOURCE / path)
    (SOURCE / "SUMMARY.md").write_text("\n".join(summary), encoding="utf-8")
    out = args.out.resolve()
    (SOURCE / "book.toml").write_text(BOOK.format(out=out.as_posix(), repository=web), encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([args.mdbook, "build", str(SOURCE)], check=True)
    print(f"{len(chapters)} pages in {out}")


if __name__ == "__main__":
    main()
