#!/usr/bin/env python3
"""Compare `samedevice verify` with PyTorch itself, on real environments made of the wheels on PyPI.

    cargo build
    python3 tools/environments.py --bin target/debug/samedevice --work FOLDER > table.md

Three kinds of environments, one after the other; each is deleted as soon as it is compared (at most 10 GB at once):

- unpacked: a wheel without what it asks for. Compared are the version, CUDA and HIP that `torch/version.py` gives when Python
  executes it, the list of architectures that is found by reading the whole of `libtorch_python`, and the libraries that `ldd`
  does not find for the C extension.
- imported: a wheel with all that it asks for, in an environment made by `venv`. Compared are `torch.__version__`,
  `torch.version.cuda`, `torch.version.hip`, `torch.cuda.get_arch_list()` (where PyTorch gives one without a GPU) and whether
  `import torch` works. Debian's `python3-torch` is the build without CUDA, as PyPI has none for Linux on x86-64.
- broken: an imported one with something taken away, cut off or put over it. Compared are whether the import fails, and with which
  words.

Needs Linux on x86-64, `ldd`, and interpreters of the versions below (pyenv's are found); what has none is told and left out.
"""

import argparse
import glob
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

# Version of PyTorch, of Python, and the wheel's platform.
UNPACKED = [
    ("1.0.1", "3.7", "manylinux1_x86_64"),
    ("1.4.0", "3.8", "manylinux1_x86_64"),
    ("1.8.1", "3.9", "manylinux1_x86_64"),
    ("1.10.2", "3.9", "manylinux1_x86_64"),
    ("1.12.1", "3.10", "manylinux1_x86_64"),
    ("2.0.1", "3.11", "manylinux1_x86_64"),
    ("2.1.2", "3.11", "manylinux2014_aarch64"),
    ("2.2.2", "3.12", "manylinux1_x86_64"),
    ("2.3.1", "3.11", "win_amd64"),
    ("2.4.1", "3.12", "manylinux1_x86_64"),
    ("2.5.1", "3.12", "macosx_11_0_arm64"),
    ("2.6.0", "3.13", "manylinux1_x86_64"),
    ("2.8.0", "3.13", "manylinux_2_28_x86_64"),
    ("2.9.1", "3.14", "manylinux_2_28_x86_64"),
    ("2.11.0", "3.14", "manylinux_2_28_x86_64"),
    ("2.13.0", "3.12", "manylinux_2_28_aarch64"),
]

# Version of PyTorch, of Python, what to install besides, and how to break it.
IMPORTED = [
    ("1.9.1", "3.9", ["numpy<2"], []),
    ("1.13.1", "3.10", ["numpy<2"], ["without libcudnn.so.8", "without libnvrtc.so.11.2"]),
    ("2.1.2", "3.11", ["numpy<2", "torchvision==0.16.2"], ["without libcupti.so.12", "without libnvToolsExt.so.1", "torchvision==0.20.1"]),
    ("2.5.1", "3.12", [], ["nvjitlink 12.1.105 first", "without libcufft.so.11"]),
    (
        "2.8.0",
        "3.13",
        [],
        ["cut libtorch_cuda.so", "empty libcudnn.so.9", "without libcusolver.so.11", "nvidia-nccl-cu13==2.30.7", "nvidia-nccl-cu12==2.18.1"],
    ),
    ("2.12.1", "3.13", [], ["without libcudart.so.13", "without libnvshmem_host.so.3"]),
]

PIP = ["--no-cache-dir", "--disable-pip-version-check", "--quiet"]


def interpreter(version):
    """An interpreter of this version: on PATH, or pyenv's."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = glob.glob(f"{root}/versions/{version}.*/bin/python{version}") + [shutil.which(f"python{version}")]
    for path in filter(None, found):
        if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    return None


class Rows:
    def __init__(self):
        self.wrong = 0
        print("| Environment | Version | CUDA | Architectures | `import torch` | Differences |")
        print("| --- | --- | --- | --- | --- | --- |", flush=True)

    def add(self, name, facts, said, differences):
        self.wrong += bool(differences)
        archs = facts.get("archs") or ""
        # One line of the table.
        cells = [name, facts.get("version") or "", facts.get("cuda") or "–", archs or "–", said, "; ".join(differences) or "none"]
        print("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |", flush=True)


def verify(binary, python, environment=None):
    """The report."""
    env = {**os.environ, **(environment or {})}
    run = subprocess.run([binary, "verify", "--output-format", "json", "--python", python], capture_output=True, text=True, env=env)
    try:
        return json.loads(run.stdout)
    except ValueError:
        sys.exit(f"no report of {python}: {run.stderr}")


def read(report):
    """The facts of the report, in the form of those of PyTorch."""
    torch = report["torch"] or {}
    return {
        "version": torch.get("version"),
        "cuda": torch.get("cuda"),
        "hip": torch.get("hip"),
        "archs": " ".join(torch.get("archs") or []),
    }


def short(cuda):
    """12.1.105 is 12.1 in the report."""
    return ".".join(cuda.split(".")[:2]) if cuda else cuda


def problem(report, *ids):
    return next((problem for problem in report["problems"] if problem["id"] in ids), None)


FATAL = ("library-missing", "library-damaged", "symbol-missing", "module-missing", "broken-pytorch")


def compare(expected, got):
    return [f"`{key}`: {got.get(key)} instead of {value}" for key, value in expected.items() if got.get(key) != value]


def download(version, python, platform, work):
    target = work / "wheel"
    shutil.rmtree(target, ignore_errors=True)
    # One Python for all: it only names the wheel. Its own options choose the rest.
    command = [sys.executable, "-m", "pip", "download", *PIP, "--no-deps", "--only-binary=:all:", "--dest", str(target)]
    command += ["--python-version", python, "--implementation", "cp", "--platform", platform, f"torch=={version}"]
    subprocess.run(command, check=True)
    return next(target.glob("*.whl"))


def executed(torch):
    """What `torch/version.py` gives when Python executes it."""
    code = "import json, runpy, sys; v = runpy.run_path(sys.argv[1]); print(json.dumps([v['__version__'], v.get('cuda'), v.get('hip')]))"
    version, cuda, hip = json.loads(subprocess.check_output([sys.executable, "-c", code, str(torch / "version.py")], text=True))
    return {"version": str(version), "cuda": short(cuda), "hip": hip}


def searched(torch):
    """The longest list of architectures in the whole of PyTorch's library for Python."""
    best = b""
    for name in ("libtorch_python.so", "torch_python.dll", "libtorch_python.dylib"):
        path = torch / "lib" / name
        if path.is_file():
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                for found in re.finditer(rb"sm_[0-9]+[af]?(?: (?:sm|compute)_[0-9]+[af]?)*(?=\0)", data):
                    best = max(best, found.group(), key=len)
    return best.decode()


def unfound(torch):
    """What the loader does not find of what the C extension needs: by itself, without what PyTorch loads before."""
    for path in torch.glob("_C.*.so"):
        run = subprocess.run(["ldd", str(path)], capture_output=True, text=True)
        return sorted(set(re.findall(r"^\s*(\S+) => not found", run.stdout, re.M)))
    return []


def named(report):
    """The libraries that the report says are missing."""
    found = problem(report, "library-missing")
    names = re.findall(r"(lib[\w.+-]+\.so[\w.]*)", " ".join(e.split(" needs ")[1] for e in found["evidence"] if " needs " in e)) if found else []
    return sorted(set(names))


def unpacked(rows, binary, work):
    for version, python, platform in UNPACKED:
        prefix = work / "environment"
        shutil.rmtree(prefix, ignore_errors=True)
        site = prefix / "lib" / f"python{python}" / "site-packages"
        if "win" in platform:
            site = prefix / "Lib" / "site-packages"
        wheel = download(version, python, platform, work)
        site.mkdir(parents=True)
        with zipfile.ZipFile(wheel) as archive:
            wanted = [name for name in archive.namelist() if not name.startswith("torch/include/")]
            archive.extractall(site, wanted)
        wheel.unlink()
        (prefix / "pyvenv.cfg").write_text(f"home = /nowhere\nversion = {python}.0\n")
        torch = site / "torch"
        expected = {**executed(torch), "archs": searched(torch)}
        report = verify(binary, str(prefix))
        got = read(report)
        differences = compare(expected, got)
        said = "not tried"
        if platform.endswith("x86_64"):
            missing, names = unfound(torch), named(report)
            said = f"{len(missing)} libraries missing" if missing else "nothing missing"
            if missing != names:
                differences.append(f"missing: {names} instead of {missing}")
        rows.add(f"{version}, Python {python}, {platform}, unpacked", expected, said, differences)
        shutil.rmtree(prefix)


ASK = """
import json, torch
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None),
    "archs": " ".join(getattr(torch.cuda, "get_arch_list", list)())}))
"""


def asked(python, environment=None, cwd="/"):
    """What PyTorch says of itself, and the error's last line if it cannot be imported."""
    run = subprocess.run([python, "-c", ASK], capture_output=True, text=True, cwd=cwd, env={**os.environ, **(environment or {})})
    if run.returncode == 0:
        return json.loads(run.stdout.splitlines()[-1]), None
    if run.returncode < 0:
        return None, "Bus error" if run.returncode == -7 else f"signal {-run.returncode}"
    return None, run.stderr.strip().splitlines()[-1]


def judged(rows, binary, name, python, environment=None, prefix=None):
    """One row: the report against PyTorch."""
    said, error = asked(python, environment)
    report = verify(binary, prefix or python, environment)
    found = problem(report, *FATAL)
    differences = []
    facts = read(report)
    if said:
        said["cuda"] = short(said["cuda"])
        # Without a GPU the list is empty.
        if not said["archs"]:
            del said["archs"]
        differences += compare(said, facts)
        if found:
            differences.append(f"{found['id']}, and it works")
        warnings = [p["id"] for p in report["problems"] if p["gravity"] == "warning"]
        text = "works" + (f"; {', '.join(f'`{w}`' for w in warnings)}" if warnings else "")
    else:
        # The search path, and where the environment is, are not part of the message.
        words = error.split(" [")[0].strip()
        name_of = lambda text: re.sub(r"/\S*/", "", text)
        text = f"`{name_of(words)}`" + (f": `{found['id']}`" if found else "")
        if not found:
            differences.append("no cause")
        elif not any(name_of(words.split(": ", 1)[-1]) in name_of(evidence) for evidence in [found["message"] or "", *found["evidence"]]):
            differences.append(f"other words: {name_of(found['message'] or '')}")
    rows.add(name, facts, text, differences)
    return report


def installed(site, name):
    """The file of this name in an environment."""
    return next(path for path in site.rglob(name) if path.is_file())


def broken(rows, binary, name, python, prefix, how, work):
    """Breaks the environment, compares, and mends it."""
    site = next((prefix / "lib").glob("python3*")) / "site-packages"
    label = f"{name}, {how}"
    pip = [python, "-m", "pip", "install", *PIP, "--no-deps"]
    verb, _, what = how.partition(" ")
    if verb in ("without", "cut", "empty"):
        path = installed(site, what)
        kept = work / "kept"
        path.rename(kept)
        if verb == "cut":
            with open(kept, "rb") as source, open(path, "wb") as target:
                target.write(source.read(os.path.getsize(kept) // 2))
        elif verb == "empty":
            path.touch()
        judged(rows, binary, label, python, prefix=str(prefix))
        path.unlink(missing_ok=True)
        kept.rename(path)
    elif how.endswith(" first"):
        package, version = how.split()[:2]
        side = work / "side"
        subprocess.run([*pip, "--target", str(side), f"nvidia-{package}-cu12=={version}"], check=True)
        environment = {"LD_LIBRARY_PATH": str(side / "nvidia" / package / "lib")}
        judged(rows, binary, label, python, environment, str(prefix))
        shutil.rmtree(side)
    else:
        subprocess.run([*pip, how], check=True)
        judged(rows, binary, label, python, prefix=str(prefix))
        package = how.split("==")[0]
        if package.startswith("nvidia-"):
            # What was put over it is not what pip would take away.
            subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", package], check=True)


def imported(rows, binary, work, only):
    for version, python, besides, ways in IMPORTED:
        if only and version not in only:
            continue
        base = interpreter(python)
        if not base:
            print(f"Python {python} is not here: torch {version} is left out", file=sys.stderr)
            continue
        prefix = work / "environment"
        shutil.rmtree(prefix, ignore_errors=True)
        subprocess.run([base, "-m", "venv", str(prefix)], check=True)
        own = str(prefix / "bin" / "python")
        subprocess.run([own, "-m", "pip", "install", *PIP, f"torch=={version}", *besides], check=True)
        name = f"{version}, Python {python}, imported"
        judged(rows, binary, name, own, prefix=str(prefix))
        for how in ways:
            broken(rows, binary, f"{version}, Python {python}", own, prefix, how, work)
        shutil.rmtree(prefix)


def debian(rows, binary, work):
    """Debian's build without CUDA, unpacked with what it asks for and imported by Debian's Python."""
    python = "/usr/bin/python3"
    if not shutil.which("apt-get") or not os.path.exists(python):
        print("Debian's packages are not here", file=sys.stderr)
        return
    root = work / "debian"
    shutil.rmtree(root, ignore_errors=True)
    (root / "packages").mkdir(parents=True)
    # What would be installed, without installing it.
    command = ["apt-get", "install", "--simulate", "--no-install-recommends", "python3-torch"]
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    names = re.findall(r"^Inst (\S+)", listed, re.M)
    for name in names:
        subprocess.run(["apt-get", "download", "--quiet", name], cwd=root / "packages", capture_output=True)
    for package in (root / "packages").glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    shutil.rmtree(root / "packages")
    # Those of BLAS are behind links that only an installation makes.
    folders = [root / "usr/lib/x86_64-linux-gnu", root / "usr/lib", root / "lib/x86_64-linux-gnu"]
    folders += sorted({path.parent for name in ("libblas.so.*", "liblapack.so.*") for path in folders[0].rglob(name)})
    environment = {
        "LD_LIBRARY_PATH": ":".join(map(str, folders)),
        "PYTHONPATH": str(root / "usr/lib/python3/dist-packages"),
    }
    judged(rows, binary, "Debian's python3-torch, imported", python, environment)
    shutil.rmtree(root)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/debug/samedevice")
    parser.add_argument("--work", type=Path, default=Path("environments"), help="a folder for what is downloaded")
    parser.add_argument("--only", choices=["unpacked", "imported", "debian"], help="one kind")
    parser.add_argument("--torch", action="append", help="only these versions, of those that are imported")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    binary, work = os.path.abspath(arguments.bin), arguments.work.absolute()
    rows = Rows()
    if arguments.only in (None, "unpacked"):
        unpacked(rows, binary, work)
    if arguments.only in (None, "debian"):
        debian(rows, binary, work)
    if arguments.only in (None, "imported"):
        imported(rows, binary, work, arguments.torch)
    sys.exit(1 if rows.wrong else 0)


if __name__ == "__main__":
    main()
