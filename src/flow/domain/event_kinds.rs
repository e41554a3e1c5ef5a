//! The kinds of events: what happened, with what rules need to know of it.

use super::event::{Compared, DeviceName, Misplaced, Operand, Step};
use crate::span::{Place, Span};
use crate::world::Backend;
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
