//! The embedded settings as one file.

/// A setting with the comment above it. A setting without a default is commented out.
struct Entry<'a> {
    key: &'a str,
    comment: Vec<&'a str>,
    line: &'a str,
}

#[derive(Default)]
struct Section<'a> {
    /// The line `[name]`; empty for the comment at the top.
    title: &'a str,
    comment: Vec<&'a str>,
    entries: Vec<Entry<'a>>,
}

/// Merges embedded texts into one TOML file in which every section and every setting is once. The value
/// of a later text wins.
pub(crate) fn merge(texts: &[&str]) -> String {
    let mut sections = vec![Section::default()];
    for text in texts {
        add(&mut sections, text);
    }
    let mut lines = Vec::new();
    for section in &sections {
        if section.entries.is_empty() && section.comment.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push("");
        }
        lines.extend(&section.comment);
        lines.extend(Some(section.title).filter(|title| !title.is_empty()));
        for entry in &section.entries {
            lines.extend(&entry.comment);
            lines.push(entry.line);
        }
    }
    lines.join("\n")
}

fn add<'a>(sections: &mut Vec<Section<'a>>, text: &'a str) {
    let mut current = 0;
    let mut comment = Vec::new();
    for line in text.lines().map(str::trim_end) {
        if line.starts_with('[') {
            current = position(sections, line);
            replace_comment(sections, current, &mut comment);
        } else if let Some(key) = key(line) {
            if let Some(section) = sections.get_mut(current) {
                section.set(Entry { key, comment: std::mem::take(&mut comment), line });
            }
        } else if line.starts_with('#') {
            comment.push(line);
        } else if current == 0 {
            // An empty line ends the comment at the top.
            replace_comment(sections, 0, &mut comment);
        }
    }
}

fn position<'a>(sections: &mut Vec<Section<'a>>, title: &'a str) -> usize {
    sections.iter().position(|section| section.title == title).unwrap_or_else(|| {
        sections.push(Section { title, ..Section::default() });
        sections.len() - 1
    })
}

fn replace_comment<'a>(sections: &mut [Section<'a>], at: usize, comment: &mut Vec<&'a str>) {
    if let Some(section) = sections.get_mut(at)
        && !comment.is_empty()
    {
        section.comment = std::mem::take(comment);
    }
}

impl<'a> Section<'a> {
    /// Adds a setting, or replaces its value. The comment of a default stays and the new one follows it.
    fn set(&mut self, entry: Entry<'a>) {
        match self.entries.iter_mut().find(|known| known.key == entry.key) {
            None => self.entries.push(entry),
            Some(known) if known.line.starts_with('#') => *known = entry,
            Some(known) => {
                known.line = entry.line;
                known.comment.extend(entry.comment);
            }
        }
    }
}

/// The name of the setting in a line, also if the setting is commented out.
fn key(line: &str) -> Option<&str> {
    let (key, _) = line.strip_prefix("# ").unwrap_or(line).split_once(" = ")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.');
    key.chars().all(is_name).then_some(key)
}
