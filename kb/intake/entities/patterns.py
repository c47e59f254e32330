"""What does an entity look like? Bounded patterns, none with a repetition inside a repetition."""

import string
from typing import Final

URL_CHARS_MAX: Final = 2048
NAME_CHARS_MAX: Final = 100

# White space, quotes, square and angle brackets and CJK punctuation end a link. Other brackets
# are counted by the caller, as only one that was opened inside belongs to it.
_CJK_MARKS = r"\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_URL_CHAR = rf"[^\s<>\[\](){{}}\"`\x00-\x1f“”‘’{_CJK_MARKS}]"

URL: Final = r"(?i)https?://(?:\[[0-9A-Fa-f:.]{2,45}\]|\w)"
URL_RUN: Final = rf"{_URL_CHAR}{{1,{URL_CHARS_MAX}}}"
# An address is read from its sign on, forwards and backwards: a long run of characters that may
# stand in a name is then not tried from each of them.
EMAIL_LOCAL_CHARS: Final = string.ascii_letters + string.digits + "._%+-"
EMAIL_DOMAIN: Final = r"@([A-Za-z0-9.\-]{1,253})"
HASHTAG: Final = rf"[#＃]([\w\-]{{1,{NAME_CHARS_MAX}}})"
MENTION: Final = rf"[@＠]([\w.\-]{{1,{NAME_CHARS_MAX}}})"

# What may begin an entity, looked for from left to right.
SIGNAL: Final = r"(?i)[#@＃＠]|https?://"
