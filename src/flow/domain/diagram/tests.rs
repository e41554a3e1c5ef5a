use super::*;
use crate::flow::domain::atom::gpus_at_least;

#[test]
fn more_gpus_imply_fewer() {
    let mut d = Diagrams::default();
    let (one, two) = (d.atom(gpus_at_least(1)), d.atom(gpus_at_least(2)));
    assert!(d.implies(two, one));
    assert!(!d.implies(one, two));
    let none = d.not(one);
    assert_eq!(d.and(none, two), FALSE);
    let not_two = d.not(two);
    assert_ne!(d.and(one, not_two), FALSE);
}

#[test]
fn what_is_given_needs_no_telling() {
    let mut d = Diagrams::default();
    let (a, b, one) = (d.atom(AtomId(20)), d.atom(AtomId(21)), d.atom(gpus_at_least(1)));
    for care in [a, b, one] {
        for c in [a, b, one] {
            let both = d.and(care, c);
            let simple = d.given(both, care);
            assert_eq!(d.and(simple, care), both);
            assert!(d.paths(simple) <= d.paths(both));
        }
    }
    let both = d.and(a, b);
    assert_eq!(d.given(both, a), b);
}

#[test]
fn conditions_obey_boolean_laws() {
    let mut d = Diagrams::default();
    let atoms: Vec<Cond> = [1, 2, 20, 21, 22].map(|i| d.atom(AtomId(i))).to_vec();
    for &a in &atoms {
        for &b in &atoms {
            let (ab, ba) = (d.and(a, b), d.and(b, a));
            assert_eq!(ab, ba);
            let (na, nb) = (d.not(a), d.not(b));
            let (nab, n_or) = (d.not(ab), d.or(na, nb));
            assert!(d.implies(nab, n_or) && d.implies(n_or, nab), "De Morgan");
            assert_eq!(d.not(na), a);
        }
    }
}

#[test]
fn correlated_choices_stay_correlated() {
    let mut d = Diagrams::default();
    let c = d.atom(AtomId(20));
    let (x, y) = (d.leaf(10), d.leaf(11));
    let a = d.ite(c, x, y).unwrap_or(x);
    let b = d.ite(c, x, y).unwrap_or(y);
    let differ = d.zip(a, b, &mut |p, q| u32::from(p != q));
    assert_eq!(differ, Some(FALSE));
}

/// A path with too many conditions keeps the one that a value depends on.
#[test]
fn what_values_hang_on_stays_past_the_bound() {
    let mut d = Diagrams::default();
    let chosen = d.atom(AtomId(20));
    let (x, y) = (d.leaf(10), d.leaf(11));
    let value = d.ite(chosen, x, y).unwrap_or(x);
    // Each "not both" of two atoms multiplies the number of paths.
    let mut path = chosen;
    for n in 0..6 {
        let (a, b) = (d.atom(AtomId(30 + 2 * n)), d.atom(AtomId(31 + 2 * n)));
        let both = d.and(a, b);
        let not_both = d.not(both);
        path = d.and(path, not_both);
        assert!(d.implies(path, chosen), "after {n}");
    }
    assert_eq!(d.given(value, path), x);
}

/// A path with so many alternatives that there is no room for the first condition.
fn crowded(d: &mut Diagrams, first: Cond, from: u32) -> Cond {
    let mut path = first;
    for n in 0..6 {
        let (a, b) = (d.atom(AtomId(from + 2 * n)), d.atom(AtomId(from + 2 * n + 1)));
        let either = d.or(a, b);
        path = d.and(path, either);
    }
    path
}

#[test]
fn what_a_path_has_no_room_for_is_remembered() {
    let mut d = Diagrams::default();
    let (first, other) = (AtomId(30), AtomId(31));
    let (a, b) = (d.atom(first), d.atom(other));
    let path = crowded(&mut d, a, 40);
    assert!(!d.implies(path, a), "there was room");
    assert!(d.lost_on(path).contains(&(first, true)));
    let further = d.and(path, b);
    assert!(d.lost_on(further).contains(&(first, true)));
}

#[test]
fn what_only_one_of_two_paths_said_is_not_certain_where_they_meet() {
    let mut d = Diagrams::default();
    let (first, other) = (AtomId(30), AtomId(31));
    let (a, b) = (d.atom(first), d.atom(other));
    let both = d.and(a, b);
    let with = crowded(&mut d, both, 40);
    let not_a = d.not(a);
    let without = crowded(&mut d, not_a, 60);
    assert!(d.lost_on(without).contains(&(first, false)));
    let met = d.or(with, without);
    assert!(!d.lost_on(met).iter().any(|&(atom, _)| atom == first || atom == other));
}
