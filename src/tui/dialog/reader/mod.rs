//! Content to read: a text, a picture, the whole conversation, an answer on the side.

pub mod aside;
pub mod picture;
pub mod text;
pub mod viewer;
