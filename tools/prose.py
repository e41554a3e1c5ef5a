#!/usr/bin/env python3
"""Checks the words of everything that people read: documents, pages of rules, help texts. Uses textlint.

    tools/prose.py [--textlint PROGRAM] [--bin PROGRAM] [FILE...]

Without files: README, CONTRIBUTING, CHANGELOG, docs, rules, the READMEs of folders, and with --bin the help of all commands. docs/words.yml has the words that are
not used. A sentence has at most 180 characters, on the pages of the rules 220. Code is not checked.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SENTENCE = 180
# The pages of the rules list several names of functions in a sentence.
SENTENCE_OF_RULES = 220
LENGTH = re.compile(r"sentence length\((\d+)\)")
# Quotes the words that are not used.
QUOTED = re.compile(r"^\| Instead of .*?(?=^\n)", re.DOTALL | re.MULTILINE)


def documents():
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for pattern in ("docs/*.md", "rules/*.md", "tools/*/README.md", "fixtures/*/README.md", "fuzz/README.md"):
        files += sorted(ROOT.glob(pattern))
    return files


def helps(binary, folder):
    """The help texts of all commands, as files. Lines that belong together are joined."""
    top = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z-]+) {2,}", top.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    files = []
    for command in ["", *(command for command in commands if command != "help")]:
        text = subprocess.run([binary, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
        path = folder / f"help-{command or 'samedevice'}.txt"
        path.write_text(text, encoding="utf-8")
        files.append(path)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--textlint", default="textlint", metavar="PROGRAM")
    parser.add_argument("--bin", metavar="PROGRAM", help="samedevice, for its help texts")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    config = {"rules": {"prh": {"rulePaths": [str(ROOT / "docs" / "words.yml")]}, "sentence-length": {"max": SENTENCE}}}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        settings = folder / "textlintrc.json"
        settings.write_text(json.dumps(config), encoding="utf-8")
        files, shown = [], {}
        for number, path in enumerate(args.files or documents()):
            # The style guide quotes what not to write.
            text = QUOTED.sub(lambda quote: "\n" * quote.group(0).count("\n"), path.read_text(encoding="utf-8"))
            copy = folder / f"{number}{path.suffix}"
            copy.write_text(text, encoding="utf-8")
            files.append(copy)
            shown[str(copy)] = path.resolve().relative_to(ROOT).as_posix()
        if args.bin:
            for path in helps(args.bin, folder):
                files.append(path)
                shown[str(path)] = path.stem.replace("help-", "--help of ")
        command = [args.textlint, "--config", str(settings), "--format", "json", *map(str, files)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            results = json.loads(run.stdout)
        except ValueError:
            sys.exit(f"textlint failed: {run.stdout}{run.stderr}")
    count = 0
    for result in results:
        name = shown[result["filePath"]]
        for message in result["messages"]:
            text = message["message"].strip().splitlines()[0]
            length = LENGTH.search(text)
            if length and name.startswith("rules/") and int(length.group(1)) <= SENTENCE_OF_RULES:
                continue
            count += 1
            print(f"{name}:{message['line']}:{message['column']}: {text}")
    if count:
        sys.exit(f"{count} to rewrite")
    print(f"{len(files)} texts, nothing to rewrite")


if __name__ == "__main__":
    main()
