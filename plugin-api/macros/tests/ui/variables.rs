use galamost_plugin_macros::device_fn;

#[device_fn]
fn later(x: real) -> real {
    let y;
    y = x;
    y
}

#[device_fn]
fn by_reference(x: real) -> real {
    let ref y = x;
    *y
}

#[device_fn]
fn nowhere(x: real) -> real {
    let _ = x;
    x
}

#[device_fn]
fn value_of_an_assignment(mut x: real) -> real {
    let y = (x = 2.0);
    x
}

fn main() {}
