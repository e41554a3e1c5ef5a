//! What a file is called, as far as the source says it: the last part of its path, with a hole for whatever is not written
//! down.

use super::site::Site;
use crate::ir::{ArgKind, BinOp, Call, Expr, ExprId, ExprList, FuncId, IfElse, Module, Stmt, Var, Whole};
use crate::link::{Program, Resolved};

/// Something that is not written down.
const HOLE: char = '\0';
/// No more alternatives are followed.
const MAX_NAMES: usize = 4;
/// Names are put together by so many steps.
const MAX_DEPTH: u32 = 8;
/// Letters that a name with a hole must have besides its ending to tell one file from another.
const MIN_LETTERS: usize = 3;

/// The names that a file may have, by the expression that gives its path.
pub(super) fn names(program: &Program, site: &Site<'_>, path: ExprId) -> Vec<String> {
    let mut names = Namer { program }.ends(site, path, MAX_DEPTH);
    for name in &mut names {
        if let Some(at) = name.rfind(['/', '\\']) {
            name.drain(..=at);
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The last part of a path in which something may be filled in: `"{}/{}_net.pth"`
pub(super) fn last_part(path: &str) -> String {
    let path = without_marks(path);
    path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

/// Does the name tell the file from others?
pub(super) fn is_distinctive(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let letters = stem.chars().filter(char::is_ascii_alphabetic).count();
    letters >= if name.contains(HOLE) { MIN_LETTERS } else { 1 }
}

/// May both names be those of one file?
pub(super) fn agree(a: &str, b: &str) -> bool {
    let ends = |name: &str| -> Option<(String, String)> {
        Some((name.split_once(HOLE)?.0.to_owned(), name.rsplit_once(HOLE)?.1.to_owned()))
    };
    match (ends(a), ends(b)) {
        (None, None) => a == b,
        (None, Some(_)) => fits(a, b),
        (Some(_), None) => fits(b, a),
        (Some((s, e)), Some((t, f))) => {
            (s.starts_with(&t) || t.starts_with(&s)) && (e.ends_with(&f) || f.ends_with(&e))
        }
    }
}

/// Does the whole name have the pieces of the pattern, in order, from its beginning to its end?
fn fits(whole: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split(HOLE);
    let mut rest = match pieces.next().and_then(|first| whole.strip_prefix(first)) {
        Some(rest) => rest,
        None => return false,
    };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The longest piece of the name that stands in the source of whoever else uses it.
pub(super) fn longest_piece(name: &str) -> &str {
    name.split(HOLE).max_by_key(|piece| piece.len()).unwrap_or_default()
}

/// Is the path made from where the source file is?
pub(super) fn is_beside_source(program: &Program, site: &Site<'_>, path: ExprId) -> bool {
    Namer { program }.beside(site, path, MAX_DEPTH)
}

struct Namer<'a> {
    program: &'a Program,
}

impl Namer<'_> {
    /// What the path may end in.
    fn ends(&self, site: &Site<'_>, e: ExprId, depth: u32) -> Vec<String> {
        let hole = vec![HOLE.to_string()];
        let Some(depth) = depth.checked_sub(1) else { return hole };
        let ir = &self.program.get(site.module).ir;
        match ir.expr(e) {
            Expr::Str(s) => vec![s.as_str().to_owned()],
            Expr::Int(Whole(n)) => vec![n.to_string()],
            Expr::Format(list) => self.joined(site, list, depth),
            Expr::Binary { op: BinOp::Add, left, right } => {
                products(&self.ends(site, left, depth), &self.ends(site, right, depth))
            }
            Expr::Binary { op: BinOp::Div, right, .. } => in_folder(self.ends(site, right, depth)),
            Expr::Binary { op: BinOp::Mod, left, .. } => match ir.expr(left) {
                Expr::Str(s) => vec![without_marks(s.as_str())],
                _ => hole,
            },
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = ir.if_else(id);
                let mut all = self.ends(site, then, depth);
                all.extend(self.ends(site, orelse, depth));
                all.truncate(MAX_NAMES);
                all
            }
            Expr::Call(id) => self.of_call(site, ir.call(id), depth).unwrap_or(hole),
            Expr::Var(_) => {
                let sources = given(self.program, site, e);
                let some =
                    |(site, e): &&(Site<'_>, ExprId)| self.program.get(site.module).ir.expr(*e) != Expr::None;
                let mut all: Vec<String> =
                    sources.iter().filter(some).flat_map(|(site, e)| self.ends(site, *e, depth)).collect();
                all.truncate(MAX_NAMES);
                if all.is_empty() { hole } else { all }
            }
            _ => hole,
        }
    }

    fn joined(&self, site: &Site<'_>, list: ExprList, depth: u32) -> Vec<String> {
        let parts = self.program.get(site.module).ir.list(list);
        let whole = parts.iter().map(|&part| self.ends(site, part, depth));
        whole.fold(vec![String::new()], |all, part| products(&all, &part))
    }

    /// `os.path.join(folder, name)`, `Path(name)`, `"{}_G.pth".format(epoch)`, `open(name)`
    fn of_call(&self, site: &Site<'_>, call: Call<'_>, depth: u32) -> Option<Vec<String>> {
        let ir = &self.program.get(site.module).ir;
        let last = call.args.last().filter(|a| a.kind == ArgKind::Positional);
        if let Expr::Attr { base, name } = ir.expr(call.func) {
            match (name.as_str(), ir.expr(base)) {
                ("format", Expr::Str(s)) => return Some(vec![without_marks(s.as_str())]),
                ("joinpath" | "join", _) => return Some(in_folder(self.ends(site, last?.value, depth))),
                ("resolve" | "absolute" | "as_posix" | "expanduser", _) => {
                    return Some(self.ends(site, base, depth));
                }
                _ => {}
            }
        }
        let Some(Resolved::External(path)) = self.program.resolve_expr(site.module, call.func) else {
            return None;
        };
        let first = call.args.first().filter(|a| a.kind == ArgKind::Positional)?;
        match path.as_str() {
            "pathlib.Path" | "os.path.abspath" | "os.path.expanduser" | "os.path.realpath"
            | "builtins.str" | "builtins.open" | "os.fspath" => Some(self.ends(site, first.value, depth)),
            _ => None,
        }
    }

    fn beside(&self, site: &Site<'_>, e: ExprId, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let ir = &self.program.get(site.module).ir;
        match ir.expr(e) {
            Expr::Var(Var::Unbound(name)) => name.as_str() == "__file__",
            Expr::Var(_) => {
                let sources = given(self.program, site, e);
                !sources.is_empty() && sources.iter().all(|(site, e)| self.beside(site, *e, depth))
            }
            Expr::Binary { op: BinOp::Div | BinOp::Add, left, .. } => self.beside(site, left, depth),
            Expr::Attr { base, .. } => self.beside(site, base, depth),
            Expr::Index { base, .. } => self.beside(site, base, depth),
            Expr::Format(list) => ir.list(list).first().is_some_and(|&part| self.beside(site, part, depth)),
            Expr::Call(id) => {
                let call = ir.call(id);
                let method = match ir.expr(call.func) {
                    Expr::Attr { base, .. } => self.beside(site, base, depth),
                    _ => false,
                };
                method || call.args.first().is_some_and(|a| self.beside(site, a.value, depth))
            }
            _ => false,
        }
    }
}

/// What a variable is given, wherever in its function, or by the call that led there; nothing where that is not all known.
fn given<'s>(program: &Program, site: &Site<'s>, e: ExprId) -> Vec<(Site<'s>, ExprId)> {
    let linked = program.get(site.module);
    let ir = &linked.ir;
    let Expr::Var(var) = ir.expr(e) else { return Vec::new() };
    match var {
        Var::Local(_) => {
            let values = assigned(ir, site.func, var);
            if values.is_empty() {
                return site.argument(program, var).into_iter().collect();
            }
            values.into_iter().map(|value| (*site, value)).collect()
        }
        Var::Global(_) | Var::Unbound(_) => {
            let bound = program.bound_to(site.module, e).into_iter();
            bound.map(|(m, value)| (Site::of(m, FuncId(0)), value)).collect()
        }
        Var::Enclosing { .. } => Vec::new(),
    }
}

/// The values that the variable of a function is given, the files that `with` binds to it, and what a loop over written-out
/// values gives it in turn.
pub(super) fn assigned(ir: &Module, func: FuncId, var: Var) -> Vec<ExprId> {
    let within = |e: ExprId| ir.function_around(e) == func;
    let is_it = |t: ExprId| ir.expr(t) == Expr::Var(var) && within(t);
    let mut values = Vec::new();
    for stmt in &ir.stmts[stmts(ir, func)] {
        match stmt {
            Stmt::Assign { targets, value } if ir.list(*targets).iter().any(|&t| is_it(t)) => {
                values.push(*value)
            }
            Stmt::AnnAssign { target, value: Some(value), .. } if is_it(*target) => values.push(*value),
            Stmt::For { target, iter, .. } if is_it(*target) => {
                if let Expr::List(list) | Expr::Tuple(list) = ir.expr(*iter) {
                    values.extend(ir.list(list));
                }
            }
            Stmt::With { items, .. } => {
                values.extend(items.iter().filter(|(_, t)| t.is_some_and(is_it)).map(|&(e, _)| e));
            }
            _ => {}
        }
    }
    values.truncate(MAX_NAMES);
    values
}

/// The numbers of a function's statements.
fn stmts(ir: &Module, func: FuncId) -> std::ops::Range<usize> {
    if func == FuncId(0) { 0..ir.stmts.len() } else { ir.stmts_of(ir.function(func)) }
}

fn in_folder(mut names: Vec<String>) -> Vec<String> {
    names.iter_mut().for_each(|name| name.insert(0, '/'));
    names
}

fn products(left: &[String], right: &[String]) -> Vec<String> {
    let all = left.iter().flat_map(|a| right.iter().map(move |b| [a.as_str(), b.as_str()].concat()));
    all.take(MAX_NAMES).collect()
}

/// `"%s_%03d.pth"` and `"{}_{net}.pth"` with holes for what is put in.
fn without_marks(text: &str) -> String {
    let mut name = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['%', '{']) {
        name.push_str(&rest[..at]);
        name.push(HOLE);
        let after = &rest[at + 1..];
        let end = match rest.as_bytes()[at] {
            b'{' => after.find('}'),
            _ => after.find(|c: char| c.is_ascii_alphabetic() || c == '%'),
        };
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    name.push_str(rest);
    name
}
