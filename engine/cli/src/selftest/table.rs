//! Test results as text and JSON.

use super::TestRow;
use std::fmt::Write as _;

/// Returns the results as a text table.
pub(super) fn text(rows: &[TestRow]) -> String {
    let mut out = format!("{:18} {:11} {:36} {:>10} {:>9}\n", "component", "kind", "check", "deviation", "limit");
    for r in rows {
        let kind = r.kind.to_string();
        if r.skipped {
            let _ = writeln!(out, "{:18} {:11} {:36} skipped: {}", r.component, kind, r.check, r.note);
            continue;
        }
        let verdict = if r.failed() { "FAILED" } else { "ok" };
        let note = if r.note.is_empty() { String::new() } else { format!("  {}", r.note) };
        let _ = writeln!(
            out,
            "{:18} {:11} {:36} {:10.2e} {:9.1e}  {verdict}{note}",
            r.component, kind, r.check, r.value, r.limit
        );
    }
    for r in rows.iter().filter(|r| !r.detail.is_empty()) {
        let _ = writeln!(out, "\n{}: {}", r.component, r.detail.trim_end());
    }
    let failed = rows.iter().filter(|r| r.failed()).count();
    let skipped = rows.iter().filter(|r| r.skipped).count();
    let _ = writeln!(out, "{} passed, {failed} failed, {skipped} skipped", rows.len() - failed - skipped);
    out
}

/// Returns the results as JSON.
pub(super) fn json(rows: &[TestRow]) -> serde_json::Value {
    let one = |r: &TestRow| {
        serde_json::json!({
            "component": r.component, "kind": r.kind.to_string(), "check": r.check, "deviation": r.value, "limit": r.limit,
            "failed": r.failed(), "skipped": r.skipped, "note": r.note, "detail": r.detail,
        })
    };
    serde_json::Value::Array(rows.iter().map(one).collect())
}
