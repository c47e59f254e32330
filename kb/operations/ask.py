"""`kb_ask`: what the sources say to a question, each sentence with its citations."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from kb.knowledge.answers import Answer, ask
from kb.model.doc import Scope
from kb.operations import search
from kb.operations.fields import Kinds, Sources, Tags, TokensMax
from kb.operations.kit import ToolKit
from kb.operations.search import DocIds, Packs, SearchInput

K_DEFAULT: Final = 6
TOKENS_DEFAULT: Final = 3_000

Question = Annotated[
    str, Meta(max_length=8_192, description="The question, as one would ask a person.")
]
Passages = Annotated[int, Meta(ge=1, le=50, description="How many passages are read for it.")]


class AskInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, and which passages are read for it."""

    question: Question
    k: Passages = K_DEFAULT
    max_tokens: Annotated[
        TokensMax,
        Meta(description="About how many tokens the passages may have together."),
    ] = TOKENS_DEFAULT
    tags: Tags = ()
    kinds: Kinds = ()
    doc_ids: DocIds = ()
    packs: Packs = ()
    sources: Sources = ()
    with_text: Annotated[bool, Meta(description="Give the text of each source, too.")] = False

    @property
    def search(self) -> SearchInput:
        """The search that brings the passages."""
        return SearchInput(
            query=self.question,
            k=self.k,
            max_tokens=self.max_tokens,
            tags=self.tags,
            kinds=self.kinds,
            doc_ids=self.doc_ids,
            packs=self.packs,
            sources=self.sources,
        )


AskOutput = Answer


def run(kit: ToolKit, request: AskInput, scope: Scope) -> AskOutput:
    """An answer from the passages that a scope sees, by the home's language model if it has one.

    Without one, or where it fails, the answer is extracts. Raises what a search raises.
    """
    found = search.run(kit, request.search, scope)
    return ask(request.question, found, kit.answer_resources, scope, with_text=request.with_text)
