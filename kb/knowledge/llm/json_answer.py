"""The JSON object in a model's answer, which may have words and a fence around it."""

from typing import Final

import msgspec

from kb.errors import BadAnswer
from kb.knowledge.llm.peer import one_line

ANSWER_CHARS_MAX: Final = 1 << 20
_FENCE: Final = "```"
_PLACE: Final = "the language model"


def json_of(text: str) -> dict[str, object]:
    """The one object of an answer that was to be JSON.

    One markdown fence is taken off, and so is what stands before the first `{` and behind the
    last `}`; what lies between must be one object, whole. Raises BadAnswer with the start of the
    text where it is not, or is over ANSWER_CHARS_MAX characters.
    """
    if len(text) > ANSWER_CHARS_MAX:
        raise BadAnswer(f"the answer is over {ANSWER_CHARS_MAX:,} characters", place=_PLACE)
    inside = _unfenced(text)
    candidate = inside[inside.find("{") : inside.rfind("}") + 1] if "{" in inside else ""
    try:
        return msgspec.json.decode(candidate, type=dict[str, object])
    except (ValueError, RecursionError):
        detail = f"the answer is not one JSON object; it begins: {one_line(text)}"
    raise BadAnswer(detail, place=_PLACE)


def _unfenced(text: str) -> str:
    """What stands between the two lines that are a fence; all of it where there are not two."""
    lines = text.split("\n")
    # No line inside a JSON text can begin so: in strings, newlines are escaped.
    fences = [at for at, line in enumerate(lines) if line.lstrip().startswith(_FENCE)]
    if len(fences) != 2:
        return text
    first, last = fences
    return "\n".join(lines[first + 1 : last])
