//! The flows that lead to a finding, as steps in execution order.

use std::cmp::Reverse;

use crate::finding::{Finding, Label, Role};

/// The flows to the finding and to its consequences, each from its first step to its last. Empty if there is only one place.
///
/// If the finding's order does not contain a call, that call leads to a cause with several callers, and has a flow of its own. If no order
/// is known, places in other files come first, and places in the finding's file are in the order of the text.
pub(super) fn ways(finding: &Finding) -> Vec<Vec<&Label>> {
    let mut steps: Vec<&Label> = vec![&finding.primary];
    for label in finding.related.iter().filter(|label| label.role == Role::Flow) {
        if steps.iter().all(|step| step.place != label.place) {
            steps.push(label);
        }
    }
    let file = finding.primary.place.file;
    if finding.order.is_empty() {
        // The parts of an expression are evaluated before the expression.
        steps.sort_by_key(|label| {
            let Label { place, .. } = label;
            (place.file == file).then_some((place.span.end, Reverse(place.span.start)))
        });
        return if steps.len() > 1 { vec![steps] } else { Vec::new() };
    }
    let at = |label: &Label| finding.order.iter().position(|place| *place == label.place);
    let calls: Vec<&Label> =
        steps.iter().copied().filter(|label| label.is_call() && at(label).is_none()).collect();
    steps.retain(|label| at(label).is_some());
    steps.sort_by_key(|label| at(label));
    let here: Vec<&Label> =
        steps.iter().copied().filter(|label| label.place.file == file && !label.is_call()).collect();
    let mut ways: Vec<Vec<&Label>> = Vec::new();
    if steps.len() > 1 {
        ways.push(steps);
    }
    ways.extend(calls.into_iter().map(|call| [vec![call], here.clone()].concat()));
    ways
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

    fn finding(primary: Label, related: Vec<Label>, order: Vec<Place>) -> Finding {
        Finding { related, order, ..Finding::new(Code(201), World::Cuda, "m", primary) }
    }

    fn shown(finding: &Finding) -> Vec<Vec<(u32, u32)>> {
        let step = |label: &&Label| (label.place.file.0, label.place.span.start);
        ways(finding).iter().map(|way| way.iter().map(step).collect()).collect()
    }

    #[test]
    fn what_is_made_elsewhere_comes_before_its_use() {
        let meets = Label::new(place(0, 30), "meets");
        let related = vec![Label::new(place(0, 10), "moved"), Label::new(place(1, 5), "made")];
        assert_eq!(shown(&finding(meets.clone(), related, Vec::new())), [[(1, 5), (0, 10), (0, 30)]]);
        assert!(shown(&finding(meets, Vec::new(), Vec::new())).is_empty());
    }

    #[test]
    fn the_order_is_that_of_the_program() {
        let related = vec![
            Label::new(place(2, 5), "raises"),
            Label::call(place(1, 7)),
            Label::new(place(0, 3), "made"),
        ];
        let order = vec![place(0, 3), place(0, 30), place(1, 7), place(2, 5)];
        let found = finding(Label::call(place(0, 30)), related, order);
        assert_eq!(shown(&found), [[(0, 3), (0, 30), (1, 7), (2, 5)]]);
    }

    #[test]
    fn several_calls_to_one_cause_are_several_ways() {
        let related = vec![Label::call(place(1, 7)), Label::call(place(2, 5))];
        let order = vec![place(1, 7), place(0, 3)];
        let found = finding(Label::new(place(0, 3), "reached from 2 places"), related, order);
        assert_eq!(shown(&found), [[(1, 7), (0, 3)], [(2, 5), (0, 3)]]);
    }

    #[test]
    fn other_places_of_the_cause_are_no_steps() {
        let role = Role::Repeated { through: Vec::new() };
        let again = Label { role, ..Label::new(place(0, 9), "needs it, too") };
        assert!(shown(&finding(Label::new(place(0, 3), "here"), vec![again], Vec::new())).is_empty());
    }
}
