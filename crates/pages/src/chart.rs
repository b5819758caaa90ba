//! Charts as SVG. Each chart stands beside a table with the same figures.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 12.0;

/// One interval of a chart of successes and failures.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bar {
    pub good: f64,
    pub bad: f64,
}

/// A bar for each interval: successes with failures on top.
pub fn bars(title: &str, labels: &[String], bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.good + bar.bad).fold(1.0, f64::max);
    let mut svg = open(title, labels, most, "");
    let (step, scale) = (step(bars.len()), plot_height() / most);
    let mut x = LEFT + step * 0.15;
    for bar in bars {
        let (good, bad) = (bar.good * scale, bar.bad * scale);
        rectangle(&mut svg, "bar-good", (x, base() - good), (step * 0.7, good));
        rectangle(&mut svg, "bar-bad", (x, base() - good - bad), (step * 0.7, bad));
        x += step;
    }
    svg + "</svg>"
}

/// Two lines, for example p50 and p95. An interval without a value interrupts its line.
pub fn lines(title: &str, labels: &[String], unit: &str, series: [&[Option<f64>]; 2]) -> String {
    let values = series.iter().flat_map(|values| values.iter().flatten().copied());
    let most = values.fold(1.0, f64::max);
    let mut svg = open(title, labels, most, unit);
    let step = step(labels.len());
    for (class, values) in ["line-1", "line-2"].into_iter().zip(series) {
        let (mut path, mut x, mut is_drawing) = (String::new(), LEFT + step / 2.0, false);
        for value in values {
            if let Some(value) = value {
                let y = base() - value / most * plot_height();
                // Writing to a text does not fail.
                let _ = write!(path, "{}{x:.1} {y:.1}", if is_drawing { "L" } else { "M" });
            }
            is_drawing = value.is_some();
            x += step;
        }
        let _ = write!(svg, r#"<path class="{class}" d="{path}"/>"#);
    }
    svg + "</svg>"
}

fn open(title: &str, labels: &[String], most: f64, unit: &str) -> String {
    let title = askama::filters::escape(title, askama::filters::Html)
        .map_or_else(|_| String::new(), |title| title.to_string());
    let mut svg = format!(
        r#"<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">"#
    );
    for part in [0.0, 0.5, 1.0] {
        let y = base() - part * plot_height();
        let _ = write!(svg, r#"<path class="axis" d="M{LEFT} {y:.1}H{WIDTH}"/>"#);
        let (x, baseline, value) = (LEFT - 6.0, y + 4.0, part * most);
        let _ = write!(
            svg,
            r#"<text x="{x}" y="{baseline:.1}" text-anchor="end">{}{unit}</text>"#,
            number(value)
        );
    }
    let step = step(labels.len());
    let mut x = LEFT + step / 2.0;
    for (index, label) in labels.iter().enumerate() {
        if index % 4 == 0 {
            let y = HEIGHT - 6.0;
            let _ = write!(svg, r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
        }
        x += step;
    }
    svg
}

fn rectangle(svg: &mut String, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
    if height > 0.0 {
        let _ = write!(
            svg,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        );
    }
}

fn step(intervals: usize) -> f64 {
    (WIDTH - LEFT) / f64::from(u32::try_from(intervals).unwrap_or(1).max(1))
}

fn plot_height() -> f64 {
    HEIGHT - BOTTOM - TOP
}

fn base() -> f64 {
    HEIGHT - BOTTOM
}

/// A figure for the axis: "1.5k" for 1,500.
fn number(value: f64) -> String {
    let short = |value: f64| format!("{value:.1}").trim_end_matches(".0").to_owned();
    match value {
        value if value >= 1e6 => short(value / 1e6) + "M",
        value if value >= 1e3 => short(value / 1e3) + "k",
        value => short(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_a_value_interrupts_the_line() {
        let labels = vec!["0".to_owned(), "1".to_owned(), "2".to_owned()];
        let svg = lines("t", &labels, "", [&[Some(1.0), None, Some(1.0)], &[None, None, None]]);
        assert_eq!(svg.matches("d=\"M").count(), 1 + 3, "{svg}");
        assert!(svg.contains("L") == false, "{svg}");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!((number(1500.0), number(12.0), number(2e6)), ("1.5k".into(), "12".into(), "2M".into()));
    }
}
