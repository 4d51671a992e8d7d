//! Texts for CUDA C++: structs and functions of the device language.

use super::plain::Plain;

/// A struct that is also defined in CUDA C++.
pub trait CxxStruct {
    /// Returns the definition; a template over `real` if the Rust struct is generic.
    fn text() -> &'static DeviceText;
}

/// A struct with the same layout in Rust and in CUDA C++. Derive it.
///
/// A struct with padding is refused when it is compiled, because its bytes go to devices and checkpoints:
///
/// ```compile_fail
/// use galamost_plugin_api::prelude::*;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, DeviceStruct)]
/// struct State {
///     kt: f64,
///     beads: u32, // four bytes of padding follow; add `reserved: u32`
/// }
/// ```
///
/// So is a member whose bytes are not a number:
///
/// ```compile_fail
/// use galamost_plugin_api::prelude::*;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, DeviceStruct)]
/// struct State {
///     on: bool, // use u32
/// }
/// ```
///
/// # Safety
/// The C++ definition must have exactly the layout that `#[repr(C)]` gives the Rust struct.
pub unsafe trait DeviceStruct: CxxStruct + Plain {}

/// A function of the device language as a type, created by `#[device_fn]`.
pub trait DeviceFn {
    /// Returns its text.
    fn text() -> &'static DeviceText;
}

/// The CUDA C++ text of one function or struct of the device language, and its dependencies.
#[derive(Debug)]
pub struct DeviceText {
    /// Name in C++.
    pub name: &'static str,
    /// Definition.
    pub text: fn() -> String,
    /// Texts that must precede it.
    pub needs: &'static [fn() -> &'static DeviceText],
    /// Whether the header `galamost/api.cuh` contains it, so that kernels need no definition.
    pub header: bool,
}

/// Assembles `roots` and all their dependencies: each definition once, in an order that C++ accepts. Definitions of the
/// header `galamost/api.cuh` are left out.
///
/// # Errors
/// Returns an error if two different definitions have the same name, or if functions call each other recursively.
pub fn assemble(roots: &[&'static DeviceText]) -> Result<String, String> {
    assemble_where(roots, |node| !node.header)
}

/// Assembles the header `galamost/api.cuh`: as [`assemble`], with its own definitions.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_header(roots: &[&'static DeviceText]) -> Result<String, String> {
    assemble_where(roots, |_| true)
}

fn assemble_where(roots: &[&'static DeviceText], included: fn(&DeviceText) -> bool) -> Result<String, String> {
    fn visit(
        node: &'static DeviceText,
        included: fn(&DeviceText) -> bool,
        seen: &mut Vec<(&'static str, String)>,
        above: &mut Vec<&'static str>,
    ) -> Result<(), String> {
        if !included(node) {
            return Ok(());
        }
        let text = (node.text)();
        if above.contains(&node.name) && seen.iter().any(|(n, t)| *n == node.name && *t == text) {
            return Err(format!(
                "`{}` calls itself through {}: recursion is not supported",
                node.name,
                above.join(", ")
            ));
        }
        match seen.iter().find(|(n, _)| *n == node.name) {
            Some((_, t)) if *t == text => return Ok(()),
            Some(_) => {
                return Err(format!("two different device definitions are named `{}`; rename one", node.name));
            }
            None => {}
        }
        let place = seen.len();
        seen.push((node.name, text));
        above.push(node.name);
        for need in node.needs {
            visit(need(), included, seen, above)?;
        }
        above.pop();
        let entry = seen.remove(place);
        seen.push(entry);
        Ok(())
    }
    let mut seen = vec![];
    for root in roots {
        visit(root, included, &mut seen, &mut vec![])?;
    }
    Ok(seen.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n"))
}

/// Returns the text of kernels with the definitions of the structs that they take, in front: the source for
/// [`Host::compile`](crate::services::Host::compile).
///
/// ```
/// use galamost_plugin_api::prelude::*;
/// use galamost_plugin_api::views::StateView;
///
/// /// What the kernel takes.
/// #[repr(C)]
/// #[derive(Clone, Copy, DeviceStruct)]
/// struct Args {
///     state: StateView,
///     k: f64,
/// }
///
/// const KERNEL: &str = "extern \"C\" __global__ void pull(Args a) { /* … */ }";
///
/// let source = kernel_source(&[Args::text()], KERNEL)?;
/// assert!(source.contains("struct Args {\n    StateView state;\n    double k;\n};"));
/// # Ok::<(), galamost_plugin_api::error::Error>(())
/// ```
///
/// # Errors
/// Returns an error if two different structs have the same name.
pub fn kernel_source(structs: &[&'static DeviceText], kernels: &str) -> crate::error::Result<String> {
    let structs = assemble(structs).map_err(crate::error::Error::Run)?;
    Ok(format!("#include \"galamost/state.cuh\"\n{structs}\n#line 1 \"kernels\"\n{kernels}"))
}

/// Returns C++ definitions of constants that Rust and kernels share.
///
/// ```
/// use galamost_plugin_api::device::constants;
///
/// assert_eq!(constants(&[("BLOCK", 128)]), "static constexpr u32 BLOCK = 128u;\n");
/// ```
pub fn constants(list: &[(&str, u32)]) -> String {
    list.iter().map(|(name, value)| format!("static constexpr u32 {name} = {value}u;\n")).collect()
}

/// Defines an enum of `u32` in Rust, and its values in CUDA C++ as constants `Name::Variant`.
///
/// The values come from one place; `Name::text()` is their C++ definition, for
/// [`kernel_source`](crate::device::kernel_source).
///
/// ```
/// use galamost_plugin_api::device::CxxStruct;
///
/// galamost_plugin_api::device_enum! {
///     /// What a kernel does with a particle.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum Action {
///         /// Nothing.
///         Keep = 0,
///         /// Moves it.
///         Move = 1,
///     }
/// }
///
/// assert_eq!(Action::Move as u32, 1);
/// assert!((Action::text().text)().contains("static constexpr u32 Move = 1u;"));
/// ```
#[macro_export]
macro_rules! device_enum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $value:expr),* $(,)? }) => {
        $crate::device_enum! { @header false; $(#[$meta])* $vis enum $name { $($(#[$doc])* $variant = $value),* } }
    };
    (@header $header:literal; $(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $value:expr),* $(,)?
    }) => {
        $(#[$meta])*
        #[repr(u32)]
        $vis enum $name { $($(#[$doc])* $variant = $value),* }

        impl $crate::device::CxxStruct for $name {
            fn text() -> &'static $crate::device::DeviceText {
                static TEXT: $crate::device::DeviceText = $crate::device::DeviceText {
                    name: ::std::stringify!($name),
                    text: || {
                        let values = $crate::device::constants(&[$((::std::stringify!($variant), $name::$variant as u32)),*]);
                        ::std::format!("namespace {} {{\n{values}}}\n", ::std::stringify!($name))
                    },
                    needs: &[],
                    header: $header,
                };
                &TEXT
            }
        }
    };
}

/// Returns C++ assertions that a struct has the size and alignment, and its members the offsets, that they have in Rust.
#[doc(hidden)]
pub fn layout_checks(name: &str, size: usize, align: usize, members: &[(&str, usize)]) -> String {
    let message = format!("\"{name} differs between Rust and C++\"");
    let mut text = format!("static_assert(sizeof({name}) == {size} && alignof({name}) == {align}, {message});\n");
    for (member, offset) in members {
        text += &format!("static_assert(GALAMOST_OFFSET({name}, {member}) == {offset}, {message});\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    static A: DeviceText = DeviceText { name: "a", text: || "A".into(), needs: &[], header: false };
    static B: DeviceText = DeviceText { name: "b", text: || "B".into(), needs: &[|| &A], header: false };
    static C: DeviceText = DeviceText { name: "c", text: || "C".into(), needs: &[|| &B, || &A], header: false };
    static A2: DeviceText = DeviceText { name: "a", text: || "other".into(), needs: &[], header: false };

    static LOOP: DeviceText = DeviceText { name: "l", text: || "L".into(), needs: &[|| &B, || &BACK], header: false };
    static BACK: DeviceText = DeviceText { name: "m", text: || "M".into(), needs: &[|| &LOOP], header: false };

    static H: DeviceText = DeviceText { name: "h", text: || "H".into(), needs: &[], header: true };
    static USER: DeviceText = DeviceText { name: "u", text: || "U".into(), needs: &[|| &H], header: false };

    #[test]
    fn definitions_of_the_header_are_left_out() {
        assert_eq!(assemble(&[&USER]).as_deref(), Ok("U"));
        assert_eq!(assemble_header(&[&USER]).as_deref(), Ok("H\nU"));
    }

    #[test]
    fn recursion_is_reported() {
        assert_eq!(assemble(&[&LOOP]), Err("`l` calls itself through l, m: recursion is not supported".into()));
    }

    #[test]
    fn definitions_precede_their_use_once() {
        assert_eq!(assemble(&[&C, &B]).as_deref(), Ok("A\nB\nC"));
        assert!(assemble(&[&C, &A2]).is_err());
    }
}
