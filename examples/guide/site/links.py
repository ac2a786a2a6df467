#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the links between the HTML pages of the site, and that no page loads anything from another host.

usage: links.py HTML

Pages in the folders doxygen and java are made by other programs. Links to them are checked, but not those in them.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FOREIGN = ("doxygen", "java")
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in LOADED and found.get(LOADED[tag]):
            self.loaded.append(found[LOADED[tag]])


def faults_of(html):
    read = {}

    def page(path):
        if path not in read:
            read[path] = Page(path)
        return read[path]

    pages = [path for path in sorted(html.rglob("*.html")) if path.relative_to(html).parts[0] not in FOREIGN]
    for path in pages:
        shown = path.relative_to(html)
        for link in page(path).loaded:
            if urlsplit(link).netloc:
                yield f"{shown}: loads {link} from another host"
        for link in page(path).links + page(path).loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if to.is_dir():
                to /= "index.html"
            if not to.is_file():
                yield f"{shown}: {link} leads nowhere"
            elif parts.fragment and to.suffix == ".html" and unquote(parts.fragment) not in page(to).ids:
                yield f"{shown}: {link} names a part that the page does not have"
    if not pages:
        yield "the site has no pages"


def main(html):
    faults = list(dict.fromkeys(faults_of(html.resolve())))
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
