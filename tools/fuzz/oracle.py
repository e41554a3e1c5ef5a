"""The oracle: is there anything wrong with what the linter did with these files?"""

import dataclasses
import json
import pathlib
import re
import subprocess
import xml.etree.ElementTree

from execute import run
from valid import accepts

OPTIONS = ["check", "--isolated", "--no-cache", "--select", "ALL,SD000"]
JSON = ["--output-format", "json"]
# Formats whose syntax is known here; of others it is seen that they are written at all.
DOCUMENTS = {"gitlab": json.loads, "sarif": json.loads, "rdjson": json.loads, "junit": xml.etree.ElementTree.fromstring}
# What a file too deeply nested is told; whether Python can work on it hangs on Python's version.
DEPTH = re.compile(r"nested too deep|too deeply nested|too deep")


@dataclasses.dataclass
class Problem:
    """Something that must not be."""

    # What kind, in a word, and what tells two bugs of one kind apart, such as the place of a panic.
    kind: str
    detail: str
    # The command that shows it, in the folder of the files.
    command: list
    # The file that it is about, if it is about one.
    file: str | None = None

    @property
    def signature(self):
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


@dataclasses.dataclass
class Limits:
    """For one file alone."""

    seconds: float
    mebibytes: float


class Oracle:
    def __init__(self, binary, limits):
        self.binary = str(binary)
        self.limits = limits
        self.formats = self.formats_of_help()

    def formats_of_help(self):
        """The formats that this linter writes."""
        text = subprocess.run([self.binary, "check", "--help"], capture_output=True, text=True, check=True).stdout
        section = text[text.index("--output-format <") :].split("--output-file")[0]
        return re.findall(r"^\s+- ([a-z-]+):", section, re.MULTILINE) or ["full", "concise", "json"]

    def problems(self, folder, files, output_format):
        """All that is wrong with the runs over these files of the folder."""
        command = [self.binary, *OPTIONS]
        names = sorted(files)
        first = run([*command, *JSON, "--jobs", "1", *names], folder, self.limits.seconds)
        found = self.of_run(first)
        if found:
            return found
        found = self.of_findings(first, folder, files)
        second = run([*command, *JSON, "--jobs", "3", *reversed(names)], folder, self.limits.seconds)
        found += self.of_run(second)
        if not found and (first.code, first.stdout) != (second.code, second.stdout):
            found.append(Problem("nondeterminism", difference(first, second), second.command))
        third = run([*command, "--output-format", output_format, *names], folder, self.limits.seconds)
        found += self.of_run(third) + of_document(third, output_format)
        return found

    def of_run(self, ran):
        """What can be said of any run."""
        text = ran.stdout + ran.stderr
        if ran.hung:
            return [Problem("hang", "", ran.command)]
        if ran.seconds > self.limits.seconds or ran.code in (-24, -9):
            return [Problem("time", "", ran.command)]
        if ran.memory > self.limits.mebibytes:
            return [Problem("memory", "", ran.command)]
        if b"internal error" in text:
            return [Problem("internal error", place_of_panic(text), ran.command)]
        if ran.code < 0:
            return [Problem("crash", f"signal {-ran.code} {place_of_panic(text)}".strip(), ran.command)]
        if ran.code not in (0, 1):
            return [Problem("exit code", f"{ran.code} {first_line(ran.stderr)}".strip(), ran.command)]
        return []

    def of_findings(self, ran, folder, files):
        """Is the JSON right, and all that it says within the files?"""
        try:
            findings = json.loads(ran.stdout)
            texts = {str(pathlib.Path(folder, name).resolve()): name for name in files}
            found = [problem for finding in findings for problem in wrong_places(finding, texts, folder, ran)]
        except (ValueError, KeyError, TypeError) as error:
            return [Problem("invalid JSON", str(error)[:80], ran.command)]
        for finding in findings:
            name = texts.get(finding["filename"])
            if finding["code"] == "SD001" and name and not DEPTH.search(finding["message"]):
                if accepts(pathlib.Path(folder, name).read_bytes()):
                    found.append(Problem("valid Python refused", finding["message"][:60], ran.command, name))
        return found


def place_of_panic(text):
    found = re.search(rb"([\w/.-]+\.rs:\d+)", text)
    return found[1].decode() if found else ""


def first_line(text):
    """The start of a message, without what is different in each run."""
    return re.sub(r"`[^`]*`|\d+", "…", text.decode("utf-8", "replace").split("\n")[0])[:80]


def difference(first, second):
    """The codes of findings that only one of two runs has."""
    try:
        codes = [{(f["code"], f["message"]) for f in json.loads(ran.stdout)} for ran in (first, second)]
    except ValueError:
        return ""
    return ", ".join(sorted({code for code, _ in codes[0] ^ codes[1]}))


def of_document(ran, output_format):
    """Is it what its format promises?"""
    try:
        ran.stdout.decode("utf-8")
        if output_format in DOCUMENTS:
            DOCUMENTS[output_format](ran.stdout)
        elif output_format == "json-lines":
            [json.loads(line) for line in ran.stdout.splitlines()]
    except (ValueError, xml.etree.ElementTree.ParseError) as error:
        return [Problem(f"invalid {output_format}", re.sub(r"\d+", "N", str(error))[:60], ran.command)]
    return []


def wrong_places(finding, texts, folder, ran):
    """Places of a finding that are not in their files, or end before they start."""
    edits = (finding["fix"] or {}).get("edits", [])
    for place in [finding, *finding["related"], *edits]:
        filename = place.get("filename", finding["filename"])
        start, end = place["location"], place["end_location"]
        problem = Problem("place outside of its file", finding["code"], ran.command, texts.get(filename))
        if (start["row"], start["column"]) > (end["row"], end["column"]) or filename not in texts:
            yield problem
            continue
        rows = rows_of(pathlib.Path(filename).read_bytes())
        for position in (start, end):
            row, column = position["row"], position["column"]
            # An undecodable file has its bytes for characters, at most.
            if not (1 <= row <= len(rows) and 1 <= column <= len(rows[row - 1]) + 1):
                yield problem


def rows_of(content):
    """The rows as bytes, each of which is a character at most. An end of a line may be counted as one more character."""
    return re.split(rb"\r\n|\r|\n", content)
