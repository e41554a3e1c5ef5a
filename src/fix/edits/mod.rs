//! From one remedy to the changes of one file. There is one file per family. Each function examines the syntax around a place and returns
//! `None` if it is not as expected.

mod calls;
mod devices;
mod graphs;
mod keep;
mod make;
mod modules;
mod oom;

use rustpython_ast::AnyNodeRef;

use super::Draft;
use super::apply::Change;
use super::syntax::Syntax;
use crate::finding::{Applicability, Finding};
use crate::remedy::Remedy;
use crate::span::{FileId, Place};

/// The changes for a remedy.
pub(super) fn draft(syntax: &Syntax<'_>, remedy: &Remedy, finding: &Finding) -> Option<Draft> {
    match remedy {
        Remedy::Call(check) => calls::call(syntax, check.span),
        Remedy::Keep(call) => keep::keep(syntax, call.span, finding),
        Remedy::MapLocation(call) => calls::map_location(syntax, call.span),
        Remedy::Without { call, keyword } => calls::without(syntax, call.span, keyword),
        Remedy::Make { call, function, device, meets } => {
            let meets = Some(meets.span).filter(|_| meets.file == call.file);
            make::make(syntax, call.span, function, device, meets)
        }
        Remedy::Move { operand, device } => devices::follow(syntax, operand.span, device),
        Remedy::MakeThere { transfer, function } => make::make_there(syntax, transfer.span, function),
        Remedy::ToHost { call, tensor: Some(tensors), several: true } => {
            devices::each_to_host(syntax, call.span, tensors.span)
        }
        Remedy::ToHost { call, tensor, .. } => devices::to_host(syntax, call.span, tensor.map(|t| t.span)),
        Remedy::CompareType(comparison) => devices::compare_type(syntax, comparison.span),
        Remedy::Choose { literal, check, otherwise } => {
            devices::choose(syntax, literal.span, check, otherwise)
        }
        Remedy::Autocast { call, device } => devices::autocast(syntax, call.span, device),
        Remedy::Register(attribute) => modules::register(syntax, attribute.span),
        Remedy::Hold { attribute, class } => modules::hold(syntax, attribute.span, class),
        Remedy::AskClass(words) => oom::ask_class(syntax, words.span),
        Remedy::Detach(value) => graphs::detach(syntax, value.span),
        Remedy::DetachParts(value) => graphs::detach_parts(syntax, value.span),
    }
}

/// The file that a remedy changes.
pub(super) fn file(remedy: &Remedy) -> FileId {
    let place: &Place = match remedy {
        Remedy::Call(place)
        | Remedy::Keep(place)
        | Remedy::MapLocation(place)
        | Remedy::Register(place)
        | Remedy::AskClass(place)
        | Remedy::Detach(place)
        | Remedy::DetachParts(place)
        | Remedy::CompareType(place) => place,
        Remedy::Make { call, .. }
        | Remedy::ToHost { call, .. }
        | Remedy::Autocast { call, .. }
        | Remedy::Without { call, .. } => call,
        Remedy::Move { operand, .. } => operand,
        Remedy::Hold { attribute, .. } => attribute,
        Remedy::MakeThere { transfer, .. } => transfer,
        Remedy::Choose { literal, .. } => literal,
    };
    place.file
}

/// Would quotation marks end the f-string that contains the change? Before Python 3.12, they do.
pub(super) fn breaks_text(syntax: &Syntax<'_>, change: &Change) -> bool {
    let in_text =
        |node: &AnyNodeRef<'_>| matches!(node, AnyNodeRef::ExprFString(_) | AnyNodeRef::ExprTString(_));
    change.content.contains(['"', '\'', '\n', '\r', '\\']) && syntax.around(change.span).iter().any(in_text)
}

fn safe(title: impl Into<String>, changes: Vec<Change>) -> Draft {
    Draft { title: title.into(), applicability: Applicability::Safe, changes }
}

fn unsafe_(title: impl Into<String>, changes: Vec<Change>) -> Draft {
    Draft { title: title.into(), applicability: Applicability::Unsafe, changes }
}
