//! The properties that `fuzz` asks of random inputs, on inputs that once mattered.
#![allow(clippy::expect_used, reason = "tests may panic")]

mod properties;

use std::fs;
use std::path::Path;

/// Checks every file of these folders.
fn each(folders: &[&str], check: fn(&[u8])) {
    for folder in folders {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files: Vec<_> = fs::read_dir(&folder).expect("a folder").collect();
        assert!(!files.is_empty(), "{}", folder.display());
        for file in files {
            let path = file.expect("a file").path();
            // Seen if it fails.
            println!("{}", path.display());
            check(&fs::read(&path).expect("a file"));
        }
    }
}

#[test]
fn suppressions() {
    each(&["tests/properties/seeds/suppressions"], properties::suppressions::check);
}

#[test]
fn configuration() {
    each(&["tests/properties/seeds/configuration"], properties::configuration::check);
}

#[test]
fn machine() {
    each(&["tests/properties/seeds/machine", "fixtures/machines"], properties::machine::check);
}
