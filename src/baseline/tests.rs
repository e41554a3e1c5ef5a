use super::*;
use crate::report::fingerprint::Fingerprint;

/// A finding of SD101 with this name as its identity.
fn told(name: &str) -> Told {
    let fingerprint: Fingerprint = format!("{:016x}", name.len()).parse().expect("a fingerprint");
    let identity = Identity { path: format!("{name}.py"), rule: Code(101), fingerprint };
    Told { identity, marked: name.to_owned(), reached_from: Vec::new() }
}

fn made_of(all: &[Told]) -> Baseline {
    let mut baseline = Baseline::default();
    all.iter().for_each(|one| baseline.add(one));
    baseline
}

/// A run that has checked these files.
struct Files(&'static [&'static str]);

impl Looked for Files {
    fn is_checked(&self, path: &str, _: Code) -> bool {
        self.0.contains(&path)
    }
}

const ALL: Files = Files(&["a.py", "bb.py", "ccc.py"]);

#[test]
fn of_equal_findings_the_number_counts() {
    let baseline = made_of(&[told("a"), told("a"), told("bb")]);
    let difference = baseline.compare([told("a"), told("a"), told("a"), told("ccc")].iter(), &ALL);
    assert_eq!(difference.known, [true, true, false, false]);
    assert_eq!(
        difference.stale.iter().map(|s| (s.marked.as_str(), s.count)).collect::<Vec<_>>(),
        [("bb", 1)]
    );
    let difference = baseline.compare([told("a"), told("bb")].iter(), &ALL);
    assert_eq!(difference.stale[0].count, 1);
    let mut baseline = baseline;
    baseline.remove(&difference.stale);
    assert_eq!(baseline, made_of(&[told("a"), told("bb")]));
}

#[test]
fn only_what_was_checked_can_be_stale() {
    let baseline = made_of(&[told("a")]);
    assert!(baseline.compare([].iter(), &Files(&["bb.py"])).stale.is_empty());
    // A finding that two other files lead to is only stale if both files were checked and neither leads there.
    let reached = Told { reached_from: vec!["bb.py".into(), "ccc.py".into()], ..told("a") };
    let baseline = made_of(&[reached]);
    assert!(baseline.compare([].iter(), &Files(&["a.py", "bb.py"])).stale.is_empty());
    assert_eq!(baseline.compare([].iter(), &Files(&["bb.py", "ccc.py"])).stale.len(), 1);
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("known.json");
    assert!(read(&path).expect("no mistake").is_none());
    for baseline in [Baseline::default(), made_of(&[told("a"), told("a"), told("bb\"\u{e4}")])] {
        write(&path, &baseline).expect("a file");
        assert_eq!(read(&path).expect("a baseline"), Some(baseline));
    }
}

#[test]
fn mistakes_have_a_place_and_a_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("known.json");
    for (text, part) in [
        ("{\n  \"version\": 1", "at line 2"),
        ("{\"version\": 2, \"findings\": {}}", "its version is 2"),
        (
            "{\"version\": 1, \"findings\": {\"a.py\": [{\"code\": \"X1\", \"fingerprint\": \"0\", \"marked\": \"\"}]}}",
            "`X1`",
        ),
        ("[]", "`"),
    ] {
        std::fs::write(&path, text).expect("a file");
        let message = read(&path).expect_err(text).to_string();
        assert!(message.contains(part) && message.contains("--update-baseline"), "{message}");
    }
}
