//! The call graph of a project: its functions, classes and tables, and the places that mention them.
//!
//! Every mention counts: a call, a reference as a value, an entry of a table, a base class. A function that is passed as a value may be
//! called by the receiver. The graph is built once for a set of files and shared by all queries.

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
use crate::words::Words;
use crate::work::spend;

/// Methods that run when an object is made.
static MAKES: Words = Words::of("make an object");

/// A node: something that code mentions, and that mentions other nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    /// A function or a method.
    Function(ModIdx, FuncId),
    /// A class: its body, its constructor, and methods that need no instance.
    Class(ClassKey),
    /// The instance methods of a class. Code that runs them has run the class's constructor.
    Instance(ClassKey),
    /// A variable at the top of a file that holds functions or classes.
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
    /// The node's name in the source.
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

/// The kind of a mention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The callee of this call.
    Call(CallId),
    /// A use as a value: passed as an argument, or stored.
    Reference,
    /// An element of the table in this variable. Code that reads the table reaches it.
    Entry(Slot),
    /// A base class of this class.
    Base(ClassId),
}

/// A place that mentions something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mention {
    pub(crate) module: ModIdx,
    /// The name or dotted name. For a base class: no particular expression.
    pub(crate) expr: ExprId,
    pub(crate) kind: Kind,
}

impl Mention {
    /// The call, if the mention is a callee.
    pub(crate) fn call(&self) -> Option<(ModIdx, CallId)> {
        match self.kind {
            Kind::Call(call) => Some((self.module, call)),
            _ => None,
        }
    }

    /// Whether the mention has a place in the text.
    pub(crate) fn is_written(&self) -> bool {
        !matches!(self.kind, Kind::Base(_))
    }

    /// The place of the mention in its file.
    pub(crate) fn span(&self, program: &Program) -> Span {
        program.get(self.module).ir.span(self.expr)
    }
}

/// The kind of path to a function that matters for a fact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// For lasting facts. A method is reached where its class is instantiated, because its caller has an instance.
    Made,
    /// For facts that hold only during a call. A method is reached at calls of that name, also on unknown objects.
    Called,
}

/// The call graph; see the module's documentation.
#[derive(Debug, Default)]
pub struct CallGraph {
    files: Vec<ModIdx>,
    /// Mentions by names that resolve to a node.
    mentions: FxHashMap<Node, Vec<Mention>>,
    /// Attributes of unresolved objects with the name of some method of the project, by name.
    attributes: OnceLock<FxHashMap<Sym, Vec<Mention>>>,
}

impl CallGraph {
    /// Builds the graph of these files.
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

    /// The mentions of a node, each with the node that contains it (`None` for the body of a file).
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

    /// The mentions of a function, and all attributes with its name that may refer to it, on any object.
    pub(crate) fn named_like<'a>(
        &'a self,
        program: &Program,
        (m, f): Target,
    ) -> impl Iterator<Item = &'a Mention> {
        self.direct(Node::Function(m, f)).iter().chain(self.attributes_of(program, (m, f)))
    }

    /// The calls of a function by resolved names, or on the receiver itself.
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

    /// The calls that create objects with this constructor, including objects of subclasses.
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

    /// The attributes of unresolved objects with the name of this method.
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

/// The node that contains a mention.
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

/// The node that a function of a file belongs to on [`Route::Made`]: the outermost function around it, or the class. `None` for a file's
/// body.
pub(crate) fn made_at(ir: &Module, m: ModIdx, f: FuncId) -> Option<Node> {
    Some(match node_of(ir, m, f)? {
        nodes::Node::Class(key) if runs_on_instance(ir, f) => Node::Instance(key),
        node => node.into(),
    })
}

/// The node of the innermost function around a place.
pub(crate) fn node_at(program: &Program, place: Place) -> Option<Node> {
    let m = program.module_of(place.file)?;
    let ir = &program.get(m).ir;
    made_at(ir, m, ir.functions_around(place.span).next()?)
}

/// Whether the function is, or is inside, a method that needs a finished instance.
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
        !of_class && !MAKES.has(function.name.as_str())
    })
}
