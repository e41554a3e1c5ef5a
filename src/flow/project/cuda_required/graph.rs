//! Who mentions what, and what of it is behind a refusal.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::caught::tried;
use super::refuses::{Points, Refusal, is_within, outermost};
use super::{GPUS, literal};
use crate::flow::query::nodes::{Node, named, node};
use crate::ir::{ArgKind, Call, ClassId, Expr, ExprId, Module, Whole};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Span;
use crate::sym::Sym;
use crate::work::spend;

/// What may only happen where CUDA is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Bit {
    /// The function is called, or the constructor of the class.
    Begun,
    /// A method of its instance is.
    Used,
}

/// That something is behind a refusal, as far as this goes.
pub(super) type Lit = (Node, Bit);

/// What a literal asks of one mention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    /// Nothing: CUDA is there.
    Nothing,
    /// What nobody can promise: anybody may come here.
    TooMuch,
    /// That this is behind a refusal, too.
    That(Lit),
}

pub(super) struct Graph<'a> {
    program: &'a Program,
    points: &'a Points,
    asks: FxHashMap<Lit, Vec<Asks>>,
    /// Where what is mentioned, nothing for a file's body.
    mentions: Vec<(Option<Node>, Node)>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(
        program: &'a Program,
        files: &[ModIdx],
        mentions: &[Vec<Mention>],
        points: &'a Points,
        there: &FxHashMap<ModIdx, Vec<Span>>,
    ) -> Self {
        let mut graph = Self { program, points, asks: FxHashMap::default(), mentions: Vec::new() };
        for (&m, mentions) in files.iter().zip(mentions) {
            let there = there.get(&m).map_or(&[][..], Vec::as_slice);
            mentions.iter().for_each(|mention| graph.mention(mention, there));
            graph.subclasses(m);
        }
        // Once all is known that mentions them.
        for &m in files {
            graph.constructors(m);
        }
        graph
    }

    /// Something is mentioned in a function of the file, perhaps after a refusal, or where somebody else gives the GPUs.
    fn mention(&mut self, mention: &Mention, there: &[Span]) {
        let Mention { at, around, target, given } = *mention;
        self.mentions.push((around.map(|(node, _)| node), target));
        if given || is_within(there, at) {
            self.add(target, Asks::Nothing, Asks::Nothing);
            return;
        }
        let here = around.map_or(Asks::TooMuch, Asks::That);
        self.add(target, here, here);
    }

    fn add(&mut self, target: Node, begun: Asks, used: Asks) {
        self.asks.entry((target, Bit::Begun)).or_default().push(begun);
        self.asks.entry((target, Bit::Used)).or_default().push(used);
    }

    /// The methods of a class run on instances of its subclasses.
    fn subclasses(&mut self, m: ModIdx) {
        for (n, info) in self.program.get(m).classes.iter().enumerate() {
            let class = ClassKey { module: m, class: ClassId(u32::try_from(n).unwrap_or(u32::MAX)) };
            for &base in info.mro.iter().filter(|&&k| k != class) {
                self.mentions.push((Some(Node::Class(class)), Node::Class(base)));
                let that = |bit| Asks::That((Node::Class(class), bit));
                self.add(Node::Class(base), that(Bit::Begun), that(Bit::Used));
            }
        }
    }

    /// Who has made an instance has come through its constructor.
    fn constructors(&mut self, m: ModIdx) {
        for n in 0..self.program.get(m).classes.len() {
            let class = ClassKey { module: m, class: ClassId(u32::try_from(n).unwrap_or(u32::MAX)) };
            let refuses = self
                .program
                .find_method(class, Sym::new("__init__"))
                .is_some_and(|at| self.points.get(&at).is_some_and(|p| p.refusal == Some(Refusal::Always)));
            if refuses {
                self.asks.insert((Node::Class(class), Bit::Used), vec![Asks::Nothing]);
            }
        }
    }

    /// What is behind a refusal for certain: what does not lead to where anybody may come from, and is not only asked for by itself, in a
    /// circle.
    pub(super) fn solve(self) -> FxHashSet<Lit> {
        let mut askers: FxHashMap<Lit, Vec<Lit>> = FxHashMap::default();
        let (mut open, mut grounds) = (Vec::new(), Vec::new());
        for (&lit, asks) in &self.asks {
            spend(asks.len());
            for ask in asks {
                match *ask {
                    Asks::Nothing => grounds.push(lit),
                    Asks::TooMuch => open.push(lit),
                    Asks::That(on) if self.asks.contains_key(&on) => askers.entry(on).or_default().push(lit),
                    Asks::That(_) => open.push(lit),
                }
            }
        }
        let failed = closed_over(open, &askers, &|_| true);
        closed_over(grounds, &askers, &|lit| !failed.contains(lit))
    }

    /// What files' bodies lead to, or what nobody mentions. All else only mentions itself, in a circle, though something in
    /// it may need CUDA: who comes into that from elsewhere is not in sight.
    pub(super) fn reachable(&self) -> FxHashSet<Node> {
        spend(self.mentions.len());
        let mentioned: FxHashSet<Node> = self.mentions.iter().map(|&(_, target)| target).collect();
        let mut leads: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
        let mut open = Vec::new();
        for &(from, target) in &self.mentions {
            match from.filter(|from| mentioned.contains(from)) {
                Some(from) => leads.entry(from).or_default().push(target),
                None => open.push(target),
            }
        }
        closed_over(open, &leads, &|_| true)
    }
}

/// What these lead to, with themselves, as far as it passes the test.
fn closed_over<T: Copy + Eq + Hash>(
    mut open: Vec<T>,
    leads: &FxHashMap<T, Vec<T>>,
    passes: &dyn Fn(&T) -> bool,
) -> FxHashSet<T> {
    let mut closed = FxHashSet::default();
    while let Some(one) = open.pop() {
        spend(1);
        if passes(&one) && closed.insert(one) {
            open.extend(leads.get(&one).into_iter().flatten());
        }
    }
    closed
}

/// A function or class that is mentioned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    at: Span,
    /// The function or class that it stands in.
    around: Option<Lit>,
    target: Node,
    /// Does a scheduler give the GPUs there, or does nobody notice that it fails without?
    given: bool,
}

/// What the file mentions.
pub(super) fn mentions(program: &Program, m: ModIdx) -> Vec<Mention> {
    let ir = &program.get(m).ir;
    let mut skipped = ir.silent().clone();
    skipped.extend(constants(program, m));
    let settled = [given_gpus(ir), tried(program, m)];
    let several = program.bound_by_several(m);
    let mut found = Vec::new();
    for n in 0..ir.exprs.len() {
        spend(1);
        let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
        // Nothing else names a function.
        if !matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }) || skipped.contains(e) {
            continue;
        }
        let first = named(program, m, e);
        let others = match several.is_empty() {
            true => Vec::new(),
            false => program.other_imports(m, e, &several).into_iter().filter_map(node).collect(),
        };
        for target in first.into_iter().chain(others.into_iter().filter(|&t| Some(t) != first)) {
            let around = literal(ir, m, ir.function_around(e));
            if around.is_none_or(|(node, _)| node != target) {
                let at = ir.span(e);
                let given = settled.iter().any(|places| is_within(places, at));
                found.push(Mention { at, around, target, given });
            }
        }
    }
    found
}

/// `Op` of `Op.KINDS`: who reads what is written down in the body of a class runs nothing of it.
fn constants(program: &Program, m: ModIdx) -> impl Iterator<Item = ExprId> + '_ {
    let ir = &program.get(m).ir;
    (0..ir.exprs.len()).filter_map(move |n| {
        let Expr::Attr { base, .. } = ir.exprs[n] else { return None };
        let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
        let (m, value) = program.bound_in_class(m, e)?;
        let value = program.get(m).ir.expr(value);
        matches!(
            value,
            Expr::Str(_) | Expr::Int(_) | Expr::Tuple(_) | Expr::List(_) | Expr::Set(_) | Expr::Dict(_)
        )
        .then_some(base)
    })
}

/// The places where a scheduler gives GPUs: classes and functions with `@ray.remote(num_gpus=1)`, and what is handed over in
/// `ray.remote(Actor).options(num_gpus=n)`.
fn given_gpus(ir: &Module) -> Vec<Span> {
    let asks = |call: Call<'_>| {
        call.args.iter().any(|a| {
            let some = !matches!(ir.expr(a.value), Expr::Int(Whole(0)) | Expr::None);
            matches!(a.kind, ArgKind::Keyword(name) if name.as_str() == GPUS) && some
        })
    };
    if !ir.calls().any(asks) {
        return Vec::new();
    }
    let decorated = |decorators: crate::ir::ExprList| {
        ir.list(decorators).iter().any(|&d| matches!(ir.expr(d), Expr::Call(id) if asks(ir.call(id))))
    };
    // The class is an argument further in: what the options themselves mention runs here.
    let handed = |call: &Call<'_>| {
        matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "options") && asks(*call)
    };
    let functions = ir.functions.iter().filter(|f| decorated(f.decorators)).map(|f| f.span);
    let classes = ir.classes.iter().filter(|c| decorated(c.decorators)).map(|c| c.span);
    let options = ir.calls().filter(handed).map(|call| ir.span(call.func));
    outermost(functions.chain(classes).chain(options).collect())
}
