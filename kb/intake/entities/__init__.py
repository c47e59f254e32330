"""Who and what is mentioned? Links, e-mail addresses, #hashtags and @-mentions. Pure."""

from kb.intake.entities.keys import fold_key, parse_entity_argument, parse_entity_prefix
from kb.intake.entities.mentions import MENTIONS_MAX, extract

__all__ = ["MENTIONS_MAX", "extract", "fold_key", "parse_entity_argument", "parse_entity_prefix"]
