//! Unreachable statements.

use super::ir;

#[test]
fn what_comes_after_the_end_of_a_block_is_left_out() {
    let ir = ir("\
def f(xs):
    for x in xs:
        if x:
            continue
            lost(x)
        elif h:
            raise x
        else:
            return x
        lost(x)
    kept(xs)
    return xs
    y = lost
");
    assert_eq!((ir.matches("lost").count(), ir.matches("kept").count()), (0, 1), "{ir}");
}

#[test]
fn what_may_be_reached_stays_and_so_does_what_makes_a_generator() {
    let ir = ir("\
def f(x):
    if x:
        return x
    elif kept(x):
        raise x
    kept(x)
    while x:
        break
    kept(x)
    return x
def none():
    return
    yield kept
raise SystemExit
kept(f)
");
    assert_eq!(ir.matches("kept").count(), 5, "{ir}");
    assert!(ir.contains("generator"), "{ir}");
}
