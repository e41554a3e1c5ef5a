"""The corpus: programs that mutation starts from."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT = [ROOT / "rules", ROOT / "fixtures"]
# Larger files cost a run much and teach it little.
MAX_BYTES = 64 * 1024
BLOCK = re.compile(rb"^```py[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def load(paths):
    """The programs of these files and folders, in a stable order: Python files, and the Python blocks of Markdown files."""
    programs = {}
    for path in paths or DEFAULT:
        path = pathlib.Path(path)
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix in (".py", ".md") and file.is_file():
                programs.update(dict.fromkeys(of_file(file)))
    return [program for program in programs if 0 < len(program) <= MAX_BYTES]


def of_file(file):
    content = file.read_bytes()
    return BLOCK.findall(content) if file.suffix == ".md" else [content]
