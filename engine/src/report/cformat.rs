//! Numbers as C's `printf` shows them.

/// `%.Nf`, with C's names for what is no number.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}nan");
    }
    format!("{value:.decimals$}")
}

/// `%-7.Nf`.
pub(super) fn column(value: f64, decimals: usize) -> String {
    format!("{:<7}", fixed(value, decimals))
}

/// `%g`: six significant digits, exponents where they are shorter, no trailing zeros.
pub(super) fn general(value: f64) -> String {
    if !value.is_finite() {
        return fixed(value, 0);
    }
    if value == 0.0 {
        return format!("{value:.0}");
    }
    let scientific = format!("{value:.5e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    // Rust always writes a decimal exponent of a finite number.
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return without_trailing_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "{}e{sign}{:02}",
        without_trailing_zeros(mantissa),
        exponent.unsigned_abs()
    )
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// `%#0Nx`: zero has no `0x` in front, and the width counts it.
pub(super) fn hex(value: u64, width: usize) -> String {
    if value == 0 {
        format!("{:0width$}", 0)
    } else {
        format!("{value:#0width$x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_fixed_point_as_c() {
        for (value, decimals, text) in [
            (2238.171, 2, "2238.17"),
            (0.0, 2, "0.00"),
            (0.125, 2, "0.12"),
            (0.375, 2, "0.38"),
            (2.5, 0, "2"),
            (-1.005, 2, "-1.00"),
            (1e15, 2, "1000000000000000.00"),
            (f64::INFINITY, 2, "inf"),
            (f64::NEG_INFINITY, 6, "-inf"),
            (f64::NAN, 2, "nan"),
            (-f64::NAN, 2, "-nan"),
        ] {
            assert_eq!(fixed(value, decimals), text);
        }
        assert_eq!(column(5.1, 2), "5.10   ");
        assert_eq!(column(12345.678, 2), "12345.68");
        assert_eq!(column(f64::INFINITY, 2), "inf    ");
    }

    #[test]
    fn shows_general_form_as_c() {
        for (value, text) in [
            (11519.6, "11519.6"),
            (11_519.649, "11519.6"),
            (4020.70, "4020.7"),
            (1.0, "1"),
            (0.0, "0"),
            (100_000.0, "100000"),
            (999_999.5, "1e+06"),
            (1.617_70e8, "1.6177e+08"),
            (0.000_1, "0.0001"),
            (0.000_012_345_6, "1.23456e-05"),
            (1.5e-10, "1.5e-10"),
            (1e120, "1e+120"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn shows_hexadecimal_as_c() {
        for (value, width, text) in [
            (0, 4, "0000"),
            (0x11, 4, "0x11"),
            (0x141, 6, "0x0141"),
            (0xe_128a, 6, "0xe128a"),
            (0xe6_18f4, 6, "0xe618f4"),
            (0x2b1, 8, "0x0002b1"),
            (0, 16, "0000000000000000"),
            (0x5650_680d_0000, 16, "0x005650680d0000"),
        ] {
            assert_eq!(hex(value, width), text);
        }
    }
}
