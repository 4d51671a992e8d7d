use galamost_plugin_macros::device_fn;

#[device_fn]
fn one(x: real) -> real {
    let t = (x,);
    t.0
}

#[device_fn]
fn seven(t: (real, real, real, real, real, real, real)) -> real {
    t.0
}

#[device_fn]
fn nested(t: (real, (real, real))) -> real {
    let (a, (b, c)) = t;
    a + b + c
}

fn main() {}
