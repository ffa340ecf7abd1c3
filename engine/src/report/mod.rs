//! What a run shows: stock's screen and report file, byte for byte, as version
//! 6.29 has them or as an older [`Style`] does.
//!
//! Functions return text and print nothing, so the run author decides where
//! it goes. Where to look:
//!
//! - [`mod@header`]: the block between the first two lines, its fields in [`HeaderInfo`];
//! - [`mod@address`]: the `local address` and `remote address` lines;
//! - [`mod@columns`]: titles and rows, one function per set of columns;
//! - [`mod@notes`]: banner, lines, and the sentences in between;
//! - [`mod@json`]: the report file, and [`mod@file`]: how it is written;
//! - [`mod@style`]: what older versions show in another way.

pub mod address;
mod cformat;
pub mod columns;
pub mod file;
pub mod header;
pub mod json;
pub mod notes;
pub mod style;

pub use header::HeaderInfo;
pub use style::Style;
