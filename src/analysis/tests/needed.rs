//! Which files a run reads in addition to its inputs.

use std::path::Path;

use crate::analysis::analyze;
use crate::config::{Overrides, Resolver, Where};
use crate::discover::{Options, discover};
use crate::rules::registry::registry;

/// A run over `main.py` in a project with these files: the files that it reads, in order, and the codes of its findings.
fn read(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
        std::fs::write(path, text).expect("it is written");
    }
    let mut resolver = Resolver::new(folder.path(), registry(), &Where::Isolated, Overrides::default())
        .expect("no settings");
    let options = Options { cwd: folder.path().to_owned() };
    let inputs = discover(&[Path::new("main.py").to_owned()], &options, &mut resolver).files;
    let analysis = analyze(&inputs, true, &|| ());
    let name = |path: &Path| {
        let within = path.strip_prefix(folder.path().canonicalize().expect("it is there")).unwrap_or(path);
        within.strip_prefix(folder.path()).unwrap_or(within).to_string_lossy().replace('\\', "/")
    };
    let sources = (0..analysis.sources.len()).map(super::super::intake::file_id);
    let mut names: Vec<String> = sources.map(|file| name(&analysis.sources.get(file).path)).collect();
    names.sort();
    let mut codes: Vec<String> = analysis.findings.iter().map(|f| f.code.to_string()).collect();
    codes.sort();
    (names, codes)
}

const MAKES: &str = "import torch\n\n\ndef make():\n    return torch.zeros(3, device=\"cuda\")\n";

#[test]
fn a_package_is_read_for_what_is_mentioned() {
    let (read, found) = read(&[
        ("main.py", "from lib import make\n\nprint(make())\n"),
        ("lib/__init__.py", "from .makes import make\nfrom .other import other\n"),
        ("lib/makes.py", MAKES),
        ("lib/other.py", "def other(): pass\n"),
    ]);
    assert_eq!(read, ["lib/__init__.py", "lib/makes.py", "main.py"]);
    assert_eq!(found, ["SD101"]);
}

#[test]
fn so_is_what_a_file_is_called_for() {
    let (read, _) = read(&[
        (
            "main.py",
            "from lib import makes\nimport lib.stars as stars\n\nprint(makes.make(), stars.late())\n",
        ),
        ("lib/__init__.py", "from .other import other\n"),
        ("lib/makes.py", MAKES),
        ("lib/stars.py", "from .late import *\n"),
        ("lib/late.py", "def late():\n    from .inner import inner\n    return inner()\n"),
        ("lib/inner.py", "def inner(): return 1\n"),
        ("lib/other.py", "def other(): pass\n"),
    ]);
    let names = ["lib/__init__.py", "lib/inner.py", "lib/late.py", "lib/makes.py", "lib/stars.py", "main.py"];
    assert_eq!(read, names);
}

#[test]
fn mentions_are_followed_so_far_and_bases_to_the_end() {
    let (read, _) = read(&[
        ("main.py", "from one import one, One\n\n\nclass Own(One):\n    pass\n\n\none()\n"),
        ("one.py", "from two import two, Two\n\n\ndef one(): two()\n\n\nclass One(Two): pass\n"),
        ("two.py", "from three import three, Three\n\n\ndef two(): three()\n\n\nclass Two(Three): pass\n"),
        (
            "three.py",
            "from four import Four\nfrom far import far\n\n\ndef three(): far()\n\n\nclass Three(Four): pass\n",
        ),
        ("four.py", "class Four: pass\n"),
        ("far.py", "def far(): pass\n"),
    ]);
    assert_eq!(read, ["four.py", "main.py", "one.py", "three.py", "two.py"]);
}

#[test]
fn a_table_is_mentioned_with_what_is_in_it() {
    let (read, _) = read(&[
        ("main.py", "from tables import TABLE\n\nprint(TABLE[\"make\"]())\n"),
        (
            "tables.py",
            "from makes import make\nfrom other import other\n\nTABLE = {}\nTABLE[\"make\"] = make\n",
        ),
        ("makes.py", MAKES),
        ("other.py", "def other(): pass\n"),
    ]);
    assert_eq!(read, ["main.py", "makes.py", "tables.py"]);
}
