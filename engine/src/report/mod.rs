//! What a run shows: stock 6.29's screen and report file, byte for byte.
//!
//! Functions return text and print nothing, so the run author decides where
//! it goes. Where to look:
//!
//! - [`mod@header`]: the block between the first two lines, its fields in [`HeaderInfo`];
//! - [`mod@address`]: the `local address` and `remote address` lines;
//! - [`mod@columns`]: titles and rows, one function per set of columns;
//! - [`mod@notes`]: banner, lines, and the sentences in between;
//! - [`mod@json`]: the report file.

pub mod address;
mod cformat;
pub mod columns;
pub mod header;
pub mod json;
pub mod notes;

pub use header::HeaderInfo;
