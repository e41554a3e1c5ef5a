//! Events: what the interpreter reports to the rules.

use crate::ir::FuncId;
use crate::span::{Place, Span};
use crate::world::{Backend, Premise, World};

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
}

impl Bite {
    /// In this world, without further conditions.
    pub fn in_world(world: World) -> Self {
        Self { world, premises: Vec::new(), also: Vec::new(), conditions: Vec::new(), behind_cuda: false }
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

/// The kind of operation in which two devices met.
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

/// What an optimizer still holds although the model no longer uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftBehind {
    /// The model's previous parameters.
    Parameters,
    /// The state that the optimizer's constructor created.
    State,
    /// State that was loaded into the optimizer, or that a step created.
    LaterState,
}

/// Why something is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// In every iteration of a loop.
    Loop,
    /// In every call of a module.
    Forward,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Two devices meet in an operation that PyTorch rejects.
    Mismatch {
        /// The kind of operation.
        meeting: Meeting,
        /// The operator or function, as messages name it.
        what: String,
        /// The operand that is not on the device of the others (the CPU side if there is one).
        stray: Box<Operand>,
        /// The other operand.
        other: Box<Operand>,
    },
    /// A CUDA tensor is given to NumPy.
    ToHost {
        /// The function: `.numpy()`, `np.asarray`.
        what: String,
        /// The tensor.
        tensor: Box<Operand>,
    },
    /// An operation really uses an accelerator.
    Use {
        /// What uses it, in the words of the message: "`.cuda()`".
        what: String,
        /// The device literal or query that decided the device, if it is at another place.
        origin: Option<Place>,
        /// The device index, if the source names one.
        index: Option<u32>,
        /// The back end; `None` means CUDA.
        backend: Option<Backend>,
        /// The kind of use.
        how: UseKind,
        /// The path has tested for the accelerator, and it is not available (or another one is).
        inverted: bool,
    },
    /// An operation that would also raise if an earlier use had not already raised.
    Shadowed {
        /// The earlier use.
        first: Place,
        /// Where the device was decided, if it is at another place.
        origin: Option<Place>,
    },
    /// An exception handler discards all errors of device work.
    Swallowed {
        /// Where the handler counts or prints the errors anyway.
        said: Option<Place>,
    },
    /// The program queries a back end's module before it knows that the module exists.
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
    /// The result of a transfer is discarded.
    Discarded {
        /// The receiver of the method, in the source.
        receiver: Span,
        /// The method.
        method: String,
        /// Whether the receiver is a module's parameter. PyTorch rejects a plain tensor as its replacement.
        parameter: bool,
    },
    /// A module moves itself before it has any parts to move.
    MovedEmpty {
        /// The method.
        method: String,
        /// The first part that is assigned after the move.
        part: Place,
    },
    /// `torch.load` without `map_location`.
    Load {
        /// Whether it is `torch.jit.load`, which reads a program.
        program: bool,
        /// Whether the source says `map_location=None`.
        explicit_none: bool,
        /// Whether the file may use a GPU other than the first. Tensors saved from such a GPU are loaded back to it.
        several: bool,
        /// Where a value from the loaded file meets a tensor on a GPU.
        met: Vec<Place>,
    },
    /// An allocation of known size on an accelerator.
    Allocation {
        /// Its size in bytes.
        bytes: u64,
        /// Whether a handler on the way out catches the error.
        handled: bool,
    },
    /// A module keeps submodules or parameters only in a plain container.
    Unregistered {
        /// `list`, `dict`, `tuple`.
        container: &'static str,
        /// Whether the container holds parameters and not modules.
        parameters: bool,
    },
    /// A copy of a leaf tensor is used as if it were the leaf.
    NonLeaf {
        /// What uses it.
        what: String,
        /// Where it is used.
        used: Place,
    },
    /// An optimizer holds parameters or state that the module no longer uses.
    OptimizerFirst {
        /// The optimizer's class.
        optimizer: &'static str,
        /// Where the module was moved, or got new parameters.
        then: Place,
        /// What was left behind.
        left: LeftBehind,
    },
    /// A module on the CPU is wrapped for GPUs.
    WrappedOnCpu {
        /// The wrapper.
        wrapper: &'static str,
        /// Why the module is on the CPU.
        chain: Vec<Step>,
    },
    /// `init_process_group("nccl")` without a GPU.
    Nccl,
    /// The program sets a variable after CUDA has read it. CUDA reads it only once.
    EnvironmentTooLate {
        /// The variable.
        variable: &'static str,
        /// Where the program first queried CUDA.
        first: Place,
    },
    /// A device index outside the visible devices. Visible devices are numbered from zero.
    OutsideVisible {
        /// The index; `None` if it was read from the variable.
        index: Option<u32>,
        /// The value of the variable.
        visible: Option<String>,
        /// Where the variable is set.
        set: Option<Place>,
    },
    /// The source fixes the GPUs that the program sees.
    FixedVisible {
        /// What the variable is set to.
        text: String,
        /// The number of GPUs that it needs.
        needed: u32,
        /// Whether no GPU at all is left on a machine with fewer GPUs.
        none_left: bool,
    },
    /// The global rank as a device index.
    GlobalRank,
    /// An NCCL group whose processes all use the same GPU.
    NoSetDevice {
        /// Uses of bare `cuda` devices, or wrappers for one device per process.
        uses: Vec<Place>,
        /// Whether each process selects its own device but does not make it the current one.
        indexed: bool,
    },
    /// CUDA is used in a worker of a data loader, or in another forked process.
    InWorker {
        /// The loader, or the call that forks.
        loader: Place,
        /// Whether it is a data loader.
        loads: bool,
        /// Why the value that is used there was on CUDA already, if it was.
        chain: Vec<Step>,
    },
    /// A string that is not the name of a device, where a device is expected.
    InvalidDevice {
        /// The string; empty if a number type stands there instead.
        text: String,
    },
    /// A value of the wrong kind where a device is expected, or a device where a device type is expected.
    Misplaced {
        /// The wrong value.
        what: Misplaced,
    },
    /// A `torch.device` is compared with something that it never equals.
    DeviceCompared {
        /// The other value.
        with: String,
        /// Why they are never equal.
        how: Compared,
    },
    /// `.device` of a module that has no such attribute.
    NoDevice,
    /// A CPU tensor in a collective of an NCCL group.
    CpuInCollective {
        /// The function.
        what: String,
        /// The tensor.
        tensor: Box<Operand>,
        /// Whether the group is created elsewhere. Then its backend is the one that the project's groups use.
        elsewhere: bool,
    },
    /// Half precision where the chosen device is the CPU.
    HalfOnCpu {
        /// Where the value is moved to the chosen device, if that happens later.
        moved: Option<Place>,
    },
    /// 64-bit floating point on a device that does not support it.
    DoubleOnMps {
        /// The device.
        on: DeviceName,
    },
    /// The program reads the clock before work on a GPU has finished.
    TimedWithoutWait {
        /// The first clock reading. The event's place is the second one.
        started: Place,
        /// The GPU work.
        work: Place,
    },
    /// A tensor is moved to a device and back without any use on that device.
    ThereAndBack {
        /// Where it is moved back.
        back: Place,
    },
    /// 64-bit floating point on a GPU.
    DoubleOnGpu,
    /// `bfloat16` on a GPU without a test that the GPU supports it.
    Bfloat16,
    /// The allocator's cache is emptied in every iteration of a loop.
    CacheEmptied,
    /// A number is copied to the host in every training step.
    SyncInTraining,
    /// Results without gradients are collected on the GPU.
    ResultsKept,
    /// A tensor is created on the host and moved immediately.
    CreatedThenMoved {
        /// Whether it is created from numbers that Python enumerates.
        counted: bool,
    },
    /// A non-blocking move from memory that is not pinned.
    Pageable {
        /// Where that memory was allocated.
        made: Place,
    },
    /// A non-blocking copy to the host is read before anything waits for it.
    ReadTooEarly {
        /// Where it is read.
        read: Place,
    },
    /// A tensor is moved to the device that it is on already.
    AlreadyThere,
    /// The same tensor is moved repeatedly.
    InvariantMove {
        /// Why the move is repeated.
        again: Again,
    },
    /// A model in evaluation mode runs in a loop with gradients enabled.
    EvaluatedWithGraph,
    /// CUDA autocast around work whose device depends on a choice that may be the CPU.
    CudaAutocast {
        /// The work.
        follows: Place,
        /// A tensor that the work receives.
        given: Option<Place>,
    },
    /// `reveal_device(…)` or `reveal_world()`.
    Reveal(String),
}

/// The kinds of accelerator use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum UseKind {
    Transfer,
    /// The move of a module.
    Move,
    Factory,
    /// A transfer or factory in a module, on a path with CUDA. It names the current GPU or a fixed one, even if the module is on another
    /// GPU.
    Pinned,
    Query,
    /// A transfer to a GPU whose index comes from a caller: `module.cuda(device)`.
    Indexed,
    LegacyType,
    DeviceList,
}
