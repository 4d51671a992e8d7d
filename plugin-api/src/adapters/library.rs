//! The library of a plugin: root module, list of components, creation of components.

use crate::abi::panic::guard;
use crate::abi::wire::{to_ron, to_wire};
use crate::abi::{
    Layouts1, Library1, PrefixTypeTrait, ROption, RResult, RStr, RString, Root, RootRef, TablePointer, Wire, WireError,
    WireObject,
};
use crate::error::{Error, Position};
use crate::kinds::component::{Kind, Registration};
use crate::params::Source;

/// Returns the root module of a plugin.
pub fn root() -> RootRef {
    Root { interface: library_interface }.leak_into_prefix()
}

extern "C" fn library_interface(name: RStr<'_>) -> ROption<TablePointer> {
    const LIBRARY: &Library1 = &Library1 { describe, create };
    const LAYOUTS: &Layouts1 = &Layouts1 { structs };
    match name.as_str() {
        "layouts/1" => ROption::RSome(TablePointer::new(LAYOUTS)),
        "library/1" => ROption::RSome(TablePointer::new(LIBRARY)),
        _ => ROption::RNone,
    }
}

extern "C" fn structs() -> RString {
    to_ron(&crate::abi::layout::crossing()).into()
}

extern "C" fn describe() -> Wire<RString> {
    to_wire(guard("the plugin", || Ok(to_ron(&Registration::all().iter().map(|r| r.info()).collect::<Vec<_>>()))))
}

extern "C" fn create(kind: u32, name: RStr<'_>, text: RStr<'_>, line: u32, column: u32) -> Wire<WireObject> {
    let name = name.as_str();
    let made = guard(name, || {
        let kind = Kind::from_u32(kind).ok_or_else(|| Error::Run(format!("unknown kind number {kind}")))?;
        let found = Registration::all().into_iter().find(|r| r.name == name && r.kind == kind);
        let r = found.ok_or_else(|| Error::Run(format!("this library has no {kind} `{name}`")))?;
        let source = Source { text: text.as_str(), start: Position { line, column } };
        (r.create)(r.name, source.value())
    });
    match made {
        Ok(object) => RResult::ROk(object.0),
        Err(e) => RResult::RErr(WireError::from(e)),
    }
}

/// Exports the plugin. Write `galamost_plugin_api::plugin!();` once in the crate.
#[macro_export]
macro_rules! plugin {
    () => {
        /// Identity of this plugin. The engine reads it before it loads the library.
        #[unsafe(no_mangle)]
        pub static GALAMOST_PLUGIN: $crate::plugin_record::PluginRecord = $crate::plugin_record::PluginRecord::new(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            // evaluated in the crate that calls `plugin!()`, where the macro is expanded
            (if cfg!(panic = "abort") { $crate::plugin_record::flags::ABORTS } else { 0 })
                | (if cfg!(debug_assertions) { $crate::plugin_record::flags::DEBUG } else { 0 }),
        );

        /// The header that `abi_stable` looks for.
        #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
        pub static GALAMOST_ROOT: $crate::abi::Header = {
            extern "C" fn root() -> $crate::abi::RootModuleResult {
                $crate::abi::__call_root_module_loader($crate::adapters::root)
            }
            // SAFETY: `adapters::root` returns the root module
            unsafe { $crate::abi::header(root) }
        };
    };
}
