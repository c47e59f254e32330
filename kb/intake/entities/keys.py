"""When are two entities the same? If their folded keys are equal."""

import re
import unicodedata
from typing import assert_never

from kb.intake.entities.patterns import URL
from kb.model.text import EntityKind


def fold_key(kind: EntityKind, surface: str) -> str:
    """`kind:folded`, equal for names that a reader takes for the same entity.

    Names and addresses lose their case, compatibility forms and mark (# or @). Links lose the case
    of scheme and host, and a slash at the end; query and fragment stay.
    """
    match kind:
        case "url":
            return f"url:{_fold_url(surface)}"
        case "email":
            return f"email:{_fold(surface)}"
        case "hashtag":
            return f"hashtag:{_fold(surface).removeprefix('#')}"
        case "mention":
            return f"mention:{_fold(surface).removeprefix('@')}"
        case _:
            assert_never(kind)


def parse_entity_argument(arg: str) -> tuple[str, ...]:
    """The keys of the entities that a person may mean; empty if there are none.

    A mark or the form decides the kind; a bare word may be a hashtag or a mention.
    """
    word = arg.strip()
    if re.match(URL, word):
        return (fold_key("url", word),)
    if len(word) > 1 and word[0] in "#＃":
        return (fold_key("hashtag", word),)
    if len(word) > 1 and word[0] in "@＠":
        return (fold_key("mention", word),)
    if "@" in word[1:-1]:
        return (fold_key("email", word),)
    if not word.strip("#＃@＠"):
        return ()
    return fold_key("hashtag", word), fold_key("mention", word)


def parse_entity_prefix(arg: str) -> tuple[str, ...]:
    """The beginnings of the keys of all entities whose name starts with `arg`, sorted.

    A mark or a scheme decides the kind; without one, any kind is possible, and an empty `arg` means
    all.
    """
    start = arg.strip()
    if "://" in start:
        return (f"url:{_fold_url(start)}",)
    if start[:1] in ("#", "＃"):
        return (f"hashtag:{_fold(start[1:])}",)
    if start[:1] in ("@", "＠"):
        return (f"mention:{_fold(start[1:])}",)
    kinds: tuple[EntityKind, ...] = ("email", "hashtag", "mention", "url")
    return tuple(f"{kind}:{_fold(start)}" for kind in kinds)


def _fold(name: str) -> str:
    # Case folding can undo the normal form, so normalise again.
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded)


def _fold_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    cut = min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    # A path that is only a slash, or ends in one, names the same page without it.
    return f"{scheme.lower()}://{rest[:cut].lower()}{rest[cut:].rstrip('/')}"
