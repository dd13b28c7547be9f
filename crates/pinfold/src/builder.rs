//! Builder methods of requests and settings, which other crates cannot write as struct literals.

/// Defines `with_` methods, each of which sets the field of its name.
macro_rules! builder {
    ($type:ty { $($method:ident($field:ident: $value:ty)),+ $(,)? }) => {
        impl $type {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $method(mut self, $field: $value) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}
