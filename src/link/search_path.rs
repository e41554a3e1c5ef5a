//! Folders that a file adds to `sys.path`: `sys.path.append(os.path.join(ROOT, "tools"))`.
//!
//! Only literal paths count, and paths that are computed from `__file__`. A path relative to the working directory is tried from the file's
//! own folder and from the project's root.

use std::cell::Cell;
use std::path::{Component, Path, PathBuf};

use crate::ir::{ArgKind, BinOp, Call, Expr, ExprId, FuncId, Module, Stmt, Var, Whole};

/// How many steps the computation of a path may take.
const MAX_DEPTH: u32 = 12;
/// How many steps all paths of one file may take together.
const MAX_STEPS: u32 = 512;
/// The length of the longest path, in bytes.
const MAX_LENGTH: usize = 4096;
/// How many folders of one file are used.
const MAX_FOLDERS: usize = 8;

/// Functions and methods that return the same path, as far as it matters here.
const SAME: &[&str] = &[
    "abspath",
    "realpath",
    "normpath",
    "expanduser",
    "resolve",
    "absolute",
    "str",
    "Path",
    "PurePath",
    "fspath",
];

/// The folders in the project at `root` that the file adds to `sys.path`, in order.
pub(super) fn folders(ir: &Module, file: &Path, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // Few files add any.
    if !ir.attributes.iter().any(|a| a.as_str() == "path")
        || !ir.imports.iter().any(|i| i.module.as_str() == "sys")
    {
        return found;
    }
    let reader = Reader { ir, file, steps: Cell::new(MAX_STEPS) };
    for e in put_on_path(ir) {
        let starts = match reader.path(e, MAX_DEPTH) {
            Some(Written::FromFile(path)) => vec![path],
            Some(Written::Relative(path)) => {
                file.parent().into_iter().chain([root]).map(|dir| dir.join(&path)).collect()
            }
            None => continue,
        };
        let inside = starts.iter().filter_map(|path| tidy(path)).filter(|path| path.starts_with(root));
        for path in inside {
            if found.len() < MAX_FOLDERS && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// The arguments of `sys.path.append(…)` and similar calls.
fn put_on_path(ir: &Module) -> Vec<ExprId> {
    let is_path = |e: ExprId| match ir.expr(e) {
        Expr::Attr { base, name } => {
            name.as_str() == "path" && ir.variable_of(base).is_some_and(|v| v.as_str() == "sys")
        }
        _ => false,
    };
    let mut given = Vec::new();
    let mut several = |e: ExprId| {
        if let Expr::List(list) | Expr::Tuple(list) = ir.expr(e) {
            given.extend_from_slice(ir.list(list));
        }
    };
    for s in &ir.stmts {
        if let Stmt::AugAssign { target, value, .. } = *s
            && is_path(target)
        {
            several(value);
        }
    }
    let mut single = Vec::new();
    for call in ir.calls() {
        let Expr::Attr { base, name } = ir.expr(call.func) else { continue };
        if !is_path(base) {
            continue;
        }
        match (name.as_str(), call.args) {
            ("append", [folder]) | ("insert", [_, folder]) => single.push(folder.value),
            ("extend", [all]) => several(all.value),
            _ => {}
        }
    }
    given.extend(single);
    given
}

/// A path that the source code spells out.
enum Written {
    /// A path computed from `__file__`.
    FromFile(PathBuf),
    /// A path relative to the working directory, or a part of a path.
    Relative(String),
}

struct Reader<'a> {
    ir: &'a Module,
    file: &'a Path,
    /// How many steps are left.
    steps: Cell<u32>,
}

impl Reader<'_> {
    fn path(&self, e: ExprId, depth: u32) -> Option<Written> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        let written = self.written(e, depth.checked_sub(1)?)?;
        let length = match &written {
            Written::FromFile(path) => path.as_os_str().len(),
            Written::Relative(text) => text.len(),
        };
        (length <= MAX_LENGTH).then_some(written)
    }

    fn written(&self, e: ExprId, depth: u32) -> Option<Written> {
        let ir = self.ir;
        match ir.expr(e) {
            Expr::Str(s) => Some(Written::Relative(s.as_str().to_owned())),
            Expr::Var(Var::Unbound(name)) if name.as_str() == "__file__" => {
                Some(Written::FromFile(self.file.to_path_buf()))
            }
            Expr::Var(_) => self.path(self.given(e)?, depth),
            Expr::Binary { op: BinOp::Div, left, right } => {
                below(self.path(left, depth)?, self.path(right, depth)?)
            }
            Expr::Binary { op: BinOp::Add, left, right } => {
                after(self.path(left, depth)?, self.path(right, depth)?)
            }
            Expr::Format(list) => {
                let empty = Written::Relative(String::new());
                ir.list(list).iter().try_fold(empty, |path, &part| after(path, self.path(part, depth)?))
            }
            Expr::Attr { name, .. } if name.as_str() == "pardir" => Some(Written::Relative("..".to_owned())),
            Expr::Attr { base, name } if name.as_str() == "parent" => up(self.path(base, depth)?, 1),
            Expr::Index { base, index } => self.part(base, index, depth),
            Expr::Call(id) => self.called(ir.call(id), depth),
            _ => None,
        }
    }

    /// `path.parents[2]`, `os.path.abspath(__file__).rsplit("/", 3)[0]`, `os.path.split(path)[0]`
    fn part(&self, base: ExprId, index: ExprId, depth: u32) -> Option<Written> {
        let Expr::Int(Whole(n)) = self.ir.expr(index) else { return None };
        let n = usize::try_from(n).ok()?;
        match self.ir.expr(base) {
            Expr::Attr { base, name } if name.as_str() == "parents" => up(self.path(base, depth)?, n + 1),
            Expr::Call(id) if n == 0 => {
                let call = self.ir.call(id);
                let Expr::Attr { base, name } = self.ir.expr(call.func) else { return None };
                match (name.as_str(), call.args) {
                    ("split", [path]) if path.kind == ArgKind::Positional => {
                        up(self.path(path.value, depth)?, 1)
                    }
                    ("rsplit", [by, times]) => {
                        let (Expr::Str(by), Expr::Int(Whole(times))) =
                            (self.ir.expr(by.value), self.ir.expr(times.value))
                        else {
                            return None;
                        };
                        let times = usize::try_from(times).ok().filter(|_| by.as_str() == "/")?;
                        up(self.path(base, depth)?, times)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn called(&self, call: Call<'_>, depth: u32) -> Option<Written> {
        let ir = self.ir;
        if call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar)) {
            return None;
        }
        let name = ir.last_name(call.func)?;
        let positional: Vec<ExprId> =
            call.args.iter().filter(|a| a.kind == ArgKind::Positional).map(|a| a.value).collect();
        match (name.as_str(), positional.as_slice()) {
            ("getcwd" | "cwd", []) => Some(Written::Relative(String::new())),
            ("resolve" | "absolute", []) => match ir.expr(call.func) {
                Expr::Attr { base, .. } => self.path(base, depth),
                _ => None,
            },
            ("dirname", &[path]) => up(self.path(path, depth)?, 1),
            ("join" | "joinpath" | "Path" | "PurePath", [first, rest @ ..]) => {
                let start = match ir.expr(call.func) {
                    Expr::Attr { base, .. } if name.as_str() == "joinpath" => {
                        below(self.path(base, depth)?, self.path(*first, depth)?)?
                    }
                    // `"/".join(parts)`
                    Expr::Attr { base, .. } if matches!(ir.expr(base), Expr::Str(_)) => return None,
                    _ => self.path(*first, depth)?,
                };
                rest.iter().try_fold(start, |path, &part| below(path, self.path(part, depth)?))
            }
            (name, &[path]) if SAME.contains(&name) => self.path(path, depth),
            _ => None,
        }
    }

    /// The value of the only assignment of a variable.
    fn given(&self, e: ExprId) -> Option<ExprId> {
        let ir = self.ir;
        let owner = |e: ExprId| match ir.expr(e) {
            Expr::Var(Var::Local(slot)) => Some((ir.function_around(e), slot)),
            Expr::Var(Var::Global(slot)) => Some((FuncId(0), slot)),
            _ => None,
        };
        let wanted = owner(e)?;
        let mut found = ir.stmts.iter().filter_map(|s| match *s {
            Stmt::Assign { targets, value } => {
                ir.list(targets).iter().any(|&t| owner(t) == Some(wanted)).then_some(value)
            }
            _ => None,
        });
        found.next().filter(|_| found.next().is_none())
    }
}

fn below(folder: Written, part: Written) -> Option<Written> {
    let Written::Relative(part) = part else { return None };
    Some(match folder {
        Written::FromFile(path) => Written::FromFile(path.join(part)),
        Written::Relative(path) if path.is_empty() => Written::Relative(part),
        Written::Relative(path) => Written::Relative(format!("{path}/{part}")),
    })
}

/// The concatenation of two texts.
fn after(start: Written, rest: Written) -> Option<Written> {
    match (start, rest) {
        (Written::Relative(start), Written::Relative(rest)) => Some(Written::Relative(start + &rest)),
        (Written::Relative(start), path @ Written::FromFile(_)) if start.is_empty() => Some(path),
        (Written::FromFile(path), Written::Relative(rest)) if rest.is_empty() => {
            Some(Written::FromFile(path))
        }
        (Written::FromFile(path), Written::Relative(rest)) => {
            Some(Written::FromFile(path.join(rest.strip_prefix('/')?)))
        }
        _ => None,
    }
}

/// The path `levels` folders further up.
fn up(path: Written, levels: usize) -> Option<Written> {
    match path {
        Written::FromFile(path) => {
            let mut path = tidy(&path)?;
            for _ in 0..levels {
                path.pop().then_some(())?;
            }
            Some(Written::FromFile(path))
        }
        Written::Relative(_) => None,
    }
}

/// The path without `.` and `..`.
fn tidy(path: &Path) -> Option<PathBuf> {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => tidied.pop().then_some(())?,
            part => tidied.push(part),
        }
    }
    Some(tidied)
}
