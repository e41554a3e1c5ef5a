//! The loader's search path.

/// The command that takes these folders out of `LD_LIBRARY_PATH`, and leaves the others.
pub fn without_folders<'a>(folders: impl IntoIterator<Item = &'a str>) -> String {
    let mut patterns = String::new();
    for folder in folders {
        patterns.push_str(&format!(" -e '{}'", folder.replace('\'', r"'\''")));
    }
    format!(
        "export LD_LIBRARY_PATH=$(printf '%s\\n' \"$LD_LIBRARY_PATH\" | tr ':' '\\n' | grep -vxF{patterns} | paste -sd: -)"
    )
}
