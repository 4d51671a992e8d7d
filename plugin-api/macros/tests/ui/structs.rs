use galamost_plugin_macros::device_fn;

#[device_fn]
fn made(x: real) -> real {
    let p = Row { k: x };
    p.k
}

fn main() {}
