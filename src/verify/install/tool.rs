//! What installs packages into an environment, and how it is told to.

use super::wheels::Index;

/// What installs packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tool {
    /// `python -m pip`.
    #[default]
    Pip,
    /// pip, which has to be put there first: an environment that was made without it.
    EnsurePip,
    /// pip in a new virtual environment, as the system's Python refuses (PEP 668).
    Venv,
    /// `uv pip`.
    Uv,
    /// `uv add`: a project with `uv.lock`, which `uv pip` would be undone in.
    UvProject,
    /// `poetry add`.
    Poetry,
    /// `conda install`.
    Conda,
    /// `pixi add`.
    Pixi,
}

impl Tool {
    /// The tool of this name, as the report has it; pip for others.
    pub fn named(name: &str) -> Self {
        match name {
            "ensurepip" => Self::EnsurePip,
            "venv" => Self::Venv,
            "uv" => Self::Uv,
            "uv-project" => Self::UvProject,
            "poetry" => Self::Poetry,
            "conda" => Self::Conda,
            "pixi" => Self::Pixi,
            _ => Self::Pip,
        }
    }

    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pip => "pip",
            Self::EnsurePip => "ensurepip",
            Self::Venv => "venv",
            Self::Uv => "uv",
            Self::UvProject => "uv-project",
            Self::Poetry => "poetry",
            Self::Conda => "conda",
            Self::Pixi => "pixi",
        }
    }
}

/// The shell that a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shell {
    /// PowerShell, whose older versions have no `&&`?
    pub windows: bool,
}

impl Shell {
    /// An argument, quoted if it needs to be: double quotes mean the same everywhere, but for characters that have a meaning within
    /// them; those go into single ones.
    pub fn argument(self, text: &str) -> String {
        let plain =
            |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c) || (self.windows && c == '\\');
        let special = |c: char| "$`\"".contains(c) || (!self.windows && "\\!".contains(c));
        // `!=` of a version is no request for a line of the history.
        if text.replace("!=", "").contains(special) {
            let inner = text.replace('\'', if self.windows { "''" } else { r"'\''" });
            return format!("'{inner}'");
        }
        if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("\"{text}\"") }
    }

    /// A program at the beginning of a command.
    fn program(self, path: &str) -> String {
        let quoted = self.argument(path);
        if self.windows && quoted.starts_with(['"', '\'']) { format!("& {quoted}") } else { quoted }
    }

    /// One command after the other, if the first one worked.
    fn and(self) -> &'static str {
        if self.windows { "; " } else { " && " }
    }
}

/// Where packages are installed, and by what.
#[derive(Clone, Debug)]
pub struct Place {
    /// What installs them.
    pub tool: Tool,
    /// The interpreter.
    pub python: String,
    /// The folder of the environment.
    pub prefix: Option<String>,
    /// The shell of that machine.
    pub shell: Shell,
}

/// How packages are put in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Even if they are there already?
    pub again: bool,
    /// Without what they ask for?
    pub alone: bool,
}

impl Place {
    /// The command that installs these (`torch==2.9.1+cu126`) by pip or uv, from this index or else from PyPI.
    pub fn pip(&self, packages: &[String], how: How, index: Option<&str>) -> String {
        let mut words: Vec<String> = Vec::new();
        let uv = matches!(self.tool, Tool::Uv | Tool::UvProject);
        if how.again {
            words.push(if uv { "--reinstall" } else { "--force-reinstall" }.to_owned());
        }
        if how.alone {
            words.push("--no-deps".to_owned());
        }
        words.extend(packages.iter().map(|package| self.shell.argument(package)));
        words.extend(index.map(|url| format!("--index-url {url}")));
        let arguments = words.join(" ");
        let python = self.shell.program(&self.python);
        let and = self.shell.and();
        match self.tool {
            Tool::Uv | Tool::UvProject => {
                format!("uv pip install --python {} {arguments}", self.shell.argument(&self.python))
            }
            // Poetry's environments often have none, and it does no harm where there is one.
            Tool::EnsurePip | Tool::Poetry => {
                format!("{python} -m ensurepip{and}{python} -m pip install {arguments}")
            }
            // PyTorch is there already, and only it is mended.
            Tool::Venv if how.again => format!("{python} -m pip install --break-system-packages {arguments}"),
            Tool::Venv => {
                let own = if self.shell.windows { r".venv\Scripts\python.exe" } else { ".venv/bin/python" };
                format!("{python} -m venv .venv{and}{own} -m pip install {arguments}")
            }
            Tool::Pip | Tool::Conda | Tool::Pixi => {
                format!("{python} -m pip install {arguments}")
            }
        }
    }

    /// The command that adds these to a project whose tool keeps a list of them, from this index.
    pub fn project(&self, packages: &[String], index: &Index) -> String {
        let specs: Vec<String> = packages.iter().map(|package| self.shell.argument(package)).collect();
        let (specs, tag, url) = (specs.join(" "), index.tag, index.url());
        if self.tool == Tool::UvProject {
            return format!("uv add {specs} --index pytorch-{tag}={url}");
        }
        let and = self.shell.and();
        format!(
            "poetry source add --priority=explicit pytorch-{tag} {url}{and}poetry add --source pytorch-{tag} {specs}"
        )
    }

    /// conda's or pixi's command for these packages of conda-forge.
    pub fn conda(&self, packages: &[String], cuda: Option<u32>) -> String {
        let specs: Vec<String> = packages.iter().map(|package| self.shell.argument(package)).collect();
        let specs = specs.join(" ");
        if self.tool == Tool::Pixi {
            let and = self.shell.and();
            let required =
                cuda.map(|major| format!("pixi workspace system-requirements add cuda {major}{and}"));
            return format!("{}pixi add {specs}", required.unwrap_or_default());
        }
        let prefix = self.prefix.as_ref().map(|prefix| format!(" -p {}", self.shell.argument(prefix)));
        format!("conda install{} -c conda-forge {specs}", prefix.unwrap_or_default())
    }

    /// The command that takes packages out.
    pub fn uninstall(&self, packages: &[&str]) -> String {
        let names = packages.join(" ");
        match self.tool {
            Tool::Uv | Tool::UvProject => {
                format!("uv pip uninstall --python {} {names}", self.shell.argument(&self.python))
            }
            Tool::Poetry => format!("poetry run pip uninstall -y {names}"),
            _ => format!("{} -m pip uninstall -y {names}", self.shell.program(&self.python)),
        }
    }
}
