#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects the pages of the site from the whole tree, and checks their links and the files that they include.

    collect.py OUTPUT       writes the pages for Sphinx, and external-links.txt, into OUTPUT
    collect.py --check      only reports mistakes

The pages are plain Markdown. These comments have a meaning here, and are invisible elsewhere:

    <!-- tabs -->           until <!-- /tabs -->, each line such as **Go** begins a tab
    <!-- code -->           the link in the next line is replaced by the contents of the file
    <!-- code NAME -->      the same for the lines between the comments "section NAME" and "end of NAME" in the file

A link to a page leads to that page of the site, one to a C header to its reference, and one to another file of the tree
to a copy of it. The name of a C function in code, such as `dist_run()`, links to its reference.
"""

import argparse
import re
import shutil
import sys
import textwrap
from pathlib import Path, PurePosixPath

import c_reference
import pages

ROOT = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^ *(`{3,}|~{3,})")
CODE_SPAN = re.compile(r"(`+)(?!`)(?:(?!\n\n).)*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)")
DEFINITION = re.compile(r"^(\[[^\]]+\]: +)(\S+)$", re.MULTILINE)
FUNCTION = re.compile(r"`dist_\w+\(\)`")
CODE = re.compile(r"<!-- code(?: ([\w-]+))? -->")
MARK = re.compile(r"\W*(section|end of) ([\w-]+)\W*")
INCLUDED = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)\s*")
TAB = re.compile(r"\*\*([^*]+)\*\*\s*")
IMAGES = {".svg", ".png"}
LANGUAGES = {
    ".c": "c", ".h": "c", ".cpp": "cpp", ".hpp": "cpp", ".go": "go", ".java": "java", ".py": "python", ".sh": "sh",
    ".yaml": "yaml", ".wrap": "ini",
}  # fmt: skip


def document(path):
    """The name of a page in the site."""
    path = PurePosixPath(path)
    if path.name == "README.md":
        path = path.with_name("index.md")
    return str(path.with_suffix("")).replace("examples/guide/", "guide/")


def relative(to, page):
    """A link from a page to a document or file of the site."""
    return "../" * page.count("/") + to


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


class Site:
    def __init__(self):
        self.faults, self.external, self.sections = [], {}, []
        self.images, self.sources = {}, set()
        self.names = c_reference.Links(c_reference.api.parse(c_reference.api.HEADERS))
        for title, patterns in pages.NAVIGATION:
            listed = []
            for pattern in patterns:
                found = [pattern] if "*" not in pattern else sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(pattern))
                listed += [page for page in found if page not in listed]
            self.sections.append((title, listed))
        self.paths = {pages.HOME} | {page for _, listed in self.sections for page in listed if page.endswith(".md")}

    def fault(self, path, number, text):
        self.faults.append(f"{path}:{number}: {text}")

    # ---- Links ----

    def target(self, path, number, link, image):
        """Returns the destination of a link in the site, for a page at `path`."""
        if re.match(r"[a-z]+:", link):
            self.external.setdefault(link, f"{path}:{number}")
            return link
        name, _, fragment = link.partition("#")
        if not name:
            return link
        full = (ROOT / path).parent / name
        if not full.exists() or ROOT not in [full.resolve(), *full.resolve().parents]:
            self.fault(path, number, f"the link {link} leads nowhere")
            return link
        to = full.resolve().relative_to(ROOT).as_posix()
        here = document(path)
        if image or full.suffix in IMAGES:
            self.images[to] = f"images/{to}"
            return relative(self.images[to], here)
        if full.is_dir() and (full / "README.md").exists():
            to += "/README.md"
        if to.endswith(".md"):
            if to not in self.paths:
                self.fault(path, number, f"{to} is not in the navigation (pages.py)")
            return relative(document(to) + ".md", here) + (f"#{fragment}" if fragment else "")
        if match := re.fullmatch(r"include/dist/([\w/]+)\.h", to):
            return relative(f"reference/c/{match[1]}.md", here)
        self.sources.add(to)
        return relative(f"source/{to}.md", here)

    def links(self, path, number, text):
        """Lines outside of code blocks, the last of which has this number."""
        spans, in_links, number = [], set(), number - text.count("\n")

        def hide(span):  # code inside the text of a link must not hide the link
            spans.append(span[0])
            return f"\0{len(spans) - 1}\0" + "\n" * span[0].count("\n")

        def target(match, link, image=False):
            return self.target(path, number + match.string.count("\n", 0, match.start()), link, image)

        def link(match):
            in_links.update(re.findall(r"\0(\d+)\0", match[2]))
            return f"{match[1]}{match[2]}({target(match, match[3], bool(match[1]))})"

        def show(match):
            span = spans[int(match[1])]
            heading = match.string[match.string.rfind("\n", 0, match.start()) + 1 :].startswith("#")
            if not heading and match[1] not in in_links and FUNCTION.fullmatch(span):
                span = self.names.inline(span)
            return span + match[2][span.count("\n") :]

        text = CODE_SPAN.sub(hide, text)
        text = DEFINITION.sub(lambda m: m[1] + target(m, m[2]), text)
        text = LINK.sub(link, text)
        return re.sub(r"\0(\d+)\0(\n*)", show, text)

    # ---- Pages ----

    def section(self, path, number, name, lines):
        """The lines of a section, without their common indentation."""
        marks = {match[1]: i for i, line in enumerate(lines) if (match := MARK.fullmatch(line)) and match[2] == name}
        if len(marks) != 2 or marks["section"] >= marks["end of"]:
            self.fault(path, number, f'the file needs the comments "section {name}" and "end of {name}"')
            return []
        return textwrap.dedent("\n".join(lines[marks["section"] + 1 : marks["end of"]])).strip("\n").split("\n")

    def code(self, path, number, line, name):
        """The contents of the file that a line links to, or those of one of its sections."""
        match = INCLUDED.fullmatch(line)
        file = (ROOT / path).parent / match[1] if match else None
        if file is None or not file.is_file():
            self.fault(path, number, "<!-- code --> needs a link to a file in the next line")
            return []
        text = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
        caption = file.name
        if name:
            text = self.section(path, number, name, text)
            caption = f"[{file.name}]({self.target(path, number, match[1], False)})"
        shown = [line for line in text if not MARK.fullmatch(line)]
        if shown and "SPDX-License-Identifier" in shown[0]:
            shown = shown[1:]
        while shown and shown[0] in ("", "//", " *"):
            shown = shown[1:]
        if shown and shown[0].startswith(" * "):  # the license was the first line of a longer comment
            shown = ["/*" + shown[0][2:], *shown[1:]]
        return [f"````````{{code-block}} {LANGUAGES[file.suffix]}", f":caption: {caption}", "", *shown, "````````"]

    def page(self, path):
        """The page as MyST reads it."""
        out, plain, fence, tabs, tab, include = [], [], None, False, False, None
        for number, line in enumerate([*read(path).split("\n"), None], 1):
            if plain and (line is None or FENCE.match(line) or line.startswith("<!--")):
                out.append(self.links(path, number - 1, "\n".join(plain)))
                plain = []
            if line is None:
                break
            if match := FENCE.match(line):
                fence = match[1] if fence is None else None if match[1].startswith(fence) else fence
                out.append(line)
            elif fence is not None:
                out.append(line)
            elif include:
                out += self.code(path, number, line, include[1])
                include = None
            elif match := CODE.fullmatch(line):
                include = match
            elif line == "<!-- tabs -->":
                out.append("::::::{tab-set}\n:sync-group: language")
                tabs, tab = True, False
            elif line == "<!-- /tabs -->":
                out += [":::::"] * tab + ["::::::"]
                tabs = False
            elif tabs and (match := TAB.fullmatch(line)):
                out += [self.links(path, number - 1, "\n".join(plain)), *[":::::"] * tab]
                out += [f":::::{{tab-item}} {match[1]}", f":sync: {match[1]}"]
                plain, tab = [], True
            else:
                plain.append(line)
        if fence is not None or tabs or include:
            self.fault(path, 1, "a code block, <!-- tabs --> or <!-- code --> does not end")
        return "\n".join(out)

    def source(self, path):
        """The page that shows a file or lists a folder."""
        full, here = ROOT / path, f"source/{path}"
        head = f"---\norphan: true\n---\n# {path}\n\n"
        if full.is_dir():
            files = sorted(p.relative_to(ROOT).as_posix() for p in full.rglob("*") if p.suffix in LANGUAGES)
            self.sources |= set(files)
            return head + "".join(f"- [{name}]({relative(f'source/{name}.md', here)})\n" for name in files)
        return head + f"````````{LANGUAGES.get(full.suffix, 'text')}\n{read(path)}````````\n"

    def trees(self):
        """The navigation."""
        text = ""
        for title, listed in self.sections:
            entries = "\n".join(document(page) if page.endswith(".md") else page for page in listed)
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n"
        return text

    def collect(self):
        """Returns the text of every page by its document name."""
        made = {document(path): self.page(path) for path in sorted(self.paths)}
        made[document(pages.HOME)] += self.trees()
        made |= {f"reference/c/{name}": text for name, text in c_reference.pages().items()}
        made |= pages.REFERENCES
        done = set()
        while missing := self.sources - done:
            for path in sorted(missing):
                made[f"source/{path}"] = self.source(path)
            done |= missing
        for path in sorted((ROOT / "examples/guide").glob("*.md")):
            name = path.relative_to(ROOT).as_posix()
            if name not in self.paths:
                self.fault(name, 1, "this page is not in the navigation (pages.py)")
        return made

    def write(self, output):
        made = self.collect()
        shutil.rmtree(output, ignore_errors=True)
        for name, text in made.items():
            file = output / f"{name}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for path, name in self.images.items():
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, output / name)
        listed = "".join(f"{link}  {place}\n" for link, place in sorted(self.external.items()))
        (output / "external-links.txt").write_text(listed, encoding="utf-8")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("output", nargs="?", type=Path)
    given = arguments.parse_args()
    site = Site()
    if given.check:
        site.collect()
    elif given.output:
        site.write(given.output)
    else:
        arguments.error("OUTPUT or --check is missing")
    print("\n".join(site.faults))
    return 1 if site.faults else 0


if __name__ == "__main__":
    sys.exit(main())
