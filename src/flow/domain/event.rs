//! Events: what the engine reports to the rules.

use crate::ir::FuncId;
use crate::span::{Place, Span};
use crate::world::{Backend, Premise, World};

/// Something that may be worth a finding.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// The expression or statement.
    pub place: Place,
    /// The machines and flags with which it occurs.
    pub bite: Bite,
    /// The call sites that led here, outermost first; the first is in the entry's file.
    pub stack: Box<[Place]>,
    /// The calls of modules on this path, innermost first.
    pub entered: Box<[Entered]>,
    /// Does the path go through a method of an `nn.Module`?
    pub in_module: bool,
    /// Is the entry point a function that other code in its file calls?
    pub speculative: bool,
    /// Do visible calls of the entry point pass the value? Then the engine reports those calls, and drops this event.
    pub callers_decide: bool,
    /// The function moves other tensors to the device of the parameter, so its code works for any device of that parameter.
    pub followed: bool,
    /// The parameter of that function on which the devices depend, by its position in the signature.
    pub parameter: Option<(FuncId, u16)>,
    /// Can the callers have checked that an accelerator is available?
    pub asked_before: bool,
    /// The function with which the engine began, if the entry point is a function.
    pub entry: Option<FuncId>,
    /// Is the entry point a function with outside values for its parameters, and not the body of the file?
    pub symbolic: bool,
    /// Later operations that fail for the same reason.
    pub also: Vec<Later>,
    /// Does the path go through a file that only supports CUDA?
    pub cuda_only: bool,
    /// Does the function's name say that its caller wants an accelerator (`def cuda(self)`, `to_gpu`)?
    pub asked_for: bool,
    /// How often the program runs this code. `emit` computes it.
    pub frequency: Frequency,
    /// The size of the tensor in bytes, if the source says it.
    pub bytes: Option<u64>,
}

impl Event {
    /// Is it only a guess about a function that other code calls, perhaps behind a guard?
    ///
    /// What a library's function reaches through others may be guarded by its own callers just as well: only what
    /// stands in the function itself, or is reached from a script's own body, is certain to be unguarded.
    pub fn is_guess(&self) -> bool {
        let elsewhere = self.stack.len() > 1 || self.stack.first().is_some_and(|s| s.file != self.place.file);
        self.symbolic && (self.speculative && self.asked_before || elsewhere || self.asked_for)
    }
}

/// How often a program does something, as far as the loops and the functions around say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Frequency {
    /// Once: in a file's body, in a constructor and what only those call, in a test.
    Once,
    /// In every iteration of a loop that contains other loops.
    EveryEpoch,
    /// In every call of a function whose callers are not visible.
    Unknown,
    /// In every call of a method of something that was made before.
    EveryCall,
    /// In every round of a loop, every `forward`, every step of a training.
    EveryStep,
}

/// A later place that goes wrong for the same reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Later {
    /// Where.
    pub place: Place,
    /// What leads there: the calls, and where its device was decided.
    pub through: Vec<Place>,
}

/// When something goes wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bite {
    /// On which machines.
    pub world: World,
    /// What the path takes for granted about the machine besides.
    pub premises: Vec<Premise>,
    /// Other machines on which it goes wrong, too: all premises of one of them.
    pub also: Vec<Vec<Premise>>,
    /// What else must hold, as clauses ("`args.cuda` is set").
    pub conditions: Vec<String>,
    /// Is the point only reached where there is CUDA? Else CUDA is what it takes to go wrong.
    pub behind_cuda: bool,
}

impl Bite {
    /// In this world, whatever else.
    pub fn in_world(world: World) -> Self {
        Self { world, premises: Vec::new(), also: Vec::new(), conditions: Vec::new(), behind_cuda: false }
    }
}

/// One side of a meeting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The expression.
    pub place: Place,
    /// Its device in the world of the event.
    pub device: DeviceName,
    /// Why it is there, nearest first.
    pub chain: Vec<Step>,
    /// It is where a module is whose call led here: one of its weights.
    pub of_module: bool,
    /// What the expression itself gives, if it is a name or a chain of attributes.
    pub gives: Gives,
    /// What decides the device, where that came from outside.
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

/// What an expression gives that is one side of a meeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// The tensor itself.
    Tensor,
    /// A list of tensors.
    Tensors,
    /// A module, which has no `.device`.
    Module,
    /// Something that it is in, or what is not known.
    Other,
}

/// An outside thing that decides a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// As the source has it: `args.device`, `x`.
    pub text: String,
    /// It is a device, or the name of one, and not something that is on it.
    pub names: bool,
}

/// The call of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered {
    /// Where it is called.
    pub site: Place,
    /// Its `forward`.
    pub forward: Place,
    /// Where it was made, if it has not been moved since.
    pub made: Option<Place>,
}

/// A device as messages name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceName {
    /// A device by name: `cpu`, `cuda:1`.
    Known(String),
    /// Wherever this lives or says: a parameter, `self`.
    Varies(String),
    /// With the module that the method belongs to.
    WithModule,
}

impl DeviceName {
    /// In a sentence.
    pub fn in_words(&self) -> String {
        match self {
            Self::Known(name) if name == "cpu" => "the CPU".to_owned(),
            Self::Known(name) => format!("`{name}`"),
            Self::Varies(of) => format!("the device of `{of}`"),
            Self::WithModule => "the module's device".to_owned(),
        }
    }
}

/// What stands where it is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplaced {
    /// The number of a tensor's GPU, which is -1 on the CPU.
    Number,
    /// What switches the current GPU in a `with`.
    Manager,
    /// A device, where autocast wants the type of one.
    Autocast,
    /// A device without an index, where the current GPU is chosen.
    Unnumbered,
    /// A number, where `torch.load` wants a location.
    Location,
    /// `True` or `False`.
    Truth,
}

/// Why a device never equals something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// It is no text.
    Text,
    /// That has no index, and a tensor's device has one.
    Tensors,
    /// That has no index, and this device was given one.
    Indexed,
    /// No device's type is called that.
    Type,
    /// It is looked for in a device, which holds nothing.
    Inside,
}

/// One reason in a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Where.
    pub place: Place,
    /// How.
    pub reason: crate::flow::domain::value::Reason,
}

/// How two devices met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Meeting {
    Operator,
    Function,
    Index,
    Assignment,
    ModuleInput,
    Generator,
    CpuOnly,
    OldConstructor,
    Data,
}

/// What an optimizer has that the model is not with any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftBehind {
    /// Parameters that the model had before.
    Parameters,
    /// The state that its constructor made.
    State,
    /// The state that it was given, or that a step made.
    LaterState,
}

/// When something is done again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// In every round of a loop.
    Loop,
    /// In every call of a module.
    Forward,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Two devices meet where PyTorch refuses.
    Mismatch {
        /// How.
        meeting: Meeting,
        /// The operator or function, as people call it.
        what: String,
        /// The one that is not where the others are (the CPU side if there is one).
        stray: Box<Operand>,
        /// The other.
        other: Box<Operand>,
    },
    /// A CUDA tensor is given to NumPy.
    ToHost {
        /// `.numpy()`, `np.asarray`.
        what: String,
        /// The tensor.
        tensor: Box<Operand>,
    },
    /// An accelerator is really used.
    Use {
        /// What uses it, for the message: "`.cuda()`".
        what: String,
        /// The device literal or query that decided it, where that is another place.
        origin: Option<Place>,
        /// The device index, if one is named.
        index: Option<u32>,
        /// The back end; CUDA when there is none.
        backend: Option<Backend>,
        /// How it came about.
        how: UseKind,
        /// The path has checked, and the accelerator is not there (or another one is).
        inverted: bool,
    },
    /// What would also raise, had an earlier use not raised already.
    Shadowed {
        /// The earlier use.
        first: Place,
        /// Where the device was decided, if that is another place.
        origin: Option<Place>,
    },
    /// A handler drops all errors of device work.
    Swallowed {
        /// What it counts or prints all the same.
        said: Option<Place>,
    },
    /// A back end's module is asked something before it is known to be there.
    Plugin {
        /// The function.
        function: String,
        /// The back end.
        backend: Backend,
    },
    /// An availability function is used as a truth value without being called.
    UncalledCheck {
        /// The function.
        function: String,
    },
    /// A transfer's result is dropped.
    Discarded {
        /// The receiver, as the source has it.
        receiver: Span,
        /// The method.
        method: String,
        /// Is the receiver a parameter? What registers it takes no other tensor in its place.
        parameter: bool,
    },
    /// A module moves itself before it has anything to move.
    MovedEmpty {
        /// The method.
        method: String,
        /// The first of its parts that come after.
        part: Place,
    },
    /// `torch.load` without `map_location`.
    Load {
        /// It reads a program: `torch.jit.load`.
        program: bool,
        /// Was `map_location=None` written?
        explicit_none: bool,
        /// May something in the file use another GPU than the first, so that what was saved from one goes back to it?
        several: bool,
        /// Where something that was taken out of the file meets a tensor on a GPU.
        met: Vec<Place>,
    },
    /// An allocation of known size on an accelerator.
    Allocation {
        /// Its size in bytes.
        bytes: u64,
        /// Is there a handler for it on the way out?
        handled: bool,
    },
    /// Modules or parameters that a module keeps in a plain container only.
    Unregistered {
        /// `list`, `dict`, `tuple`.
        container: &'static str,
        /// Parameters, not modules.
        parameters: bool,
    },
    /// A copy of a leaf is used as if it were the leaf.
    NonLeaf {
        /// By what.
        what: String,
        /// Where.
        used: Place,
    },
    /// An optimizer has parameters, or a state, that the module has left behind.
    OptimizerFirst {
        /// Its class.
        optimizer: &'static str,
        /// Where the module was moved, or got other parameters.
        then: Place,
        /// What was left behind.
        left: LeftBehind,
    },
    /// A module on the CPU is wrapped for GPUs.
    WrappedOnCpu {
        /// The wrapper.
        wrapper: &'static str,
        /// Why it is there.
        chain: Vec<Step>,
    },
    /// `init_process_group("nccl")` without a GPU.
    Nccl,
    /// A variable that CUDA reads once is set after that.
    EnvironmentTooLate {
        /// The variable.
        variable: &'static str,
        /// Where CUDA was asked first.
        first: Place,
    },
    /// A device index that is not one of the visible devices', which are numbered from zero.
    OutsideVisible {
        /// The index; nothing for one that was read from the variable.
        index: Option<u32>,
        /// What the variable says.
        visible: Option<String>,
        /// Where it is set.
        set: Option<Place>,
    },
    /// The GPUs that a program sees are written down in it.
    FixedVisible {
        /// What the variable is set to.
        text: String,
        /// So many GPUs it takes.
        needed: u32,
        /// With fewer there is none left, and not only fewer than meant.
        none_left: bool,
    },
    /// The global rank as a device index.
    GlobalRank,
    /// An NCCL group whose processes all use the same GPU.
    NoSetDevice {
        /// Bare `cuda` devices, or the wrappers for one device of each process.
        uses: Vec<Place>,
        /// Each process has a device of its own, but does not make it the current one.
        indexed: bool,
    },
    /// CUDA in a worker of a data loader, or in another fork.
    InWorker {
        /// The loader, or what starts the fork.
        loader: Place,
        /// Is it a data loader?
        loads: bool,
        /// How what is used there came to be on CUDA, if it was so before.
        chain: Vec<Step>,
    },
    /// A string where a device is wanted, and none is of that name.
    InvalidDevice {
        /// The string; empty for a type of numbers in its place.
        text: String,
    },
    /// Something else stands where a device is wanted, or a device where its type is.
    Misplaced {
        /// What.
        what: Misplaced,
    },
    /// A `torch.device` is compared with something that it never equals.
    DeviceCompared {
        /// With what.
        with: String,
        /// Why not.
        how: Compared,
    },
    /// `.device` of a module that has none.
    NoDevice,
    /// A CPU tensor in a collective of an NCCL group.
    CpuInCollective {
        /// The function.
        what: String,
        /// The tensor.
        tensor: Box<Operand>,
        /// The group is made elsewhere: it is what the project's groups are.
        elsewhere: bool,
    },
    /// Half precision where the chosen device is the CPU.
    HalfOnCpu {
        /// Where it is moved to the chosen device, if that is later.
        moved: Option<Place>,
    },
    /// Numbers of 64 bits on a device that has none.
    DoubleOnMps {
        /// The device.
        on: DeviceName,
    },
    /// The time of work on a GPU is taken before it is done.
    TimedWithoutWait {
        /// The first look at the clock; the event's own place is the second one.
        started: Place,
        /// The work.
        work: Place,
    },
    /// A tensor is moved to a device and back, and nothing uses it there.
    ThereAndBack {
        /// Where it comes back.
        back: Place,
    },
    /// Numbers of 64 bits on a GPU.
    DoubleOnGpu,
    /// `bfloat16` on a GPU that nobody has asked whether it knows it.
    Bfloat16,
    /// A loop empties the allocator's cache in every iteration.
    CacheEmptied,
    /// A training loop reads a number from the GPU in every iteration (`loss.item()`).
    SyncInTraining,
    /// Results without gradients are collected on the GPU.
    ResultsKept,
    /// A tensor is made on the host and moved at once.
    CreatedThenMoved {
        /// Of numbers that Python counts up.
        counted: bool,
    },
    /// A move that is not to be waited for, from memory that is not pinned.
    Pageable {
        /// Where that memory is from.
        made: Place,
    },
    /// A copy to the host is read before anything has waited for it.
    ReadTooEarly {
        /// Where it is read.
        read: Place,
    },
    /// A tensor is moved to where it is.
    AlreadyThere,
    /// The same tensor is moved again and again.
    InvariantMove {
        /// When.
        again: Again,
    },
    /// A model in evaluation mode is run with gradients in a loop.
    EvaluatedWithGraph,
    /// CUDA autocast around work that follows a device which may be the CPU.
    CudaAutocast {
        /// That work.
        follows: Place,
        /// A tensor that it is given.
        given: Option<Place>,
    },
    /// `reveal_device(…)` or `reveal_world()`.
    Reveal(String),
}

/// How an accelerator is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum UseKind {
    Transfer,
    /// Of a module.
    Move,
    Factory,
    /// A transfer or factory behind a check, which fixes the current GPU all the same.
    Pinned,
    Query,
    /// A transfer to a GPU whose index others give: `module.cuda(device)`.
    Indexed,
    LegacyType,
    DeviceList,
}
