//! Nothing panics or overflows the stack.

use std::thread;

use crate::lower::nesting::PARSER_LEVELS;
use crate::lower::{Kind, MAX_LEVELS, STACK_BYTES, lower};
use crate::span::FileId;
use crate::work::take;

/// Lowers on a thread like the program. Returns the messages of errors and of parts left out, and the number of statements.
fn run(text: String) -> (Vec<String>, usize) {
    let body = move || {
        let lowered = lower(FileId(0), &text, Kind::Script);
        let _ = lower(FileId(0), &text, Kind::Notebook(&[]));
        let left_out = lowered.left_out.into_iter().map(|l| l.message);
        let messages = lowered.errors.into_iter().map(|e| e.message).chain(left_out).collect();
        (messages, lowered.module.stmts.len())
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
    thread.ok().and_then(|t| t.join().ok()).unwrap_or_else(|| (vec!["panic".to_owned()], usize::MAX))
}

/// Asserts that the statement is left out.
fn refused(what: &str, text: String) {
    let (errors, stmts) = run(text);
    assert_eq!(errors, ["nested too deeply to be checked (more than 2000 levels)"], "{what}");
    // Branches and blocks stay up to the maximum depth.
    assert!(stmts <= 2 * MAX_LEVELS as usize, "{what}: {stmts}");
}

/// `n` nested blocks, one space more each.
fn blocks(n: usize) -> String {
    let mut text = String::new();
    for i in 0..n {
        text.extend(std::iter::repeat_n(' ', i));
        text.push_str("if x:\n");
    }
    text.extend(std::iter::repeat_n(' ', n));
    text.push_str("pass\n");
    text
}

fn nested_f_strings(n: usize) -> String {
    format!("x = {}1{}", "f'{".repeat(n), "}'".repeat(n))
}

#[test]
fn deep_nesting_is_refused() {
    let n = 100_000;
    for (what, open) in [
        ("parentheses", "("),
        ("brackets", "["),
        ("braces", "{"),
        ("calls", "f(f["),
        ("not", "not "),
        ("minus", "-"),
        ("lambda", "lambda: "),
        ("lambda default", "lambda x="),
        ("await", "await "),
        ("power", "a**"),
        ("sum", "a+"),
        ("attributes", "a."),
        ("ternary", "a if b else "),
        ("middle of ternary", "a if (b) else "),
        ("left of ternary", "(a) if "),
        ("f-strings", "f'{"),
        ("f-strings in triple quotes", "f'''{f\"\"\"{"),
        ("formats", "f'{a:{"),
        ("star", "*"),
        ("walrus", "(a:="),
        ("subscript of call", "a[b(c)]."),
    ] {
        refused(what, format!("x = {}a\n", open.repeat(n)));
    }
    refused("many lambda defaults", format!("x = {}a\n", "lambda x=".repeat(10 * n)));
    refused("closed parentheses", format!("{}a{}", "(".repeat(n), ")".repeat(n)));
    refused("calls of calls", format!("f{}", "()".repeat(n)));
    refused("subscripts", format!("f{}", "[0]".repeat(n)));
    refused("chain on the left of each", format!("x = {}a{}", "(".repeat(3_000), "+a+a+a+a)".repeat(3_000)));
    refused("f-strings", nested_f_strings(n));
    refused("patterns", format!("match x:\n case {}a{}: pass", "[".repeat(n), "]".repeat(n)));
    refused("elif", format!("if a: b\n{}", "elif a: b\n".repeat(n)));
    refused("blocks", blocks(20_000));
}

#[test]
fn what_the_parser_takes_and_the_bound_does_not_is_refused_too() {
    for n in [MAX_LEVELS as usize + 1, 3_500, PARSER_LEVELS as usize * 9 / 10] {
        refused("parentheses", format!("x = {}a{}", "(f".repeat(n), ")".repeat(n)));
        refused("sum", format!("x = {}a", "a+".repeat(n)));
        refused("not", format!("x = {}a", "not ".repeat(n)));
        refused("lambda", format!("x = {}a", "lambda: ".repeat(n)));
        refused("ternary", format!("x = {}a", "a if b else ".repeat(n)));
        refused("power", format!("x = {}a", "a**".repeat(n)));
        refused("attributes", format!("x = a{}", ".a".repeat(n)));
        refused("walrus", format!("x = {}a{}", "(a:=".repeat(n), ")".repeat(n)));
        refused("elif", format!("if a: b\n{}", "elif a: b\n".repeat(n)));
        refused("blocks", blocks(n));
    }
    refused("f-strings", nested_f_strings(3_000));
    let (errors, stmts) = run(format!("x = {}a", "a+".repeat(1_900)));
    assert_eq!((errors, stmts), (Vec::new(), 1));
}

#[test]
fn deep_and_broken_is_no_worse() {
    // The maximum depth that the parser may reach.
    let n = PARSER_LEVELS as usize - 10;
    for open in [
        "(",
        "[",
        "{",
        "f(",
        "not ",
        "lambda:",
        "lambda x=",
        "f'{",
        "case (",
        "a if b else ",
        "(*",
        "await ",
        "(yield ",
    ] {
        let deep = open.repeat(n);
        for text in
            [deep.clone(), format!("match x:\n case {deep}"), format!("with {deep}"), format!("def f({deep}")]
        {
            assert_ne!(run(text).1, usize::MAX, "{open}");
        }
    }
}

#[test]
fn wide_is_fine() {
    let n = 100_000;
    for text in [
        format!("x = [{}]", "-1, ".repeat(n)),
        format!("x = [{}]", "f(a.b), ".repeat(n)),
        format!("x = {}a", "a and ".repeat(n)),
        format!("x = {}a", "a < ".repeat(n)),
        format!("x = {}''", "'' ".repeat(n)),
        format!("{}a", "a = ".repeat(9_000)),
        "x = a\n".repeat(n),
        format!("x = '{}'", "y".repeat(1_000_000)),
    ] {
        let (errors, stmts) = run(text);
        assert_eq!(errors, Vec::<String>::new());
        assert!(stmts > 0);
    }
}

#[test]
fn odd_bytes_are_fine() {
    for text in [
        "",
        "\0",
        "x = 1\0y = 2\n",
        "a = 1\rb = 2\r",
        "\x0c\x0cx = 1\n\x0c\x0cif x:\n\x0c  y\n",
        "\u{feff}x = 1",
        "\\",
        "\\\n",
        "x = '",
        "x = '''",
        "x = f'{",
        "x = f'{a!",
        "x = f'{a:",
        "\u{2028}",
        "é = '\u{10ffff}'",
        "\tif x:\n  y\n\tz\n",
        "if x:\n\ty\n        z\n",
        "@",
        "class",
        "def",
        "import",
        "from . import",
        "lambda",
        "match x:\n case",
        "global",
        "print >>x, y",
        "exec 'x'",
        "x = 0777",
        "`x`",
        "a <> b",
        "def f(a, a): pass",
        "def f(*, **k): pass",
        "del (), [], f()",
        "for f() in x: pass",
        "x: int: y",
        "[x for",
        "{**a, b: c for d in e}",
        "0x",
        "1e",
        "1_",
        "1__0",
        "99999999999999999999999999",
        "1e999",
        "'\\N{x}' '\\x'",
        "b'é'",
        "async x",
        "await",
        "%magic",
        "!ls",
        "?x",
        "x?",
        "import a..b",
        "from .. import (a",
        "except: pass",
        "elif x: pass",
        "f(**a, *b, c=1, c)",
        "with (a as b, c as d): pass",
        "nonlocal x",
        "return",
        "yield",
        "class A[T: int = str, *Ts, **P](B[T]): pass",
    ] {
        assert_ne!(run(text.to_owned()).1, usize::MAX, "{text:?}");
    }
}

#[test]
fn a_frame_has_room_for_so_many_names() {
    let text: String = (0..70_000).map(|i| format!("x{i} = 1\n")).collect();
    let (errors, stmts) = run(text);
    assert_eq!((errors, stmts), (Vec::new(), 70_000));
    let params: String = (0..70_000).map(|i| format!("x{i}, ")).collect();
    assert_eq!(run(format!("def f({params}): [x for x in x69999]\n")).0, Vec::<String>::new());
    assert_eq!(run("[x for x in y]\n".repeat(70_000)).1, 70_000);
}

/// The steps that lowering takes.
fn steps(text: String) -> u64 {
    let body = move || {
        take();
        let _ = lower(FileId(0), &text, Kind::Script);
        take()
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
    thread.ok().and_then(|t| t.join().ok()).expect("it does not panic")
}

#[test]
fn nothing_takes_the_square_of_the_length() {
    let names = |n: usize| -> String { (0..n).map(|i| format!("x{i}, ")).collect() };
    let shapes: [(&str, &dyn Fn(usize) -> String); 7] = [
        ("a comprehension's names", &|n| format!("y = [({0}) for ({0}) in z]\n", names(n))),
        ("a pattern's names", &|n| format!("match x:\n case [{}]: pass\n", names(n))),
        ("global names", &|n| format!("def f():\n global {0} z\n {0} z = y\n", names(n))),
        ("syntax errors", &|n| format!("try: pass\n{}", "except\n".repeat(n))),
        ("comments above nothing", &|n| "# noqa\n".repeat(n)),
        ("comments in brackets", &|n| format!("f({})", "# noqa\n".repeat(n))),
        ("comments behind strings", &|n| format!("x = f(\n{})", "'''\n''', # noqa\n".repeat(n))),
    ];
    for (name, shape) in shapes {
        let (once, twice) = (steps(shape(5_000)), steps(shape(10_000)));
        println!("{name}: {once} {twice}");
        assert!(twice * 2 <= once * 5, "{name}: {once} steps become {twice}");
        assert!(name == "syntax errors" || once >= 5_000, "{name}: what is counted is {once} steps");
    }
}
