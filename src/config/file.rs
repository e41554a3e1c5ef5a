//! The text of a configuration file → [`Layer`]. Every mistake has its place.

use std::num::IntErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::ConfigError;
use super::keys::{self, KEYS, Key, Kind};
use super::patterns::Patterns;
use super::selector::{Selection, Selector, UnknownRule};
use crate::finding::{Confidence, Severity};
use crate::rules::page::Page;
use crate::suggest::closest;

const LEVELS: [&str; 4] = ["error", "warning", "info", "off"];

/// Severities of what the selectors stand for; the last match wins.
pub type Severities = Vec<(Selector, Severity)>;

/// A value and where it is written: its byte range in its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written<T> {
    /// The value.
    pub value: T,
    /// Where it is.
    pub span: Range<usize>,
}
/// The least confidence of what the selectors stand for; the last match wins.
pub type Confidences = Vec<(Selector, Confidence)>;

/// What one file says. `None` and empty: it does not say.
#[derive(Clone, Default, Debug)]
pub struct Layer {
    /// The file; `None`: the command line.
    pub file: Option<PathBuf>,
    /// The file that counts below this one.
    pub extend: Option<Written<PathBuf>>,
    /// `select`, `extend-select` and `ignore`.
    pub selection: Selection,
    /// Instead of the built-in excludes.
    pub exclude: Option<Patterns>,
    /// Besides them.
    pub extend_exclude: Patterns,
    /// Do excludes count for files that are named on the command line?
    pub force_exclude: Option<bool>,
    /// Rules that are off in files that match.
    pub per_file_ignores: Vec<PerFileIgnore>,
    /// Severities.
    pub severity: Severities,
    /// Rules whose severity is `off`.
    pub off: Vec<Selector>,
    /// The least confidence at which findings of some rules are told.
    pub confidence: Confidences,
    /// The same of all other rules.
    pub min_confidence: Option<Confidence>,
    /// Must everything be checked that is asked for?
    pub strict: Option<bool>,
    /// The least severity that makes the exit code 1.
    pub fail_on_severity: Option<Severity>,
    /// The file of the findings that are accepted, relative to this configuration's.
    pub baseline: Option<Written<PathBuf>>,
    /// Are fixes applied?
    pub fix: Option<bool>,
    /// Those too that may change what the program means?
    pub unsafe_fixes: Option<bool>,
    /// The rules whose fixes are offered.
    pub fixable: Option<Vec<Selector>>,
    /// Rules whose fixes are not.
    pub unfixable: Vec<Selector>,
    /// Bytes.
    pub oom_threshold: Option<u64>,
    /// Bytes.
    pub max_accelerator_memory: Option<u64>,
}

/// An entry of `per-file-ignores`.
#[derive(Clone, Debug)]
pub struct PerFileIgnore {
    /// The glob as written.
    pub glob: String,
    pattern: Patterns,
    /// The glob started with `!`: all files but those.
    negated: bool,
    /// The rules that are off there.
    pub rules: Vec<Selector>,
}

impl PerFileIgnore {
    /// Is it about the file with this absolute path?
    pub fn matches(&self, path: &Path) -> bool {
        self.pattern.matches(path) != self.negated
    }
}

type Result<T> = std::result::Result<T, ConfigError>;
type Value<'a> = Spanned<DeValue<'a>>;

/// Reads a configuration file's text. `pyproject`: the keys are in `[tool.samedevice]`; without that table,
/// there is no layer. Relative globs start at `root`.
///
/// # Errors
/// The first mistake, with its span, but not yet with its file.
pub fn parse(text: &str, pyproject: bool, root: &Path, pages: &[Page]) -> Result<Option<Layer>> {
    let document = DeTable::parse(text).map_err(|error| {
        let mistake = ConfigError::new(format!("not TOML: {}", error.message()));
        match error.span() {
            Some(span) => mistake.at(span),
            None => mistake,
        }
    })?;
    let mut table = document.get_ref();
    if pyproject {
        for key in ["tool", "samedevice"] {
            let Some(value) = table.get(key) else { return Ok(None) };
            table = table_of(value, key)?;
        }
    }
    Reader { root, pages }.layer(table).map(Some)
}

struct Reader<'a> {
    root: &'a Path,
    pages: &'a [Page],
}

impl Reader<'_> {
    fn layer(&self, table: &DeTable<'_>) -> Result<Layer> {
        let mut layer = Layer::default();
        for (name, value) in table {
            let text = name.get_ref().as_ref();
            let key = keys::find(text).ok_or_else(|| unknown_key(text).at(name.span()))?;
            self.store(key, value, &mut layer)?;
        }
        Ok(layer)
    }

    /// Reads the value of a key.
    fn store(&self, key: &Key, value: &Value<'_>, layer: &mut Layer) -> Result<()> {
        let name = key.name;
        match key.kind {
            Kind::Flag(set) => set(layer, flag(value, name)?),
            Kind::Path(set) => {
                let path = value.get_ref().as_str().filter(|path| !path.is_empty());
                let path = path.ok_or_else(|| mistyped(value, name, "the path of a file"))?;
                set(layer, Written { value: path.into(), span: value.span() });
            }
            Kind::Rules(set) => set(layer, self.selectors(value, name)?),
            Kind::Globs(set) => set(layer, self.patterns(value, name)?),
            Kind::Level(set) => {
                let word = value.get_ref().as_str();
                let level = word.and_then(level).ok_or_else(|| {
                    let suggestion = word.and_then(|word| meant(word, &LEVELS[..3]));
                    mistyped(value, name, key.kind.in_words()).help(did_you_mean(suggestion))
                })?;
                set(layer, level);
            }
            Kind::Confidence(set) => set(layer, confidence(value, name)?),
            Kind::ConfidenceByRule(set) => set(layer, self.confidence(value)?),
            Kind::Bytes(set) => set(layer, bytes(value, name)?),
            Kind::RulesByGlob(set) => set(layer, self.per_file_ignores(value, name)?),
            Kind::LevelByRule(set) => {
                let (severity, off) = self.severity(value, name)?;
                set(layer, severity, off);
            }
        }
        Ok(())
    }

    fn selectors(&self, value: &Value<'_>, key: &str) -> Result<Vec<Selector>> {
        strings(value, key, "a list of rules, such as `[\"SD101\", \"SD2\"]`")?
            .into_iter()
            .map(|(text, span)| self.selector(text, span))
            .collect()
    }

    fn selector(&self, text: &str, span: Range<usize>) -> Result<Selector> {
        Selector::parse(text, self.pages).map_err(|unknown| unknown_rule(&unknown).at(span))
    }

    fn patterns(&self, value: &Value<'_>, key: &str) -> Result<Patterns> {
        let (texts, spans): (Vec<_>, Vec<_>) =
            strings(value, key, "a list of globs, such as `[\"third_party\"]`")?.into_iter().unzip();
        Patterns::new(self.root, &texts).map_err(|bad| {
            let span = spans.get(bad.index).cloned().unwrap_or_else(|| value.span());
            ConfigError::new(format!("malformed glob: {}", bad.reason)).at(span)
        })
    }

    fn per_file_ignores(&self, value: &Value<'_>, key: &str) -> Result<Vec<PerFileIgnore>> {
        let one = |(glob, rules): (&Spanned<DeString<'_>>, &Value<'_>)| {
            let text = glob.get_ref().as_ref();
            let (negated, bare) = text.strip_prefix('!').map_or((false, text), |bare| (true, bare));
            let pattern = Patterns::new(self.root, &[bare])
                .map_err(|bad| ConfigError::new(format!("malformed glob: {}", bad.reason)).at(glob.span()))?;
            let rules = self.selectors(rules, text)?;
            Ok(PerFileIgnore { glob: text.to_owned(), pattern, negated, rules })
        };
        table_of(value, key)?.iter().map(one).collect()
    }

    /// The least confidence of some rules, the least specific selector first.
    fn confidence(&self, value: &Value<'_>) -> Result<Confidences> {
        let one = |(rule, level): (&Spanned<DeString<'_>>, &Value<'_>)| {
            Ok((self.selector(rule.get_ref(), rule.span())?, confidence(level, rule.get_ref())?))
        };
        let mut levels: Confidences =
            table_of(value, "confidence")?.iter().map(one).collect::<Result<_>>()?;
        levels.sort_by_key(|(selector, _)| selector.specificity());
        Ok(levels)
    }

    /// The severities, the least specific selector first, and the selectors that are `off`.
    fn severity(&self, value: &Value<'_>, key: &str) -> Result<(Severities, Vec<Selector>)> {
        let (mut severities, mut off) = (Vec::new(), Vec::new());
        for (rule, level) in table_of(value, key)? {
            let selector = self.selector(rule.get_ref(), rule.span())?;
            let word = level.get_ref().as_str();
            match (word.and_then(self::level), word) {
                (Some(level), _) => severities.push((selector, level)),
                (None, Some("off")) => off.push(selector),
                _ => {
                    let expected = "\"error\", \"warning\", \"info\" or \"off\"";
                    let suggestion = word.and_then(|word| meant(word, &LEVELS));
                    return Err(mistyped(level, rule.get_ref(), expected).help(did_you_mean(suggestion)));
                }
            }
        }
        severities.sort_by_key(|(selector, _)| selector.specificity());
        Ok((severities, off))
    }
}

/// The name of a confidence.
fn confidence(value: &Value<'_>, key: &str) -> Result<Confidence> {
    let word = value.get_ref().as_str();
    let known = Confidence::ALL.into_iter().find(|level| Some(level.name()) == word);
    known.ok_or_else(|| {
        let suggestion = word.and_then(|word| closest(word, Confidence::ALL.map(Confidence::name)));
        mistyped(value, key, "\"low\", \"likely\" or \"certain\"").help(did_you_mean(suggestion))
    })
}

fn level(word: &str) -> Option<Severity> {
    [Severity::Error, Severity::Warning, Severity::Info].into_iter().find(|level| level.name() == word)
}

/// The level that was probably meant.
fn meant<'a>(word: &str, levels: &[&'a str]) -> Option<&'a str> {
    let word = if word == "warn" { "warning" } else { word };
    closest(word, levels.iter().copied())
}

fn flag(value: &Value<'_>, key: &str) -> Result<bool> {
    value.get_ref().as_bool().ok_or_else(|| mistyped(value, key, "`true` or `false`"))
}

/// The error about a rule that does not exist, without its place.
pub fn unknown_rule(unknown: &UnknownRule) -> ConfigError {
    let help = did_you_mean(unknown.suggestion.as_deref());
    let help = help.or_else(|| Some("`samedevice rule` lists all rules".to_owned()));
    ConfigError::new(format!("unknown rule `{}`", unknown.text)).help(help)
}

/// The error about a key that does not exist, without its place.
pub fn unknown_key(text: &str) -> ConfigError {
    let help = did_you_mean(keys::meant(text)).unwrap_or_else(|| {
        let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        format!("the keys are {}", names.join(", "))
    });
    ConfigError::new(format!("unknown key `{text}`")).help(Some(help))
}

fn did_you_mean(suggestion: Option<&str>) -> Option<String> {
    suggestion.map(|suggestion| format!("did you mean `{suggestion}`?"))
}

fn mistyped(value: &Value<'_>, key: &str, expected: &str) -> ConfigError {
    let found = match value.get_ref() {
        DeValue::String(text) => format!("the string \"{text}\""),
        DeValue::Boolean(value) => format!("`{value}`"),
        DeValue::Integer(_) => "an integer".to_owned(),
        DeValue::Float(_) => "a float".to_owned(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    ConfigError::new(format!("`{key}` expects {expected}, not {found}")).at(value.span())
}

fn table_of<'a, 'i>(value: &'a Value<'i>, key: &str) -> Result<&'a DeTable<'i>> {
    value.get_ref().as_table().ok_or_else(|| mistyped(value, key, "a table"))
}

/// The elements of a list of strings, with their places.
fn strings<'a>(value: &'a Value<'_>, key: &str, expected: &str) -> Result<Vec<(&'a str, Range<usize>)>> {
    let list = value.get_ref().as_array().ok_or_else(|| mistyped(value, key, expected))?;
    let text = |element: &'a Value<'_>| {
        let text = element.get_ref().as_str().ok_or_else(|| mistyped(element, key, expected))?;
        Ok((text, element.span()))
    };
    list.iter().map(text).collect()
}

/// A number of bytes, or a string with a unit.
fn bytes(value: &Value<'_>, key: &str) -> Result<u64> {
    let number = match value.get_ref() {
        DeValue::Integer(number) => {
            match u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
                Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(u64::MAX),
                number => number.ok(),
            }
        }
        DeValue::String(text) => text.parse::<ByteSize>().ok().map(|size| size.as_u64()),
        _ => None,
    };
    match number {
        // What does not fit is cut down to this.
        Some(u64::MAX) => Err(ConfigError::new(format!("`{key}` is too large: it must be less than 16 EiB"))
            .help(Some("write a size such as \"1GiB\"".to_owned()))
            .at(value.span())),
        Some(number) => Ok(number),
        None => Err(mistyped(value, key, "a number of bytes, such as `1073741824` or \"1GiB\"")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Layer, parse};
    use crate::config::sample::pages;
    use crate::finding::Severity;

    fn read(text: &str) -> Result<Layer, String> {
        match parse(text, false, Path::new("/p"), pages()) {
            Ok(layer) => Ok(layer.unwrap_or_default()),
            Err(error) => {
                let help =
                    miette::Diagnostic::help(&error).map_or(String::new(), |help| format!(" ({help})"));
                Err(format!("{error}{help}"))
            }
        }
    }

    fn mistake(text: &str) -> String {
        read(text).err().unwrap_or_else(|| "none".to_owned())
    }

    #[test]
    fn every_key_is_read() {
        let layer = read(
            "select = ['SD1']\nextend-select = ['SD307']\nignore = ['unguarded-cuda']\n\
             exclude = ['a']\nextend-exclude = ['b/*']\nforce-exclude = true\n\
             baseline = 'known.json'\nstrict = true\nfail-on-severity = 'error'\n\
             oom-threshold = '1.5 GiB'\nmax-accelerator-memory = 0x10\n\
             [severity]\nSD101 = 'info'\nALL = 'warning'\nSD2 = 'off'\n\
             [per-file-ignores]\n'tests/*' = ['SD1']\n'!src/*' = ['ALL']\n",
        )
        .expect("valid");
        assert_eq!((layer.selection.ignore.len(), layer.off.len()), (1, 1));
        assert_eq!(layer.severity[1].1, Severity::Info, "the more specific comes last");
        assert_eq!((layer.oom_threshold, layer.max_accelerator_memory), (Some(3 << 29), Some(16)));
        assert_eq!((layer.force_exclude, layer.strict), (Some(true), Some(true)));
        assert_eq!(layer.baseline.map(|path| path.value), Some("known.json".into()));
        assert_eq!(layer.fail_on_severity, Some(Severity::Error));
        let in_tests = |at: usize| layer.per_file_ignores[at].matches(Path::new("/p/tests/x.py"));
        assert!(in_tests(0) && in_tests(1));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        assert_eq!(mistake("selct = []"), "unknown key `selct` (did you mean `select`?)");
        assert_eq!(
            mistake("oom_threshold = 1"),
            "unknown key `oom_threshold` (did you mean `oom-threshold`?)"
        );
        assert!(mistake("line-length = 1").contains("the keys are extend, select, "));
        assert!(mistake("select = 'SD101'").starts_with("`select` expects a list of rules"));
        assert!(mistake("ignore = [1]").ends_with("not an integer"));
        assert_eq!(
            mistake("ignore = ['unguarded-cud']"),
            "unknown rule `unguarded-cud` (did you mean `unguarded-cuda`?)"
        );
        assert!(mistake("[severity]\nSD101 = 'warn'").ends_with("(did you mean `warning`?)"));
        assert!(mistake("fail-on-severity = 'warn'").ends_with("(did you mean `warning`?)"));
        assert!(mistake("fail-on-severity = 'off'").contains("expects \"error\", \"warning\" or \"info\""));
        assert!(mistake("strict = 1").contains("`true` or `false`"));
        assert!(mistake("oom-threshold = '1 parsec'").contains("not the string \"1 parsec\""));
        assert!(mistake("oom-threshold = -1").contains("a number of bytes"));
        for size in ["'99999999999999999999GiB'", "99999999999999999999"] {
            let mistake = mistake(&format!("oom-threshold = {size}"));
            assert!(mistake.starts_with("`oom-threshold` is too large: "), "{mistake}");
        }
        assert!(mistake("exclude = ['[']").starts_with("malformed glob"));
        assert!(mistake("select = [").starts_with("not TOML: "));
        assert!(mistake("per-file-ignores = 3").contains("expects a table"));
    }

    #[test]
    fn a_pyproject_without_our_table_is_no_configuration() {
        let read = |text| parse(text, true, Path::new("/p"), pages());
        assert!(matches!(read("[tool.ruff]\nselct = 1"), Ok(None)));
        assert!(matches!(read("[tool.samedevice]"), Ok(Some(_))));
        assert!(read("[tool]\nsamedevice = 1").is_err());
    }
}
