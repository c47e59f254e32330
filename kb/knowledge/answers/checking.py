"""Check a model's sentences against the chunks that they cite."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import EmbedError, ModelMissing
from kb.knowledge.answers.answer import NOT_SAID, UNSUPPORTED, Sentence
from kb.knowledge.answers.citations import cited, without_citations
from kb.knowledge.answers.sentences import is_code, plain, sentences
from kb.knowledge.answers.support import Evidence, evidence, supports
from kb.model.search import Hit
from kb.model.text import indexed_text

if TYPE_CHECKING:
    from kb.intake.embed.protocol import Embedder

ANSWER_CHARS_MAX: Final = 20_000
NEAR_MIN: Final = {"onnx:all-MiniLM-L6-v2-int8:6b3e72af7bf8": 0.55}
"""By the model's fingerprint, the cosine from which on two texts are near: of the built-in one, as
scripts/eval_ask.py measured it. What it is for another model is not known."""
_COMPARED_MAX: Final = 20
_AROUND: Final = " \n\t.。!*_\"'`“”"

OnPart = Callable[[str], None]
"""Called with the next part of an answer, as it will stand in the whole."""


class CheckedAnswer(Struct, frozen=True, kw_only=True):
    """An answer with its unsupported sentences marked, and the sentences."""

    text: str
    sentences: tuple[Sentence, ...]
    """None where it only says that the sources do not say."""
    warnings: tuple[str, ...]


class CitationChecker:
    """Checks one answer against the chunks that the model was given."""

    def __init__(
        self, hits: Sequence[Hit], embedder: "Callable[[], Embedder] | None" = None
    ) -> None:
        self._hits = hits
        self._embedder = embedder
        self._evidence: dict[int, Evidence] = {}
        self._compared = 0
        self._rest = ""
        self._parts: list[str] = []
        self._sentences: list[Sentence] = []
        self._unknown: set[int] = set()

    def checked(self, pieces: Iterable[str], on_part: OnPart = lambda _: None) -> CheckedAnswer:
        """The whole answer; `on_part` is called with each sentence once it is whole and checked.

        What comes after ANSWER_CHARS_MAX characters is left out, with a warning.
        """
        room = ANSWER_CHARS_MAX
        is_cut = False
        for piece in pieces:
            self._rest += piece[:room]
            is_cut = len(piece) > room
            if is_cut:
                break
            room -= len(piece)
            self._check_whole(on_part, is_end=False)
        if not self._parts and _declines(self._rest):
            on_part(NOT_SAID)
            return CheckedAnswer(text=NOT_SAID, sentences=(), warnings=())
        self._check_whole(on_part, is_end=True)
        warnings: list[str] = []
        if self._unknown:
            named = ", ".join(f"[{n}]" for n in sorted(self._unknown))
            warnings.append(f"the answer cites what is no source: {named}")
        if is_cut:
            warnings.append(f"the answer was cut to its first {ANSWER_CHARS_MAX:,} characters")
        return CheckedAnswer(
            text="".join(self._parts),
            sentences=tuple(self._sentences),
            warnings=tuple(warnings),
        )

    def _check_whole(self, on_part: OnPart, *, is_end: bool) -> None:
        """Check the sentences that are complete, and keep the rest."""
        text, at = self._rest, 0
        spans = sentences(text)
        if not is_end:
            last = text[spans[-1].start :] if spans else ""
            # The last one may go on; so may code, and the citations of the one before.
            spans = spans[: -2 if last.startswith(("[", "【")) else -1]
            spans = [] if text.count("`") % 2 else spans
        for span in spans:
            gap = text[at : span.start] if self._parts else ""
            raw = text[span.start : span.end]
            sentence = self._checked(raw)
            self._sentences.append(sentence)
            self._parts.append(gap + raw)
            if not sentence.supported:
                self._parts[-1] += ("\n" if is_code(raw) else " ") + UNSUPPORTED
            on_part(self._parts[-1])
            at = span.end
        self._rest = text[at:]

    def _checked(self, raw: str) -> Sentence:
        numbers = cited(raw)
        citations = tuple(n for n in numbers if 1 <= n <= len(self._hits))
        self._unknown.update(set(numbers) - set(citations))
        text = without_citations(raw)
        text = text if is_code(raw) else plain(text)
        supported = bool(citations) and citations == numbers and self._supports(citations, text)
        return Sentence(text=text, citations=citations, supported=supported)

    def _supports(self, numbers: Sequence[int], text: str) -> bool:
        for n in numbers:
            if n not in self._evidence:
                hit = self._hits[n - 1]
                self._evidence[n] = evidence(indexed_text(hit.title, hit.heading, hit.text))
        return supports([self._evidence[n] for n in numbers], text, self._is_near)

    def _is_near(self, text: str, others: Sequence[str]) -> bool:
        if self._embedder is None or not others or self._compared == _COMPARED_MAX:
            return False
        self._compared += 1
        try:
            embedder = self._embedder()
            threshold = NEAR_MIN.get(embedder.fingerprint)
            if threshold is None:
                return False
            vectors = embedder.embed_documents([text, *others])
        except (EmbedError, ModelMissing):
            # Then words alone decide, as they did in the search, which has said so.
            return False
        return float((vectors[1:] @ vectors[0]).max()) >= threshold


def _declines(text: str) -> bool:
    """Whether an answer is the one reply that says that the sources do not say."""
    bare = without_citations(text).strip(_AROUND)
    return " ".join(bare.split()).casefold() == NOT_SAID
