use galamost_plugin_macros::device_fn;

#[device_fn]
fn strings(name: &str) -> real {
    1.0
}

#[device_fn]
fn wide(n: i64) -> real {
    1.0
}

#[device_fn]
fn lists(x: Vec<f64>) -> real {
    1.0
}

#[device_fn]
fn arrays(x: [real; 3]) -> real {
    x[0]
}

#[device_fn]
fn functions(f: fn(f64) -> f64) -> real {
    1.0
}

#[device_fn]
fn inferred(x: real) -> real {
    let y: _ = x;
    y
}

fn main() {}
