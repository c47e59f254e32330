"""Renders subjects: text as it is, code in a fence, tags that no text can break. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from kb.knowledge.topics.records import Topic, TopicRow

_AS_IT_IS: Final = frozenset(("md", "txt", "text", ""))
_LANGUAGES: Final = {
    "yml": "yaml",
    "rs": "rust",
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
}
_LANGUAGE: Final = re.compile(r"[a-z0-9][a-z0-9_+#-]{0,31}")
_FENCE_MIN: Final = 3
_OUR_TAG: Final = re.compile(r"<(?=[\s/]{0,8}(?:knowledge|topic|subject)\b)", re.IGNORECASE)
_LABEL: Final = str.maketrans({'"': "&quot;", "<": "&lt;", ">": "&gt;"})


def fenced(text: str, extension: str) -> str:
    """Prose as it is; other files in a fence that nothing in them can close."""
    if extension in _AS_IT_IS:
        return text
    language = _LANGUAGES.get(extension, extension)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(_FENCE_MIN, longest + 1)
    return f"{fence}{language if _LANGUAGE.fullmatch(language) else ''}\n{_ended(text)}{fence}\n"


def tagged(tag: str, label: str, body: str) -> str:
    """A body between an opening tag with its label and a closing one, each on its own line."""
    return f'<{tag} "{label.translate(_LABEL)}">\n{_ended(body)}</{tag}>\n'


def harmless(text: str) -> str:
    """Text that cannot open or close our tags: their first bracket becomes `&lt;`."""
    return _OUR_TAG.sub("&lt;", text)


def topic_bullet(topic: Topic | TopicRow) -> str:
    """A topic in a list, on one line."""
    title = f" (**{topic.title}**)" if topic.title else ""
    introduction = f": {topic.introduction}" if topic.introduction else ""
    return f"- {topic.id}{title}{introduction}"


def bullets(heading: str, slugs: Iterable[str]) -> str:
    """A heading with a list of slugs below it; nothing where there are none."""
    rows = "".join(f"- {slug}\n" for slug in slugs)
    return f"## {heading}:\n\n{rows}" if rows else ""


def start_of(text: str, bytes_max: int) -> str:
    """As much of the beginning as fits, in whole characters; at least one."""
    cut = text.encode()[: max(bytes_max, 0)].decode(errors="ignore")
    return cut or text[:1]


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
