"""How much of real files' words do the readers keep? `make bench-formats DATA=folder`."""

import email
import email.policy
import io
import json
import re
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path

from lxml import etree

from kb.errors import SourceError
from kb.intake.canonicalize.parsers import BUILT_IN, reader

WORD = re.compile(r"\w+")
PARTS = {
    ".docx": r"word/(document|footnotes|endnotes|comments)\.xml$",
    ".xlsx": r"xl/sharedStrings\.xml$",
    ".pptx": r"ppt/slides/slide\d+\.xml$",
    ".epub": r".*\.x?html$",
    ".odt": r"content\.xml$",
}
SKIPPED = {"delText", "instrText", "script", "style", "title", "Fallback", "posOffset", "fld"}


def raw_text(suffix: str, data: bytes) -> str:
    """The words that stand in the file's own XML, JSON or MIME."""
    if suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(data)["cells"])
    if suffix == ".eml":
        mail = email.message_from_bytes(data, policy=email.policy.default)
        part = mail.get_body(("plain",))
        return str(part.get_content()) if part is not None else ""
    texts = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        spine = spine_pages(archive) if suffix == ".epub" else None
        for name in archive.namelist():
            if name in spine if spine is not None else re.match(PARTS[suffix], name):
                texts += xml_texts(archive.read(name))
    return " ".join(texts) if suffix == ".xlsx" else "".join(texts)


def spine_pages(archive: zipfile.ZipFile) -> set[str]:
    """The pages that the book's spine lists; others are not part of what is read."""
    path = next(name for name in archive.namelist() if name.endswith(".opf"))
    package = etree.fromstring(archive.read(path))
    hrefs = {item.get("id"): item.get("href") for item in package.iter("{*}item")}
    folder = path.rpartition("/")[0]
    pages = [hrefs.get(entry.get("idref")) or "" for entry in package.iter("{*}itemref")]
    return {f"{folder}/{page}".lstrip("/") for page in pages if page.endswith("html")}


def xml_texts(data: bytes) -> list[str]:
    """The text nodes, blocks apart."""
    texts: list[str] = []
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    for event, element in etree.iterwalk(etree.fromstring(data, parser), events=("start", "end")):
        if not isinstance(element.tag, str):
            continue
        kind = element.tag.rpartition("}")[2]
        skipped = {above.tag.rpartition("}")[2] for above in element.iterancestors()} & SKIPPED
        if event == "start" and not skipped and kind not in SKIPPED:
            texts.append(element.text or "")
        elif event == "end":
            if kind in {"p", "tab", "br", "h1", "h2", "h3", "li", "td", "s"}:
                texts.append(" ")
            texts.append(element.tail or "" if not skipped else "")
    return texts


def main(folder: str) -> None:
    by_suffix = {f".{end}": own for own in BUILT_IN.values() for end in own.extensions}
    for suffix in (*PARTS, ".ipynb", ".eml"):
        read = reader(by_suffix[suffix])
        shares, spent = [], 0.0
        for path in sorted(Path(folder).rglob(f"*{suffix}")):
            data = path.read_bytes()
            start = time.process_time()
            try:
                text = read(data, path.name, None).markdown
            except SourceError as error:
                print(f"  {error}")
                continue
            spent += time.process_time() - start
            want, kept = Counter(WORD.findall(raw_text(suffix, data))), Counter(WORD.findall(text))
            if want:
                shares.append((want & kept).total() / want.total())
                if shares[-1] < 0.97:
                    print(f"  {path.name}: {shares[-1]:.3f}")
        if shares:
            mean = sum(shares) / len(shares)
            ms = 1000 * spent / len(shares)
            print(f"{suffix[1:]}: {mean:.4f} of the words, {len(shares)} files, {ms:.1f} ms each")


if __name__ == "__main__":
    main(sys.argv[1])
