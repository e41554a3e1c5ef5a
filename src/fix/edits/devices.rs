//! Transfers of tensors, and choices and comparisons of devices.

use rustpython_ast::{AnyNodeRef, CmpOp, Expr, ExprName, ExprRef, Stmt};

use super::super::Draft;
use super::super::apply::Change;
use super::super::names::{is_bound, spelled};
use super::super::syntax::{Syntax, span, start};
use super::calls::{is_target, suffixed};
use super::make::{block_around, has_parameters};
use super::{safe, unsafe_};
use crate::finding::Applicability;
use crate::span::Span;

/// `x` → `x.to(y.device)`, where they meet. Which of the two should move is not known.
pub(super) fn follow(syntax: &Syntax<'_>, at: Span, device: &str) -> Option<Draft> {
    let operand = syntax.expr(at)?;
    if is_target(syntax, at) || is_changed(syntax, at) || !has_parameters(syntax, at, device) {
        return None;
    }
    let changes = suffixed(syntax, operand, &format!(".to({device})"))?;
    Some(unsafe_(format!("Add `.to({device})`"), changes))
}

/// Does a call change the operand: as the receiver of a method such as `add_`, or as `out=`? Then the call would change the copy instead.
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

/// `x.numpy()` → `x.detach().cpu().numpy()`. A tensor on the CPU still shares its memory. For other tensors, the call raised an error
/// before.
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
    Some(safe(format!("Add `{suffix}`"), changes))
}

/// `np.mean(losses)` → `np.mean([t.detach().cpu() for t in losses])`
pub(super) fn each_to_host(syntax: &Syntax<'_>, at: Span, tensors: Span) -> Option<Draft> {
    let (ExprRef::Name(_) | ExprRef::Attribute(_)) = syntax.expr(tensors)? else { return None };
    let item = ["t", "x", "item"].into_iter().find(|name| !is_bound(syntax, name, at))?;
    let cut = if is_bare(syntax, at) { "" } else { ".detach()" };
    let content = format!("[{item}{cut}.cpu() for {item} in {}]", tensors.slice(syntax.text));
    Some(safe("Copy the tensors to the CPU first", vec![Change { span: tensors, content }]))
}

/// Is there a `.detach()` in the chain of methods, or in the assignment of its variable?
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

/// The last value that the same block assigns to a variable before it is read.
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

/// Is gradient recording off there: under `with torch.no_grad():`, or in a function with such a decorator?
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

/// `x.device == "cuda"` → `x.device.type == "cuda"`. The comparison was never true and now may be.
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
        return Some(unsafe_("Compare with a `torch.device`", changes));
    }
    let changes = suffixed(syntax, ExprRef::from(device), ".type")?;
    Some(unsafe_("Compare the device type", changes))
}

/// The literals that a check can choose.
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
    // The index of one of several GPUs is chosen for a reason.
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
    // A choice is made once, not for each element.
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
    // `x.cuda("cuda:0")` and the functions of `torch.cuda` refuse the CPU.
    let only_cuda = |node: &AnyNodeRef<'_>| {
        let AnyNodeRef::ExprCall(call) = node else { return false };
        let Expr::Attribute(method) = &*call.func else { return false };
        method.attr.as_str() == "cuda" || syntax.slice(&*call.func).starts_with("torch.cuda.")
    };
    let around = nodes.iter().rev().find(|n| matches!(n, AnyNodeRef::ExprCall(_)));
    // A default value is for callers to override; a key or a name is not a choice.
    if around.is_some_and(only_cuda) || !stands_alone || nodes.iter().any(repeated) {
        return None;
    }
    let asked = spelled(syntax, check, at)?;
    let content = format!(" if {}() else \"{otherwise}\"", asked.text);
    let insertion = Change { span: Span::new(place.end, place.end), content };
    let changes = asked.import.into_iter().chain([insertion]).collect();
    let title = if otherwise == "gloo" {
        "Choose the backend with a check"
    } else {
        "Choose the device with a check"
    };
    Some(unsafe_(title, changes))
}

/// `torch.cuda.amp.autocast()` → `torch.autocast(x.device.type)`. Autocast is then also on on the CPU.
pub(super) fn autocast(syntax: &Syntax<'_>, at: Span, device: &str) -> Option<Draft> {
    let call = syntax.call(at)?;
    let decorates = |node: &AnyNodeRef<'_>| matches!(node, AnyNodeRef::Decorator(_));
    // The variables of a function do not exist in its decorators.
    if syntax.around(at).iter().any(decorates) {
        return None;
    }
    let of_type = format!("{device}.type");
    let title = format!("Pass the type of the device: `{of_type}`");
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
