//! The call graph of a project: its functions, classes and tables, and where each of them is mentioned.
//!
//! Every mention counts, whether it is a call, a reference as a value, an entry of a table or a base class: what is handed over is
//! called by whoever gets it. The graph is built once for a set of files and shared by all who ask.

use std::sync::OnceLock;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::flow::project::method_calls::is_of_others;
use crate::flow::project::reader::{attributes, mentions};
use crate::flow::project::unmoved_modules::class_of;
use crate::flow::query::call_sites::own_method;
use crate::flow::query::nodes;
use crate::flow::query::nodes::{Target, node_of, outermost};
use crate::ir::{CallId, ClassId, ExprId, FuncId, FuncKind, Module, Slot};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::work::spend;

/// What is mentioned, and what mentions it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    /// A function or a method.
    Function(ModIdx, FuncId),
    /// A class: its body, its constructor and what needs no instance.
    Class(ClassKey),
    /// The methods of a class's instances: who runs them has come through its constructor.
    Instance(ClassKey),
    /// A variable at the top of a file with functions or classes in it.
    Table(ModIdx, Slot),
}

impl From<nodes::Node> for Node {
    fn from(node: nodes::Node) -> Self {
        match node {
            nodes::Node::Function(m, f) => Self::Function(m, f),
            nodes::Node::Class(key) => Self::Class(key),
        }
    }
}

impl Node {
    /// Its name in the source.
    pub(crate) fn name(self, program: &Program) -> Option<Sym> {
        match self {
            Self::Function(m, f) => Some(program.get(m).ir.function(f).name),
            Self::Class(key) | Self::Instance(key) => Some(program.get(key.module).ir.class(key.class).name),
            Self::Table(m, slot) => {
                program.get(m).ir.function(FuncId(0)).slots.get(usize::from(slot)).copied()
            }
        }
    }
}

/// How something is mentioned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It is called, by this call.
    Call(CallId),
    /// It is a value: handed over, or put somewhere.
    Reference,
    /// It is in a table, by the table's variable: who reads that comes to it.
    Entry(Slot),
    /// It is a base of this class.
    Base(ClassId),
}

/// A place that mentions something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mention {
    pub(crate) module: ModIdx,
    /// The name or dotted name; of a base no particular one.
    pub(crate) expr: ExprId,
    pub(crate) kind: Kind,
}

impl Mention {
    /// The call, if it is one.
    pub(crate) fn call(&self) -> Option<(ModIdx, CallId)> {
        match self.kind {
            Kind::Call(call) => Some((self.module, call)),
            _ => None,
        }
    }

    /// Is it at a place in the text?
    pub(crate) fn is_written(&self) -> bool {
        !matches!(self.kind, Kind::Base(_))
    }

    /// Where it is in its file.
    pub(crate) fn span(&self, program: &Program) -> Span {
        program.get(self.module).ir.span(self.expr)
    }
}

/// Which paths lead to a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// Those of what once holds and lasts: a method is where its class is, for who has an instance has made it.
    Made,
    /// Those of what only holds around a call: a method is where calls of that name are, be it of unknown objects.
    Called,
}

/// See the module.
#[derive(Debug, Default)]
pub struct CallGraph {
    files: Vec<ModIdx>,
    /// What is mentioned by names that are followed.
    mentions: FxHashMap<Node, Vec<Mention>>,
    /// The attributes, by name, of objects that names do not tell, if methods of the project have that name.
    attributes: OnceLock<FxHashMap<Sym, Vec<Mention>>>,
}

impl CallGraph {
    /// Of these files.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        program.note(files);
        let found: Vec<Vec<(Node, Mention)>> = files.par_iter().map(|&m| mentions(program, m)).collect();
        let mut graph = Self { files: files.to_vec(), ..Self::default() };
        for (node, mention) in found.into_iter().flatten() {
            graph.mentions.entry(node).or_default().push(mention);
        }
        graph
    }

    /// The files.
    pub fn files(&self) -> &[ModIdx] {
        &self.files
    }

    /// The mentions of a node, each with what it is in; nothing for the body of a file.
    pub(crate) fn mentions<'a>(
        &'a self,
        program: &'a Program,
        node: Node,
        route: Route,
    ) -> impl Iterator<Item = (Mention, Option<Node>)> + 'a {
        let method = match node {
            Node::Function(m, f) if route == Route::Called => {
                class_of(program, m, f).map(|class| ((m, f), class))
            }
            _ => None,
        };
        let of_it =
            move |mention: &&Mention, class| !is_of_others(program, mention.module, mention.expr, class);
        let named =
            method.map(|(f, class)| self.attributes_of(program, f).filter(move |at| of_it(at, class)));
        let all = self.direct(node).iter().chain(named.into_iter().flatten());
        all.map(move |&mention| (mention, caller(program, node, mention, route)))
    }

    /// The mentions of a function, and all that may be, whatever they are attributes of.
    pub(crate) fn named_like<'a>(
        &'a self,
        program: &Program,
        (m, f): Target,
    ) -> impl Iterator<Item = &'a Mention> {
        self.direct(Node::Function(m, f)).iter().chain(self.attributes_of(program, (m, f)))
    }

    /// The calls of a function by names that are followed, or of the object itself.
    pub(crate) fn calls<'a>(
        &'a self,
        program: &'a Program,
        (m, f): Target,
    ) -> impl Iterator<Item = (ModIdx, CallId)> + 'a {
        let own = move |at: &&Mention| {
            let around = program.get(at.module).ir.function_around(at.expr);
            own_method(program, at.module, around, at.expr) == Some((m, f))
        };
        let direct = self.direct(Node::Function(m, f)).iter();
        direct.chain(self.attributes_of(program, (m, f)).filter(own)).filter_map(Mention::call)
    }

    /// The calls that make objects with this constructor, be they of subclasses.
    pub(crate) fn constructions<'a>(
        &'a self,
        program: &'a Program,
        init: Target,
    ) -> impl Iterator<Item = (ModIdx, CallId)> + 'a {
        let class = class_of(program, init.0, init.1);
        let below =
            class.into_iter().flat_map(|key| self.direct(Node::Class(key))).filter_map(|m| match m.kind {
                Kind::Base(class) => Some(ClassKey { module: m.module, class }),
                _ => None,
            });
        let name = program.get(init.0).ir.function(init.1).name;
        let made =
            class.into_iter().chain(below).filter(move |&key| program.find_method(key, name) == Some(init));
        made.flat_map(|key| self.direct(Node::Class(key))).filter_map(Mention::call)
    }

    fn direct(&self, node: Node) -> &[Mention] {
        let key = match node {
            Node::Instance(key) => Node::Class(key),
            other => other,
        };
        self.mentions.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The attributes of unknown objects with the name of this method.
    fn attributes_of(&self, program: &Program, (m, f): Target) -> impl Iterator<Item = &Mention> {
        let function = program.get(m).ir.function(f);
        let name = function.class.map(|_| function.name);
        name.and_then(|name| self.attributes(program).get(&name)).into_iter().flatten()
    }

    fn attributes(&self, program: &Program) -> &FxHashMap<Sym, Vec<Mention>> {
        self.attributes.get_or_init(|| {
            let found: Vec<Vec<(Sym, Mention)>> =
                self.files.par_iter().map(|&m| attributes(program, m)).collect();
            let mut by_name: FxHashMap<Sym, Vec<Mention>> = FxHashMap::default();
            for (name, mention) in found.into_iter().flatten() {
                spend(1);
                by_name.entry(name).or_default().push(mention);
            }
            by_name
        })
    }
}

/// What the mention of a node is in.
fn caller(program: &Program, node: Node, mention: Mention, route: Route) -> Option<Node> {
    let m = mention.module;
    match mention.kind {
        Kind::Entry(slot) => Some(Node::Table(m, slot)),
        Kind::Base(class) => {
            let key = ClassKey { module: m, class };
            Some(if matches!(node, Node::Instance(_)) { Node::Instance(key) } else { Node::Class(key) })
        }
        Kind::Call(_) | Kind::Reference => {
            let ir = &program.get(m).ir;
            match route {
                Route::Made => made_at(ir, m, ir.function_around(mention.expr)),
                Route::Called => outermost(ir, mention.expr).map(|f| Node::Function(m, f)),
            }
        }
    }
}

/// The node that a function of a file runs with, on the route of what lasts: the outermost function around it, or the class. Nothing for
/// a file's body.
pub(crate) fn made_at(ir: &Module, m: ModIdx, f: FuncId) -> Option<Node> {
    Some(match node_of(ir, m, f)? {
        nodes::Node::Class(key) if runs_on_instance(ir, f) => Node::Instance(key),
        node => node.into(),
    })
}

/// The same of a place.
pub(crate) fn node_at(program: &Program, place: Place) -> Option<Node> {
    let m = program.module_of(place.file)?;
    let ir = &program.get(m).ir;
    made_at(ir, m, ir.functions_around(place.span).next()?)
}

/// Is it a method, or in one, that needs an instance which has been made?
fn runs_on_instance(ir: &Module, mut f: FuncId) -> bool {
    let mut method = None;
    while f != FuncId(0) {
        let function = ir.function(f);
        if function.kind == FuncKind::Function && function.class.is_some() {
            method = Some(function);
        }
        let Some(parent) = function.parent else { break };
        f = parent;
    }
    method.is_some_and(|function| {
        let of_class = ir
            .list(function.decorators)
            .iter()
            .any(|&d| ir.last_name(d).is_some_and(|n| matches!(n.as_str(), "classmethod" | "staticmethod")));
        !of_class && !matches!(function.name.as_str(), "__init__" | "__new__" | "__post_init__")
    })
}
