//! The ways that lead to a finding, as steps in the order in which they happen.

use std::cmp::Reverse;

use crate::finding::{Finding, Label, Role};

/// The ways to the finding and what follows from them, each from its first step to the last; none if there is but one place.
///
/// What is in one file happens in the order of its text, loops aside. Of what is in other files: what a call of this file leads
/// to comes after it; without such a call it is where something comes from that is used here, and comes before. Calls in other
/// files that lead here are told of a cause that several of them reach: each is a way of its own.
pub(super) fn ways(finding: &Finding) -> Vec<Vec<&Label>> {
    let file = finding.primary.place.file;
    let mut steps: Vec<&Label> = vec![&finding.primary];
    for label in finding.related.iter().filter(|label| label.role == Role::Flow) {
        if steps.iter().all(|step| step.place != label.place) {
            steps.push(label);
        }
    }
    if steps.len() < 2 {
        return Vec::new();
    }
    let (mut own, others): (Vec<&Label>, Vec<&Label>) =
        steps.into_iter().partition(|label| label.place.file == file);
    // What is within an expression is worked out before it.
    own.sort_by_key(|label| (label.place.span.end, Reverse(label.place.span.start)));
    let (mut calls, others): (Vec<&Label>, Vec<&Label>) =
        others.into_iter().partition(|label| label.is_call());
    // They are told from the inside to the outside.
    calls.reverse();
    if own.iter().any(|label| label.is_call()) {
        return vec![[own, calls, others].concat()];
    }
    if calls.is_empty() {
        return vec![[others, own].concat()];
    }
    calls.into_iter().rev().map(|call| [vec![call], others.clone(), own.clone()].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::ways;
    use crate::finding::{Code, Finding, Label, Role};
    use crate::span::{FileId, Place, Span};
    use crate::world::World;

    fn place(file: u32, at: u32) -> Place {
        Place { file: FileId(file), span: Span::new(at, at + 1) }
    }

    fn finding(primary: Label, related: Vec<Label>) -> Finding {
        Finding { related, ..Finding::new(Code(201), World::Cuda, "m", primary) }
    }

    fn shown(finding: &Finding) -> Vec<Vec<(u32, u32)>> {
        let step = |label: &&Label| (label.place.file.0, label.place.span.start);
        ways(finding).iter().map(|way| way.iter().map(step).collect()).collect()
    }

    #[test]
    fn what_is_made_elsewhere_comes_before_its_use() {
        let meets = Label::new(place(0, 30), "meets");
        let related = vec![Label::new(place(0, 10), "moved"), Label::new(place(1, 5), "made")];
        assert_eq!(shown(&finding(meets.clone(), related)), [[(1, 5), (0, 10), (0, 30)]]);
        assert!(shown(&finding(meets, Vec::new())).is_empty());
    }

    #[test]
    fn what_a_call_leads_to_comes_after_it() {
        let related = vec![
            Label::new(place(2, 5), "raises"),
            Label::call(place(1, 7)),
            Label::new(place(0, 3), "made"),
        ];
        let found = finding(Label::call(place(0, 30)), related);
        assert_eq!(shown(&found), [[(0, 3), (0, 30), (1, 7), (2, 5)]]);
    }

    #[test]
    fn several_calls_to_one_cause_are_several_ways() {
        let related = vec![Label::call(place(1, 7)), Label::call(place(2, 5))];
        let found = finding(Label::new(place(0, 3), "reached from 2 places"), related);
        assert_eq!(shown(&found), [[(1, 7), (0, 3)], [(2, 5), (0, 3)]]);
    }

    #[test]
    fn other_places_of_the_cause_are_no_steps() {
        let role = Role::Repeated { through: Vec::new() };
        let again = Label { role, ..Label::new(place(0, 9), "needs it, too") };
        assert!(shown(&finding(Label::new(place(0, 3), "here"), vec![again])).is_empty());
    }
}
