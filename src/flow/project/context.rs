//! The context of functions: what holds on every path from the program's entry points to them.
//!
//! A fact is a must-fact: it holds for a function if it holds at each of its mentions (the meet over all call sites). At a mention, it
//! holds because of the code there, or because it holds for the function that contains the mention. Files' bodies and functions without
//! mentions are entry points: they can be reached without the fact.
//!
//! For recursive functions, this is a greatest fixpoint: whatever is not refuted holds. It is computed as the complement of a least
//! fixpoint: a worklist propagates refutations from callers to callees. A cycle that no entry point reaches is dead, or called by code
//! out of sight: nothing is known about it.
//!
//! The search visits only nodes that lead to the queried functions.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::call_graph::{CallGraph, Mention, Node, Route};
use crate::link::Program;
use crate::sym::Sym;
use crate::work::spend;

/// What is known of a fact at a mention, or for a node regardless of its mentions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The fact holds here.
    Holds,
    /// At a mention: the fact holds if it holds for the containing node. For a node: the fact holds if it holds at all mentions.
    Inherited,
    /// The fact does not hold.
    Fails,
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Inherited }
    }
}

/// A fact to query.
pub(crate) struct Fact<'q> {
    pub(crate) route: Route,
    /// The verdict at a mention of a node.
    pub(crate) at: &'q dyn Fn(Node, &Mention) -> Verdict,
    /// The verdict for a node itself.
    pub(crate) of: &'q dyn Fn(Node) -> Verdict,
}

/// The solution for the visited nodes.
#[derive(Debug, Default)]
pub(crate) struct Context {
    holds: FxHashSet<Node>,
    /// The nodes for which the fact holds on all paths that start at an entry point. Functions without mentions are left out.
    enters_with: FxHashSet<Node>,
    /// The visited nodes that are not refuted; further mentions may still decide them.
    open: FxHashSet<Node>,
}

impl Context {
    /// Solves a fact for some nodes.
    pub(crate) fn of(
        program: &Program,
        graph: &CallGraph,
        asked: impl IntoIterator<Item = Node>,
        fact: &Fact<'_>,
    ) -> Self {
        let mut search = Search::default();
        for node in asked {
            search.look_at(node);
        }
        while let Some(node) = search.open.pop() {
            search.node(program, graph, node, fact);
        }
        search.solved()
    }

    /// Whether the fact holds for a node. Stops at the first refutation. Not for [`Route::Made`], where the search must follow paths to
    /// their start.
    pub(crate) fn always(program: &Program, graph: &CallGraph, node: Node, fact: &Fact<'_>) -> bool {
        let mut search = Search::default();
        search.look_at(node);
        while let Some(next) = search.open.pop() {
            search.node(program, graph, next, fact);
            if !search.refuted.is_empty() || !search.unmentioned.is_empty() {
                return false;
            }
        }
        search.solved().holds(node)
    }

    /// Solves a lasting fact: it holds after any of these places.
    pub(crate) fn after(
        program: &Program,
        graph: &CallGraph,
        asked: impl IntoIterator<Item = Node>,
        at: &dyn Fn(&Mention) -> bool,
    ) -> Self {
        let at = |_, mention: &Mention| Verdict::from(at(mention));
        let fact = Fact { route: Route::Made, at: &at, of: &|_| Verdict::Inherited };
        Self::of(program, graph, asked, &fact)
    }

    /// Whether the fact holds for the node.
    pub(crate) fn holds(&self, node: Node) -> bool {
        self.holds.contains(&node)
    }

    /// Whether the fact holds for the node on every path that starts at an entry point, and there is such a path. Functions that call
    /// the node and that nothing mentions do not count.
    pub(crate) fn holds_from_entry_points(&self, node: Node) -> bool {
        self.enters_with.contains(&node)
    }

    /// The names of all nodes on unrefuted paths. A file with a further mention contains one of these names.
    pub(crate) fn names(&self, program: &Program) -> FxHashSet<Sym> {
        self.open.iter().filter_map(|node| node.name(program)).collect()
    }
}

/// The part of the call graph that leads to the queried nodes.
#[derive(Default)]
struct Search {
    open: Vec<Node>,
    seen: FxHashSet<Node>,
    /// For each containing node: the nodes that inherit the fact from it (`heirs`), and all nodes that it mentions (`callees`).
    heirs: FxHashMap<Node, Vec<Node>>,
    callees: FxHashMap<Node, Vec<Node>>,
    /// The nodes for which the fact holds because of a place, or by itself.
    grounds: Vec<Node>,
    refuted: Vec<Node>,
    /// The nodes without known mentions.
    unmentioned: Vec<Node>,
    /// The nodes that entry points mention, and entry points.
    entered: Vec<Node>,
}

impl Search {
    fn look_at(&mut self, node: Node) {
        if self.seen.insert(node) {
            self.open.push(node);
        }
    }

    fn node(&mut self, program: &Program, graph: &CallGraph, node: Node, fact: &Fact<'_>) {
        match (fact.of)(node) {
            Verdict::Holds => {
                self.grounds.push(node);
                return self.entered.push(node);
            }
            Verdict::Fails => return self.refuted.push(node),
            Verdict::Inherited => {}
        }
        let mut callers = Vec::new();
        for (mention, caller) in graph.mentions(program, node, fact.route) {
            spend(1);
            // A recursive call: some other call comes first.
            if caller == Some(node) {
                continue;
            }
            let here = if mention.is_written() { (fact.at)(node, &mention) } else { Verdict::Inherited };
            match (here, caller) {
                (Verdict::Holds, _) => self.grounds.push(node),
                (Verdict::Inherited, Some(caller)) => self.heirs.entry(caller).or_default().push(node),
                // A mention in an entry point without the fact, or a mention where it fails, refutes it.
                (Verdict::Inherited, None) | (Verdict::Fails, _) => return self.refuted.push(node),
            }
            // For a lasting fact, it matters whether any entry point reaches the mention.
            callers.push(caller.filter(|_| here == Verdict::Inherited || fact.route == Route::Made));
        }
        if callers.is_empty() {
            return self.unmentioned.push(node);
        }
        for caller in callers {
            match caller {
                Some(caller) => {
                    self.callees.entry(caller).or_default().push(node);
                    self.look_at(caller);
                }
                None => self.entered.push(node),
            }
        }
    }

    fn solved(mut self) -> Context {
        self.entered.extend(self.refuted.iter().chain(&self.unmentioned));
        let refuted = closed_over(self.refuted, &self.heirs, &|_| true);
        let mut open = self.seen;
        open.retain(|node| !refuted.contains(node));
        let unmentioned = closed_over(self.unmentioned, &self.heirs, &|_| true);
        let entered = closed_over(self.entered, &self.callees, &|_| true);
        let enters_with =
            closed_over(self.grounds, &self.heirs, &|node| open.contains(node) && entered.contains(node));
        let holds = enters_with.difference(&unmentioned).copied().collect();
        Context { holds, enters_with, open }
    }
}

/// The nodes reachable from these, including themselves, through nodes that pass the test.
pub(crate) fn closed_over<T: Copy + Eq + Hash>(
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

#[cfg(test)]
mod tests;
