//! The report for an issue: what people who help ask for, and nothing that says whose machine it is.

use std::io::{self, Write};

use super::conclusion::conclusion;
use super::machine::{Gravity, Machine, Problem};
use super::shorten::cut;
use super::text;
use crate::report::one_line;

/// Packages of which people ask the version.
const PACKAGES: [&str; 4] = ["torchvision", "torchaudio", "triton", "xformers"];

/// Writes the report.
///
/// # Errors
/// If that fails.
pub fn write(machine: &Machine, out: &mut dyn Write) -> io::Result<()> {
    let private = Private::of(std::env::home_dir().and_then(|home| home.to_str().map(str::to_owned)));
    let line = |text: &str| private.hide(&one_line(text));
    writeln!(out, "### samedevice {} verify\n", machine.samedevice)?;
    writeln!(out, "{}\n", line(&conclusion(machine)))?;
    writeln!(out, "| | |\n| --- | --- |")?;
    for (name, value) in rows(machine) {
        writeln!(out, "| {name} | {} |", line(&value).replace('|', "\\|"))?;
    }
    for problem in text::shown(machine) {
        tell(problem, &line, out)?;
    }
    Ok(())
}

fn rows(machine: &Machine) -> Vec<(String, String)> {
    let (system, python) = (&machine.system, &machine.python);
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    row("System", text::system(machine).2);
    if let Some(kernel) = &system.kernel_module.kernel {
        row("Kernel", kernel.clone());
    }
    row("Driver", text::driver(machine).2);
    row("GPUs", text::devices(machine).2);
    for device in &machine.devices {
        let name = format!("cuda:{}", device.index);
        let described = text::describe(device);
        row(&name, described.strip_prefix(&name).unwrap_or(&described).trim_start().to_owned());
    }
    if machine.devices.is_empty() && !system.gpu_names.is_empty() {
        row("On the PCI bus", system.gpu_names.join(", "));
    }
    if let Some(error) = &system.nvidia_smi_error {
        row("nvidia-smi", error.clone());
    }
    let installer = python.installer.as_ref().map(|tool| format!(", packages by {tool}"));
    row("Python", text::python(machine).2 + &installer.unwrap_or_default());
    row("PyTorch", text::torch(machine).2);
    let packages = machine.torch.as_ref().map(|torch| &torch.packages);
    for name in PACKAGES {
        if let Some(version) = packages.and_then(|packages| packages.get(name)) {
            row(name, version.clone());
        }
    }
    if let Some(value) = &system.library_path {
        row("`LD_LIBRARY_PATH`", cut(value, ':'));
    }
    if let Some(value) = &machine.visible.order {
        row("`CUDA_DEVICE_ORDER`", cut(value, ','));
    }
    rows
}

fn tell(problem: &Problem, line: &dyn Fn(&str) -> String, out: &mut dyn Write) -> io::Result<()> {
    let word = match problem.gravity {
        Gravity::Error => "error",
        Gravity::Warning => "warning",
        Gravity::Note => "note",
    };
    writeln!(out, "\n**{word}** `{}`: {}\n", problem.id, line(&problem.cause))?;
    for evidence in problem.evidence.iter().filter(|evidence| !evidence.is_empty()) {
        writeln!(out, "- {}", line(evidence))?;
    }
    if let Some(message) = &problem.message {
        writeln!(out, "- message: `{}`", line(message).replace('`', "'"))?;
    }
    if !problem.remedy.is_empty() {
        writeln!(out, "- help: {}", line(&problem.remedy))?;
    }
    match &problem.command {
        Some(command) => writeln!(out, "\n```sh\n{}\n```", line(command)),
        None => Ok(()),
    }
}

/// The home folder, which has a person's name in it.
struct Private {
    /// That of who runs this.
    home: Option<String>,
}

impl Private {
    fn of(home: Option<String>) -> Self {
        let home = home.map(|home| home.trim_end_matches(['/', '\\']).to_owned());
        Self { home: home.filter(|home| home.len() > 1) }
    }

    /// The text with `~` for home folders: this one, and those of other machines, by where systems have them.
    fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(home) = &self.home {
            text = without(&text, home, false);
        }
        for folder in ["/home/", "/Users/", r"C:\Users\", r"c:\Users\"] {
            text = without(&text, folder, true);
        }
        without(&text, "/root", false)
    }
}

/// The text with `~` for what begins so; `named`: with the name that follows.
fn without(text: &str, begin: &str, named: bool) -> String {
    let ends_name = |c: char| !(c.is_alphanumeric() || "._-@$".contains(c));
    let (mut hidden, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(begin) {
        let (before, found) = rest.split_at(at);
        let after = &found[begin.len()..];
        let name = if named { after.find(ends_name).unwrap_or(after.len()) } else { 0 };
        // `/data/home/x` and `/rooted` are other folders.
        let is_whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '.')
            && (if named { name > 0 } else { after.chars().next().is_none_or(ends_name) });
        hidden.push_str(before);
        hidden.push_str(if is_whole { "~" } else { begin });
        rest = if is_whole { &after[name..] } else { after };
    }
    hidden + rest
}

#[cfg(test)]
mod tests {
    use super::Private;

    #[test]
    fn homes_are_hidden() {
        let private = Private::of(Some("/data/people/ada/".to_owned()));
        for (text, hidden) in [
            ("/data/people/ada/x:/data/people/adam", "~/x:/data/people/adam"),
            ("in /home/grace.h/train/.venv, `/home/grace.h`", "in ~/train/.venv, `~`"),
            (r"C:\Users\Ada\x and /Users/ada", r"~\x and ~"),
            ("/root/.pyenv, /rooted, /data/home/x, /home/", "~/.pyenv, /rooted, /data/home/x, /home/"),
        ] {
            assert_eq!(private.hide(text), hidden);
        }
        assert_eq!(Private::of(Some("/".to_owned())).hide("/a"), "/a");
    }
}
