"""What the linter says about programs, against what PyTorch does with them."""

import json
import subprocess
from dataclasses import dataclass, field

# Rules whose findings say that PyTorch raises at that place, and the kinds of failures that they speak of. All other rules
# are about speed, memory, results that are dropped or code that nobody calls that way, and PyTorch cannot judge them here.
ABSENT = {"cuda", "ordinal"}
MEETING = {"mismatch", "numpy"}
PREDICTS = {
    "SD101": ABSENT, "SD104": ABSENT, "SD106": ABSENT, "SD305": ABSENT, "SD401": ABSENT, "SD402": ABSENT, "SD404": ABSENT,
    "SD201": MEETING, "SD202": MEETING, "SD204": MEETING, "SD205": MEETING, "SD206": MEETING, "SD207": MEETING, "SD209": MEETING,
    "SD301": MEETING, "SD306": MEETING,
}  # fmt: skip
# Rules that explain a failure if there is one, and are right without one, too.
EXPLAINS = {"SD203": MEETING, "SD302": MEETING}


@dataclass
class Claim:
    """A finding that PyTorch can judge."""

    code: str
    world: str
    row: int
    rows: set
    message: str
    condition: str | None

    def covers(self, gpus):
        """Whether its world has machines with this many GPUs."""
        if self.world == "always":
            return True
        if self.world == "no-cuda":
            return gpus == 0
        if self.world == "cuda":
            return gpus > 0
        if self.world.startswith("gpus>="):
            return gpus >= int(self.world[len("gpus>="):])
        return self.world.startswith("gpus<") and gpus < int(self.world[len("gpus<"):])

    def is_about(self, failure):
        return failure["kind"] in (PREDICTS | EXPLAINS)[self.code] and bool(self.rows.intersection(failure["lines"]))


@dataclass
class Verdict:
    """What came out for one program."""

    path: str
    # It fails for a reason that has nothing to do with devices, and tells nothing.
    discarded: str = ""
    # The failures that end the program, of runs without arguments: (number of GPUs, failure, found).
    failures: list = field(default_factory=list)
    right: list = field(default_factory=list)
    false_alarms: list = field(default_factory=list)
    # Claims about lines that no run got to see.
    unjudged: list = field(default_factory=list)

    @property
    def fails(self):
        return bool(self.failures)

    @property
    def missed(self):
        return [(gpus, failure) for gpus, failure, found in self.failures if not found]


def lint(binary, folder):
    """The claims of the linter about the programs in a folder, by path."""
    command = [binary, "check", "--isolated", "--exit-zero", "--quiet", "--output-format", "json-lines", folder]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    claims = {}
    for line in output.splitlines():
        finding = json.loads(line)
        if finding["code"] in PREDICTS | EXPLAINS:
            rows = {finding["location"]["row"], *(r["location"]["row"] for r in finding["related"])}
            claim = Claim(finding["code"], finding["world"], finding["location"]["row"], rows, finding["message"], finding["condition"])
            claims.setdefault(finding["filename"], []).append(claim)
        elif finding["code"] == "SD001":
            raise SystemExit(f"{finding['filename']}: {finding['message']}")
    return claims


def judge(path, runs, claims):
    """Compares the runs of one program with the claims about it."""
    verdict = Verdict(path)
    for run in runs:
        if "call" not in run and run["failures"] and run["failures"][0]["kind"] in ("other", "exit"):
            verdict.discarded = run["failures"][0]["message"]
            return verdict
    for run in runs:
        # Who names a GPU on the command line has one.
        named = run["gpus"] == 0 and "cuda" in run.get("arguments", ())
        if run["failures"] and "plain" in run and not named:
            first = run["failures"][0]
            # What matters is the line that raised.
            last = {**first, "lines": first["lines"][-1:]}
            found = any(c.covers(run["gpus"]) and c.is_about(last) for c in claims)
            verdict.failures.append((run["gpus"], first, found))
    for claim in (c for c in claims if c.code in PREDICTS):
        judged = [r for r in runs if claim.covers(r["gpus"])]
        if any(claim.is_about(f) for r in judged for f in r["failures"] + r["others"]):
            verdict.right.append(claim)
        elif any(f["kind"] == "other" for r in judged for f in r["failures"]):
            verdict.unjudged.append(claim)
        else:
            verdict.false_alarms.append(claim)
    return verdict
