//! The results of all constructs, and what is left of broken ones.

use insta::assert_snapshot;

use super::{dump, ir, lowered};
use crate::ir::{CallId, FuncId};
use crate::lower::{Kind, lower};
use crate::span::FileId;

#[test]
fn expressions() {
    assert_snapshot!(ir(r#"
a < b <= c
a == b
not -a ** b @ c
a if b else c
"cuda" ":" '0', b"x", 1j, 1.5, 12345678901234567890, ...
f"cuda:{i}" "x{" f"{j!r:>3}{k=}{l:{m}}"
a[1:2, ::3, b:]
f(*a, k=1, *b, **c)
{1: 2, **d}, {1, *e}
a and b or c and not d
x = y = (z, *w)
a: int = 1
print >>x, y
(yield), (yield from a), await b
lambda x, *y, k=z, **w: x
"#), @r#"
    and((a.2 Lt b?), (b? LtE c?))
    (a.2 Eq b?)
    (Not ((Neg (a.2 Pow b?)) MatMul c?))
    (a.2 if b? else c?)
    ("cuda:0", opaque(), imaginary, 1.5, opaque(), ...)
    f("cuda:", i?, "x{", j?, opaque(k?), opaque(l?, m?))
    a.2[(slice(1, 2), slice(3), slice(b?))]
    f?(*a.2, k=1, *b?, **c?)
    (dict(1, 2, *d?, d?), {1, *e?})
    or(and(a.2, b?), and(c?, (Not d?)))
    x.0 = y.1 = (z?, *w?)
    a.2: int? = 1
    ((print? RShift x.0), y.1)
    ((yield None), (yield from a.2), await b?)
    (lambda x.0, *y.1, kw k.2 = z?, **w.3: return x.0)
    "#);
}

#[test]
fn statements() {
    assert_snapshot!(ir(r#"
"""Docstring."""
if a: b
elif c: d
else: e
while a:
    break
else: b
async def f():
    async with a as b: continue
    async for c in d: return
    return 1
try: a
except (A, B) as e : b
except: c
else: d
finally: e
raise a from b
assert a, b
del a[0], b.c
"#), @r#"
    if a?
      b?
    else
      if c?
        d?
      else
        e.1
    while a?
      break
    else
      b?
    def f.0() f1 async
      with a? as b.0
        continue
      for c.1 in d?
        return -
      return 1
    try
      a?
    except (A?, B?) as e.1 167..187
      b?
    except - as - 190..197
      c?
    else
      d?
    finally
      e.1
    raise a? from b?
    assert a?, b?
    del a?[0], b?.c
    "#);
}

#[test]
fn a_long_literal_is_not_kept() {
    let text = "y".repeat(200);
    assert_eq!(ir(&format!("x = '{text}'")), format!("x.0 = {text:?}\n"));
    assert_eq!(ir(&format!("x = '{text}y'")), "x.0 = opaque()\n");
}

#[test]
fn spans_are_those_of_the_source() {
    let text = "@d\ndef f(a, *b): return g(a, k=b)\nclass C(B): pass\n";
    let module = lowered(text).module;
    let f = module.function(FuncId(1));
    assert_eq!(f.span.slice(text), "@d\ndef f(a, *b): return g(a, k=b)");
    assert_eq!((f.name_span.slice(text), f.params[1].span.slice(text)), ("f", "b"));
    let call = module.call(CallId(0));
    assert_eq!(call.paren.slice(text), "(a, k=b)");
    assert_eq!(call.args[1].span.slice(text), "k=b");
    assert_eq!(module.classes[0].name_span.slice(text), "C");
    assert_eq!(module.args(module.classes[0].bases)[0].span.slice(text), "B");
}

#[test]
fn every_import_is_listed() {
    let module = lowered("import a.b\ndef f():\n    from .. import c\n").module;
    let imports: Vec<_> =
        module.imports.iter().map(|i| (i.level, i.module.as_str(), i.name.is_some(), i.top)).collect();
    assert_eq!(imports, [(0, "a.b", false, true), (2, "", true, false)]);
}

fn broken(text: &str) -> String {
    let lowered = lowered(text);
    let errors = lowered.errors.iter().map(|e| format!("{}..{} {}\n", e.span.start, e.span.end, e.message));
    errors.collect::<String>() + &dump(&lowered.module)
}

#[test]
fn a_broken_function_keeps_the_others() {
    assert_snapshot!(broken("\
def f(x):
    return g(x

def g(x):
    return x.

def h(x:
    y =

z = h(1)
"), @r#"
    24..25 Expected `)`, found newline
    49..50 Expected an identifier
    71..72 Expected `,`, found `=`
    73..74 Parameter without a default cannot follow a parameter with a default
    74..75 Expected `)`, found `(`
    def f.0(x.0) f1
      return g!1(x.0)
    def g.1(x.0) f2
      return opaque(x.0)
    def h.2(x.0: y? = z?, h.1) f3
      1
    "#);
}

#[test]
fn a_raise_may_end_in_a_semicolon() {
    let text = "try:\n    f()\nexcept E:\n    raise ;\nif a: raise; x\nraise \\\n;\n";
    let lowered = lowered(text);
    assert_eq!(lowered.errors, []);
    assert_eq!(dump(&lowered.module).matches("raise - from -").count(), 3, "{}", dump(&lowered.module));
    assert_eq!(super::lowered("x = raise;\n").errors.len(), 1);
}

#[test]
fn many_errors_are_cut() {
    assert_eq!(lowered(&"x y\n".repeat(1_000)).errors.len(), 100);
}

#[test]
fn a_notebook_has_commands() {
    let lowered = lower(FileId(0), "%cd x\ny = 1\n!ls\n", Kind::Notebook(&[]));
    assert_eq!(lowered.errors, []);
    assert_eq!(dump(&lowered.module), "pass\ny.0 = 1\npass\n");
}
