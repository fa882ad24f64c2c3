//! Two branches side by side.
//!
//! | file | job |
//! | --- | --- |
//! | `look` | what was said on each side, what it cost, which files differ |
//! | `take` | files and hunks of the other side, merged into the workspace |
//! | `scratch` | the files of a state in a folder of their own |
//! | `run` | a command on both |

pub mod look;
pub(crate) mod run;
pub mod scratch;
pub(crate) mod take;
