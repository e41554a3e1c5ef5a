//! Files that the program itself has written: they were saved on this machine, so `torch.load` can read them.

use std::fmt::Write as _;

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::value::{FrameId, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId, FuncId, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::span::Span;
use crate::sym::Sym;

/// Functions that download a URL into a file, including Python 2's name for the first.
const DOWNLOADS: &[&str] = &[
    "urllib.request.urlretrieve",
    "urllib.urlretrieve",
    "six.moves.urllib.request.urlretrieve",
    "torch.hub.download_url_to_file",
    "gdown.download",
    "wget.download",
];
/// The maximum number of parts of an expression that is compared as a file name.
const MAX_PARTS: u32 = 40;

impl Interp<'_> {
    /// Stores the file of `torch.save(…, file)`. `position` is the position of the file argument.
    pub(crate) fn remember_saved(&mut self, position: usize, args: &Args) {
        let Some(file) = self.file_name(args, position) else { return };
        let before = self.libraries.saved.get(&file).copied().unwrap_or(FALSE);
        let when = self.d.or(before, self.path);
        self.libraries.saved.insert(file, when);
    }

    /// Stores a file that the program downloads from a literal URL: `urlretrieve(url, file)`, or `open(file, "wb")` in a function that
    /// requests such a URL. The file's contents are published, whether the program downloads it now or did so before.
    pub(crate) fn remember_download(&mut self, path: &str, args: &Args) {
        let at = match path {
            "open" => 0,
            path if is_download(path) => 1,
            _ => return,
        };
        let keyword = ["file", "filename", "dst", "output", "out"].into_iter().find_map(|k| args.keyword(k));
        let Some((v, e)) = args.positional.get(at).copied().or(keyword) else { return };
        let binary = |(v, _)| matches!(v, Value::Str(mode, _) if mode.as_str().contains('w') && mode.as_str().contains('b'));
        if path == "open" && !(args.get(1, "mode").is_some_and(binary) && self.asks_an_address()) {
            return;
        }
        if path != "open" && !args.get(0, "url").is_some_and(|(v, e)| self.is_address(v, e)) {
            return;
        }
        let mut name = String::new();
        self.run.muted += 1;
        let known = self.spell_value(v, e, &mut name, &mut MAX_PARTS.clone());
        self.run.muted -= 1;
        if known.is_some() {
            self.libraries.saved.insert(Sym::new(&name), TRUE);
        }
    }

    /// Does the function request something from a literal URL?
    fn asks_an_address(&mut self) -> bool {
        let (linked, module) = (self.linked(), self.here().module);
        let ir = &linked.ir;
        let within = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        let fetches = |&(e, at): &(&Expr, &Span)| {
            let Expr::Call(id) = e else { return false };
            (whole || within.contains(*at))
                && matches!(self.program.resolve_expr(module, ir.call(*id).func), Some(Resolved::External(path))
                    if matches!(path.as_str(), "requests.get" | "urllib.request.urlopen" | "urllib.request.Request"))
        };
        let calls = ir.exprs.iter().zip(&ir.expr_spans).filter(fetches);
        let asked: Vec<ExprId> = calls
            .filter_map(|(e, _)| match *e {
                Expr::Call(id) => ir.call(id).args.first().map(|a| a.value),
                _ => None,
            })
            .collect();
        asked.into_iter().any(|e| self.is_address(Value::Unknown, e))
    }

    /// The condition under which this run has written the file before. It depends only on the machine and its user. A test such as "is this
    /// the best epoch so far?" does not matter, because some epoch was the best.
    pub(crate) fn saved_before(&mut self, args: &Args) -> Cond {
        let Some(file) = self.file_name(args, 0) else { return FALSE };
        let Some(&when) = self.libraries.saved.get(&file) else { return FALSE };
        let atoms = &self.atoms;
        let decided = |a| matches!(atoms.get(a), Atom::Gpus(_) | Atom::Backend(_) | Atom::Flag { .. });
        self.d.forget(when, &decided)
    }

    /// The external class of an outside value, if the value is the result of a call of that class.
    pub(crate) fn class_outside(&self, o: OuterId) -> Option<Sym> {
        let OuterKey::Result { module, expr, .. } = self.t.get_outer(o).key else { return None };
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(expr) else { return None };
        let class = ir.call(call).func;
        match self.program.resolve_expr(module, class)? {
            Resolved::External(path) => Some(path),
            _ => None,
        }
    }

    /// A text that identifies a file: equal for equal names.
    fn file_name(&mut self, args: &Args, position: usize) -> Option<Sym> {
        let (v, at) = args.get(position, "f")?;
        let mut name = String::new();
        self.run.muted += 1;
        let known = self.spell_value(v, at, &mut name, &mut MAX_PARTS.clone());
        self.run.muted -= 1;
        known.map(|()| Sym::new(&name))
    }

    fn spell_value(&mut self, v: Value, e: ExprId, name: &mut String, left: &mut u32) -> Option<()> {
        match v {
            Value::Str(s, _) => name.push_str(s.as_str()),
            Value::Int(i) => write!(name, "{i}").ok()?,
            // An option of the command line, or a part of it: it has the same value everywhere.
            Value::Outer(o)
                if !matches!(
                    self.t.get_outer(o).key,
                    OuterKey::Result { .. } | OuterKey::Item { key: None, .. }
                ) =>
            {
                write!(name, "<{}>", o.0).ok()?;
            }
            _ => return self.spell(e, name, left),
        }
        Some(())
    }

    fn spelled_by_caller(&self, var: Var, e: ExprId) -> Option<(FrameId, ExprId)> {
        let given = self.given_by_caller(self.written_here(e), var)?;
        Some((given.frame?, given.e))
    }

    /// Appends a name that an expression computes, part by part.
    fn spell(&mut self, e: ExprId, name: &mut String, left: &mut u32) -> Option<()> {
        *left = left.checked_sub(1)?;
        let linked = self.linked();
        let ir = &linked.ir;
        match ir.expr(e) {
            Expr::Var(var) => {
                if let Some(value) = self.given_before(var, e) {
                    return self.spell_part(value, name, left);
                }
                // For a parameter, use the caller's expression: a function that downloads into a path writes to the caller's path.
                if let Some((caller, given)) = self.spelled_by_caller(var, e) {
                    let here = std::mem::replace(&mut self.frame, caller);
                    let spelled = self.spell_part(given, name, left);
                    self.frame = here;
                    return spelled;
                }
                let (slots, slot) = match var {
                    Var::Local(slot) => (&ir.function(self.here().func).slots, slot),
                    Var::Global(slot) => (&ir.functions.first()?.slots, slot),
                    _ => return None,
                };
                // A loop variable: in another loop, the same name is meant to have the same values.
                write!(name, "<{}>", slots.get(usize::from(slot))?).ok()
            }
            Expr::Attr { base, name: attribute } => {
                self.spell_part(base, name, left)?;
                write!(name, ".{attribute}").ok()
            }
            Expr::Format(list) => ir.list(list).iter().try_for_each(|&x| self.spell_part(x, name, left)),
            Expr::Binary { left: a, right: b, op } => {
                self.spell_part(a, name, left)?;
                write!(name, "<{op:?}>").ok()?;
                self.spell_part(b, name, left)
            }
            Expr::Tuple(list) => ir.list(list).iter().try_for_each(|&x| {
                self.spell_part(x, name, left)?;
                name.push(',');
                Some(())
            }),
            Expr::Call(id) => {
                let call = ir.call(id);
                match ir.expr(call.func) {
                    Expr::Attr { base, name: method } if !matches!(ir.expr(base), Expr::Attr { .. }) => {
                        self.spell_part(base, name, left)?;
                        write!(name, ".{method}(").ok()?;
                    }
                    Expr::Attr { name: function, .. } => write!(name, "{function}(").ok()?,
                    Expr::Var(Var::Unbound(function)) => write!(name, "{function}(").ok()?,
                    _ => name.push('('),
                }
                call.args.iter().try_for_each(|a| {
                    self.spell_part(a.value, name, left)?;
                    name.push(',');
                    Some(())
                })
            }
            Expr::Index { base, index } => {
                self.spell_part(base, name, left)?;
                name.push('[');
                self.spell_part(index, name, left)
            }
            Expr::Str(s) => {
                name.push_str(s.as_str());
                Some(())
            }
            _ => None,
        }
    }

    /// Appends a part: by its value if it has one, otherwise by its own parts.
    fn spell_part(&mut self, e: ExprId, name: &mut String, left: &mut u32) -> Option<()> {
        match self.linked().ir.expr(e) {
            Expr::Var(_) | Expr::Attr { .. } | Expr::Index { .. } | Expr::Int(_) | Expr::Str(_) => {
                let v = self.eval(e);
                if matches!(v, Value::Object(_) | Value::External(_) | Value::Module(_)) {
                    write!(name, "<{v:?}>").ok()
                } else {
                    self.spell_value(v, e, name, left)
                }
            }
            _ => self.spell(e, name, left),
        }
    }

    /// The last value that the function assigned to the variable before this point.
    pub(crate) fn given_before(&self, var: Var, e: ExprId) -> Option<ExprId> {
        self.given_before_in(self.here().module, self.here().func, var, e)
    }

    /// The same, for any function.
    pub(crate) fn given_before_in(
        &self,
        module: ModIdx,
        func: FuncId,
        var: Var,
        e: ExprId,
    ) -> Option<ExprId> {
        let ir = &self.program.get(module).ir;
        let at = ir.span(e);
        let function = ir.function(func).span;
        let whole = func.0 == 0;
        ir.stmts
            .iter()
            .zip(&ir.stmt_spans)
            .filter(|&(_, &span)| span.start <= at.start && (whole || function.contains(span)))
            .filter_map(|(stmt, &span)| match *stmt {
                Stmt::Assign { targets, value }
                    if span.end <= at.start
                        && matches!(ir.list(targets), &[t] if ir.expr(t) == Expr::Var(var)) =>
                {
                    Some((span.start, Some(value)))
                }
                Stmt::For { target, .. } if span.contains(at) && ir.binds(target, var) => {
                    Some((span.start, None))
                }
                _ => None,
            })
            .max_by_key(|&(start, _)| start)
            .and_then(|(_, value)| value)
    }
}

/// Does the function download a URL into a file?
pub(crate) fn is_download(path: &str) -> bool {
    DOWNLOADS.contains(&path)
}
