//! `samedevice verify`: would `import torch` work? Libraries as small ELF files; and, where that is asked for, a real import.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod machine;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use machine::{Elf, Machine, Torch, expect, problem, problems};
use serde_json::{Value, json};

const SITE: &str = "project/.venv/lib/python3.11/site-packages";

/// A PyTorch of PyPI from before CUDA 13, with all that it asks for.
fn cu126() -> Torch {
    Torch {
        requires: &[
            "nvidia-cudnn-cu12==9.10.2.21",
            "nvidia-cuda-cupti-cu12==12.6.80",
            "nvidia-nvtx-cu12==12.6.77",
        ],
        packages: &[
            ("nvidia-cudnn-cu12", "9.10.2.21"),
            ("nvidia-cuda-cupti-cu12", "12.6.80"),
            ("nvidia-nvtx-cu12", "12.6.77"),
        ],
        libraries: &["cudnn/lib/libcudnn.so.9", "cuda_cupti/lib/libcupti.so.12"],
        needed: &["libcudnn.so.9", "libcupti.so.12"],
        ..Torch::cu126()
    }
}

fn library(machine: Machine, path: &str, elf: &Elf) -> Machine {
    machine.file(&format!("{SITE}/{path}"), elf.bytes())
}

/// The machine with a record of these files: a package, its version, paths with sizes.
fn record(machine: Machine, package: &str, files: &[(&str, usize)]) -> Machine {
    let lines: String = files.iter().map(|(path, size)| format!("{path},sha256=x,{size}\n")).collect();
    machine.file(&format!("{SITE}/{package}.dist-info/RECORD"), lines)
}

#[test]
fn what_it_needs_is_there() {
    let report = Machine::with_driver().torch(&cu126()).verify("");
    assert_eq!((problems(&report), &report["status"]), (vec![], &json!("usable")));
}

#[test]
fn a_library_is_missing() {
    let machine = || Machine::with_driver().torch(&cu126());
    let report = machine().without(&format!("{SITE}/nvidia/cuda_cupti/lib/libcupti.so.12")).verify("");
    let error = "libcupti.so.12: cannot open shared object file: No such file or directory";
    expect(
        &report,
        "library-missing",
        "no",
        &[
            "libcupti.so.12 is missing",
            error,
            "libtorch_cuda.so needs libcupti.so.12",
            "nvidia-cuda-cupti-cu12==12.6.80",
        ],
    );
    assert_eq!(report["status"], "problem");
    // All of them in one command.
    let report = machine()
        .without(&format!("{SITE}/nvidia/cuda_cupti/lib/libcupti.so.12"))
        .without(&format!("{SITE}/nvidia/cudnn/lib/libcudnn.so.9"))
        .verify("");
    expect(
        &report,
        "library-missing",
        "no",
        &[
            "libcudnn.so.9 and another library are missing",
            "nvidia-cudnn-cu12==9.10.2.21 nvidia-cuda-cupti-cu12==12.6.80",
        ],
    );
    // One that no package of NVIDIA's brings.
    let torch = Torch { needed: &["libcudnn.so.9", "libstdc++.so.99"], ..cu126() };
    let report = Machine::with_driver().torch(&torch).verify("");
    expect(
        &report,
        "library-missing",
        "no",
        &["libstdc++.so.99: cannot open", "install the package that contains libstdc++.so.99"],
    );
}

#[test]
fn a_package_that_is_not_needed_at_once() {
    let torch = Torch {
        packages: &[("nvidia-cudnn-cu12", "9.10.2.21"), ("nvidia-cuda-cupti-cu12", "12.6.80")],
        ..cu126()
    };
    let report = Machine::with_driver().torch(&torch).verify("");
    assert_eq!((problems(&report), &report["status"]), (vec!["package-missing"], &json!("usable")));
    assert!(problem(&report, "package-missing").contains("nvidia-nvtx-cu12==12.6.77"));
    // A library of PyTorch's that is loaded when it is used.
    let linalg = Elf { needed: vec!["libcusolver.so.11", "libcuda.so.1"], ..Elf::default() };
    let machine =
        library(Machine::with_driver().torch(&cu126()), "torch/lib/libtorch_cuda_linalg.so", &linalg);
    let report = machine.verify("");
    assert_eq!(
        (problems(&report), &report["status"]),
        (vec![""; 0], &json!("usable")),
        "nobody brings it here"
    );
    let torch = Torch {
        requires: &["nvidia-cusolver-cu12==11.7.1.2"],
        packages: &[("nvidia-cusolver-cu12", "11.7.1.2")],
        ..cu126()
    };
    let machine = library(Machine::with_driver().torch(&torch), "torch/lib/libtorch_cuda_linalg.so", &linalg);
    let report = machine.verify("");
    assert_eq!(problems(&report), ["package-missing"]);
    assert!(problem(&report, "package-missing").contains("libtorch_cuda_linalg.so needs libcusolver.so.11"));
}

#[test]
fn a_library_is_damaged() {
    let path = format!("{SITE}/torch/lib/libtorch_cuda.so");
    let torch = cu126();
    let whole = torch.cuda_library().bytes();
    let machine = || Machine::with_driver().torch(&torch);
    expect(
        &machine().file(&path, "").verify(""),
        "library-damaged",
        "no",
        &["libtorch_cuda.so: file too short"],
    );
    let report = machine().file(&path, "x".repeat(1000)).verify("");
    expect(
        &report,
        "library-damaged",
        "no",
        &["libtorch_cuda.so: invalid ELF header", "torch==2.15.0+cu126"],
    );
    let cut = machine().file(&path, &whole[..whole.len() / 2]);
    let cut = record(cut, "torch-2.15.0+cu126", &[("torch/lib/libtorch_cuda.so", whole.len())]);
    let sizes = format!("has {} bytes, and torch 2.15.0+cu126 recorded {}", whole.len() / 2, whole.len());
    expect(&cut.verify(""), "library-damaged", "no", &["Bus error", &sizes]);
    // Of one for another processor the loader speaks as of one that is not there.
    let other = Elf { machine: 243, ..Elf::default() };
    let report = library(machine(), "nvidia/cudnn/lib/libcudnn.so.9", &other).verify("");
    expect(&report, "library-missing", "no", &["libcudnn.so.9"]);
}

#[test]
fn files_of_another_size() {
    let machine = Machine::with_driver().torch(&cu126());
    let size = fs::metadata(machine.path(&format!("{SITE}/nvidia/cudnn/lib/libcudnn.so.9"))).unwrap().len();
    let files =
        |size| [("nvidia/cudnn/lib/libcudnn.so.9", usize::try_from(size).unwrap()), ("nvidia/cudnn/x.py", 7)];
    let machine = record(machine, "nvidia_cudnn_cu12-9.10.2.21", &files(size));
    assert_eq!(problems(&machine.verify("")), [""; 0]);
    let machine = record(machine, "nvidia_cudnn_cu12-9.10.2.21", &files(size + 1));
    // Somebody may have changed it.
    let report = machine.verify("");
    assert_eq!((problems(&report), &report["status"]), (vec![], &json!("usable")));
    assert!(problem(&report, "file-size-differs").contains("--no-deps nvidia-cudnn-cu12==9.10.2.21"));
    // The end is missing, which the loader does not need.
    let library = format!("{SITE}/nvidia/cudnn/lib/libcudnn.so.9");
    let whole = fs::read(machine.path(&library)).unwrap();
    let machine = machine.file(&library, &whole[..whole.len() - 10]);
    assert_eq!(problems(&machine.verify("")), ["file-size-differs"]);
    let machine = machine.file(&library, &whole);
    // conda changes libraries after they are recorded.
    let machine = machine.file(&format!("{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/INSTALLER"), "conda");
    assert_eq!(problems(&machine.verify("")), [""; 0]);
}

/// NCCL for CUDA 12 as PyTorch asks for it, and the one for CUDA 13, in one folder.
fn two_nccls(gives: &'static str) -> Machine {
    let torch = Torch {
        requires: &["nvidia-nccl-cu12==2.27.3"],
        packages: &[("nvidia-nccl-cu12", "2.27.3"), ("nvidia-nccl-cu13", "2.28.9")],
        libraries: &[],
        needed: &["libnccl.so.2"],
        ..Torch::cu126()
    };
    let machine = Machine::with_driver().torch(&torch);
    let cuda = Elf { undefined: vec!["ncclCommResume"], ..torch.cuda_library() };
    let machine = library(machine, "torch/lib/libtorch_cuda.so", &cuda);
    let nccl = Elf { soname: "libnccl.so.2", defined: vec![gives], ..Elf::default() };
    let machine = library(machine, "nvidia/nccl/lib/libnccl.so.2", &nccl);
    let size = nccl.bytes().len();
    let machine = record(machine, "nvidia_nccl_cu12-2.27.3", &[("nvidia/nccl/lib/libnccl.so.2", size + 100)]);
    record(machine, "nvidia_nccl_cu13-2.28.9", &[("nvidia/nccl/lib/libnccl.so.2", size)])
}

#[test]
fn two_packages_in_one_folder() {
    let report = two_nccls("ncclCommInit").verify("");
    let parts = [
        "libtorch_cuda.so: undefined symbol: ncclCommResume",
        "the file is the one of nvidia-nccl-cu13",
        "pip uninstall -y nvidia-nccl-cu13 && ",
        "--force-reinstall --no-deps nvidia-nccl-cu12==2.27.3",
    ];
    expect(&report, "symbol-missing", "no", &parts);
    assert_eq!(problems(&report), ["symbol-missing"]);
    // It may work; then uninstalling one takes the other's file away.
    let report = two_nccls("ncclCommResume").verify("");
    assert_eq!((problems(&report), &report["status"]), (vec!["packages-overlap"], &json!("usable")));
}

/// cuSPARSE needs nvJitLink, as that of CUDA 12.4 does, and another nvJitLink is in `LD_LIBRARY_PATH`.
fn jitlink(init: &str) -> Machine {
    let torch = Torch {
        libraries: &[],
        needed: &["libcusparse.so.12"],
        requires: &[],
        packages: &[],
        ..Torch::cu126()
    };
    let rpath = "$ORIGIN/../../nvidia/cusparse/lib:$ORIGIN/../../nvidia/cuda_runtime/lib";
    let cuda = Elf { rpath, ..torch.cuda_library() };
    let needed = vec!["libnvJitLink.so.12"];
    let runpath = "$ORIGIN/../../nvjitlink/lib";
    let cusparse = Elf { needed, runpath, undefined: vec!["__nvJitLinkComplete_12_4"], ..Elf::default() };
    let new =
        Elf { soname: "libnvJitLink.so.12", defined: vec!["__nvJitLinkComplete_12_4"], ..Elf::default() };
    let old =
        Elf { soname: "libnvJitLink.so.12", defined: vec!["__nvJitLinkComplete_12_1"], ..Elf::default() };
    let runtime = Elf { soname: "libcudart.so.12", ..Elf::default() };
    let global = Elf { needed: vec!["libcudart.so.12"], rpath, ..Elf::default() };
    let machine = library(Machine::with_driver().torch(&torch), "torch/lib/libtorch_cuda.so", &cuda);
    let machine = library(machine, "torch/lib/libtorch_global_deps.so", &global);
    let machine = library(machine, "nvidia/cuda_runtime/lib/libcudart.so.12", &runtime);
    let machine = library(machine, "nvidia/cusparse/lib/libcusparse.so.12", &cusparse);
    let machine = library(machine, "nvidia/nvjitlink/lib/libnvJitLink.so.12", &new);
    let machine =
        machine.file("cuda-12.1/lib64/libnvJitLink.so.12", old.bytes()).search_first("cuda-12.1/lib64");
    machine.file(&format!("{SITE}/torch/__init__.py"), init)
}

#[test]
fn another_library_on_the_search_path() {
    let load =
        "lib_name = 'libtorch_global_deps.so'\ntry:\n    ctypes.CDLL(lib_name, mode=ctypes.RTLD_GLOBAL)\n";
    let preload = "    if \"nvidia/cuda_runtime/lib/libcudart.so\" not in _maps:\n        return\n    \
                   _preload_cuda_deps(\"nvjitlink\", \"libnvJitLink.so.*[0-9]\")\n";
    let rest = "except OSError as err:\n    raise\n";
    let machine = jitlink(&format!("{load}{rest}"));
    let report = machine.verify("");
    let folder = machine.path("cuda-12.1/lib64").display().to_string();
    let parts = ["undefined symbol: __nvJitLinkComplete_12_4", "`LD_LIBRARY_PATH` has", &folder, "grep -vxF"];
    expect(&report, "symbol-missing", "no", &parts);
    // PyTorch's own is loaded before, by its path.
    assert_eq!(problems(&jitlink(&format!("{load}{preload}{rest}")).verify("")), [""; 0]);
}

#[test]
fn one_path_goes_before_the_other() {
    let cudnn = Elf { soname: "libcudnn.so.9", ..Elf::default() };
    let machine = |how: &dyn Fn(Elf<'static>) -> Elf<'static>| {
        let torch = cu126();
        let folders = "$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/cuda_cupti/lib:$ORIGIN";
        let cuda = Elf {
            soname: "libtorch_cuda.so",
            needed: vec!["libcudnn.so.9", "libcupti.so.12"],
            ..Elf::default()
        };
        let cuda = how(Elf { rpath: folders, ..cuda });
        let machine = library(Machine::with_driver().torch(&torch), "torch/lib/libtorch_cuda.so", &cuda);
        machine.file("cuda/lib64/libcudnn.so.9", cudnn.bytes()).search_first("cuda/lib64")
    };
    // DT_RPATH, which PyTorch's wheels have.
    assert_eq!(problems(&machine(&|elf| elf).verify("")), [""; 0]);
    // DT_RUNPATH.
    let newer = machine(&|elf| Elf { runpath: elf.rpath, rpath: "", ..elf });
    let report = newer.verify("");
    assert_eq!((problems(&report), &report["status"]), (vec!["library-duplicated"], &json!("usable")));
    let text = problem(&report, "library-duplicated");
    assert!(text.contains("libcudnn.so.9 is loaded from") && text.contains("cuda/lib64"), "{text}");
    // The loader asks for version 9. PyTorch's own folder may be named.
    let other = newer.without("cuda/lib64/libcudnn.so.9").file("cuda/lib64/libcudnn.so.8", cudnn.bytes());
    assert_eq!(problems(&other.search_first(&format!("{SITE}/nvidia/cudnn/lib")).verify("")), [""; 0]);
}

/// What the loader of this system says of the same files.
#[test]
fn the_loader_agrees() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("open");
    let cc = |arguments: &[&str], cwd: &Path| {
        let output = Command::new("cc").args(arguments).current_dir(cwd).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub/open.c");
    cc(&["-o", "open", source.to_str().unwrap(), "-ldl"], &folder);
    let build = |machine: &Machine, path: &str, soname: &str, code: &str, options: &[&str]| {
        let lib = machine.path(&format!("{SITE}/torch/lib"));
        let source = lib.join("source.c");
        fs::write(&source, code).unwrap();
        let target = machine.path(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let soname = format!("-Wl,-soname,{soname}");
        let common = [
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-o",
            target.to_str().unwrap(),
            "source.c",
            "-Wl,--no-as-needed",
            &soname,
        ];
        cc(&[&common[..], options].concat(), &lib);
    };
    let tags = ["-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"];
    for (tag, extension_tag, own, other, variable) in (0..32).map(|n| {
        (
            tags[n & 1],
            tags[n >> 1 & 1],
            n & 4 != 0,
            ["int give(void) { return 1; }", "int take(void) { return 1; }"][n >> 3 & 1],
            n & 16 != 0,
        )
    }) {
        let torch = Torch { cuda: None, libraries: &[], packages: &[], requires: &[], ..Torch::cu126() };
        let machine = Machine::bare().torch(&torch);
        let whole = "int give(void) { return 1; }";
        let (own_at, other_at) = (format!("{SITE}/own/libx.so.1"), "other/libx.so.1");
        build(&machine, &own_at, "libx.so.1", whole, &[]);
        build(&machine, other_at, "libx.so.1", other, &[]);
        let (own_file, extension) =
            (machine.path(&own_at), format!("{SITE}/torch/_C.cpython-311-x86_64-linux-gnu.so"));
        let library = format!("{SITE}/torch/lib/libtorch_python.so");
        // The extension's path to the library is not for what the library needs, unless it is a DT_RPATH.
        let needs = "int give(void); int call(void) { return give(); }";
        let own_file_text = own_file.to_str().unwrap().to_owned();
        build(&machine, &library, "libtorch_python.so", needs, &[&own_file_text, tag]);
        let library_file = machine.path(&library).to_str().unwrap().to_owned();
        let rpath = "-Wl,-rpath,$ORIGIN/lib:$ORIGIN/../own";
        build(&machine, &extension, "_C", "int x;", &[&library_file, extension_tag, rpath]);
        if !own {
            fs::remove_file(&own_file).unwrap();
        }
        let machine = if variable { machine.search_first("other") } else { machine };
        let search = if variable { machine.path("other").display().to_string() } else { String::new() };
        let run = Command::new(folder.join("open"))
            .arg(machine.path(&extension))
            .env("LD_LIBRARY_PATH", search)
            .output()
            .unwrap();
        let said = String::from_utf8(run.stdout).unwrap();
        let report = machine.verify("");
        let found: Vec<&Value> = report["problems"].as_array().unwrap().iter().collect();
        let found = found.iter().find(|it| it["id"] == "library-missing" || it["id"] == "symbol-missing");
        let case = format!("{tag} {extension_tag} own {own} variable {variable} {other}: {said} {report:#}");
        assert_eq!(run.status.success(), found.is_none(), "{case}");
        if let Some(found) = found {
            assert!(found.to_string().contains(said.trim()), "{case}");
        }
    }
}

#[test]
fn the_extension_is_for_another_python() {
    let path = format!("{SITE}/torch/_C.cpython-311-x86_64-linux-gnu.so");
    let without = || Machine::usable().without(&path);
    expect(&without().verify(""), "broken-pytorch", "no", &["No module named 'torch._C'"]);
    let other = without().file(&path.replace("311", "310"), Torch::cu126().extension().bytes());
    expect(
        &other.verify(""),
        "broken-pytorch",
        "no",
        &["_C.cpython-310", "Failed to load PyTorch C extensions"],
    );
    let stable = without().file(&format!("{SITE}/torch/_C.abi3.so"), Torch::cu126().extension().bytes());
    assert_eq!(problems(&stable.verify("")), [""; 0]);
}

#[test]
fn packages_for_another_pytorch() {
    let with = |distribution: &str, requires: &str| {
        let metadata = format!("{SITE}/{distribution}.dist-info/METADATA");
        Machine::usable().file(&metadata, format!("Name: x\nRequires-Dist: {requires}\n\nText\n")).verify("")
    };
    for (distribution, requires, fits) in [
        ("torchvision-0.30.0", "torch==2.15.0", true),
        ("torchvision-0.30.0+cu126", "torch==2.15.0", true),
        ("torchvision-0.30.0+cu121", "torch==2.15.0", true),
        ("torchvision-0.30.0+cpu", "torch==2.15.0", false),
        ("torchvision-0.30.0+cu130", "torch==2.15.0", false),
        ("torchvision-0.20.1", "torch==2.5.1", false),
        ("torchaudio-2.5.1", "torch (==2.5.1)", false),
        ("xformers-0.0.30", "torch==2.15.*", true),
        ("xformers-0.0.30", "torch>=2.0", true),
    ] {
        let report = with(distribution, requires);
        let ids = problems(&report);
        assert_eq!(
            ids,
            if fits { vec![""; 0] } else { vec!["companion-mismatch"] },
            "{distribution} {requires}"
        );
        assert_eq!(report["status"], "usable");
    }
    let text = problem(&with("torchvision-0.20.1", "torch==2.5.1"), "companion-mismatch");
    assert!(
        text.contains("operator torchvision::nms does not exist") && text.contains("requires torch 2.5.1"),
        "{text}"
    );
}

#[test]
fn a_real_import() {
    let says = |fields: &Value| Machine::usable().python(&format!("echo '{fields}'"));
    let whole = json!({"version": "2.15.0+cu126", "cuda": "12.6", "hip": null, "available": true, "count": 1,
        "archs": ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]});
    let report = says(&whole).verify("--import");
    assert_eq!((problems(&report), &report["status"]), (vec![], &json!("usable")));
    assert_eq!(report["torch"]["imported"]["version"], "2.15.0+cu126");
    // Only if it is asked for.
    assert_eq!(says(&whole).verify("")["torch"]["imported"], Value::Null);
    for (field, value, said) in [
        ("version", json!("2.14.0"), "`torch.__version__` is 2.14.0, and the files say 2.15.0+cu126"),
        ("cuda", Value::Null, "`torch.version.cuda` is None, and the files say 12.6"),
        ("archs", json!(["sm_90"]), "`torch.cuda.get_arch_list()` is sm_90, and the files say sm_50"),
    ] {
        let mut other = whole.clone();
        other[field] = value;
        let report = says(&other).verify("--import");
        assert_eq!(problems(&report), ["import-differs"], "{field}");
        assert!(problem(&report, "import-differs").contains(said), "{report:#}");
    }
    // PyTorch's word counts.
    let mut none = whole.clone();
    none["available"] = json!(false);
    none["count"] = json!(0);
    let report = says(&none).verify("--import");
    assert_eq!((&report["worlds"]["cuda"]["holds"], &report["status"]), (&json!("no"), &json!("problem")));
    let error = json!({"error": "ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommResume"});
    expect(&says(&error).verify("--import"), "import-fails", "no", &["undefined symbol: ncclCommResume"]);
    assert_eq!(says(&error).verify("--import")["status"], "problem");
    expect(&Machine::usable().python("kill -7 $$").verify("--import"), "import-fails", "no", &["signal 7"]);
    expect(
        &Machine::usable().python("exec /bin/sleep 100").verify("--import --time-limit 1"),
        "import-fails",
        "no",
        &["after 1 seconds"],
    );
}

/// Every file that is read, as something that cannot be read or has no end.
#[test]
fn hostile_files() {
    let files = [
        "torch/version.py",
        "torch/__init__.py",
        "torch/cuda/__init__.py",
        "torch/lib/libtorch_python.so",
        "torch/lib/libtorch_cuda.so",
        "torch/_C.cpython-311-x86_64-linux-gnu.so",
        "nvidia/cudnn/lib/libcudnn.so.9",
        "torch-2.15.0+cu126.dist-info/METADATA",
        "torch-2.15.0+cu126.dist-info/RECORD",
        "torch-2.15.0+cu126.dist-info/INSTALLER",
        "nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA",
        "../../../pyvenv.cfg",
    ];
    for file in files {
        for kind in ["pipe", "device", "sparse", "folder", "sparse library"] {
            let machine = Machine::usable();
            let path = machine.path(&format!("{SITE}/{file}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let whole = fs::read(&path).unwrap_or_default();
            let _ = fs::remove_file(&path);
            match kind {
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "device" => symlink("/dev/zero", &path).unwrap(),
                "folder" => fs::create_dir(&path).unwrap(),
                "sparse library" => fs::write(&path, whole).unwrap(),
                _ => fs::write(&path, "").unwrap(),
            }
            if kind.starts_with("sparse") {
                fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(3 << 30).unwrap();
            }
            let run = machine.run("verify --output-format json");
            assert!(run.code.is_some() && run.took < Duration::from_secs(20), "{file}, {kind}: {run:?}");
            assert!(run.json()["status"].is_string());
        }
    }
}

/// Headers that speak of more than there is, and cut ones.
#[test]
fn headers_that_lie() {
    let torch = cu126();
    let whole = torch.cuda_library().bytes();
    let path = format!("{SITE}/torch/lib/libtorch_cuda.so");
    let machine = Machine::with_driver().torch(&torch);
    let mut machine = Some(machine);
    for at in (0..64 + 2 * 56 + 8).chain(whole.len() - 4 * 64..whole.len()).step_by(11) {
        for value in [0xff, 0x7f, 0] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let changed = machine.take().unwrap().file(&path, bytes);
            let run = changed.run("verify --output-format json");
            assert!(run.code.is_some() && run.took < Duration::from_secs(20), "{at} {value}: {run:?}");
            run.json();
            machine = Some(changed);
        }
    }
}
