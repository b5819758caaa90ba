//! Charts as SVG. Each chart stands beside a table with the same figures, so a reader of the text
//! misses nothing.

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 12.0;
/// Every fourth interval has a label, so that labels do not overlap.
const LABEL_EVERY: usize = 4;

/// One interval of a chart of successes and failures.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    pub good: f64,
    pub bad: f64,
    /// The text that appears when the pointer is over the bar.
    pub note: String,
}

/// A bar for each interval: successes with failures on top.
pub fn bars(title: &str, labels: &[String], bars: &[Bar]) -> String {
    let highest = bars.iter().map(|bar| bar.good + bar.bad).fold(1.0, f64::max);
    let mut svg = open(title, labels, highest, "");
    let step = step(bars.len());
    let scale = plot_height() / highest;
    let mut x = LEFT + step * 0.15;
    for bar in bars {
        let (good, bad) = (bar.good * scale, bar.bad * scale);
        svg.push_str(&format!("<g><title>{}</title>", escape(&bar.note)));
        rectangle(&mut svg, "bar-good", (x, base() - good), (step * 0.7, good));
        rectangle(&mut svg, "bar-bad", (x, base() - good - bad), (step * 0.7, bad));
        svg.push_str("</g>");
        x += step;
    }
    svg + "</svg>"
}

/// Two lines, for example p50 and p95. An interval without a value interrupts its line.
pub fn lines(title: &str, labels: &[String], unit: &str, series: [&[Option<f64>]; 2]) -> String {
    let values = series.iter().flat_map(|values| values.iter().flatten().copied());
    let highest = values.fold(1.0, f64::max);
    let mut svg = open(title, labels, highest, unit);
    let step = step(labels.len());
    for (class, values) in ["line-1", "line-2"].into_iter().zip(series) {
        let mut path = String::new();
        let mut x = LEFT + step / 2.0;
        let mut is_drawing = false;
        for value in values {
            if let Some(value) = value {
                let y = base() - value / highest * plot_height();
                // A line starts with a dash, so that a single value is visible.
                let start = if is_drawing { "L" } else { "M" };
                path.push_str(&format!("{start}{x:.1} {y:.1}"));
                if !is_drawing {
                    path.push_str("m-4 0h8m-4 0");
                }
            }
            is_drawing = value.is_some();
            x += step;
        }
        svg.push_str(&format!(r#"<path class="{class}" d="{path}"/>"#));
    }
    svg + "</svg>"
}

/// The start of the picture: axes and labels.
fn open(title: &str, labels: &[String], highest: f64, unit: &str) -> String {
    let (scale, unit) = if unit == " ms" && highest >= 1e3 { (1e3, " s") } else { (1.0, unit) };
    let title = escape(title);
    let mut svg = format!(
        r#"<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">"#
    );
    for part in [0.0, 0.5, 1.0] {
        let y = base() - part * plot_height();
        let x = LEFT - 6.0;
        let baseline = y + 4.0;
        let value = number(part * highest / scale);
        svg.push_str(&format!(
            r#"<path class="axis" d="M{LEFT} {y:.1}H{WIDTH}"/><text x="{x}" y="{baseline:.1}" text-anchor="end">{value}{unit}</text>"#
        ));
    }
    let step = step(labels.len());
    let mut x = LEFT + step / 2.0;
    let y = HEIGHT - 6.0;
    for (index, label) in labels.iter().enumerate() {
        if index % LABEL_EVERY == 0 {
            let label = escape(label);
            svg.push_str(&format!(
                r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#
            ));
        }
        x += step;
    }
    svg
}

fn rectangle(svg: &mut String, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
    if height > 0.0 {
        svg.push_str(&format!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }
}

fn escape(text: &str) -> String {
    askama::filters::escape(text, askama::filters::Html)
        .map_or_else(|_| String::new(), |text| text.to_string())
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
    let short = |value: f64| match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.1}").trim_end_matches(".0").to_owned(),
    };
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
        let labels = ["0", "1", "2", "3"].map(str::to_owned);
        let first = [Some(1.0), None, Some(1.0), Some(2.0)];
        let svg = lines("t", &labels, " ms", [&first, &[None, None, None, None]]);
        let line = svg.split(r#"class="line-1" d=""#).nth(1).unwrap().split('"').next().unwrap();
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 1), "{svg}");
        assert!(svg.contains(r#"<path class="line-2" d=""/>"#), "{svg}");
    }

    #[test]
    fn a_bar_has_a_rectangle_for_each_part_that_is_not_empty() {
        let labels = ["08:00", "09:00"].map(str::to_owned);
        let bar = |good, bad| Bar { good, bad, note: "<b>".to_owned() };
        let svg = bars("\"t\"", &labels, &[bar(3.0, 1.0), bar(2.0, 0.0)]);
        assert_eq!((svg.matches("bar-good").count(), svg.matches("bar-bad").count()), (2, 1));
        assert!(!svg.contains("<b>") && svg.contains("aria-label=\"&#34;t&#34;\""), "{svg}");
    }

    #[test]
    fn figures_are_short() {
        let texts = [1500.0, 184.4, 12.0, 2e6, 0.5].map(number);
        assert_eq!(texts, ["1.5k", "184", "12", "2M", "0.5"]);
    }
}
