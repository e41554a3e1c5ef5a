//! Findings: what rules report, before a format shows it.

mod fix;
mod label;
mod telling;
mod verdict;

pub use fix::{Applicability, Edit, Fix};
pub use label::{Label, Role};
pub use telling::{Silenced, Telling};
pub use verdict::{Judgement, Verdict};

use std::fmt;

pub use crate::assumption::{Assumption, ByDefault, Parameter, Spot, Way};
use crate::remedy::Remedy;
use crate::span::Place;
use crate::world::{Premise, World};

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
    /// Raises an exception or computes something wrong on the machine that the finding names.
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

/// How sure it is that a program reaches the line as the finding says, and how much it matters there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, clap::ValueEnum)]
pub enum Confidence {
    /// Code that nothing calls, tests, vendored code, demos, and transfers that cost little: they run once or are tiny.
    Low,
    /// The finding depends on something that a caller or a user decides; its text says what.
    Likely,
    /// A program in sight reaches the line, and only the machine decides.
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

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The rule.
    pub code: Code,
    /// Taken from the rule's page and the configuration.
    pub severity: Severity,
    /// How certain it is.
    pub confidence: Confidence,
    /// Why it is not more certain, as clauses without a full stop ("nothing in this project calls `f`"). Empty if it is certain.
    pub doubts: Vec<String>,
    /// One sentence that names what is wrong here, without a full stop.
    pub message: String,
    /// The machines on which it occurs.
    pub world: World,
    /// Other conditions on the machine that the path needs. All of them must be true.
    pub premises: Vec<Premise>,
    /// Other machines on which it also occurs. Each entry is one kind of machine: all its premises must be true. Only if `world` is about
    /// the devices that exist.
    pub also: Vec<Vec<Premise>>,
    /// What else must hold, in words ("when `args.cuda` is set").
    pub condition: Option<String>,
    /// The primary place: the code that you would change.
    pub primary: Label,
    /// Other places that matter, such as where the device was decided.
    pub related: Vec<Label>,
    /// Related places that are not shown, because there are too many. Comments there also suppress the finding.
    pub unshown: Vec<Label>,
    /// The places in the order in which they happen, if that is known.
    pub order: Vec<Place>,
    /// In which files it is reported, and which comments suppress it.
    pub told: Telling,
    /// The places of the cause, if that is in other files than the one that led there.
    pub roots: Vec<Place>,
    /// Where the tensor was made that meets others elsewhere.
    pub stray_from: Option<Place>,
    /// Places that a reader would look at first, best first: a file that only leads to the cause is told of it at the
    /// first of them that is in it.
    pub suspects: Vec<Place>,
    /// What else must be true. A pass over the project can refute it.
    pub assumptions: Vec<Assumption>,
    /// What is told instead where it is only reached with CUDA, if it goes wrong there, too.
    pub where_cuda_is: Option<String>,
    /// Is it only reached where there is CUDA? Else that is what its world takes for granted, not its path.
    pub behind_cuda: bool,
    /// What is wrong on every machine, and shows only where there is a device besides the CPU: a tensor that is not moved.
    pub shows_with_accelerator: bool,
    /// What to write instead.
    pub help: Option<String>,
    /// The changes that would fix it, the best first.
    pub remedies: Vec<Remedy>,
    /// The first of them that there are edits for.
    pub fix: Option<Fix>,
    /// Set by `--verify`.
    pub verdict: Option<Judgement>,
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
            told: Telling::default(),
            roots: Vec::new(),
            stray_from: None,
            suspects: Vec::new(),
            assumptions: Vec::new(),
            where_cuda_is: None,
            behind_cuda: false,
            shows_with_accelerator: false,
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

    /// Says what it takes for granted.
    #[must_use]
    pub fn assume(mut self, assumptions: impl IntoIterator<Item = Assumption>) -> Self {
        self.assumptions.extend(assumptions);
        self
    }

    /// The ways by which machines without CUDA come there; none if it does not hang on that.
    pub fn ways(&self) -> impl Iterator<Item = &Way> + '_ {
        self.assumptions
            .iter()
            .filter_map(|a| if let Assumption::CudaMissing(way) = a { Some(way) } else { None })
    }

    /// The parameters for which callers decide whether it goes wrong.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + '_ {
        self.assumptions
            .iter()
            .filter_map(|a| if let Assumption::ParameterVaries(p) = *a { Some(p) } else { None })
    }

    /// What must be set so that nothing of it is on the CPU by default; nothing if it does not hang on that.
    pub fn by_default(&self) -> Option<ByDefault> {
        let all = self
            .assumptions
            .iter()
            .filter_map(|a| if let Assumption::DefaultDevice(by) = *a { Some(by) } else { None });
        all.reduce(ByDefault::and)
    }

    /// The places in methods of modules that somebody moves.
    pub fn on_modules(&self) -> impl Iterator<Item = &Spot> + '_ {
        self.assumptions
            .iter()
            .filter_map(|a| if let Assumption::ModuleMoved(spot) = a { Some(spot) } else { None })
    }

    /// Does it take something like that for granted?
    pub fn assumes(&self, is_it: impl Fn(&Assumption) -> bool) -> bool {
        self.assumptions.iter().any(is_it)
    }

    /// The place of its cause: where one would mend it, whichever calls lead there. What a caller hands in is its own.
    pub fn cause(&self) -> Place {
        let elsewhere = |&&root: &&Place| self.stray_from.is_none_or(|from| from.file == root.file);
        self.roots.first().filter(elsewhere).copied().unwrap_or(self.primary.place)
    }

    /// Is all of it silenced?
    pub fn is_silenced(&self) -> bool {
        self.told.silenced == Silenced::Everything
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
        self.told.elsewhere = self.told.silenced != Silenced::Nothing;
        self.told.elsewhere
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
