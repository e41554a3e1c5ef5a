//! The names of the extension modules that a project's `setup.py` builds for CUDA alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::flow::argument;
use crate::ir::{BinOp, Call, Expr, ExprId, FuncKind, Function, Module, Stmt, StmtId, Var};
use crate::lower::Kind;
use crate::shield::shielded;
use crate::source::read;
use crate::span::FileId;
use crate::sym::Sym;
use crate::words::Words;

static CUDA_SIGNS: Words = Words::of("text of an extension for CUDA");

/// The class of extensions that CUDA's compiler builds.
const MAKER: &str = "CUDAExtension";

/// The modules that the project's `setup.py`, or one in a folder below, builds with `CUDAExtension(name=…)`.
pub(super) fn extensions(root: &Path) -> Arc<[Sym]> {
    let mut names = Vec::new();
    for path in setups(root) {
        let text = read::read(&path).unwrap_or_default();
        built_for_cuda(&text, &mut names);
        if text.contains(MAKER) {
            made_by_helpers(&text, &mut names);
        }
    }
    names.into()
}

/// Names of build scripts. The second one is from the first Faster R-CNN in Python, whose kernels many projects have copied.
const SETUPS: [&str; 2] = ["setup.py", "setup_linux.py"];
/// How many levels below the root a `setup.py` of kernels may be, and how many folders are searched.
const DEEPEST_SETUP: usize = 2;
const MOST_FOLDERS: usize = 400;

/// The `setup.py` of a project, and those of folders in it.
fn setups(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![root.to_path_buf()];
    let mut looked = 0;
    for depth in 0..=DEEPEST_SETUP {
        let mut below = Vec::new();
        for folder in level {
            found.extend(SETUPS.map(|name| folder.join(name)));
            if depth == DEEPEST_SETUP || looked >= MOST_FOLDERS {
                continue;
            }
            looked += 1;
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            let folders = entries.flatten().filter(|e| {
                let hidden = e.file_name().to_string_lossy().starts_with('.');
                !hidden && e.file_type().is_ok_and(|t| t.is_dir())
            });
            below.extend(folders.map(|e| e.path()));
        }
        below.sort();
        level = below;
    }
    found
}

/// Adds the names of the extensions that the text of a `setup.py` makes with `CUDAExtension`, or with a variable that is always
/// `CUDAExtension` where the other branch raises. Also adds extensions that are built from CUDA sources.
fn built_for_cuda(text: &str, names: &mut Vec<Sym>) {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let variable = text.split("= CUDAExtension\n").next().filter(|before| before.len() < text.len());
    let variable = variable.and_then(|before| before.trim_end().rsplit(|c| !word(c)).next());
    let variable = variable.filter(|name| !name.is_empty() && text.contains("raise "));
    for maker in ["CUDAExtension", "Extension"].into_iter().chain(variable) {
        let plain = maker == "Extension";
        let maker = format!("{maker}(");
        for (at, _) in text.match_indices(&maker) {
            if text[..at].ends_with(word) {
                continue;
            }
            let call = text[at + maker.len()..].trim_start();
            if plain && !CUDA_SIGNS.is_part_of(arguments(call)) {
                continue;
            }
            let first =
                call.strip_prefix("name").map_or(call, |rest| rest.trim_start().trim_start_matches('='));
            let first = first.trim_start();
            let Some(quote) = first.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
            names.extend(first[1..].split(quote).next().map(Sym::new));
        }
    }
}

/// The arguments of a call. `text` begins after the opening parenthesis.
fn arguments(text: &str) -> &str {
    let mut open = 1_usize;
    let end = text.char_indices().find(|&(_, c)| {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        open == 0
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Adds the names of the extensions that functions of a `setup.py` make, by the arguments of their calls:
/// `def extension(name, module): return CUDAExtension(f"{module}.{name}", …)`. Ignores functions that also make other extensions where
/// there is no CUDA, and calls that run only under a condition.
fn made_by_helpers(text: &str, names: &mut Vec<Sym>) {
    let lowered = shielded(|| crate::lower::lower(FileId(0), text, Kind::Script));
    let Ok(lowered) = lowered else { return };
    let ir = &lowered.module;
    let called = |call: &Call<'_>, name: &str| ir.last_name(call.func).is_some_and(|n| n.as_str() == name);
    for function in ir.functions.iter().filter(|f| f.kind == FuncKind::Function) {
        let body = &ir.exprs[function.exprs.start as usize..function.exprs.end as usize];
        let calls = body.iter().filter_map(|e| if let Expr::Call(c) = *e { Some(ir.call(c)) } else { None });
        let makers: Vec<Call<'_>> = calls
            .filter(|c| ir.last_name(c.func).is_some_and(|n| n.as_str().ends_with("Extension")))
            .collect();
        let [maker] = &*makers else { continue };
        let Some(named) = argument(*maker, 0, Sym::new("name")).filter(|_| called(maker, MAKER)) else {
            continue;
        };
        let always = |c: &Call<'_>| called(c, function.name.as_str()) && !is_optional(ir, c.func);
        for call in ir.calls().filter(always) {
            names.extend(text_of(ir, named, &Given { function, call }).map(|name| Sym::new(&name)));
        }
    }
}

/// Is the expression under a condition such as `if build_cuda_ext:`? A test whether the file is the main program does not count.
fn is_optional(ir: &Module, e: ExprId) -> bool {
    let at = ir.span(e);
    let run = |test: ExprId| {
        ir.exprs_in(test)
            .any(|n| matches!(ir.exprs[n], Expr::Var(Var::Unbound(name)) if name.as_str() == "__name__"))
    };
    ir.stmts.iter().enumerate().any(|(n, s)| match *s {
        Stmt::If { test, .. } => {
            let within = ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX))).contains(at);
            within && !run(test)
        }
        _ => false,
    })
}

/// A function with the arguments of one call.
struct Given<'a> {
    function: &'a Function,
    call: Call<'a>,
}

/// The text that an expression of a function forms from literals and the arguments of the call.
fn text_of(ir: &Module, e: ExprId, given: &Given<'_>) -> Option<String> {
    let text = |e: ExprId| text_of(ir, e, given);
    match ir.expr(e) {
        Expr::Str(s) => Some(s.to_string()),
        Expr::Var(Var::Local(slot)) => {
            let position = given.function.params.iter().position(|p| p.slot == slot)?;
            let value = argument(given.call, position, given.function.params[position].name)?;
            match ir.expr(value) {
                Expr::Str(s) => Some(s.to_string()),
                _ => None,
            }
        }
        Expr::Format(parts) => ir.list(parts).iter().map(|&part| text(part)).collect(),
        Expr::Binary { op: BinOp::Add, left, right } => Some(text(left)? + &text(right)?),
        Expr::Binary { op: BinOp::Mod, left, right } => {
            let parts = match ir.expr(right) {
                Expr::Tuple(list) => ir.list(list).to_vec(),
                _ => vec![right],
            };
            filled(&text(left)?, "%s", &parts, &text)
        }
        Expr::Call(call) => {
            let call = ir.call(call);
            let Expr::Attr { base, name } = ir.expr(call.func) else { return None };
            let values: Vec<ExprId> = call.args.iter().map(|a| a.value).collect();
            match (name.as_str(), &*values) {
                ("format", parts) => filled(&text(base)?, "{}", parts, &text),
                ("join", &[parts]) => {
                    let (Expr::List(list) | Expr::Tuple(list)) = ir.expr(parts) else { return None };
                    let parts: Option<Vec<String>> = ir.list(list).iter().map(|&part| text(part)).collect();
                    Some(parts?.join(&text(base)?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// A pattern with its holes filled by the parts, if there are as many parts as holes.
fn filled(
    pattern: &str,
    hole: &str,
    parts: &[ExprId],
    text: &dyn Fn(ExprId) -> Option<String>,
) -> Option<String> {
    let mut pieces = pattern.split(hole);
    let mut whole = pieces.next()?.to_owned();
    let mut parts = parts.iter();
    for piece in pieces {
        whole += &text(*parts.next()?)?;
        whole += piece;
    }
    parts.next().is_none().then_some(whole)
}
