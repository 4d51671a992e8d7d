use galamost_plugin_macros::device_fn;

#[device_fn]
fn generic<T>(x: T) -> real {
    1.0
}

#[device_fn]
fn with_where(x: real) -> real
where
    f64: Copy,
{
    x
}

#[device_fn]
async fn later(x: real) -> real {
    x
}

#[device_fn]
const fn at_compile_time(x: real) -> real {
    x
}

#[device_fn]
unsafe fn dangerous(x: real) -> real {
    x
}

#[device_fn]
extern "C" fn foreign(x: real) -> real {
    x
}

fn main() {}
