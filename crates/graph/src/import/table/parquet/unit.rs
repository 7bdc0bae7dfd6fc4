//! Units of time.

use std::fmt;

use parquet::basic::TimeUnit;

/// Unit of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Milli,
    Micro,
    Nano,
}

impl Unit {
    /// Ticks of the clock in a second.
    pub fn per_second(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Milli => 1_000,
            Self::Micro => 1_000_000,
            Self::Nano => 1_000_000_000,
        }
    }
}

impl From<TimeUnit> for Unit {
    fn from(unit: TimeUnit) -> Self {
        match unit {
            TimeUnit::MILLIS => Self::Milli,
            TimeUnit::MICROS => Self::Micro,
            TimeUnit::NANOS => Self::Nano,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "s",
            Self::Milli => "ms",
            Self::Micro => "µs",
            Self::Nano => "ns",
        })
    }
}
