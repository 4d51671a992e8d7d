use galamost_plugin_macros::DeviceStruct;

#[derive(DeviceStruct)]
struct NoLayout {
    x: f64,
}

#[derive(DeviceStruct)]
#[repr(C)]
struct Unnamed(f64);

#[derive(DeviceStruct)]
#[repr(C)]
enum Choice {
    A,
}

#[derive(DeviceStruct)]
#[repr(C)]
struct Generic<T> {
    x: T,
}

#[derive(DeviceStruct)]
#[repr(C)]
struct Size {
    n: usize,
}

#[derive(DeviceStruct)]
#[repr(C)]
struct Reference {
    name: &'static str,
}

#[derive(DeviceStruct)]
#[repr(C)]
struct Small {
    n: i16,
}

#[derive(DeviceStruct)]
#[repr(C)]
struct Words {
    n: u32,
}

fn main() {}
