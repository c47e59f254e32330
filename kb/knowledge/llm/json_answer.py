"""The JSON object in a model's answer, which may have words and a fence around it."""

from typing import Final

from kb.errors import BadAnswer
from kb.intake.model_server.peer import one_line
from kb.model.decoding import decode_json

ANSWER_CHARS_MAX: Final = 1 << 20
_FENCE: Final = "```"
_PLACE: Final = "the language model"


def json_of(text: str) -> dict[str, object]:
    """The one object of an answer that should be JSON.

    It removes one markdown fence, and the text before the first `{` and after the last `}`; the
    rest must be one complete object. If it is not, or is over ANSWER_CHARS_MAX characters, raises
    BadAnswer with the start of the text.
    """
    if len(text) > ANSWER_CHARS_MAX:
        raise BadAnswer(f"the answer is over {ANSWER_CHARS_MAX:,} characters", place=_PLACE)
    inside = _unfenced(text)
    candidate = inside[inside.find("{") : inside.rfind("}") + 1] if "{" in inside else ""
    try:
        return decode_json(candidate, dict[str, object])
    except (ValueError, RecursionError):
        detail = f"the answer is not one JSON object; it begins: {one_line(text)}"
    raise BadAnswer(detail, place=_PLACE)


def _unfenced(text: str) -> str:
    """The text between the two lines of a fence; the whole text without exactly two."""
    lines = text.split("\n")
    # No line inside a JSON text can begin with a fence: strings escape newlines.
    fences = [at for at, line in enumerate(lines) if line.lstrip().startswith(_FENCE)]
    if len(fences) != 2:
        return text
    first, last = fences
    return "\n".join(lines[first + 1 : last])
