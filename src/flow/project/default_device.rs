//! Code that is only reached after the program has set PyTorch's default device.
//!
//! A function that is interpreted on its own creates its tensors on the CPU, PyTorch's default. After a program has called
//! `torch.set_default_device` or `torch.set_default_tensor_type`, it creates them elsewhere, in all files of the project.

use rustc_hash::FxHashMap;

use crate::finding::ByDefault;
use crate::flow::project::CallGraph;
use crate::flow::project::call_graph::{Mention, node_at};
use crate::flow::project::context::Context;
use crate::flow::query::nodes::Target;
use crate::ir::{Call, Expr, ExprId, FuncId, Module};
use crate::link::{ModIdx, Program, Resolved};
use crate::span::Place;
use crate::words::Words;

/// Parts of texts that name an accelerator.
static ACCELERATORS: Words = Words::of("types of accelerators");

/// The functions that set the default device.
pub const SETTERS: [&str; 2] = ["set_default_device", "set_default_tensor_type"];

/// The setters that also affect `torch.Tensor`.
const TYPE_SETTERS: [&str; 1] = ["set_default_tensor_type"];

/// The code that is only reached after a setter.
#[derive(Debug)]
pub struct SetBefore {
    by: ByDefault,
    context: Context,
}

impl SetBefore {
    /// Solves the query for one kind of setter, as far as these places need it.
    pub fn of(
        program: &Program,
        graph: &CallGraph,
        by: ByDefault,
        places: impl Iterator<Item = Place>,
    ) -> Self {
        let names = match by {
            ByDefault::Device => SETTERS.as_slice(),
            ByDefault::Type => &TYPE_SETTERS,
        };
        let first = set_first(program, graph, names);
        let is_set = |mention: &Mention| {
            let around = program.get(mention.module).ir.function_around(mention.expr);
            first.get(&(mention.module, around)).is_some_and(|&at| at <= mention.span(program).start)
        };
        let asked = places.filter(|_| !first.is_empty()).filter_map(|place| node_at(program, place));
        Self { by, context: Context::after(program, graph, asked, &is_set) }
    }

    /// Whether the place is only reached after the setter.
    pub fn reaches(&self, program: &Program, place: Place, by: ByDefault) -> bool {
        by == self.by
            && node_at(program, place).is_some_and(|node| self.context.holds_from_entry_points(node))
    }
}

/// The functions that call a setter, directly or not, each with the position of the first such call.
fn set_first(program: &Program, graph: &CallGraph, names: &[&str]) -> FxHashMap<Target, u32> {
    let mut first: FxHashMap<Target, u32> = FxHashMap::default();
    let mut open: Vec<(ModIdx, ExprId)> = Vec::new();
    for &m in graph.files() {
        let setters = program.get(m).ir.calls().filter(|&call| is_setter(program, m, call, names));
        open.extend(setters.map(|call| (m, call.func)));
    }
    while let Some((m, call)) = open.pop() {
        let ir = &program.get(m).ir;
        let (around, at) = ((m, ir.function_around(call)), ir.span(call).start);
        if !first.contains_key(&around) && around.1 != FuncId(0) {
            let calls = graph.calls(program, around);
            open.extend(calls.map(|(m, call)| (m, program.get(m).ir.call(call).func)));
        }
        let first = first.entry(around).or_insert(at);
        *first = at.min(*first);
    }
    first
}

/// Whether the call sets another default than the CPU.
fn is_setter(program: &Program, m: ModIdx, call: Call<'_>, names: &[&str]) -> bool {
    let ir = &program.get(m).ir;
    let named = matches!(ir.expr(call.func), Expr::Attr { name, .. } if names.contains(&name.as_str()));
    let resolved = || program.resolve_expr(m, call.func);
    let sets = named
        || matches!(ir.expr(call.func), Expr::Var(_))
            && matches!(resolved(), Some(Resolved::External(path))
                if path.as_str().strip_prefix("torch.").is_some_and(|name| names.contains(&name)));
    sets && !stays(ir, call)
}

/// Whether the call sets the CPU, or a CPU tensor type. A computed argument may be any device.
fn stays(ir: &Module, call: Call<'_>) -> bool {
    let Some(arg) = call.args.first() else { return true };
    match ir.expr(arg.value) {
        Expr::Str(s) => !ACCELERATORS.is_part_of(s.as_str()),
        Expr::None => true,
        // `torch.DoubleTensor`, and not `torch.cuda.DoubleTensor`
        Expr::Attr { base, name } => {
            name.as_str().ends_with("Tensor") && matches!(ir.expr(base), Expr::Var(_))
        }
        _ => false,
    }
}
