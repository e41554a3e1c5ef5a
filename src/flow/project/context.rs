//! The context of functions: what holds on every path from the program's entry points to them.
//!
//! A fact is a must-fact: it holds of a function if it holds at each of its mentions (the meet over all call sites), because of what stands
//! there, or because it holds of the function that the mention is in. Files' bodies, and what nobody mentions, are entry points: anybody
//! comes there, without the fact. Among recursive functions that is a greatest fixpoint: what is not refuted holds. It is found as the
//! complement of the least one: refutations are handed on from callers to callees by a worklist. What only mentions itself, in a circle that
//! no entry point leads to, is dead, or called from out of sight: nothing is known of it.
//!
//! Only what leads to the functions that are asked about is looked at.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::call_graph::{CallGraph, Mention, Node, Route};
use crate::link::Program;
use crate::sym::Sym;
use crate::work::spend;

/// What is known of a fact at a mention, or of a node whoever mentions it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It holds here.
    Holds,
    /// It holds here if it holds of what the mention is in; of a node, if it holds at all mentions.
    Inherited,
    /// It does not.
    Fails,
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Inherited }
    }
}

/// A fact that is asked for.
pub(crate) struct Fact<'q> {
    pub(crate) route: Route,
    /// At a mention of a node.
    pub(crate) at: &'q dyn Fn(Node, &Mention) -> Verdict,
    /// Of a node itself.
    pub(crate) of: &'q dyn Fn(Node) -> Verdict,
}

/// What is known of nodes.
#[derive(Debug, Default)]
pub(crate) struct Context {
    holds: FxHashSet<Node>,
    /// Those that were looked at, and of which other mentions may still decide.
    open: FxHashSet<Node>,
}

impl Context {
    /// Asks for a fact of some nodes.
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

    /// Does the fact hold of a node? Nothing more is looked at once it is seen to fail. Not for [`Route::Made`], on which paths are
    /// followed to where they begin.
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

    /// The same of what lasts once it holds at one of these places.
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

    /// Does the fact hold of the node?
    pub(crate) fn holds(&self, node: Node) -> bool {
        self.holds.contains(&node)
    }

    /// The names of all that leads there, as far as it is not refuted: a file with another mention says one of them.
    pub(crate) fn names(&self, program: &Program) -> FxHashSet<Sym> {
        self.open.iter().filter_map(|node| node.name(program)).collect()
    }
}

/// The part of the call graph that leads to what is asked for.
#[derive(Default)]
struct Search {
    open: Vec<Node>,
    seen: FxHashSet<Node>,
    /// By what mentions it: what the fact is inherited by, and all that is mentioned.
    heirs: FxHashMap<Node, Vec<Node>>,
    callees: FxHashMap<Node, Vec<Node>>,
    /// What the fact holds of because of a place, or by itself.
    grounds: Vec<Node>,
    refuted: Vec<Node>,
    /// What nothing mentions, as far as is known.
    unmentioned: Vec<Node>,
    /// What entry points mention, or are.
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
            // What calls itself has been called by somebody else.
            if caller == Some(node) {
                continue;
            }
            let here = if mention.is_written() { (fact.at)(node, &mention) } else { Verdict::Inherited };
            match (here, caller) {
                (Verdict::Holds, _) => self.grounds.push(node),
                (Verdict::Inherited, Some(caller)) => self.heirs.entry(caller).or_default().push(node),
                // Nobody who comes to it elsewhere makes it hold.
                (Verdict::Inherited, None) | (Verdict::Fails, _) => return self.refuted.push(node),
            }
            // Of what lasts it is asked whether anybody comes there at all.
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
        let holds = closed_over(self.grounds, &self.heirs, &|node| {
            open.contains(node) && !unmentioned.contains(node) && entered.contains(node)
        });
        Context { holds, open }
    }
}

/// What these lead to, with themselves, as far as it passes the test.
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
