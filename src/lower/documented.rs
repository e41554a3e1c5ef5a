//! Parameters that a docstring documents as tensors.
//!
//! Three common styles are read: `x (Tensor): …` of Google, `x : torch.Tensor` of NumPy, and `:param Tensor x:` or `:type x: Tensor` of
//! Sphinx. Sentences such as `x: input tensor of shape (N, C)` also count. A parameter that may also be a list or a text does not count,
//! nor does a tensor that is documented to be on the CPU.

use memchr::memmem;
use rustpython_ast::Stmt;

/// The end of all words for tensors.
const STEM: &[u8] = b"ensor";
/// Words for values without a device. If a parameter is a tensor or one of these, it is a tensor whenever it has a device.
const PLAIN: &[&str] = &[
    "none",
    "optional",
    "int",
    "float",
    "bool",
    "number",
    "scalar",
    "ndarray",
    "array",
    "np.ndarray",
    "numpy.ndarray",
];
/// Words for containers of tensors and for other things; and words for tensors that stay on the CPU.
const OTHER: &[&str] = &[
    "list",
    "lists",
    "tuple",
    "tuples",
    "dict",
    "dictionary",
    "sequence",
    "iterable",
    "iterator",
    "set",
    "tensors",
    "callable",
    "function",
    "str",
    "string",
    "path",
    "module",
    "cpu",
    "host",
];
/// Words that say that a tensor is on the CPU.
const HOST: &[&str] = &["cpu", "host", "numpy", "tf"];
/// Headings of sections that do not document the parameters.
const OTHERS: &[&str] = &[
    "return",
    "returns",
    "yields",
    "raises",
    "example",
    "examples",
    "attributes",
    "note",
    "notes",
    "references",
];
/// Words in sentences that mention a tensor, but whose subject is something else.
const ABOUT: &[&str] = &[
    "whether",
    "if",
    "type",
    "dtype",
    "device",
    "per",
    "each",
    "every",
    "size",
    "shape",
    "dimension",
    "number",
    "name",
    "not",
];
/// Words after which a sentence no longer names the thing itself.
const ENDS: &[&str] = &[
    " of ",
    " with ",
    " containing ",
    " that ",
    " which ",
    " for ",
    " to ",
    " in ",
    " from ",
    " where ",
    " representing ",
    " on ",
    " as ",
];
/// How many words of a sentence are searched for the word for a tensor.
const MOST_WORDS: usize = 4;

/// The docstring of the body, if it mentions tensors.
pub(super) fn docstring(body: &[Stmt]) -> Option<&str> {
    let Stmt::Expr(first) = body.first()? else { return None };
    let text = first.value.as_string_literal_expr()?.value.to_str();
    memmem::find(text.as_bytes(), STEM).is_some().then_some(text)
}

/// Does the docstring say that the parameter with this name is a tensor, if its value has a device at all?
pub(super) fn says_tensor(doc: &str, name: &str) -> bool {
    let mut lines = doc.lines().take_while(|line| !is_about_others(line)).peekable();
    while let Some(line) = lines.next() {
        let told = memmem::find(line.as_bytes(), STEM).is_some()
            && memmem::find(line.as_bytes(), name.as_bytes()).is_some()
            && line_says(line.trim(), name);
        // The rest of the line, or the next line, may say where the tensor must be.
        if told {
            let rest = lines.peek().copied().unwrap_or_default();
            return ![line, rest].into_iter().any(|text| has_word(&text.to_lowercase(), HOST));
        }
    }
    false
}

/// Does a section begin here that is about results, errors or examples?
fn is_about_others(line: &str) -> bool {
    let heading = line.trim().trim_end_matches(':').trim_start_matches(':').to_lowercase();
    OTHERS.contains(&heading.as_str())
        || line.trim_start().starts_with(">>>")
        || line.trim_start().starts_with(":return")
}

fn line_says(line: &str, name: &str) -> bool {
    if let Some(field) = line.strip_prefix(':') {
        return field_says(field, name);
    }
    let line = line.trim_start_matches(['-', '*', '`', ' ']);
    let Some(at) = line.find([':', '(']) else { return false };
    let (names, rest) = line.split_at(at);
    if !names.split(',').any(|n| n.trim().trim_matches('`') == name) {
        return false;
    }
    match rest.strip_prefix('(') {
        Some(rest) => matching(rest)
            .is_some_and(|(inside, after)| after.trim_start().starts_with([':', '-']) && type_says(inside)),
        None => type_says(&rest[1..]) || sentence_says(&rest[1..]),
    }
}

/// `param Tensor x: …`, `type x: Tensor`, `param x: a tensor`.
fn field_says(field: &str, name: &str) -> bool {
    let Some((head, rest)) = field.split_once(':') else { return false };
    let mut words = head.split_whitespace();
    match words.next() {
        Some("type") => words.next() == Some(name) && type_says(rest),
        Some("param" | "parameter" | "arg" | "argument") => {
            match (words.next_back(), head.split_whitespace().count()) {
                (Some(last), 2) => last == name && sentence_says(rest),
                (Some(last), _) => last == name && type_says(words.collect::<Vec<_>>().join(" ").as_str()),
                (None, _) => false,
            }
        }
        _ => false,
    }
}

/// The text before the matching closing bracket, and the text after it.
fn matching(text: &str) -> Option<(&str, &str)> {
    let mut open = 1_u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
    }
    None
}

/// `Tensor`, `torch.Tensor or None`, `LongTensor, optional`, `torch.Tensor[N, 4]`, ``:class:`torch.Tensor` ``.
fn type_says(text: &str) -> bool {
    // `Tensor[]` is TorchScript's type for a list.
    if text.contains("[]") {
        return false;
    }
    let text = plain(text);
    let mut parts =
        text.split(',').flat_map(|p| p.split(" or ")).flat_map(|p| p.split(['|', '/'])).map(thing);
    let Some(first) = parts.next() else { return false };
    let mut some = is_tensor(first);
    if !some && !PLAIN.contains(&first) {
        return false;
    }
    // The rest may be another type, or details of this one: `default: None`, `shape N x 4`.
    for part in parts.filter(|part| !part.is_empty() && !part.contains([' ', ':', '='])) {
        let tensor = is_tensor(part);
        if !tensor && !PLAIN.contains(&part) {
            return false;
        }
        some |= tensor;
    }
    some && !has_word(&text, OTHER)
}

/// `input tensor of shape (N, C)`, `a boolean tensor`.
fn sentence_says(text: &str) -> bool {
    let whole = plain(text);
    let head = whole.split([',', ';', ':']).next().unwrap_or_default();
    let head = thing(head.split(". ").next().unwrap_or_default()).trim_end_matches('.');
    let mut words = head.split_whitespace();
    // `torch.Tensor features of the nodes`
    let first = words.next().is_some_and(|word| word.len() > "tensor".len() && is_tensor(word));
    // `multiplies tensor`, `scaling a tensor`: the sentence is about an operation.
    let verb = |word: &str| word.ends_with('s') || word.ends_with("ing") || word == "ndim";
    let words: Vec<&str> = head.split_whitespace().collect();
    let last = words.split_last().is_some_and(|(last, before)| {
        before.len() < MOST_WORDS && is_tensor(last) && !before.iter().any(|word| verb(word))
    });
    (first || last) && !has_word(head, ABOUT) && !has_word(&whole, OTHER)
}

/// The words that name the thing, without what it consists of or is for.
fn thing(text: &str) -> &str {
    let end = ENDS.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text[..end].trim()
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word))
}

fn is_tensor(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix("torch.").unwrap_or(text);
    let kind = text
        .strip_suffix("tensor")
        .or_else(|| text.strip_suffix("tensor."))
        .map(|kind| kind.trim_end_matches([' ', '-', '.']));
    matches!(
        kind,
        Some(
            "" | "torch"
                | "pytorch"
                | "long"
                | "float"
                | "bool"
                | "boolean"
                | "byte"
                | "int"
                | "double"
                | "half"
                | "short"
                | "cuda.float"
                | "cuda.long"
        )
    )
}

/// The text in lower case, without parts in brackets and without reStructuredText markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut open = 0_u32;
    let text = text.replace(":class:", "").replace(":obj:", "");
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            '`' | '~' => {}
            _ if open == 0 => plain.extend(c.to_lowercase()),
            _ => {}
        }
    }
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::says_tensor;

    #[test]
    fn tensors_are_told_in_every_style() {
        for line in [
            "x (Tensor): the points",
            "x (torch.Tensor, optional): the points (default: :obj:`None`)",
            "x (:class:`~torch.LongTensor`): the points",
            "x (torch.Tensor or np.ndarray): the points",
            "x (torch.Tensor of shape (N, 3)): the points",
            "x (Tensor[N, 4]): the points",
            "w, x (Tensor): both",
            "- x (FloatTensor) - the points",
            "x : torch.Tensor, shape (N, 3)",
            "x: Tensor",
            "x: input tensor of shape (N, C)",
            "x: torch.Tensor features of the nodes",
            "x: a boolean tensor, true where there is one",
            ":param x: A tensor with the points.",
            ":param torch.Tensor x: the points",
            ":type x: torch.Tensor",
        ] {
            assert!(says_tensor(&format!("Does it.\n\n    Args:\n        {line}\n"), "x"), "{line}");
        }
    }

    #[test]
    fn other_things_are_not() {
        for line in [
            "x (list[Tensor]): the points",
            "x (Tensor or list of Tensors): the points",
            "x (Tensor or SparseTensor): the points",
            "x (dict): what each tensor is called",
            "x (callable): gives a tensor",
            "x (str or torch.Tensor): the points",
            "x: size of the tensor",
            "x: tensor shape",
            "x: multiplies tensor",
            "x: Tensor scale factor.",
            "x (Tensor[]): the points",
            "x (Tensor): the points, on the CPU",
            "x : torch.Tensor\n            Their lengths, which must be on the CPU",
            "n (int): how many\n\n    Returns:\n        x (Tensor): the points",
            "x: whether it is a tensor",
            "x: a list, or one tensor",
            "x: CPU tensor of shape (N, C)",
            "x: tensors",
            "x: dimension to reduce of the input tensor",
            ":param x: number of the tensor",
            ":type x: list of torch.Tensor",
            "y (Tensor): another one than x",
            "The tensor x is left as it is",
        ] {
            assert!(!says_tensor(&format!("Does it.\n\n    Args:\n        {line}\n"), "x"), "{line}");
        }
    }
}
