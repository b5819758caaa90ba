"""Fails if modules of a crate import each other in a circle, and prints the imports of each circle.

A module may use the modules below it, and they may use it: together they are one unit. Two units at the root of
a crate may not import each other either, even if different modules of them do.
"""

import re
import sys
from pathlib import Path

CRATES = Path(__file__).parent.parent / "crates"
SKIPPED = re.compile(r"//[^\n]*|#\[cfg\(test\)\][^;{]*mod \w+ \{.*", re.DOTALL)
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
GROUP = re.compile(r"([\w:]*)\{([^{}]*)\}")
PATH = re.compile(r"(?<![:\w])(?:\w+::)+\w+")


def names(path):
    return tuple(re.sub(r"::(self|\*)$", "", path.split(" as ")[0].strip()).split("::"))


def use_paths(tree):
    """`a::{b, c::{d, e}}` has `a::b`, `a::c::d` and `a::c::e`."""
    def expand(group):
        return ",".join(group[1] + leaf.strip() for leaf in group[2].split(",") if leaf.strip())

    while "{" in tree:
        tree = GROUP.sub(expand, tree)
    return [names(path) for path in tree.split(",") if path.strip()]


class Crate:
    """Paths are tuples of names. The path of a module or an item starts at the root of the crate."""

    def __init__(self, sources):
        self.texts = {module: SKIPPED.sub("", text) for module, text in sources.items()}
        self.imports = {}
        for module, text in self.texts.items():
            paths = (self.absolute(module, path) for tree in USE.findall(text) for path in use_paths(tree))
            self.imports[module] = {path[-1]: path for path in paths if path}

    def absolute(self, module, path):
        """The path from the root of the crate; None for a path of another crate."""
        first, rest = path[0], path[1:]
        if first == "crate":
            return rest
        if first == "self":
            return module + rest
        if first == "super":
            return self.absolute(module[:-1], rest) or module[:-1] + rest if module and rest else None
        return module + path if module + (first,) in self.texts else None

    def definition(self, item):
        """The module that defines an item, which other modules may import and export again."""
        for _ in range(8):
            module = next(item[:end] for end in range(len(item), -1, -1) if item[:end] in self.texts)
            rest = item[len(module):]
            if not rest or rest[0] not in self.imports[module]:
                break
            item = self.imports[module][rest[0]] + rest[1:]
        return module

    def uses(self, module):
        """The modules that a module uses, except those above and below it."""
        imports = self.imports[module]
        items = set(imports.values())
        for path in map(names, PATH.findall(USE.sub("", self.texts[module]))):
            item = imports[path[0]] + path[1:] if path[0] in imports else self.absolute(module, path)
            items.update({item} if item else ())
        used = {self.definition(item) for item in items}
        return {path for path in used if path[:len(module)] != module and module[:len(path)] != path}

    def circles(self):
        """The modules in circles and between circles, with the modules that each uses."""
        return left_in_circles({module: self.uses(module) for module in self.texts})

    def mutual_imports(self):
        """The units at the root of the crate that import each other, with the imports."""
        found = {}
        for module in self.texts:
            for used in self.uses(module) if module and "tests" not in module else ():
                if used and used[0] != module[0]:
                    found.setdefault((module[0], used[0]), []).append((module, used))
        return [imports for (unit, other), imports in found.items() if (other, unit) in found]


def left_in_circles(graph):
    """The part of a graph that is in circles and between circles."""
    while True:
        used = set().union(*graph.values()) & graph.keys()
        left = {module: graph[module] & graph.keys() for module in used if graph[module] & graph.keys()}
        if left.keys() == graph.keys():
            return left
        graph = left


def sources(folder):
    found = {}
    for file in folder.rglob("*.rs"):
        path = file.relative_to(folder).with_suffix("").parts
        found.setdefault(() if path in {("lib",), ("main",)} else path, file.read_text())
    return found


def check_the_check():
    circle = Crate({
        (): "mod a;\nmod b;",
        ("a",): "mod inner;\npub use inner::Item;",
        ("a", "inner"): "use crate::{b::{self, Other}};\npub struct Item;",
        ("b",): "pub fn b(_: crate::a::Item) {}",
    }).circles()
    assert circle == {("a", "inner"): {("b",)}, ("b",): {("a", "inner")}}, circle
    allowed = {("a",): "use crate::b;", ("b",): "mod c; // crate::a::Item\n#[cfg(test)]\nmod tests { use crate::a; }"}
    assert not Crate({(): "", **allowed, ("b", "c"): "use super::Text;"}).circles()
    mutual = {(): "mod a;\nmod b;", ("a",): "mod c;\nuse crate::b;", ("a", "c"): "", ("b",): "use crate::a::c;"}
    assert not Crate(mutual).circles()
    assert sorted(Crate(mutual).mutual_imports()) == [[(("a",), ("b",))], [(("b",), ("a", "c"))]]


check_the_check()
failed = False
for folder in sorted(CRATES.iterdir()):
    crate = Crate(sources(folder / "src"))
    imports = [(module, path) for module, used in crate.circles().items() for path in used]
    for module, path in sorted({*imports, *sum(crate.mutual_imports(), [])}):
        failed = True
        print(f"{folder.name}: {'::'.join(module)} uses {'::'.join(path)}")
sys.exit("modules import each other in a circle" if failed else 0)
