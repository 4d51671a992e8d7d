//! What commands show: tables that were read, HTML pages.

pub mod page;
pub mod series;
