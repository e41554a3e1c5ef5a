//! The keys of a configuration, in one table: what reads files, `samedevice config` and the JSON Schema take them from here.

use std::path::PathBuf;

use super::DEFAULT_EXCLUDE;
use super::file::{Confidences, Layer, PerFileIgnore, Severities, Written};
use super::patterns::Patterns;
use super::selector::Selector;
use crate::finding::{Confidence, Severity};

/// A key.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What its value is, and where that goes.
    pub kind: Kind,
    /// What counts where no file has it.
    pub default: Default,
    /// What it is for: a clause without a full stop.
    pub help: &'static str,
    /// A line of a configuration file.
    pub example: &'static str,
}

/// What a value is. The function stores it in the layer of its file.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Flag(fn(&mut Layer, bool)),
    /// The path of a file, from the folder of the file that has it.
    Path(fn(&mut Layer, Written<PathBuf>)),
    /// Codes, prefixes, names or `ALL`.
    Rules(fn(&mut Layer, Vec<Selector>)),
    /// Globs.
    Globs(fn(&mut Layer, Patterns)),
    /// `error`, `warning` or `info`.
    Level(fn(&mut Layer, Severity)),
    /// `low`, `likely` or `certain`.
    Confidence(fn(&mut Layer, Confidence)),
    /// Rules with the least confidence of each.
    ConfidenceByRule(fn(&mut Layer, Confidences)),
    /// A number of bytes, or a string with a unit.
    Bytes(fn(&mut Layer, u64)),
    /// Globs with the rules for each.
    RulesByGlob(fn(&mut Layer, Vec<PerFileIgnore>)),
    /// Rules with the level of each; those that are `off` come apart.
    LevelByRule(fn(&mut Layer, Severities, Vec<Selector>)),
}

impl Kind {
    /// The type in words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Flag(_) => "true or false",
            Self::Path(_) => "the path of a file",
            Self::Rules(_) => "a list of rules: codes, prefixes, names or \"ALL\"",
            Self::Globs(_) => "a list of globs",
            Self::Level(_) => "\"error\", \"warning\" or \"info\"",
            Self::Confidence(_) => "\"low\", \"likely\" or \"certain\"",
            Self::ConfidenceByRule(_) => "a table of rules, each with \"low\", \"likely\" or \"certain\"",
            Self::Bytes(_) => "a number of bytes, or a string such as \"1GiB\"",
            Self::RulesByGlob(_) => "a table of globs, each with a list of rules",
            Self::LevelByRule(_) => "a table of rules, each with \"error\", \"warning\", \"info\" or \"off\"",
        }
    }
}

/// What counts where no file has a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// This value, as TOML.
    Toml(&'static str),
    /// This list of strings.
    List(&'static [&'static str]),
    /// No value says the same.
    Words(&'static str),
}

/// All keys, in the order in which people read about them.
pub static KEYS: [Key; 20] = [
    Key {
        name: "extend",
        kind: Kind::Path(|layer, path| layer.extend = Some(path)),
        default: Default::Words("none"),
        help: "another configuration file; its keys apply where this file does not set them",
        example: "extend = \"../samedevice.toml\"",
    },
    Key {
        name: "select",
        kind: Kind::Rules(|layer, rules| layer.selection.select = Some(rules)),
        default: Default::Words("the rules that are on by default"),
        help: "the rules that run: codes, prefixes (`SD2`), names or `ALL`",
        example: "select = [\"SD1\", \"mixed-device-operation\"]",
    },
    Key {
        name: "extend-select",
        kind: Kind::Rules(|layer, rules| layer.selection.extend_select = rules),
        default: Default::Toml("[]"),
        help: "rules that run in addition to `select`",
        example: "extend-select = [\"SD606\"]",
    },
    Key {
        name: "ignore",
        kind: Kind::Rules(|layer, rules| layer.selection.ignore = rules),
        default: Default::Toml("[]"),
        help: "rules that do not run; if several entries match a rule, the most specific one decides",
        example: "ignore = [\"SD402\"]",
    },
    Key {
        name: "exclude",
        kind: Kind::Globs(|layer, globs| layer.exclude = Some(globs)),
        default: Default::List(&DEFAULT_EXCLUDE),
        help: "globs of files and folders to skip",
        example: "exclude = [\".venv\", \"generated/*\"]",
    },
    Key {
        name: "extend-exclude",
        kind: Kind::Globs(|layer, globs| layer.extend_exclude = globs),
        default: Default::Toml("[]"),
        help: "globs to skip in addition to `exclude`",
        example: "extend-exclude = [\"third_party\"]",
    },
    Key {
        name: "force-exclude",
        kind: Kind::Flag(|layer, on| layer.force_exclude = Some(on)),
        default: Default::Toml("false"),
        help: "skip excluded files even if they are named on the command line, as pre-commit does",
        example: "force-exclude = true",
    },
    Key {
        name: "per-file-ignores",
        kind: Kind::RulesByGlob(|layer, ignores| layer.per_file_ignores = ignores),
        default: Default::Toml("{}"),
        help: "glob → rules that are off in matching files; a glob with `!` matches all other files",
        example: "per-file-ignores = { \"benchmarks/*\" = [\"SD101\"], \"!src/**\" = [\"SD5\"] }",
    },
    Key {
        name: "severity",
        kind: Kind::LevelByRule(|layer, severity, off| (layer.severity, layer.off) = (severity, off)),
        default: Default::Words("the severity on the rule's page"),
        help: "rule → `error`, `warning`, `info` or `off`",
        example: "severity = { SD501 = \"info\", SD6 = \"off\" }",
    },
    Key {
        name: "confidence",
        kind: Kind::ConfidenceByRule(|layer, levels| layer.confidence = levels),
        default: Default::Toml("{}"),
        help: "rule → the lowest confidence that is reported: `low`, `likely` or `certain`",
        example: "confidence = { SD101 = \"certain\" }",
    },
    Key {
        name: "min-confidence",
        kind: Kind::Confidence(|layer, level| layer.min_confidence = Some(level)),
        default: Default::Toml("\"likely\""),
        help: "the lowest confidence that is reported for all other rules",
        example: "min-confidence = \"low\"",
    },
    Key {
        name: "fail-on-severity",
        kind: Kind::Level(|layer, level| layer.fail_on_severity = Some(level)),
        default: Default::Toml("\"warning\""),
        help: "the lowest severity that makes the exit code 1: `error`, `warning` or `info`",
        example: "fail-on-severity = \"error\"",
    },
    Key {
        name: "baseline",
        kind: Kind::Path(|layer, path| layer.baseline = Some(path)),
        default: Default::Words("none"),
        help: "the baseline file, relative to the configuration file",
        example: "baseline = \".samedevice-baseline.json\"",
    },
    Key {
        name: "fix",
        kind: Kind::Flag(|layer, on| layer.fix = Some(on)),
        default: Default::Toml("false"),
        help: "apply fixes, as `--fix` does",
        example: "fix = true",
    },
    Key {
        name: "unsafe-fixes",
        kind: Kind::Flag(|layer, on| layer.unsafe_fixes = Some(on)),
        default: Default::Toml("false"),
        help: "also apply fixes that may change what the program does",
        example: "unsafe-fixes = true",
    },
    Key {
        name: "fixable",
        kind: Kind::Rules(|layer, rules| layer.fixable = Some(rules)),
        default: Default::Words("all rules"),
        help: "the rules whose fixes are offered",
        example: "fixable = [\"SD1\"]",
    },
    Key {
        name: "unfixable",
        kind: Kind::Rules(|layer, rules| layer.unfixable = rules),
        default: Default::Toml("[]"),
        help: "rules whose fixes are not offered",
        example: "unfixable = [\"SD204\"]",
    },
    Key {
        name: "strict",
        kind: Kind::Flag(|layer, on| layer.strict = Some(on)),
        default: Default::Toml("false"),
        help: "exit with 2 if something was not checked",
        example: "strict = true",
    },
    Key {
        name: "oom-threshold",
        kind: Kind::Bytes(|layer, bytes| layer.oom_threshold = Some(bytes)),
        default: Default::Toml("\"1GiB\""),
        help: "SD501 reports allocations of at least this size that have no out-of-memory handler",
        example: "oom-threshold = \"4GiB\"",
    },
    Key {
        name: "max-accelerator-memory",
        kind: Kind::Bytes(|layer, bytes| layer.max_accelerator_memory = Some(bytes)),
        default: Default::Toml("\"288GiB\""),
        help: "SD507 reports allocations that are larger than this",
        example: "max-accelerator-memory = \"80GiB\"",
    },
];

/// The key of this name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The name of a key that was probably meant.
pub fn meant(name: &str) -> Option<&'static str> {
    // People write Python's underscores where the configuration has dashes.
    crate::suggest::closest(&name.replace('_', "-"), KEYS.iter().map(|key| key.name))
}
