//! Medians, and how sure they are.

use serde::Serialize;

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Median {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// The median of some values and the interval between the order statistics that holds it with at least 95 %: no
/// assumption about their distribution. With fewer than six values that is all of them.
pub fn median(values: &[f64]) -> Median {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return Median { median: f64::NAN, low: f64::NAN, high: f64::NAN };
    }
    let middle = if n % 2 == 1 { sorted[n / 2] } else { f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]) };
    let cut = cut(n);
    Median { median: middle, low: sorted[cut], high: sorted[n - 1 - cut] }
}

/// How many values may be left out at each end: the largest k with P(Binomial(n, 1/2) < k + 1) <= 2.5 %, less one.
fn cut(n: usize) -> usize {
    let mut below = 0.0;
    let mut choose = 1.0;
    for k in 0..n {
        below += choose / 2_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
        if below > 0.025 {
            return k.saturating_sub(1).min((n - 1) / 2);
        }
        choose *= (n - k) as f64 / (k + 1) as f64;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_values_leave_one_out_at_each_end() {
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        let m = median(&nine);
        assert_eq!((m.median, m.low, m.high), (5.0, 2.0, 8.0));
    }

    #[test]
    fn few_values_span_their_whole_range() {
        let m = median(&[3.0, 1.0, 2.0]);
        assert_eq!((m.median, m.low, m.high), (2.0, 1.0, 3.0));
    }
}
