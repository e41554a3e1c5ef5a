//! Where tensors are made, and where they are moved.

use rustpython_ast::visitor::source_order::{SourceOrderVisitor, walk_body, walk_expr};
use rustpython_ast::{AnyNodeRef, CmpOp, Expr, ExprCall, ExprName, ExprRef, Stmt};

use super::super::Draft;
use super::super::apply::Change;
use super::super::names::{is_bound, path, spelled};
use super::super::syntax::{Syntax, span, start};
use super::calls::{argument, is_target, suffixed};
use super::{safe, unsafe_};
use crate::finding::Applicability;
use crate::span::Span;

/// Functions that make the same numbers on every device.
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

/// Functions that draw, or compute: their numbers differ from device to device, if only in the last digit.
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

/// Factories of PyTorch's own that have no generator, no place for the result and no pinned memory to think of.
struct Factory<'a> {
    call: &'a ExprCall,
    /// Does it make the same numbers everywhere?
    same: bool,
}

impl<'a> Factory<'a> {
    fn new(call: &'a ExprCall, function: &str) -> Option<Self> {
        let name = function.strip_prefix("torch.")?;
        let same = SAME_EVERYWHERE.contains(&name);
        if !same && !OTHERS.contains(&name) {
            return None;
        }
        // A generator belongs to a device; what is pinned is on the host for a reason; a result has its place.
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

/// `torch.zeros(3)` → `torch.zeros(3, device=x.device)`; what takes no device is moved as soon as it is made. Safe where it meets
/// the other one on every way: on a machine where that is elsewhere it raised.
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
    // A module may have no parameters after all.
    let asks_module = device.starts_with("next(");
    let certain = !asks_module && meets.is_some_and(|meets| always_meets(syntax, at, meets));
    if let Some(factory) = Factory::new(call, function) {
        let change = argument(syntax, call, "device", device)?;
        let title = format!("Make it there: `device={device}`");
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
    by_host.contains(&name).then(|| unsafe_(format!("Move it there: `.to({device})`"), changes))
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

/// If the device is that of the parameters of the object whose method this is: does its class visibly have some? `next()` raises where
/// there is none.
fn has_parameters(syntax: &Syntax<'_>, at: Span, device: &str) -> bool {
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

/// Looks for a layer that is made.
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

/// Is the variable that the tensor is put into handed to NumPy in the same function? It is meant for both then.
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

/// Looks for `name.numpy()`.
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

/// Is what is made here used by the statement at `meets` on every way that goes on from here? That is in the same statement, or in a
/// later one of the same block with nothing between that may leave it, and not on one side of a condition.
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
fn block_around<'a>(syntax: &'a Syntax<'_>, at: Span) -> Option<&'a [Stmt]> {
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

/// `x` → `x.to(y.device)`, where they meet. Which of the two should move, nobody says.
pub(super) fn follow(syntax: &Syntax<'_>, at: Span, device: &str) -> Option<Draft> {
    let operand = syntax.expr(at)?;
    if is_target(syntax, at) || is_changed(syntax, at) || !has_parameters(syntax, at, device) {
        return None;
    }
    let changes = suffixed(syntax, operand, &format!(".to({device})"))?;
    Some(unsafe_(format!("Move it there: `.to({device})`"), changes))
}

/// Is the operand what a call changes: the receiver of a method such as `add_`, or `out=`? A copy would be changed in its stead.
fn is_changed(syntax: &Syntax<'_>, at: Span) -> bool {
    syntax.around(at).iter().any(|node| match node {
        AnyNodeRef::ExprCall(call) => match &*call.func {
            Expr::Attribute(method) => span(&*method.value).contains(at) && method.attr.ends_with('_'),
            _ => false,
        },
        AnyNodeRef::Keyword(k) => k.arg.as_ref().is_some_and(|name| name.as_str() == "out"),
        _ => false,
    })
}

/// `torch.zeros(3).to(d)` → `torch.zeros(3, device=d)`.
pub(super) fn make_there(syntax: &Syntax<'_>, at: Span, function: &str) -> Option<Draft> {
    let transfer = syntax.call(at)?;
    let Expr::Attribute(method) = &*transfer.func else { return None };
    let Expr::Call(made) = &*method.value else { return None };
    let factory = Factory::new(made, function)?;
    // A copy of a leaf is no leaf, and somebody may count on either.
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
    // Parentheses around what is moved stay as they are.
    let whole = syntax.parenthesized(ExprRef::Call(made)).end.max(end);
    changes.push(Change { span: Span::new(whole, span(transfer).end), content: String::new() });
    let title = format!("Make it there: `device={device}`");
    Some(if factory.same { safe(title, changes) } else { unsafe_(title, changes) })
}

/// `x = torch.zeros(3)` and at once `x.to(d)` → `x = torch.zeros(3, device=d)`. Gives the changes and whether the numbers are the same on
/// every device.
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

/// The device that a transfer is to, as its source has it, and whether it also takes over the type of numbers.
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

/// Is that a device by the way it is written? `.to()` also takes types of numbers and tensors.
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

/// `x.numpy()` → `x.detach().cpu().numpy()`: what is on the host already stays the same memory, the rest raised.
pub(super) fn to_host(syntax: &Syntax<'_>, at: Span, tensor: Option<Span>) -> Option<Draft> {
    let call = syntax.call(at)?;
    let (tensor, for_numpy) = match (tensor, &*call.func) {
        (Some(tensor), _) => (syntax.expr(tensor)?, true),
        (None, Expr::Attribute(method)) if method.attr.as_str() == "numpy" => {
            (ExprRef::from(&*method.value), true)
        }
        _ => return None,
    };
    if is_target(syntax, span(&tensor)) {
        return None;
    }
    let has_graph = for_numpy && !is_detached(syntax, tensor) && !is_bare(syntax, at);
    let suffix = if has_graph { ".detach().cpu()" } else { ".cpu()" };
    let changes = suffixed(syntax, tensor, suffix)?;
    Some(safe("Copy it to the host first", changes))
}

/// `np.mean(losses)` → `np.mean([t.detach().cpu() for t in losses])`
pub(super) fn each_to_host(syntax: &Syntax<'_>, at: Span, tensors: Span) -> Option<Draft> {
    let (ExprRef::Name(_) | ExprRef::Attribute(_)) = syntax.expr(tensors)? else { return None };
    let item = ["t", "x", "item"].into_iter().find(|name| !is_bound(syntax, name, at))?;
    let cut = if is_bare(syntax, at) { "" } else { ".detach()" };
    let content = format!("[{item}{cut}.cpu() for {item} in {}]", tensors.slice(syntax.text));
    Some(safe("Copy them to the host first", vec![Change { span: tensors, content }]))
}

/// Is there a `.detach()` in the chain of methods, also before it was put into a variable?
fn is_detached(syntax: &Syntax<'_>, tensor: ExprRef<'_>) -> bool {
    let mut e = match tensor {
        ExprRef::Name(name) => {
            return last_value(syntax, name).is_some_and(|value| is_detached(syntax, value));
        }
        ExprRef::Call(call) => Some(&*call.func),
        ExprRef::Subscript(s) => Some(&*s.value),
        _ => None,
    };
    while let Some(inner) = e {
        e = match inner {
            Expr::Attribute(a) if matches!(a.attr.as_str(), "detach" | "data") => return true,
            Expr::Attribute(a) => Some(&*a.value),
            Expr::Call(c) => Some(&*c.func),
            Expr::Subscript(s) => Some(&*s.value),
            Expr::Name(name) => {
                return last_value(syntax, name).is_some_and(|value| is_detached(syntax, value));
            }
            _ => None,
        };
    }
    false
}

/// What a variable was given last before it is read, in the same block.
fn last_value<'a>(syntax: &'a Syntax<'_>, name: &ExprName) -> Option<ExprRef<'a>> {
    let before = block_around(syntax, span(name))?.iter().rev().skip_while(|s| span(*s).end > start(name));
    before.into_iter().find_map(|s| match s {
        Stmt::Assign(a) => match &*a.targets {
            [Expr::Name(target)] if target.id == name.id => Some(ExprRef::from(&*a.value)),
            _ => None,
        },
        _ => None,
    })
}

/// Is no graph recorded there: under `with torch.no_grad():`, or in a function that is decorated so?
fn is_bare(syntax: &Syntax<'_>, at: Span) -> bool {
    let cuts = |e: &Expr| {
        let text = syntax.slice(e);
        text.contains("no_grad") || text.contains("inference_mode")
    };
    syntax.around(at).iter().any(|node| match node {
        AnyNodeRef::StmtWith(with) => with.items.iter().any(|item| cuts(&item.context_expr)),
        AnyNodeRef::StmtFunctionDef(f) => f.decorator_list.iter().any(|d| cuts(&d.expression)),
        _ => false,
    })
}

/// `x.device == "cuda"` → `x.device.type == "cuda"`. What was never true may be true from now on.
pub(super) fn compare_type(syntax: &Syntax<'_>, at: Span) -> Option<Draft> {
    let nodes = syntax.around(at);
    let compare = nodes.iter().rev().find_map(|node| match node {
        AnyNodeRef::ExprCompare(compare) => Some(*compare),
        _ => None,
    })?;
    let ([op], [right]) = (&*compare.ops, &*compare.comparators) else { return None };
    let (text, device) = match (&*compare.left, right) {
        (Expr::StringLiteral(text), device) => (text, device),
        (device, Expr::StringLiteral(text)) => (text, device),
        _ => return None,
    };
    if !matches!(op, CmpOp::Eq | CmpOp::NotEq) || span(device) != at {
        return None;
    }
    let value = text.value.to_str();
    if value.contains(':') {
        let class = spelled(syntax, "torch.device", at)?;
        let content = format!("{}({})", class.text, syntax.slice(text));
        let changes = class.import.into_iter().chain([Change { span: span(text), content }]).collect();
        return Some(unsafe_("Compare it with a device", changes));
    }
    let changes = suffixed(syntax, ExprRef::from(device), ".type")?;
    Some(unsafe_("Compare its type", changes))
}

/// What is chosen by a check, as it is written.
const CHOICES: [&str; 5] = ["cuda", "cuda:0", "mps", "xpu", "nccl"];

/// `"cuda"` → `"cuda" if torch.cuda.is_available() else "cpu"`.
pub(super) fn choose(syntax: &Syntax<'_>, at: Span, check: &str, otherwise: &str) -> Option<Draft> {
    let literal = match syntax.expr(at)? {
        literal @ ExprRef::StringLiteral(_) => literal,
        // `torch.device("cuda")`, `init_process_group(backend="nccl", rank=rank)`
        ExprRef::Call(call) => {
            let values = call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|k| &k.value));
            let mut texts =
                values.filter(|e| matches!(e, Expr::StringLiteral(t) if CHOICES.contains(&t.value.to_str())));
            let text = texts.next()?;
            if texts.next().is_some() || call.arguments.args.len() > 1 {
                return None;
            }
            ExprRef::from(text)
        }
        _ => return None,
    };
    let place = span(&literal);
    let ExprRef::StringLiteral(text) = literal else { return None };
    // One of several GPUs is chosen for a reason.
    if !CHOICES.contains(&text.value.to_str()) {
        return None;
    }
    let nodes = syntax.around(place);
    let parent = nodes.iter().rev().find(|n| span(*n) != place)?;
    let stands_alone = matches!(
        parent,
        AnyNodeRef::Arguments(_)
            | AnyNodeRef::Keyword(_)
            | AnyNodeRef::StmtAssign(_)
            | AnyNodeRef::StmtAnnAssign(_)
            | AnyNodeRef::StmtReturn(_)
    );
    // A choice is made once, not for each item.
    let repeated = |node: &AnyNodeRef<'_>| {
        matches!(
            node,
            AnyNodeRef::ExprGenerator(_)
                | AnyNodeRef::ExprListComp(_)
                | AnyNodeRef::ExprDictComp(_)
                | AnyNodeRef::ExprSetComp(_)
                | AnyNodeRef::ExprLambda(_)
        )
    };
    // A default is there for callers to say something else, a key or a name is no choice.
    if !stands_alone || nodes.iter().any(repeated) {
        return None;
    }
    let asked = spelled(syntax, check, at)?;
    let content = format!(" if {}() else \"{otherwise}\"", asked.text);
    let insertion = Change { span: Span::new(place.end, place.end), content };
    let changes = asked.import.into_iter().chain([insertion]).collect();
    Some(unsafe_("Choose it by a check", changes))
}

/// `torch.cuda.amp.autocast()` → `torch.autocast(x.device.type)`. On the CPU, autocast is then on.
pub(super) fn autocast(syntax: &Syntax<'_>, at: Span, device: &str) -> Option<Draft> {
    let call = syntax.call(at)?;
    let decorates = |node: &AnyNodeRef<'_>| matches!(node, AnyNodeRef::Decorator(_));
    // Where a function is decorated, its variables are not there yet.
    if syntax.around(at).iter().any(decorates) {
        return None;
    }
    let of_type = format!("{device}.type");
    let title = format!("Name the type of the device: `{of_type}`");
    let named = |k: &&rustpython_ast::Keyword| k.arg.as_ref().is_some_and(|n| n.as_str() == "device_type");
    let literal =
        call.arguments.keywords.iter().find(named).map(|k| &k.value).or(call.arguments.args.first());
    if let Some(literal @ Expr::StringLiteral(_)) = literal {
        return Some(unsafe_(title, vec![Change { span: span(literal), content: of_type }]));
    }
    let general = spelled(syntax, "torch.autocast", at)?;
    let open = start(&call.arguments) + 1;
    let mut changes: Vec<Change> = general.import.into_iter().collect();
    changes.push(Change { span: span(&*call.func), content: general.text });
    let first = match &*call.arguments.args {
        [] if call.arguments.keywords.is_empty() => of_type,
        [] => format!("{of_type}, "),
        // `torch.cuda.amp.autocast(enabled)`
        [_] => format!("{of_type}, enabled="),
        _ => return None,
    };
    changes.push(Change { span: Span::new(open, open), content: first });
    Some(Draft { title, applicability: Applicability::Unsafe, changes })
}
