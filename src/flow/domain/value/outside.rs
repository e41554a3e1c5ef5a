//! Outside values: parameters, results of unknown calls, command-line options.

use super::{FrameId, ObjId, OuterId, Value};
use crate::flow::domain::diagram::{Cond, Dd};
use crate::ir::{ExprId, FuncId};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;

/// The identity of an outside value: how the code reached it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OuterKey {
    /// A parameter of a function that is interpreted on its own.
    Param {
        /// The file.
        module: ModIdx,
        /// The function.
        func: FuncId,
        /// Which parameter.
        index: u16,
    },
    /// The instance that a method is called on.
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
    /// `base[key]` for a known key. Without a key: some element.
    Item {
        /// The container.
        base: OuterId,
        /// The key.
        key: Option<Value>,
    },
    /// The result of an unknown call, by activation and loop iteration.
    Result {
        /// The file.
        module: ModIdx,
        /// The expression.
        expr: ExprId,
        /// The activation.
        frame: FrameId,
        /// The iteration of the enclosing loops.
        pass: u32,
    },
    /// One of several outside values, if there are too many to keep apart.
    Joined {
        /// The condition.
        cond: Cond,
        /// The value where it holds.
        then: Dd,
        /// The value where it does not.
        orelse: Dd,
    },
    /// An attribute of an object of the project without a known assignment.
    Field {
        /// The object.
        object: ObjId,
        /// The attribute.
        name: Sym,
    },
    /// An attribute or the value of an external name, such as `os.environ`.
    External(Sym),
    /// A command-line argument, identified by parser and destination. All parsers created at one place parse the same command line.
    Argument {
        /// Where the parser was created.
        parser: Place,
        /// Where the program passes it a list to parse instead of the command line.
        list: Option<Place>,
        /// The destination.
        name: Sym,
    },
}

/// The known facts about an outside value.
#[derive(Clone, Debug)]
pub struct Outer {
    /// How the code reached it.
    pub key: OuterKey,
    /// The source text, for messages.
    pub text: String,
    /// Whether the parameter's annotation or the method's role says that it is a tensor.
    pub tensor: bool,
    /// Whether its name or annotation says that it is a device.
    pub device: bool,
    /// Whether a caller provides it, so that its device is the caller's choice: a parameter, a part of one, the receiver.
    pub varies: bool,
    /// The receiver on whose device it is (for an input of `forward`).
    pub with: Option<OuterId>,
    /// The value of a command-line option unless the user sets it.
    pub default: Option<Value>,
}

impl Outer {
    /// An outside value with only an identity and a text for messages.
    pub fn new(key: OuterKey, text: impl Into<String>) -> Self {
        let (text, with, default) = (text.into(), None, None);
        Self { key, text, tensor: false, device: false, varies: false, with, default }
    }
}
