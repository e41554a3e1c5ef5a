//! Which comments are found, and the lines that they cover.

use super::lowered;

/// The comments of a text, each with its place (`own` or `end`) and the text that it covers.
fn covers(text: &str) -> Vec<(&str, &str, &str)> {
    let comments = lowered(text).comments;
    comments
        .iter()
        .map(|c| (c.span.slice(text), if c.own_line { "own" } else { "end" }, c.covers.slice(text)))
        .collect()
}

#[test]
fn after_code_it_is_the_line() {
    assert_eq!(
        covers("a = 1\nb = f(x,  # noqa\n      y)  # NoQA: SD1\nc # other\n"),
        [("# noqa", "end", "b = f(x,  # noqa"), ("# NoQA: SD1", "end", "      y)  # NoQA: SD1")]
    );
}

#[test]
fn lines_that_cannot_have_comments_are_tied() {
    for tied in ["x = '''\n''' # noqa", "x = f'''\n{y}\n''' # noqa", "x = y + \\\n  z # noqa"] {
        let text = format!("a\n{tied}\nb\n");
        assert_eq!(covers(&text)[0].2, tied);
    }
    assert_eq!(covers("f(\n  '''\n''', # noqa\n)")[0].2, "  '''\n''', # noqa");
}

#[test]
fn alone_it_is_the_next_logical_line() {
    let all = "# samedevice: ignore\n\n# other\nx = f(\n  y, # why\n) # end\nz\n";
    assert_eq!(covers(all), [("# samedevice: ignore", "own", "x = f(\n  y, # why\n) # end")]);
    let header = "if a:\n    # SameDevice: ignore\n    while (b\n      ): # c\n        pass\n";
    assert_eq!(covers(header)[0].2, "    while (b\n      ): # c");
    assert_eq!(covers("if a:\n    b\n  # noqa\nc; d\ne\n")[0].2, "c; d");
    assert_eq!(covers("# noqa\n# noqa\nx\n"), [("# noqa", "own", "x"), ("# noqa", "own", "x")]);
    assert_eq!(covers("x\n# noqa"), [("# noqa", "own", "# noqa")]);
}

#[test]
fn alone_in_brackets_it_is_the_next_line() {
    assert_eq!(covers("f(\n  # noqa\n  a,\n  b)\n")[0].2, "  a,");
}

#[test]
fn other_line_ends_and_broken_code_are_fine() {
    assert_eq!(covers("x # noqa\r\ny\r\n")[0], ("# noqa", "end", "x # noqa"));
    assert_eq!(covers("x\ry # noqa\rz")[0], ("# noqa", "end", "y # noqa"));
    assert_eq!(covers("x = (\n# noqa\ndef f(): pass\n")[0].2, "def f(): pass");
}
