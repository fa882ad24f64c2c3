//! Texts in bytes.

/// True when `bytes` hold `text`. Fast also where a test looks for many texts in large files.
pub fn holds(bytes: &[u8], text: impl AsRef<[u8]>) -> bool {
    memchr::memmem::find(bytes, text.as_ref()).is_some()
}
