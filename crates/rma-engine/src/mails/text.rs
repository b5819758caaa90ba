//! The part of a mail with plain text.

use super::parts::{Block, Content, Item, Link};

pub(super) fn text_part(content: &Content) -> String {
    let blocks = content.blocks.iter().map(block);
    let links = content.links.iter().map(|Link { label, url }| format!("{label}: {url}\n"));
    let remarks = content.remarks.iter().map(|remark| format!("{remark}\n"));
    // The line before a signature.
    let end = format!("-- \n{}{}", remarks.collect::<String>(), links.collect::<String>());
    blocks.chain([end]).collect::<Vec<_>>().join("\n")
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(text) | Block::Paragraph(text) => format!("{text}\n"),
        Block::Facts(facts) => facts.iter().map(fact).collect(),
        Block::Items(items) => items.iter().map(item).collect(),
        Block::Steps(steps) => {
            let step = |(number, step): (usize, &String)| format!("{number}. {step}\n");
            (1..).zip(steps).map(step).collect()
        }
        Block::Address(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        Block::Button(Link { label, url }) => format!("{label}:\n{url}\n"),
    }
}

/// Some names of facts end with a colon.
fn fact((name, value): &(String, String)) -> String {
    let colon = if name.ends_with(':') { "" } else { ":" };
    format!("{name}{colon} {value}\n")
}

fn item(Item { title, details }: &Item) -> String {
    let details = details.iter().map(|detail| format!("  {detail}\n"));
    format!("- {title}\n{}", details.collect::<String>())
}
