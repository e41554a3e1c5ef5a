//! The results of tokenizers and processors.
//!
//! With `return_tensors="pt"`, the encodings of a tokenizer are tensors that `torch.tensor` makes on the default device
//! (transformers/tokenization_utils_base.py, `BatchEncoding.convert_to_tensors`). A batch of them moves in place, gives its
//! tensors by key and by attribute, and is passed to the model with `**`.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::OuterId;
use crate::flow::domain::value::{NO_ORIGIN, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId};
use crate::link::Resolved;
use crate::sym::Sym;

/// Entries that every encoding has. It may have more.
const PARTS: &[&str] = &["input_ids", "attention_mask"];
/// Entries that processors of sounds and images may add.
const PROCESSED: &[&str] = &["input_ids", "attention_mask", "input_values", "input_features", "pixel_values"];
/// Words in the names of processors. A processor may leave tensors on their device.
const PROCESSORS: &[&str] = &["processor", "featureextractor", "feature_extractor"];

/// The methods of a tokenizer that encode (transformers/tokenization_utils_base.py).
const ENCODES: &[&str] =
    &["__call__", ENCODE, "encode_plus", "batch_encode_plus", "pad", "prepare_for_model"];
/// The method that returns only the token numbers.
const ENCODE: &str = "encode";

impl Interp<'_> {
    /// A call of an outside value. If that is a tokenizer that returns tensors, this is its result.
    pub(crate) fn tokens(&mut self, callee: OuterId, args: &Args, e: ExprId) -> Option<Value> {
        let (kind, _) = args.keyword("return_tensors")?;
        if !matches!(kind, Value::Str(s, _) if s.as_str() == "pt") {
            return None;
        }
        let parts = if self.is_called(callee, &["tokenizer"]) { PARTS } else { PROCESSED };
        let processor = || self.is_called(callee, PROCESSORS);
        let on_host = args.values().all(|(v, _)| self.is_host_data(v));
        // Entries made from image or sound tensors are on the device of those. Entries made from text are not.
        let parts = if on_host || parts == PARTS { parts } else { PARTS };
        let processes = || processor() && (on_host || args.keyword("text").is_some());
        if !self.is_called(callee, &["tokenizer"]) && !processes() || args.keyword("device").is_some() {
            return None;
        }
        let device = self.default_device_at(e, Reason::Host);
        let tensor = self.plain_tensor(device, Dims::SOME);
        if matches!(self.t.get_outer(callee).key, OuterKey::Attr { name, .. } if name.as_str() == ENCODE) {
            return Some(tensor);
        }
        let pairs: Vec<Value> =
            parts.iter().flat_map(|part| [Value::Str(Sym::new(part), NO_ORIGIN), tensor]).collect();
        let content = self.seq(&pairs);
        Some(Value::Object(self.object(ObjKind::Dict { module: false }, None, content)))
    }

    /// The same for a method of a tokenizer: `tokenizer.encode_plus(text, return_tensors="pt")`.
    pub(crate) fn tokens_by_method(
        &mut self,
        tokenizer: OuterId,
        name: Sym,
        args: &Args,
        e: ExprId,
    ) -> Option<Value> {
        if !ENCODES.contains(&name.as_str()) {
            return None;
        }
        let method = self.outer_attr(tokenizer, name);
        self.tokens(method, args, e)
    }

    /// Does the call pass a tokenizer's `input_ids` under that name?
    pub(crate) fn takes_tokens(&self, args: &Args) -> bool {
        args.keyword(PARTS[0]).is_some()
    }

    /// Is the value no tensor, and contains none?
    fn is_host_data(&self, v: Value) -> bool {
        match v {
            Value::Str(..) | Value::Host(_) | Value::Bool(_) | Value::Int(_) | Value::None => true,
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::List { module: false }) => {
                match self.own(id) {
                    Value::Many(m) => self.is_host_data(*self.t.values.get(m)),
                    Value::Seq(s) => self.seq_items(s).iter().all(|&v| self.is_host_data(v)),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Does its name contain one of these words, or the name of what made it, as in `AutoTokenizer.from_pretrained(…)`?
    fn is_called(&self, o: OuterId, words: &[&str]) -> bool {
        let outer = self.t.get_outer(o);
        let says = |text: &str| {
            let text = text.to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        };
        match outer.key {
            // `self.tokenizer.encode_plus(…)`
            OuterKey::Attr { base, name } if ENCODES.contains(&name.as_str()) => self.is_called(base, words),
            OuterKey::Attr { name, .. } => says(name.as_str()),
            OuterKey::Result { module, expr, .. } => match self.program.get(module).ir.expr(expr) {
                Expr::Call(call) => {
                    let made = self.program.get(module).ir.call(call).func;
                    matches!(self.program.resolve_expr(module, made), Some(Resolved::External(path)) if says(path.as_str()))
                        || says(&outer.text)
                }
                _ => false,
            },
            _ => says(&outer.text),
        }
    }

    /// `batch.input_ids`: the entry of a dict with that key.
    pub(crate) fn part_by_name(&self, batch: crate::flow::domain::value::ObjId, name: Sym) -> Option<Value> {
        let pairs = self.dict_items(Value::Object(batch))?;
        let named = |pair: &&[Value]| matches!(pair[0], Value::Str(key, _) if key == name);
        pairs.chunks(2).find(named).map(|pair| pair[1])
    }
}
