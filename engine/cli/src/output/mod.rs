//! Tables that commands read, and HTML pages that they write.

pub mod numbers;
pub mod page;
pub mod parameters;
pub mod series;
