"""Does every link inside the pages lead somewhere, and does no page load anything from a network? Fails the build."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.errors import SphinxError

#: Attributes by which an element loads something, in place of leading to it.
LOADING = {("link", "href"), ("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src")}
#: Links that tell and load nothing.
TELLING = {"canonical", "license", "author"}


class Page(HTMLParser):
    """The places of a page that links can lead to, its links, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.places, self.links, self.loads = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Collect ids, links and loads."""
        found = dict(attrs)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        for name in ("href", "src"):
            if found.get(name) is None or found.get("rel") in TELLING:
                continue
            self.links.append(found[name])
            if (tag, name) in LOADING:
                self.loads.append(found[name])


def problems(folder):
    """Return what is wrong with the links of the pages in a folder, a sentence each."""
    folder = Path(folder).resolve()
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        found += [f"{name} loads {link} from a network" for link in page.loads if urlsplit(link).netloc]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name} links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name} links to {link}, and that page has no such place")
    return found


def _check(app, error):
    if error is None and app.builder.name == "html":
        found = problems(app.outdir)
        if found:
            raise SphinxError("\n".join(found))


def setup(app):
    """Look at the pages when they are all written."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True}
