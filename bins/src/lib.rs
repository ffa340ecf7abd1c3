//! Shared by the commands.
