//! Models of tensors: their operators, functions and moves.

pub(crate) mod binary;
pub(crate) mod cpu_arguments;
pub(crate) mod dims;
pub(crate) mod distributions;
pub(crate) mod effects;
pub(crate) mod factories;
pub(crate) mod fake_mode;
pub(crate) mod functions;
pub(crate) mod gradients;
pub(crate) mod intrinsics;
pub(crate) mod methods;
pub(crate) mod moves;
pub(crate) mod operators;
pub(crate) mod sizes;
pub(crate) mod to_host;

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{ObjId, OuterId};
use crate::flow::models::dtypes::autocast::Autocast;
use crate::span::Place;
use rustc_hash::FxHashMap;

/// Default devices, autocast, and values whose device depends on that of another value.
#[derive(Default)]
pub(crate) struct Tensors {
    /// The device of factories without `device=`. It is a cell, so that branches join it.
    pub(crate) default_device: Cell,
    /// The device of the default tensor type, which only `torch.Tensor` follows. It is also a cell.
    pub(crate) default_type: Cell,
    /// Reports of 64-bit numbers on a device that may be MPS.
    pub(crate) doubles: Vec<crate::flow::models::dtypes::float64::Doubles>,
    /// Results of outside layers, each with the outside tensor on whose device it is.
    pub(crate) near: FxHashMap<OuterId, OuterId>,
    /// Regions and decorators of CUDA autocast around the current point. The innermost one is last.
    pub(crate) autocasts: Vec<Autocast>,
    /// CUDA autocasts that the program has made.
    pub(crate) made_autocasts: FxHashMap<OuterId, Autocast>,
    /// Partial functions that make a CUDA autocast, with the place that chooses CUDA.
    pub(crate) kept_autocasts: FxHashMap<ObjId, Place>,
    /// The place that chose CUDA, for the partial function that is being called.
    pub(crate) called_autocast: Option<Place>,
    /// The results of `accelerator.prepare(…)` for outside values, with their device.
    pub(crate) prepared: FxHashMap<OuterId, Dd>,
}
