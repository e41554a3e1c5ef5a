//! Creation of tensors: `device=` in factories.

use rustpython_ast::visitor::source_order::{SourceOrderVisitor, walk_body, walk_expr};
use rustpython_ast::{AnyNodeRef, Expr, ExprCall, ExprRef, Stmt};

use super::super::Draft;
use super::super::apply::Change;
use super::super::names::path;
use super::super::syntax::{Syntax, span};
use super::calls::{argument, suffixed};
use super::{safe, unsafe_};
use crate::span::Span;

/// Functions that create the same numbers on every device.
const SAME_EVERYWHERE: [&str; 16] = [
    "zeros",
    "ones",
    "full",
    "empty",
    "eye",
    "arange",
    "tensor",
    "as_tensor",
    "asarray",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "tril_indices",
    "triu_indices",
    "scalar_tensor",
];

/// Functions that draw random numbers or compute: their numbers depend on the device, perhaps only in the last digit.
const OTHERS: [&str; 15] = [
    "rand",
    "randn",
    "randint",
    "randperm",
    "rand_like",
    "randn_like",
    "randint_like",
    "linspace",
    "logspace",
    "range",
    "hann_window",
    "hamming_window",
    "blackman_window",
    "bartlett_window",
    "kaiser_window",
];

/// A call of a factory of PyTorch without a generator, an `out=` tensor or pinned memory.
struct Factory<'a> {
    call: &'a ExprCall,
    /// Whether it creates the same numbers on every device.
    same: bool,
}

impl<'a> Factory<'a> {
    fn new(call: &'a ExprCall, function: &str) -> Option<Self> {
        let name = function.strip_prefix("torch.")?;
        let same = SAME_EVERYWHERE.contains(&name);
        if !same && !OTHERS.contains(&name) {
            return None;
        }
        // A generator belongs to a device, pinned memory is on the CPU for a reason, and an `out=` tensor has a device.
        let hinders = ["generator", "out", "pin_memory"];
        let hindered = call.arguments.keywords.iter().any(|k| {
            k.arg.as_ref().is_none_or(|name| hinders.contains(&name.as_str()) || name.as_str() == "device")
        });
        (!hindered).then_some(Self { call, same })
    }

    fn requires_grad(&self) -> bool {
        let asks =
            |k: &rustpython_ast::Keyword| k.arg.as_ref().is_some_and(|n| n.as_str() == "requires_grad");
        self.call.arguments.keywords.iter().any(asks)
    }
}

/// `torch.zeros(3)` → `torch.zeros(3, device=x.device)`. A tensor from a function without `device=` is moved right after its creation. Safe
/// if the tensor meets the other one on every path: if that was on another device, the code raised an error.
pub(super) fn make(
    syntax: &Syntax<'_>,
    at: Span,
    function: &str,
    device: &str,
    meets: Option<Span>,
) -> Option<Draft> {
    let call = syntax.call(at)?;
    if !has_parameters(syntax, at, device) || goes_to_host(syntax, at) {
        return None;
    }
    // A module may have no parameters.
    let asks_module = device.starts_with("next(");
    let certain = !asks_module && meets.is_some_and(|meets| always_meets(syntax, at, meets));
    if let Some(factory) = Factory::new(call, function) {
        let change = argument(syntax, call, "device", device)?;
        let title = format!("Pass `device={device}`");
        return Some(if factory.same && certain {
            safe(title, vec![change])
        } else {
            unsafe_(title, vec![change])
        });
    }
    let by_host =
        ["from_numpy", "Tensor", "FloatTensor", "LongTensor", "IntTensor", "BoolTensor", "ByteTensor"];
    let name = function.strip_prefix("torch.")?;
    let changes = suffixed(syntax, ExprRef::Call(call), &format!(".to({device})"))?;
    by_host.contains(&name).then(|| unsafe_(format!("Add `.to({device})`"), changes))
}

/// Layers with parameters.
const LAYERS: [&str; 22] = [
    "Linear",
    "LazyLinear",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "LSTM",
    "GRU",
    "RNN",
    "LSTMCell",
    "GRUCell",
    "LayerNorm",
    "BatchNorm1d",
    "BatchNorm2d",
    "GroupNorm",
    "MultiheadAttention",
    "Parameter",
];

/// If the device comes from the parameters of the method's own object: does its class visibly have parameters? `next()` raises an error if
/// there are none.
pub(super) fn has_parameters(syntax: &Syntax<'_>, at: Span, device: &str) -> bool {
    let Some(module) = device.strip_prefix("next(").and_then(|rest| rest.split('.').next()) else {
        return true;
    };
    let own = syntax.functions(at).last().and_then(|f| f.parameters.iter().next());
    if own.is_none_or(|p| p.name().as_str() != module) {
        return true;
    }
    let class = syntax.around(at).into_iter().rev().find_map(|node| match node {
        AnyNodeRef::StmtClassDef(class) => Some(class),
        _ => None,
    });
    let mut layers = Layers(false);
    class.into_iter().for_each(|class| walk_body(&mut layers, &class.body));
    layers.0
}

/// Searches for the construction of a layer.
struct Layers(bool);

impl<'a> SourceOrderVisitor<'a> for Layers {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr {
            let name = match &*call.func {
                Expr::Attribute(a) => a.attr.as_str(),
                Expr::Name(n) => n.id.as_str(),
                _ => "",
            };
            self.0 |= LAYERS.contains(&name);
        }
        walk_expr(self, expr);
    }
}

/// Does the same function pass the variable with the tensor to NumPy? Then the tensor is meant for both.
fn goes_to_host(syntax: &Syntax<'_>, at: Span) -> bool {
    let Some(block) = block_around(syntax, at) else { return false };
    let name = block.iter().find(|s| span(*s).contains(at)).and_then(|s| match s {
        Stmt::Assign(a) => match &*a.targets {
            [Expr::Name(name)] => Some(name.id.as_str()),
            _ => None,
        },
        _ => None,
    });
    let Some(name) = name else { return false };
    let mut host = ToNumpy { name, found: false };
    match syntax.functions(at).last() {
        Some(function) => walk_body(&mut host, &function.body),
        None => walk_body(&mut host, &syntax.module().body),
    }
    host.found
}

/// Searches for `name.numpy()`.
struct ToNumpy<'n> {
    name: &'n str,
    found: bool,
}

impl<'a> SourceOrderVisitor<'a> for ToNumpy<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Attribute(a) = expr {
            let own = matches!(&*a.value, Expr::Name(n) if n.id.as_str() == self.name);
            self.found |= own && a.attr.as_str() == "numpy";
        }
        walk_expr(self, expr);
    }
}

/// Does the statement at `meets` use the new tensor on every path from here? Then it is in the same statement, or in a later one of the
/// same block. No statement between may leave the block, and the use must not be on one side of a condition.
fn always_meets(syntax: &Syntax<'_>, made: Span, meets: Span) -> bool {
    let unconditional = |at: Span, from: Span| {
        syntax.around(at).iter().filter(|n| from.contains(span(*n))).all(|node| {
            !matches!(
                node,
                AnyNodeRef::ExprIf(_)
                    | AnyNodeRef::ExprBoolOp(_)
                    | AnyNodeRef::ExprLambda(_)
                    | AnyNodeRef::ExprListComp(_)
                    | AnyNodeRef::ExprSetComp(_)
                    | AnyNodeRef::ExprDictComp(_)
                    | AnyNodeRef::ExprGenerator(_)
            )
        })
    };
    let Some(block) = block_around(syntax, made) else { return false };
    let Some(first) = block.iter().position(|s| span(s).contains(made)) else { return false };
    let Some(last) = block.iter().position(|s| span(s).contains(meets)) else { return false };
    let simple = |s: &Stmt| {
        matches!(
            s,
            Stmt::Assign(_) | Stmt::AnnAssign(_) | Stmt::AugAssign(_) | Stmt::Expr(_) | Stmt::Return(_)
        )
    };
    let stays =
        |s: &Stmt| simple(s) && !matches!(s, Stmt::Return(_)) || matches!(s, Stmt::Pass(_) | Stmt::Assert(_));
    let (from, to) = (&block[first], &block[last]);
    first <= last
        && simple(from)
        && simple(to)
        && block[first..last].iter().all(stays)
        && unconditional(meets, span(to))
        && (unconditional(made, span(from)) || made == meets)
}

/// The innermost block of statements around a place.
pub(super) fn block_around<'a>(syntax: &'a Syntax<'_>, at: Span) -> Option<&'a [Stmt]> {
    let holds = |body: &[Stmt]| body.iter().any(|s| span(s).contains(at));
    let pick = |bodies: &[&'a [Stmt]]| bodies.iter().copied().find(|body| holds(body));
    syntax.around(at).into_iter().rev().find_map(|node| match node {
        AnyNodeRef::ModModule(m) => pick(&[&m.body]),
        AnyNodeRef::StmtFunctionDef(f) => pick(&[&f.body]),
        AnyNodeRef::StmtClassDef(c) => pick(&[&c.body]),
        AnyNodeRef::StmtIf(s) => pick(&[&s.body]),
        AnyNodeRef::ElifElseClause(s) => pick(&[&s.body]),
        AnyNodeRef::StmtFor(s) => pick(&[&s.body, &s.orelse]),
        AnyNodeRef::StmtWhile(s) => pick(&[&s.body, &s.orelse]),
        AnyNodeRef::StmtWith(s) => pick(&[&s.body]),
        AnyNodeRef::StmtTry(s) => pick(&[&s.body, &s.orelse, &s.finalbody]),
        AnyNodeRef::ExceptHandlerExceptHandler(h) => pick(&[&h.body]),
        AnyNodeRef::MatchCase(c) => pick(&[&c.body]),
        _ => None,
    })
}

/// `torch.zeros(3).to(d)` → `torch.zeros(3, device=d)`.
pub(super) fn make_there(syntax: &Syntax<'_>, at: Span, function: &str) -> Option<Draft> {
    let transfer = syntax.call(at)?;
    let Expr::Attribute(method) = &*transfer.func else { return None };
    let Expr::Call(made) = &*method.value else { return None };
    let factory = Factory::new(made, function)?;
    // A copy of a leaf is not a leaf, and other code may depend on either.
    if factory.requires_grad() {
        return None;
    }
    let (device, exact) = target(syntax, transfer, method.attr.as_str())?;
    if exact && !["zeros", "ones", "eye", "full"].iter().any(|f| function == format!("torch.{f}")) {
        return None;
    }
    let mut changes = vec![argument(syntax, made, "device", &device)?];
    if exact {
        let dtype = device.strip_suffix(".device").map(|x| format!(", dtype={x}.dtype"))?;
        if made.arguments.keywords.iter().any(|k| k.arg.as_ref().is_some_and(|n| n.as_str() == "dtype")) {
            return None;
        }
        changes[0].content.push_str(&dtype);
    }
    let end = span(made).end;
    // Keeps parentheses around the moved expression.
    let whole = syntax.parenthesized(ExprRef::Call(made)).end.max(end);
    changes.push(Change { span: Span::new(whole, span(transfer).end), content: String::new() });
    let title = format!("Make it on the device: `device={device}`");
    Some(if factory.same { safe(title, changes) } else { unsafe_(title, changes) })
}

/// `x = torch.zeros(3)` followed by `x.to(d)` → `x = torch.zeros(3, device=d)`. Returns the changes, and whether the numbers are the same
/// on every device.
pub(super) fn make_instead(syntax: &Syntax<'_>, name: &str, at: Span) -> Option<(Vec<Change>, bool)> {
    let transfer = syntax.call(at)?;
    let Expr::Attribute(method) = &*transfer.func else { return None };
    let (device, false) = target(syntax, transfer, method.attr.as_str())? else { return None };
    let block = block_around(syntax, at)?;
    let n = block.iter().position(|s| span(s) == at)?;
    let Stmt::Assign(assign) = block.get(n.checked_sub(1)?)? else { return None };
    let ([Expr::Name(made)], Expr::Call(call)) = (&*assign.targets, &*assign.value) else { return None };
    let factory = Factory::new(call, &path(syntax, &call.func)?)?;
    if made.id.as_str() != name || factory.requires_grad() || device.split('.').next() == Some(name) {
        return None;
    }
    let lines = syntax.whole_lines(at)?;
    let taken = Change { span: lines, content: String::new() };
    Some((vec![argument(syntax, call, "device", &device)?, taken], factory.same))
}

/// The target device of a transfer, as in the source, and whether the transfer also changes the dtype.
fn target(syntax: &Syntax<'_>, transfer: &ExprCall, method: &str) -> Option<(String, bool)> {
    let arguments = &transfer.arguments;
    let blocking = |k: &rustpython_ast::Keyword| k.arg.as_ref().is_some_and(|n| n.as_str() == "non_blocking");
    match (method, &*arguments.args, &*arguments.keywords) {
        ("cuda", [], keywords) if keywords.iter().all(blocking) => Some(("\"cuda\"".to_owned(), false)),
        ("to", [device], keywords) if keywords.iter().all(blocking) && is_device(device) => {
            Some((syntax.slice(device).to_owned(), false))
        }
        ("to", [], [only]) if only.arg.as_ref().is_some_and(|n| n.as_str() == "device") => {
            Some((syntax.slice(&only.value).to_owned(), false))
        }
        ("type_as", [Expr::Name(other)], []) => Some((format!("{}.device", other.id), true)),
        _ => None,
    }
}

/// Does the syntax show that the expression is a device? `.to()` also takes dtypes and tensors.
fn is_device(e: &Expr) -> bool {
    let named = |name: &str| name == "device" || name.ends_with("_device") || name == "dev";
    match e {
        Expr::Attribute(a) => named(a.attr.as_str()),
        Expr::Name(n) => named(&n.id.to_ascii_lowercase()),
        Expr::StringLiteral(_) | Expr::FString(_) => true,
        Expr::Call(c) => match &*c.func {
            Expr::Attribute(a) => named(a.attr.as_str()),
            Expr::Name(n) => named(n.id.as_str()),
            _ => false,
        },
        _ => false,
    }
}
