//! Events: what the interpreter reports to the rules.

pub use super::event_kinds::{Again, Kind, LeftBehind, Meeting, UseKind};
use crate::ir::FuncId;
use crate::span::Place;
use crate::world::{Premise, World};

/// Something that may become a finding.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// The expression or statement where it happened.
    pub place: Place,
    /// On which machines and under which conditions it goes wrong.
    pub bite: Bite,
    /// The call sites on the path to this place, outermost first. The first one is in the entry point's file.
    pub stack: Box<[Place]>,
    /// The enclosing calls of modules, innermost first.
    pub entered: Box<[Entered]>,
    /// Whether the place is in a method of an `nn.Module`.
    pub in_module: bool,
    /// Whether the entry point is a function that is interpreted on its own although other code in its file visibly calls it.
    pub speculative: bool,
    /// Whether the calls in sight determine the arguments of a function that was interpreted on its own. Then the analysis judges those
    /// calls instead.
    pub callers_decide: bool,
    /// The entry point itself moves values to the device of this parameter, so it supports every device of it.
    pub followed: bool,
    /// The parameter of the entry point that decides the devices: the function, and the position in its signature.
    pub parameter: Option<(FuncId, u16)>,
    /// Whether callers of that function may have tested if an accelerator is available.
    pub asked_before: bool,
    /// The entry point, if it is a function that was interpreted on its own.
    pub entry: Option<FuncId>,
    /// Whether the entry point is a function with symbolic parameters, and not the body of a file.
    pub symbolic: bool,
    /// Later uses that go wrong for the same reason. The first use comes before them.
    pub also: Vec<Later>,
    /// Whether a file on the path is clearly written for CUDA alone.
    pub cuda_only: bool,
    /// Whether the function's name says that its caller wants an accelerator (`def cuda(self)`, `to_gpu`).
    pub asked_for: bool,
    /// How often a program executes this place.
    pub frequency: Frequency,
    /// The size in bytes of the tensor involved, if the source determines it.
    pub bytes: Option<u64>,
}

impl Event {
    /// Whether the event is only a guess about a function that other code calls, perhaps behind a guard.
    ///
    /// Callers of a library function may guard what it reaches through other functions. Only code in the function itself, or code reached
    /// from a script's body, is certainly unguarded.
    pub fn is_guess(&self) -> bool {
        let elsewhere = self.stack.len() > 1 || self.stack.first().is_some_and(|s| s.file != self.place.file);
        self.symbolic && (self.speculative && self.asked_before || elsewhere || self.asked_for)
    }
}

/// How often a program executes something, as far as the enclosing loops and functions determine it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Frequency {
    /// Once: in a file's body, in a constructor, in a function that only those call, or in a test.
    Once,
    /// In every iteration of a loop whose body contains loops.
    EveryEpoch,
    /// As often as the function is called, which is unknown.
    Unknown,
    /// In every call of a method of an existing object.
    EveryCall,
    /// In every iteration of a loop, every `forward`, or every training step.
    EveryStep,
}

/// A later place that goes wrong for the same reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Later {
    /// Where it goes wrong.
    pub place: Place,
    /// How the path leads there: the call sites, and the place where its device was decided.
    pub through: Vec<Place>,
}

/// The machines and conditions under which something goes wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bite {
    /// The machines.
    pub world: World,
    /// Further premises about the machine that the path relies on.
    pub premises: Vec<Premise>,
    /// Other machines on which it also goes wrong: each entry lists all premises about one of them.
    pub also: Vec<Vec<Premise>>,
    /// Further conditions, as clauses for messages ("`args.cuda` is set").
    pub conditions: Vec<String>,
    /// Whether the place is reached only if CUDA is available. Otherwise CUDA is what makes it go wrong.
    pub behind_cuda: bool,
    /// Whether another reported failure raises first on every way to the place.
    pub past: bool,
}

impl Bite {
    /// In this world, without further conditions.
    pub fn in_world(world: World) -> Self {
        Self {
            world,
            premises: Vec::new(),
            also: Vec::new(),
            conditions: Vec::new(),
            behind_cuda: false,
            past: false,
        }
    }
}

/// One of the two values that meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The expression.
    pub place: Place,
    /// Its device in the world of the event.
    pub device: DeviceName,
    /// Why the operand is on that device, newest step first.
    pub chain: Vec<Step>,
    /// The device is that of a module whose call led here: the operand is one of its weights.
    pub of_module: bool,
    /// The kind of value that the expression itself gives, if it is a name or a chain of attributes.
    pub gives: Gives,
    /// The outside value that decides the device, if there is one.
    pub symbol: Option<Symbol>,
}

impl Operand {
    /// Its device in a sentence: "`args.device`", "the device of `x`", "the CPU".
    pub fn device_in_words(&self) -> String {
        match &self.symbol {
            Some(Symbol { text, names: true }) => format!("`{text}`"),
            _ => self.device.in_words(),
        }
    }
}

/// The kind of value that an operand's expression gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// The tensor itself.
    Tensor,
    /// A list of tensors.
    Tensors,
    /// A module, which has no `.device`.
    Module,
    /// A container that holds the operand, or an unknown value.
    Other,
}

/// An outside value that decides a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// The source text: `args.device`, `x`.
    pub text: String,
    /// Whether the value is a device or a device name. Otherwise it is a value that is on a device.
    pub names: bool,
}

/// The call of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered {
    /// Where it is called.
    pub site: Place,
    /// The module's `forward`.
    pub forward: Place,
    /// Where the module was constructed, if it has not been moved since then.
    pub made: Option<Place>,
}

/// A device as messages name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceName {
    /// A device by name: `cpu`, `cuda:1`.
    Known(String),
    /// The device of, or named by, this outside value: a parameter, `self`.
    Varies(String),
    /// The device of the module that the method belongs to.
    WithModule,
}

impl DeviceName {
    /// The device in a sentence.
    pub fn in_words(&self) -> String {
        match self {
            Self::Known(name) if name == "cpu" => "the CPU".to_owned(),
            Self::Known(name) => format!("`{name}`"),
            Self::Varies(of) => format!("the device of `{of}`"),
            Self::WithModule => "the module's device".to_owned(),
        }
    }
}

/// A value that the API does not accept at its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplaced {
    /// The number of a tensor's GPU from `get_device()`, which is -1 on the CPU.
    Number,
    /// A context manager that switches the current GPU.
    Manager,
    /// A device where autocast expects a device type.
    Autocast,
    /// A device without an index, in a call that sets the current GPU.
    Unnumbered,
    /// A number where `torch.load` expects a location.
    Location,
    /// `True` or `False`.
    Truth,
}

/// Why a device never equals another value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// The device is compared with a string.
    Text,
    /// The other device has no index, but a tensor's device has one.
    Tensors,
    /// The other device has no index, but this device was created with one.
    Indexed,
    /// No device type has that name.
    Type,
    /// An `in` test on a device, which contains nothing.
    Inside,
}

/// One step in a chain of reasons.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Where.
    pub place: Place,
    /// How.
    pub reason: crate::flow::domain::value::Reason,
}
