//! What the terminal can show.

use std::io::IsTerminal;

use anstream::stream::RawStream;

use crate::cli::Color;

/// Columns where nobody says how wide it is: what fits into a page of documentation.
const DEFAULT_WIDTH: usize = 100;

/// May escape sequences be written there?
pub fn color(color: Color, stream: &(impl RawStream + IsTerminal)) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}

/// May standard output have links (OSC 8)? Only a terminal that is known to show them takes them.
pub fn links() -> bool {
    std::io::stdout().is_terminal() && supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout)
}

/// The columns of the terminal behind standard output; the variable `COLUMNS` goes first.
pub fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&n| n > 0);
    let real = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    asked.or_else(real).unwrap_or(DEFAULT_WIDTH)
}

/// May lines be drawn with more than ASCII on standard output? What is no terminal takes everything.
pub fn unicode() -> bool {
    supports_unicode::on(supports_unicode::Stream::Stdout)
}
