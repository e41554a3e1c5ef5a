//! Findings: what a rule says about a place, before anybody decides how to show it.

use std::fmt;

use crate::ir::FuncId;
use crate::remedy::Remedy;
use crate::span::{FileId, Place};
use crate::world::{Premise, World};

/// A place in a function of a file (in its body: function 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The file.
    pub file: FileId,
    /// The function that was interpreted for itself.
    pub entry: FuncId,
    /// Where in it, in bytes from the beginning of the file.
    pub at: u32,
}

/// How a place was reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// Where it began: the call in that function which led there, or the place itself.
    pub spot: Spot,
    /// The calls, outermost first, and the place.
    pub places: Box<[Place]>,
}

/// A parameter of a function that was interpreted for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given {
    /// The function's file.
    pub file: FileId,
    /// The function.
    pub func: FuncId,
    /// The position in the signature, from zero.
    pub index: u16,
    /// Does the function put other things where this parameter is? Then it counts on any place, whoever calls it, and only
    /// what it works for can say that there is but one.
    pub followed: bool,
}

/// The number of a rule, shown as `SD201`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SD{:03}", self.0)
    }
}

/// Not a rule: what the engine says of `reveal_device(x)` and `reveal_world()` in its own tests. Nothing but its
/// code selects it.
pub const REVEAL: Code = Code(0);

/// How bad it is. Unless configured otherwise, `Error` and `Warning` make the run fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Slow, wasteful or fragile.
    Warning,
    /// Raises, or computes something wrong, in its world.
    Error,
}

impl Severity {
    /// The lower-case word of the machine formats.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// How sure it is that somebody comes to the line as the finding says, and how much it matters there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, clap::ValueEnum)]
pub enum Confidence {
    /// Nobody in sight comes there, it is no code of the project's own, or it costs nothing that matters: tests, copies of other
    /// projects, demos, what nothing calls, copies that are made once.
    Low,
    /// It takes for granted what a caller or a user decides.
    Likely,
    /// A program in sight comes there with nothing taken for granted but the machine.
    #[default]
    Certain,
}

impl Confidence {
    /// All of them, the least one first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Likely, Self::Certain];

    /// The lower-case word of the machine formats and the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// What a place has to do with a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// It is what the finding is about, or on the way there: whoever silences it silences the finding.
    #[default]
    Flow,
    /// Another place of the same cause. Whoever silences it, or what leads there, takes away this place alone; where the others are
    /// silenced, the finding is told here.
    Repeated {
        /// What leads there: the calls, and where the device was decided.
        through: Vec<Place>,
    },
    /// What comes of it later. Whoever silences it takes away this place alone.
    Consequence,
}

/// How much of a finding comments and settings silence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Silenced {
    /// Nothing.
    #[default]
    Nothing,
    /// Some of its other places.
    Places,
    /// All of it. It is still there, to say what these are for, and takes the place of no other finding.
    Everything,
}

/// A place with a few words about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What is there, as a clause without a full stop ("made here without `device=`").
    pub text: String,
    /// What it has to do with the finding.
    pub role: Role,
}

/// What is said of a call that leads there.
const THROUGH: &str = "reached through this call";

impl Label {
    /// A place that the finding is about, or that leads there.
    pub fn new(place: Place, text: impl Into<String>) -> Self {
        Self { place, text: text.into(), role: Role::Flow }
    }

    /// A call that leads to what the finding is about.
    pub fn call(place: Place) -> Self {
        Self::new(place, THROUGH)
    }

    /// Is it such a call?
    pub fn is_call(&self) -> bool {
        self.text == THROUGH
    }
}

/// May a fix be applied without a look at it?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applicability {
    /// Keeps what the program means.
    Safe,
    /// May change what the program means.
    Unsafe,
    /// Only for showing.
    Display,
}

impl Applicability {
    /// The word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unsafe => "unsafe",
            Self::Display => "display-only",
        }
    }

    /// Is it applied, where unsafe fixes are wanted or not?
    pub fn is_wanted(self, unsafe_fixes: bool) -> bool {
        self == Self::Safe || unsafe_fixes && self == Self::Unsafe
    }
}

/// Text to be put in place of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// What to replace (an empty range inserts).
    pub place: Place,
    /// The new text.
    pub content: String,
}

/// A correction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// What the fix does, in the imperative ("Pass `device=x.device`").
    pub message: String,
    /// May it be applied without a look?
    pub applicability: Applicability,
    /// Non-overlapping edits.
    pub edits: Vec<Edit>,
}

/// What the real machine says of a finding's world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The finding bites on this machine.
    Confirmed,
    /// It cannot bite on this machine.
    Refuted,
    /// The machine could not tell.
    Open,
}

/// A verdict and what it rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The fact about the machine that decides it, as a clause: "this machine has 1 device: `cuda:1` raises here".
    pub reason: String,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The rule.
    pub code: Code,
    /// Taken from the rule's page and the configuration.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why it is no surer than that, as clauses without a full stop ("nothing in this project calls `f`"). Nothing for what is certain.
    pub doubts: Vec<String>,
    /// One sentence that names what is wrong here, without a full stop.
    pub message: String,
    /// Where it bites.
    pub world: World,
    /// What the path to it takes for granted about the machine besides: all of that must hold.
    pub premises: Vec<Premise>,
    /// Other machines on which it bites, too: all premises of one of them. Only where `world` is about which
    /// devices are there.
    pub also: Vec<Vec<Premise>>,
    /// What else must hold, in words ("when `args.cuda` is set").
    pub condition: Option<String>,
    /// The place that the finding is about.
    pub primary: Label,
    /// Other places that matter, such as where the device was decided.
    pub related: Vec<Label>,
    /// The same, of which there are too many to be shown. What silences them counts like any other.
    pub unshown: Vec<Label>,
    /// The places in the order in which they happen, if that is known.
    pub order: Vec<Place>,
    /// How much of it is silenced.
    pub silenced: Silenced,
    /// Is it told elsewhere? Then it is only there to say what comments are for.
    pub told_elsewhere: bool,
    /// The places of the cause, if that is in other files than the one that led there.
    pub roots: Vec<Place>,
    /// The files, besides that of the primary place, whose check alone tells it.
    pub told_for: Vec<FileId>,
    /// Where the tensor was made that meets others elsewhere.
    pub stray_from: Option<Place>,
    /// Places that a reader would look at first, best first: a file that only leads to the cause is told of it at the
    /// first of them that is in it.
    pub suspects: Vec<Place>,
    /// From where it was reached. Only set for what goes wrong without CUDA, since that cannot happen if all of these places
    /// are only reached where CUDA is.
    pub entries: Vec<Way>,
    /// What is told instead where it is only reached with CUDA, if it goes wrong there, too.
    pub where_cuda_is: Option<String>,
    /// The parameters that it is about, by the ways to it. Only set where calls in other files may decide that it cannot happen.
    pub given: Vec<Given>,
    /// A tensor or module of it is on the CPU because of this default, in a function that is interpreted for itself.
    pub by_default: Option<ByDefault>,
    /// From where it was reached, if it takes for granted that somebody moves the module that this is in.
    pub on_module: Vec<Spot>,
    /// Is it only reached where there is CUDA? Else that is what its world takes for granted, not its path.
    pub behind_cuda: bool,
    /// What is wrong on every machine, and shows only where there is a device besides the CPU: a tensor that is not moved.
    pub shows_with_accelerator: bool,
    /// It takes for granted that the group of processes is one of NCCL, and has not seen it made.
    pub in_group: bool,
    /// What to write instead.
    pub help: Option<String>,
    /// What would mend it, the best first.
    pub remedies: Vec<Remedy>,
    /// The first of them that there are edits for.
    pub fix: Option<Fix>,
    /// Set by `--verify`.
    pub verdict: Option<Judgement>,
}

/// What a program can set so that what says nothing of its device is made elsewhere than on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByDefault {
    /// The default device, or the default tensor type.
    Device,
    /// The default tensor type alone: `torch.Tensor(…)` does not look at the default device.
    Type,
}

impl ByDefault {
    /// What must be set so that both are made elsewhere.
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Type }
    }
}

impl Finding {
    /// A certain finding of severity `Error` with nothing but the required parts.
    pub fn new(code: Code, world: World, message: impl Into<String>, primary: Label) -> Self {
        Self {
            code,
            severity: Severity::Error,
            confidence: Confidence::Certain,
            doubts: Vec::new(),
            message: message.into(),
            world,
            premises: Vec::new(),
            also: Vec::new(),
            condition: None,
            primary,
            related: Vec::new(),
            unshown: Vec::new(),
            order: Vec::new(),
            silenced: Silenced::Nothing,
            told_elsewhere: false,
            roots: Vec::new(),
            told_for: Vec::new(),
            stray_from: None,
            suspects: Vec::new(),
            entries: Vec::new(),
            where_cuda_is: None,
            given: Vec::new(),
            by_default: None,
            on_module: Vec::new(),
            behind_cuda: false,
            shows_with_accelerator: false,
            in_group: false,
            help: None,
            remedies: Vec::new(),
            fix: None,
            verdict: None,
        }
    }

    /// Adds a place that matters besides.
    #[must_use]
    pub fn related(mut self, place: Place, text: impl Into<String>) -> Self {
        self.related.push(Label::new(place, text));
        self
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says what would mend it, if what was said before does not.
    #[must_use]
    pub fn remedy(mut self, remedy: impl IntoIterator<Item = Remedy>) -> Self {
        self.remedies.extend(remedy);
        self
    }

    /// The place of its cause: where one would mend it, whichever calls lead there. What a caller hands in is its own.
    pub fn cause(&self) -> Place {
        let elsewhere = |&&root: &&Place| self.stray_from.is_none_or(|from| from.file == root.file);
        self.roots.first().filter(elsewhere).copied().unwrap_or(self.primary.place)
    }

    /// Is all of it silenced?
    pub fn is_silenced(&self) -> bool {
        self.silenced == Silenced::Everything
    }

    /// Makes it no surer than this, for this reason.
    pub fn doubt(&mut self, confidence: Confidence, why: impl Into<String>) {
        if confidence < self.confidence {
            self.doubts.clear();
        }
        if confidence <= self.confidence && confidence < Confidence::Certain {
            self.confidence = confidence;
            self.doubts.push(why.into());
        }
    }

    /// The surest way there counts.
    pub fn as_sure_as(&mut self, other: &Self) {
        if other.confidence > self.confidence {
            self.confidence = other.confidence;
            self.doubts.clone_from(&other.doubts);
        }
    }

    /// Leaves it to another finding to tell the cause. Gives whether it is still of use: what comments silence in it, they are there
    /// for, once the other one is mended.
    pub fn leave(&mut self) -> bool {
        self.told_elsewhere = self.silenced != Silenced::Nothing;
        self.told_elsewhere
    }

    /// The labels besides the primary one, those that are not shown among them.
    pub fn labels(&self) -> impl Iterator<Item = &Label> + '_ {
        self.related.iter().chain(&self.unshown)
    }

    /// The other places of the same cause, those that are not shown among them.
    pub fn repeated(&self) -> impl Iterator<Item = &Label> + '_ {
        self.labels().filter(|label| matches!(label.role, Role::Repeated { .. }))
    }

    /// Every place that is shown, the primary one first.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        std::iter::once(self.primary.place).chain(self.related.iter().map(|l| l.place))
    }
}
