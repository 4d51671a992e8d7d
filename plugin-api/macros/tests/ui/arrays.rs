use galamost_plugin_macros::device_fn;

#[device_fn]
fn array(x: real) -> real {
    let a = [x, 2.0 * x];
    a[0]
}

#[device_fn]
fn filled(x: real) -> real {
    let a = [x; 4];
    a[0]
}

#[device_fn]
fn slice(a: &[real; 8]) -> real {
    sum(&a[2..4])
}

fn main() {}
