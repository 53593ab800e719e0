//! [`opaque!`]: `Debug` for types with parts that have none, or that must not be shown.

/// Shows only the name of a type.
macro_rules! opaque {
    ($name:ident $(<$lifetime:lifetime>)?) => {
        impl std::fmt::Debug for $name $(<$lifetime>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use opaque;
