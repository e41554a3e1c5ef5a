//! Who mentions what, and what of it is behind a refusal.

use rustc_hash::{FxHashMap, FxHashSet};

use super::late::Late;
use super::refuses::{Points, Refusal};
use super::spawned::is_spawned;
use super::{GPUS, literal};
use crate::flow::nodes::{Node, named, node, node_of, silent};
use crate::ir::{ArgKind, Call, ClassId, Expr, ExprId, FuncId, Module, Whole};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Span;
use crate::sym::Sym;

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
    /// That it is a method which is not called before the refusal.
    Later,
}

pub(super) struct Graph<'a> {
    program: &'a Program,
    points: &'a Points,
    late: &'a Late,
    /// The places of each file that are only reached where CUDA is.
    there: &'a FxHashMap<ModIdx, Vec<Span>>,
    asks: FxHashMap<Lit, Vec<Asks>>,
    /// Where what is mentioned, nothing for a file's body.
    mentions: Vec<(Option<Node>, Node)>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(
        program: &'a Program,
        files: &[ModIdx],
        points: &'a Points,
        late: &'a Late,
        there: &'a FxHashMap<ModIdx, Vec<Span>>,
    ) -> Self {
        let mut graph =
            Self { program, points, late, there, asks: FxHashMap::default(), mentions: Vec::new() };
        for &m in files {
            graph.mentions(m);
            graph.subclasses(m);
        }
        // Once all is known that mentions them.
        for &m in files {
            graph.constructors(m);
        }
        graph.methods();
        graph
    }

    fn mentions(&mut self, m: ModIdx) {
        let program = self.program;
        let ir = &program.get(m).ir;
        let mut skipped = silent(ir);
        skipped.extend(constants(program, m));
        let there = self.there.get(&m).map_or(&[][..], Vec::as_slice);
        let several = program.bound_by_several(m);
        for n in 0..ir.exprs.len() {
            let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
            // Nothing else names a function.
            if !matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }) || skipped.contains(&e) {
                continue;
            }
            if let Some(target) = named(program, m, e) {
                self.mention(m, e, target, there);
            }
            if !several.is_empty() {
                let others = program.other_imports(m, e, &several).into_iter().filter_map(node);
                let first = named(program, m, e);
                for target in others.filter(|&t| Some(t) != first) {
                    self.mention(m, e, target, there);
                }
            }
        }
    }

    /// Something is mentioned in a function of the file, perhaps after a refusal, or where somebody else gives the GPUs.
    fn mention(&mut self, m: ModIdx, e: ExprId, target: Node, there: &[Span]) {
        let ir = &self.program.get(m).ir;
        let at = ir.span(e);
        let around = literal(ir, m, ir.function_around(e), self.late);
        if around.is_some_and(|(node, _)| node == target) {
            return;
        }
        self.mentions.push((around.map(|(node, _)| node), target));
        if there.iter().any(|span| span.contains(at))
            || is_given_gpus(ir, at)
            || is_spawned(self.program, m, e)
        {
            self.add(target, Asks::Nothing, Asks::Nothing);
            return;
        }
        let here = around.map_or(Asks::TooMuch, Asks::That);
        let used = if self.late.is_made_at(m, e) { Asks::Later } else { here };
        self.add(target, here, used);
    }

    fn add(&mut self, target: Node, begun: Asks, used: Asks) {
        self.asks.entry((target, Bit::Begun)).or_default().push(begun);
        self.asks.entry((target, Bit::Used)).or_default().push(used);
    }

    /// The file is only imported where CUDA is: what nobody mentions in it nobody comes to without.
    pub(super) fn only_with_cuda(&mut self, m: ModIdx) {
        let program = self.program;
        let ir = &program.get(m).ir;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let functions = (1..ir.functions.len()).filter_map(|n| node_of(ir, m, FuncId(number(n))));
        let known = |node: &Node| self.asks.contains_key(&(*node, Bit::Begun));
        let nodes: FxHashSet<Node> = functions.filter(|node| !known(node)).collect();
        for node in nodes {
            self.mentions.push((None, node));
            self.add(node, Asks::Nothing, Asks::Nothing);
        }
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

    /// Each method of an instance that is made before a refusal is called for itself.
    fn methods(&mut self) {
        for (class, before) in self.late.classes() {
            let Some(asks) = self.asks.get(&(Node::Class(class), Bit::Used)).cloned() else { continue };
            for &(name, f) in &self.program.get(class.module).ir.class(class.class).methods {
                let called = |&a: &Asks| match a {
                    Asks::Later if before.contains(&name) => Asks::TooMuch,
                    Asks::Later => Asks::Nothing,
                    other => other,
                };
                let lit = (Node::Function(class.module, f), Bit::Used);
                self.asks.insert(lit, asks.iter().map(called).collect());
            }
        }
    }

    /// What is behind a refusal for certain.
    pub(super) fn solve(self) -> FxHashSet<Lit> {
        let mut held: FxHashSet<Lit> = self.asks.keys().copied().collect();
        loop {
            let met = |asks: &Asks| match asks {
                Asks::Nothing => true,
                Asks::TooMuch | Asks::Later => false,
                Asks::That(lit) => held.contains(lit),
            };
            let open: Vec<Lit> = held.iter().filter(|l| !self.asks[l].iter().all(met)).copied().collect();
            if open.is_empty() {
                break;
            }
            open.iter().for_each(|l| {
                held.remove(l);
            });
        }
        self.grounded(&held)
    }

    /// What files' bodies lead to, or what nobody mentions. All else only mentions itself, in a circle, though something in
    /// it may need CUDA: who comes into that from elsewhere is not in sight.
    pub(super) fn reachable(&self) -> FxHashSet<Node> {
        let mentioned: FxHashSet<Node> = self.mentions.iter().map(|&(_, target)| target).collect();
        let mut reachable: FxHashSet<Node> = FxHashSet::default();
        loop {
            let before = reachable.len();
            for &(from, target) in &self.mentions {
                if from.is_none_or(|from| !mentioned.contains(&from) || reachable.contains(&from)) {
                    reachable.insert(target);
                }
            }
            if reachable.len() == before {
                return reachable;
            }
        }
    }

    /// Those of them that do not only mention themselves, in a circle.
    fn grounded(&self, held: &FxHashSet<Lit>) -> FxHashSet<Lit> {
        let mut grounded: FxHashSet<Lit> = FxHashSet::default();
        loop {
            let stands = |asks: &Asks| match asks {
                Asks::Nothing => true,
                Asks::TooMuch | Asks::Later => false,
                Asks::That(lit) => grounded.contains(lit),
            };
            let open = held.iter().filter(|l| !grounded.contains(l));
            let more: Vec<Lit> = open.filter(|l| self.asks[l].iter().any(stands)).copied().collect();
            if more.is_empty() {
                return grounded;
            }
            grounded.extend(more);
        }
    }
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

/// Is the place where a scheduler gives GPUs: in a class or function with `@ray.remote(num_gpus=1)`, or the one that is handed over in
/// `ray.remote(Actor).options(num_gpus=n)`?
fn is_given_gpus(ir: &Module, at: Span) -> bool {
    let asks = |call: Call<'_>| {
        call.args.iter().any(|a| {
            let some = !matches!(ir.expr(a.value), Expr::Int(Whole(0)) | Expr::None);
            matches!(a.kind, ArgKind::Keyword(name) if name.as_str() == GPUS) && some
        })
    };
    if !ir.calls().any(asks) {
        return false;
    }
    let decorated = |decorators: crate::ir::ExprList| {
        ir.list(decorators).iter().any(|&d| matches!(ir.expr(d), Expr::Call(id) if asks(ir.call(id))))
    };
    let handed = |call: Call<'_>| {
        // The class is an argument further in: what the options themselves mention runs here.
        let within = ir.span(call.func).contains(at);
        within
            && asks(call)
            && matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "options")
    };
    ir.functions.iter().any(|f| f.span.contains(at) && decorated(f.decorators))
        || ir.classes.iter().any(|c| c.span.contains(at) && decorated(c.decorators))
        || ir.calls().any(handed)
}
