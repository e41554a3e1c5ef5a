//! Things from outside what is interpreted: parameters, results of unknown calls, options of the command line.

use super::{FrameId, ObjId, OuterId, Value};
use crate::flow::domain::diagram::{Cond, Dd};
use crate::ir::{ExprId, FuncId};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;

/// What an outside thing is, by how it was reached.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OuterKey {
    /// A parameter of a function that is interpreted for itself.
    Param {
        /// The file.
        module: ModIdx,
        /// The function.
        func: FuncId,
        /// Which parameter.
        index: u16,
    },
    /// The instance that a method belongs to.
    Receiver {
        /// Its class.
        class: ClassKey,
    },
    /// `base.name`
    Attr {
        /// The object.
        base: OuterId,
        /// The attribute.
        name: Sym,
    },
    /// `base[key]`, for a key that is known; otherwise one of its elements.
    Item {
        /// The container.
        base: OuterId,
        /// The key.
        key: Option<Value>,
    },
    /// The result of an unknown call, by activation and pass.
    Result {
        /// The file.
        module: ModIdx,
        /// The expression.
        expr: ExprId,
        /// The activation.
        frame: FrameId,
        /// The pass of the loops around it.
        pass: u32,
    },
    /// One of several outside things, of which there are too many to be kept apart.
    Joined {
        /// The condition.
        cond: Cond,
        /// Where it holds.
        then: Dd,
        /// Where it does not.
        orelse: Dd,
    },
    /// An attribute of an object of the project that nobody here has seen set.
    Field {
        /// The object.
        object: ObjId,
        /// The attribute.
        name: Sym,
    },
    /// An external name's attribute or value, such as `os.environ`.
    External(Sym),
    /// A command-line argument (its parser, its destination). All parsers made in one place parse the one command line.
    Argument {
        /// Where the parser was made.
        parser: Place,
        /// Where it was given a list of its own to parse instead.
        list: Option<Place>,
        /// The destination.
        name: Sym,
    },
}

/// What is known of an outside thing.
#[derive(Clone, Debug)]
pub struct Outer {
    /// How it was reached.
    pub key: OuterKey,
    /// As the source has it, for messages.
    pub text: String,
    /// The parameter's annotation or the method's role says: a tensor.
    pub tensor: bool,
    /// Its name or annotation says that it is a device.
    pub device: bool,
    /// It is given by whoever calls the function, so it is wherever they want it: a parameter, a part of one,
    /// the receiver.
    pub varies: bool,
    /// It lives with the module that the method belongs to (an input of `forward`).
    pub with: Option<OuterId>,
    /// The value that a command-line option has unless the user says otherwise.
    pub default: Option<Value>,
}

impl Outer {
    /// Something of which only this is known: how it was reached, and its text for messages.
    pub fn new(key: OuterKey, text: impl Into<String>) -> Self {
        let (text, with, default) = (text.into(), None, None);
        Self { key, text, tensor: false, device: false, varies: false, with, default }
    }
}
