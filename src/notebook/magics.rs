//! Which cells hold Python: IPython runs some in other languages, or hands them to programs.
//!
//! IPython's own commands: <https://ipython.readthedocs.io/en/stable/interactive/magics.html>. What is not known is taken for
//! something else than Python.

/// Cell magics (`%%name` in the first line) whose body is Python. Those that IPython does not have come with extensions:
/// memory_profiler, snakeviz, ipytest, scalene, pyinstrument, wandb.
const PYTHON: [&str; 18] = [
    "capture",
    "debug",
    "heat",
    "ipytest",
    "memit",
    "mprun",
    "notify",
    "prun",
    "pyinstrument",
    "pypy",
    "python",
    "python3",
    "run_pytest",
    "scalene",
    "snakeviz",
    "time",
    "timeit",
    "wandb",
];

/// Cell magics of IPython whose body is not Python of this notebook.
const OTHER: [&str; 22] = [
    "!",
    "HTML",
    "SVG",
    "bash",
    "cmd",
    "file",
    "html",
    "javascript",
    "js",
    "latex",
    "markdown",
    "perl",
    "pypy2",
    "python2",
    "ruby",
    "script",
    "sh",
    "sql",
    "svg",
    "sx",
    "system",
    "writefile",
];

/// Commands that people write without the `%` (IPython's "automagic"), which it takes in cells of nothing else.
const AUTOMATIC: [&str; 25] = [
    "autoreload",
    "cat",
    "cd",
    "clear",
    "conda",
    "cp",
    "env",
    "ls",
    "ll",
    "load_ext",
    "mamba",
    "matplotlib",
    "micromamba",
    "mkdir",
    "mv",
    "pip",
    "pinfo",
    "pwd",
    "reload_ext",
    "reset",
    "rm",
    "rmdir",
    "uv",
    "who",
    "whos",
];

/// What Databricks takes for the language of a cell whose first line it begins.
const DATABRICKS: [&str; 9] = ["%fs", "%md", "%md-sandbox", "%pip", "%r", "%run", "%scala", "%sh", "%sql"];

/// Is a code cell with this text Python, as far as IPython's commands say? `databricks`: its own ones count, too.
pub(super) fn is_python(text: &str, databricks: bool) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    // What follows one of them may be another.
    let magics = std::iter::once(first).chain(lines).map_while(|line| line.strip_prefix("%%"));
    let names = magics.map(|rest| rest.split_whitespace().next().unwrap_or_default());
    let other = (databricks && DATABRICKS.contains(&word(first)))
        // A prompt that was copied with the code; IPython takes it off.
        || first.starts_with(">>> ")
        || is_automatic(text);
    !other && names.into_iter().all(|name| PYTHON.contains(&name))
}

/// The cell magic of a cell that is not Python, if nothing is known about it: its body may be Python.
pub(super) fn unknown(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let magics = std::iter::from_fn(|| lines.next()?.strip_prefix("%%"));
    let mut names = magics.map(|rest| rest.split_whitespace().next().unwrap_or_default());
    names.find(|name| !PYTHON.contains(name)).filter(|name| !name.is_empty() && !OTHER.contains(name))
}

/// Is there nothing in the cell but commands without their `%`?
fn is_automatic(text: &str) -> bool {
    let code = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut lines = text.lines().map(str::trim).filter(code).peekable();
    let is_command = |line: &str| {
        let rest = line.strip_prefix(word(line)).unwrap_or_default();
        // `env = 1` and `ls.sort()` are Python.
        let python = rest.starts_with(['(', '[', '.', ',', ':'])
            || rest.trim_start().starts_with(['=', '+', '|', '&', '<', '>', '(', '[']);
        AUTOMATIC.contains(&word(line)) && !python
    };
    lines.peek().is_some()
        && lines.all(|line| is_command(line) || line.starts_with(['%', '!']))
        && text.lines().any(|line| is_command(line.trim()))
}

/// What a line begins with, up to a blank or a sign that no command has.
fn word(line: &str) -> &str {
    let end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '%' | '-')));
    end.map_or(line, |end| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::{is_python, unknown};

    #[test]
    fn a_magic_that_nobody_knows_is_named() {
        assert_eq!(unknown("%%foo -n 3\nx = 1"), Some("foo"));
        assert_eq!(unknown("%%time\n%%foo\nx = 1"), Some("foo"));
        for known in ["%%time\nx = 1", "%%bash\nls", "x = 1\n%%foo", "", "%%", "%foo x"] {
            assert_eq!(unknown(known), None, "{known}");
        }
    }

    #[test]
    fn cells_of_other_languages_are_told_apart() {
        for text in [
            "x = 1\n",
            "",
            "%%time\nx = 1",
            "\n%%timeit -n 3\nx",
            "%%capture out\n!pip install x\nimport x",
            "%matplotlib inline\nx = 1",
            "!ls\nx = !ls",
            "# %%bash\nx = 1",
            "env = 1",
            "ls.sort()",
            "%sql select 1\nx = 1",
            "cd = 3\nprint(cd)",
            "reset()",
        ] {
            assert!(is_python(text, false), "{text}");
        }
        for text in [
            "%%bash\nls",
            "\n\n%%html\n<p>",
            "%%writefile x.py\nimport torch",
            "%%javascript\nx",
            "%%time\n%%bash\nls",
            "%%unknown",
            "%%",
            "pip install torch",
            "# first\npip install a\npip install b -q\n",
            "cd ..\n!ls",
            ">>> x = 1",
        ] {
            assert!(!is_python(text, false), "{text}");
        }
        assert!(!is_python("%md\n# Title", true) && !is_python("%sql\nselect 1", true));
    }
}
