//! Tables that commands read, and HTML pages that they write.

pub mod page;
pub mod series;
