//! Builder methods for requests and settings, since other crates cannot write them as struct literals.

/// Defines `with_` methods; each sets the field in its name.
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
