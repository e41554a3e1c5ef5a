//! What a file holds: Python, or a notebook with Python in it.

use std::path::Path;

use super::encoding;
use super::read::{self, Unreadable};
use crate::notebook::{Broken, Decoded, Notebook, decode, is_notebook};
use crate::span::Span;

/// A text, and where it comes from.
#[derive(Debug, Default)]
pub struct Content {
    /// The text.
    pub text: String,
    /// The notebook whose cells have it.
    pub notebook: Option<Box<Notebook>>,
}

/// Why a file has no Python text.
#[derive(Debug)]
pub enum NoContent {
    /// It cannot be read.
    Unreadable(Unreadable),
    /// It should be a notebook, and is none.
    Broken {
        /// The file as it is.
        text: String,
        /// The place in it.
        span: Span,
        /// What is wrong.
        message: String,
    },
    /// It is a notebook in this language.
    Other(String),
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self { text, notebook: None }
    }
}

impl From<Unreadable> for NoContent {
    fn from(reason: Unreadable) -> Self {
        Self::Unreadable(reason)
    }
}

impl Content {
    /// Reads a file.
    ///
    /// # Errors
    /// [`NoContent`] with the reason, if there is no Python text in it.
    pub fn read(path: &Path) -> Result<Self, NoContent> {
        if is_notebook(path) { Self::of_notebook(read::text(path)?) } else { Ok(read::read(path)?.into()) }
    }

    /// Reads the bytes of a file with this path.
    ///
    /// # Errors
    /// [`NoContent`] with the reason, if there is no Python text in it.
    pub fn decode(path: &Path, bytes: Vec<u8>) -> Result<Self, NoContent> {
        if is_notebook(path) {
            Self::of_notebook(read::decode_utf8(bytes)?)
        } else {
            Ok(encoding::decode(bytes)?.into())
        }
    }

    fn of_notebook(file: String) -> Result<Self, NoContent> {
        match decode(file) {
            Ok(Decoded::Python(text, notebook)) => Ok(Self { text, notebook: Some(Box::new(notebook)) }),
            Ok(Decoded::Other(language)) => Err(NoContent::Other(language)),
            Err((text, Broken { at, message })) => {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                Err(NoContent::Broken { text, span: Span::new(at, at), message })
            }
        }
    }
}
